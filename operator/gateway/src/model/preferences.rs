//! Headers in which a request says what it wants of its skills.

use http::HeaderMap;
use skillet_offer::SkillFilter;

use crate::error::ApiError;

/// Names the skills of a request: `off`, `all`, `only=a,b` (those of these that fit) or `exactly=a,b`.
pub const SKILLS_HEADER: &str = "x-skillet-skills";
/// `off` leaves out the skills of the caller's own namespace.
pub const OWN_SKILLS_HEADER: &str = "x-skillet-own-skills";

/// A request's preferences about its skills.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkillPreferences {
    pub filter: SkillFilter,
    pub without_own_skills: bool,
}

impl SkillPreferences {
    /// Reads the headers of a request.
    pub fn of(headers: &HeaderMap) -> Result<Self, ApiError> {
        let text =
            |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("?").trim().to_owned());
        let filter = match text(SKILLS_HEADER) {
            None => SkillFilter::All,
            Some(text) => filter(&text).ok_or_else(|| {
                ApiError::bad_request(format!("{text:?} is none of off, all, only=a,b and exactly=a,b"))
                    .at(SKILLS_HEADER)
            })?,
        };
        let without_own_skills = match text(OWN_SKILLS_HEADER).as_deref() {
            None | Some("on") => false,
            Some("off") => true,
            Some(other) => {
                return Err(
                    ApiError::bad_request(format!("{other:?} is neither on nor off")).at(OWN_SKILLS_HEADER)
                );
            }
        };
        Ok(Self { filter, without_own_skills })
    }
}

fn filter(text: &str) -> Option<SkillFilter> {
    let names = |list: &str| -> Vec<String> {
        list.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
    };
    match text.split_once('=') {
        None if text == "off" => Some(SkillFilter::Off),
        None if text == "all" => Some(SkillFilter::All),
        Some(("only", list)) => Some(SkillFilter::Only(names(list))),
        Some(("exactly", list)) => Some(SkillFilter::Exactly(names(list))),
        None | Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    fn preferences(name: &'static str, value: &'static str) -> Result<SkillPreferences, ApiError> {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        SkillPreferences::of(&headers)
    }

    #[test]
    fn a_request_names_the_skills_it_wants() {
        let names = |list: &[&str]| list.iter().map(|name| (*name).to_owned()).collect();
        for (value, filter) in [
            ("off", SkillFilter::Off),
            ("all", SkillFilter::All),
            ("only=a, b,", SkillFilter::Only(names(&["a", "b"]))),
            ("exactly=a", SkillFilter::Exactly(names(&["a"]))),
        ] {
            assert_eq!(preferences(SKILLS_HEADER, value).unwrap().filter, filter, "{value}");
        }
        assert_eq!(SkillPreferences::of(&HeaderMap::new()).unwrap(), SkillPreferences::default());
        assert!(preferences(OWN_SKILLS_HEADER, "off").unwrap().without_own_skills);
    }

    #[test]
    fn a_wish_that_cannot_be_read_names_its_header() {
        for (name, value) in [(SKILLS_HEADER, "some"), (SKILLS_HEADER, "but=a"), (OWN_SKILLS_HEADER, "no")] {
            let error = preferences(name, value).unwrap_err();
            assert_eq!((error.status, error.field.as_deref()), (StatusCode::BAD_REQUEST, Some(name)));
        }
    }
}
