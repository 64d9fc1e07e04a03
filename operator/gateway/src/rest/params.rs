//! The parts of a request beside its body: query parameters, names in the path, the caller.
//!
//! A parameter that is not known is refused: a filter with a typing error must not answer everything.

use axum::{
    extract::{FromRequestParts, Path, Query},
    http::{Uri, request::Parts},
};

use serde::de::{DeserializeOwned, value};

use crate::{auth::Caller, error::ApiError, service::SkillService};

/// Query parameters that were not taken yet, and the names of those that the route takes.
#[derive(Debug)]
pub(crate) struct Params {
    left: Vec<(String, String)>,
    known: Vec<&'static str>,
}

impl Params {
    /// Takes one parameter out.
    pub(crate) fn take(&mut self, name: &'static str) -> Result<Option<String>, ApiError> {
        self.known.push(name);
        let mut found = self.left.extract_if(.., |(given, _)| given == name);
        let first = found.next().map(|(_, value)| value);
        if found.next().is_some() {
            return Err(ApiError::bad_request(format!("{name} is given more than once")).at(name));
        }
        Ok(first)
    }

    /// Takes one parameter out whose value is a word of an enum.
    pub(crate) fn take_word<T: DeserializeOwned>(
        &mut self,
        name: &'static str,
    ) -> Result<Option<T>, ApiError> {
        let Some(text) = self.take(name)? else { return Ok(None) };
        let word = T::deserialize(value::StrDeserializer::<value::Error>::new(&text));
        word.map(Some).map_err(|error| {
            let error = error.to_string();
            let expected = error.split_once("expected ").map_or("another word", |(_, expected)| expected);
            ApiError::bad_request(format!("{name} is {text:?}; expected {}", expected.replace('`', "")))
                .at(name)
        })
    }

    /// Takes `namespace`, the last parameter that is expected.
    pub(crate) fn take_namespace(mut self) -> Result<Option<String>, ApiError> {
        let namespace = self.take("namespace")?;
        self.finish()?;
        Ok(namespace)
    }

    /// Refuses what nobody took.
    pub(crate) fn finish(self) -> Result<(), ApiError> {
        let Some((name, _)) = self.left.into_iter().next() else { return Ok(()) };
        let known = if self.known.is_empty() { "none".to_owned() } else { self.known.join(", ") };
        Err(ApiError::bad_request(format!("{name:?} is no query parameter of this path; it takes {known}"))
            .at(name))
    }

    fn of(uri: &Uri) -> Result<Self, ApiError> {
        let pairs = Query::try_from_uri(uri)
            .map_err(|error| ApiError::bad_request(format!("the query cannot be read: {error}")))?;
        Ok(Self { left: pairs.0, known: Vec::new() })
    }

    #[cfg(test)]
    pub(crate) fn read(query: &str) -> Result<Self, ApiError> {
        Self::of(&format!("/?{query}").parse().unwrap())
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Self::of(&parts.uri)
    }
}

/// The name in the path. One that no object can have is simply not there.
#[derive(Debug)]
pub(crate) struct ObjectName(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for ObjectName {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        match Path::<String>::from_request_parts(parts, state).await {
            Ok(Path(name)) if is_object_name(&name) => Ok(Self(name)),
            // A path of text that is no name must not become another path of the API server.
            Ok(_) | Err(_) => Err(ApiError::not_found("there is nothing of this name")),
        }
    }
}

fn is_object_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    let are_ends_plain =
        bytes.first().copied().is_some_and(is_plain) && bytes.last().copied().is_some_and(is_plain);
    are_ends_plain && bytes.len() <= 253 && bytes.iter().all(|byte| is_plain(*byte) || b"-.".contains(byte))
}

/// The caller. It is the first argument of every handler: nobody unknown learns what is wrong with a request.
#[derive(Debug)]
pub(crate) struct AuthenticatedCaller(pub(crate) Caller);

impl FromRequestParts<SkillService> for AuthenticatedCaller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, service: &SkillService) -> Result<Self, ApiError> {
        Ok(Self(service.authenticate(&parts.headers).await?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rest::Mode;

    #[test]
    fn parameters_are_taken_once_and_the_rest_is_refused() {
        let mut params = Params::read("a=1&b=%C3%A9&a=2").unwrap();
        assert_eq!(params.take("b").unwrap().as_deref(), Some("é"));
        assert_eq!(params.take("b").unwrap(), None);
        assert_eq!(params.take("a").unwrap_err().field.as_deref(), Some("a"));
        assert!(params.finish().is_ok());
        let mut params = Params::read("limt=3").unwrap();
        assert_eq!(params.take("limit").unwrap(), None);
        let left = params.finish().unwrap_err();
        assert_eq!((left.status.as_u16(), left.field.as_deref()), (400, Some("limt")));
        assert_eq!(left.message, "\"limt\" is no query parameter of this path; it takes limit");
    }

    #[test]
    fn a_word_outside_the_list_is_refused_with_the_list() {
        let read = |query: &str| Params::read(query).unwrap().take_word::<Mode>("mode");
        assert_eq!(read("mode=off").unwrap(), Some(Mode::Off));
        assert_eq!(read("").unwrap(), None);
        let error = read("mode=ON").unwrap_err();
        assert_eq!(error.message, "mode is \"ON\"; expected one of on, auto, off");
        assert_eq!(error.field.as_deref(), Some("mode"));
    }

    #[test]
    fn only_what_can_be_an_objects_name_is_one() {
        for good in ["a", "sum-1", "call-0f", "a.b", "1"] {
            assert!(is_object_name(good), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a/b", "..", "a b", "é", &"a".repeat(254)] {
            assert!(!is_object_name(bad), "{bad}");
        }
    }
}
