//! The page of a list that a request names. A value out of bounds is refused, not clamped.

use serde_json::value::RawValue;
use skillet_core::rest::Page;

use crate::{error::ApiError, rest::params::Params};

/// Most bytes of inputs and outputs, or of schemas, in one list; what is more is left out and asked for by name.
pub(crate) const CONTENT: usize = 8 << 20;

/// Takes the size of both documents from the bytes that are left, if they are enough.
pub(crate) fn take_bytes(left: &mut usize, documents: &[&Option<Box<RawValue>>]) -> bool {
    let bytes = documents.iter().copied().flatten().map(|document| document.get().len()).sum();
    let rest = left.checked_sub(bytes);
    *left = rest.unwrap_or(*left);
    rest.is_some()
}

/// Takes `page` and `limit` out of the parameters.
pub(crate) fn take(params: &mut Params) -> Result<Page, ApiError> {
    let (page, limit) = (params.take("page")?, params.take("limit")?);
    Page::read(page.as_deref(), limit.as_deref())
        .map_err(|error| ApiError::bad_request(error.to_string()).at(error.field))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<Page, ApiError> {
        take(&mut Params::read(query).unwrap())
    }

    #[test]
    fn page_and_limit_have_defaults_and_bounds() {
        let page = |number, limit| Ok(Page { number, limit });
        assert_eq!(read(""), page(1, 50));
        assert_eq!(read("page=3&limit=200"), page(3, 200));
        for (query, field) in [
            ("page=0", "page"),
            ("page=-1", "page"),
            ("page=", "page"),
            ("page=1&page=1", "page"),
            ("page=99999999999999999999999", "page"),
            ("limit=0", "limit"),
            ("limit=201", "limit"),
            ("limit=ten", "limit"),
            ("limit=1.5", "limit"),
        ] {
            let error = read(query).unwrap_err();
            assert_eq!((error.status.as_u16(), error.field.as_deref()), (400, Some(field)), "{query}");
        }
    }
}
