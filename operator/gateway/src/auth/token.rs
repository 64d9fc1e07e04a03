//! Finds the token of a request, tells its kind, and keeps it from model providers.
//!
//! Pure. Whether a token is known is not decided here.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use http::HeaderMap;
use jiff::Timestamp;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use skillet_api::names;
use skillet_core::api_key::{KeyHash, KeyText, PREFIX};

use super::{AuthError, Authenticated};

/// The gateway's own header. With it, every other place is the client's, for a provider.
pub const SKILLET_TOKEN: &str = "x-skillet-token";
/// Query parameter in which old clients of Google have their key.
pub const QUERY_PARAMETER: &str = "key";

const AUTHORIZATION: &str = "authorization";
/// Headers in the order in which they are looked into.
const HEADERS: [&str; 4] = [SKILLET_TOKEN, AUTHORIZATION, "x-api-key", "x-goog-api-key"];

/// A token and where it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PresentedToken<'a> {
    pub(super) text: &'a str,
    pub(super) place: &'static str,
}

/// Returns the token of the first place that holds one. A valid token elsewhere never replaces an unknown token.
pub(super) fn presented<'a>(
    headers: &'a HeaderMap,
    query: Option<&'a str>,
) -> Result<PresentedToken<'a>, AuthError> {
    for place in HEADERS {
        if let Some(text) = in_header(headers, place)? {
            return Ok(PresentedToken { text, place });
        }
    }
    let mut values = query.into_iter().flat_map(|query| query.split('&')).filter_map(key_value);
    match (values.next(), values.next()) {
        (Some(text), None) => Ok(PresentedToken { text, place: QUERY_PARAMETER }),
        (Some(_), Some(_)) => Err(AuthError::Unknown),
        (None, _) => Err(AuthError::Missing),
    }
}

fn in_header<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, AuthError> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    // Of two values another proxy may have checked the other one.
    if values.next().is_some() {
        return Err(AuthError::Unknown);
    }
    let text = value.to_str().map_err(|_| AuthError::Unknown)?;
    let token = if name == AUTHORIZATION { bearer(text) } else { Some(text.trim()) };
    Ok(token.filter(|token| !token.is_empty()))
}

fn bearer(text: &str) -> Option<&str> {
    let (scheme, token) = text.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The value of a parameter `key` that is not empty. Tokens hold no character that a URL would escape.
fn key_value(parameter: &str) -> Option<&str> {
    let (name, value) = parameter.split_once('=')?;
    (name == QUERY_PARAMETER && !value.is_empty()).then_some(value)
}

/// A token by its form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Credential {
    ApiKey(KeyHash),
    /// A text with a key's prefix and not its form or checksum.
    MistypedKey,
    ServiceAccount(TokenClaims),
}

/// The claims of a service-account token. They count only after the API server has reviewed the token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TokenClaims {
    /// sha256 of the text: the token itself is kept nowhere.
    pub(super) digest: [u8; 32],
    pub(super) expires: Option<Timestamp>,
}

#[derive(Deserialize)]
struct Claims {
    aud: Audience,
    exp: Option<i64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Many(Vec<String>),
}

impl Audience {
    fn is_ours(&self) -> bool {
        match self {
            Audience::One(one) => one == names::GATEWAY_AUDIENCE,
            Audience::Many(many) => many.iter().any(|one| one == names::GATEWAY_AUDIENCE),
        }
    }
}

/// The kind of a token; none for what was not made for the gateway. A provider's key that a client has put into the
/// wrong header must not be shown to the API server, which may write it into its audit log.
pub(super) fn credential(text: &str) -> Option<Credential> {
    if text.starts_with(PREFIX) {
        let key = KeyText::parse(text);
        return Some(key.map_or(Credential::MistypedKey, |key| Credential::ApiKey(key.hash())));
    }
    let claims = claims(text)?;
    let expires = claims.exp.map(Timestamp::from_second).transpose().ok()?;
    let token = TokenClaims { digest: Sha256::digest(text).into(), expires };
    claims.aud.is_ours().then_some(Credential::ServiceAccount(token))
}

/// Returns true for a token of the form of a service account's that was made for somebody else.
pub(super) fn has_other_audience(text: &str) -> bool {
    claims(text).is_some_and(|claims| !claims.aud.is_ours())
}

fn claims(text: &str) -> Option<Claims> {
    let mut parts = text.split('.');
    let (Some(_), Some(payload), Some(_), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return None;
    };
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()
}

impl Authenticated {
    /// Takes out of the headers what a provider must not see: the token that was used, and whatever else was made for
    /// the gateway, such as the same key in a second header. A provider's own key stays.
    pub fn strip_token(&self, headers: &mut HeaderMap) {
        for name in HEADERS {
            let is_ours = match in_header(headers, name) {
                Ok(Some(text)) => credential(text).is_some(),
                Ok(None) => false,
                // Unreadable or twice: nobody can say whose it is.
                Err(_) => true,
            };
            if is_ours || name == self.token_header || name == SKILLET_TOKEN {
                headers.remove(name);
            }
        }
    }

    /// Path and query for the provider, without a token that was for the gateway.
    pub fn path_without_token(&self, uri: &http::Uri) -> String {
        match uri.query().map(|query| self.strip_token_from_query(query)) {
            Some(query) if !query.is_empty() => format!("{}?{query}", uri.path()),
            Some(_) | None => uri.path().to_owned(),
        }
    }

    /// The query without what a provider must not see.
    pub fn strip_token_from_query(&self, query: &str) -> String {
        let is_used = self.token_header == QUERY_PARAMETER;
        let is_ours = |value: &str| is_used || credential(value).is_some();
        let kept: Vec<&str> =
            query.split('&').filter(|parameter| !key_value(parameter).is_some_and(is_ours)).collect();
        kept.join("&")
    }
}

#[cfg(test)]
mod tests;
