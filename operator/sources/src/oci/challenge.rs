//! The header with which a registry says how it is asked: `WWW-Authenticate`. Pure.

use reqwest::header::{HeaderMap, WWW_AUTHENTICATE};

/// A way to authenticate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    Basic,
    /// A server of tokens, and what it needs.
    Bearer {
        realm: String,
        service: Option<String>,
        scope: Option<String>,
    },
}

/// Returns the first challenge that a client can answer; that of tokens counts before that of passwords.
pub(super) fn challenge(headers: &HeaderMap) -> Option<Challenge> {
    let all = || headers.get_all(WWW_AUTHENTICATE).into_iter().filter_map(|value| value.to_str().ok());
    all().find_map(bearer).or_else(|| all().find_map(basic))
}

fn basic(header: &str) -> Option<Challenge> {
    scheme(header, "basic").map(|_| Challenge::Basic)
}

fn bearer(header: &str) -> Option<Challenge> {
    let parameters = parameters(scheme(header, "bearer")?);
    let value = |name: &str| {
        let found = parameters.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.clone())
    };
    Some(Challenge::Bearer { realm: value("realm")?, service: value("service"), scope: value("scope") })
}

/// The parameters of a challenge of this scheme.
fn scheme<'a>(header: &'a str, scheme: &str) -> Option<&'a str> {
    let (first, rest) = header.trim().split_once(' ').unwrap_or((header.trim(), ""));
    first.eq_ignore_ascii_case(scheme).then_some(rest)
}

/// Names and values; a value in quotes may have commas.
fn parameters(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = text.trim();
    while let Some((name, after)) = rest.split_once('=') {
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => after.split_once(',').unwrap_or((after, "")),
        };
        found.push((name.trim().to_owned(), value.trim().to_owned()));
        rest = after.trim_start_matches([',', ' ']);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(headers: &[&str]) -> Option<Challenge> {
        let mut map = HeaderMap::new();
        for header in headers {
            map.append(WWW_AUTHENTICATE, header.parse().unwrap());
        }
        challenge(&map)
    }

    fn token(realm: &str, service: Option<&str>, scope: Option<&str>) -> Challenge {
        let text = |text: Option<&str>| text.map(ToOwned::to_owned);
        Challenge::Bearer { realm: realm.to_owned(), service: text(service), scope: text(scope) }
    }

    #[test]
    fn challenges_of_registries_are_read() {
        let whole = r#"Bearer realm="https://a/token",service="r",scope="repository:x:pull,push""#;
        assert_eq!(read(&[whole]), Some(token("https://a/token", Some("r"), Some("repository:x:pull,push"))));
        assert_eq!(read(&["bearer realm=https://a, service=b"]), Some(token("https://a", Some("b"), None)));
        assert_eq!(
            read(&["Basic realm=\"x\"", "Bearer realm=\"https://a\""]),
            Some(token("https://a", None, None))
        );
        assert_eq!(read(&["BASIC realm=\"x\""]), Some(Challenge::Basic));
        for header in ["Bearer", "Bearer service=\"x\"", "Negotiate", ""] {
            assert_eq!(read(&[header]), None, "{header}");
        }
        assert_eq!(read(&["Bearer realm=\"https://a"]), Some(token("https://a", None, None)));
    }
}
