//! Pages of a list: `page` from 1, `limit` from 1 to 200. What is out of these bounds is refused, not bent.

use crate::{error::ApiError, rest::params::Params};

const DEFAULT_LIMIT: usize = 50;
const MAX_LIMIT: usize = 200;

/// Which part of a list is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) number: usize,
    pub(crate) limit: usize,
}

impl Page {
    /// Takes `page` and `limit` out of the parameters.
    pub(crate) fn take(params: &mut Params) -> Result<Self, ApiError> {
        let number = whole(params, "page", 1, u32::MAX as usize)?.unwrap_or(1);
        let limit = whole(params, "limit", 1, MAX_LIMIT)?.unwrap_or(DEFAULT_LIMIT);
        Ok(Self { number, limit })
    }

    /// The part of `all` that is on this page.
    pub(crate) fn of<T>(self, all: impl IntoIterator<Item = T>) -> Vec<T> {
        let before = (self.number - 1).saturating_mul(self.limit);
        all.into_iter().skip(before).take(self.limit).collect()
    }

    /// How many pages `total` items fill.
    pub(crate) fn count(self, total: usize) -> usize {
        total.div_ceil(self.limit)
    }
}

fn whole(params: &mut Params, name: &'static str, min: usize, max: usize) -> Result<Option<usize>, ApiError> {
    let Some(text) = params.take(name)? else { return Ok(None) };
    let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<usize>() {
        Ok(number) if is_digits && (min..=max).contains(&number) => Ok(Some(number)),
        _ => {
            let message = format!("{name} must be a whole number from {min} to {max}");
            Err(ApiError::bad_request(message).at(name))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<Page, ApiError> {
        Page::take(&mut Params::read(query).unwrap())
    }

    #[test]
    fn page_and_limit_have_defaults_and_bounds() {
        let page = |number, limit| Ok(Page { number, limit });
        assert_eq!(read(""), page(1, 50));
        assert_eq!(read("page=3&limit=200"), page(3, 200));
        for (query, field) in [
            ("page=0", "page"),
            ("page=-1", "page"),
            ("page=%2B1", "page"),
            ("page=", "page"),
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

    #[test]
    fn a_list_is_cut_into_pages() {
        let page = |number| Page { number, limit: 3 };
        assert_eq!(page(1).of(0..7), [0, 1, 2]);
        assert_eq!(page(3).of(0..7), [6]);
        assert!(page(4).of(0..7).is_empty());
        assert!(Page { number: u32::MAX as usize, limit: 200 }.of(0..7).is_empty());
        assert_eq!([0, 1, 3, 7].map(|total| page(1).count(total)), [0, 1, 1, 3]);
    }
}
