//! The words and numbers of the HTTP interface: refusals, names with a version, search and pages of lists.

use skillet_api::{Reason, condition_reason, egress_failure, egress_refusal, workspace_refusal};

use crate::{case_fold::fold, js_number::text_to_number, text::trim};

/// The HTTP status that answers a request to run a skill.
///
/// A run that took place is 200 whatever its end, since the answer is its record. Refusals: 404 there is no such thing,
/// 409 it is there and its state forbids, 422 the request itself is wrong, 503 the cluster cannot now.
// The reasons of conditions and of egress are patterns.
#[allow(clippy::unnested_or_patterns)]
pub fn http_status(reason: Reason) -> u16 {
    match reason {
        Reason::SkillNotFound
        | Reason::VersionNotFound
        | Reason::VersionYanked
        | Reason::FileNotFound
        | Reason::CommandNotFound
        | Reason::ServerNotFound => 404,
        Reason::SkillOff
        | Reason::SkillDisabled
        | Reason::SkillNotReady
        | Reason::NoProgram
        | Reason::NoInterpreter
        | Reason::SessionEnded
        | Reason::DynamicContentDisabled
        | Reason::NetworkDisabled
        | Reason::BuiltinDisabled
        | Reason::VersionConflict
        | Reason::SealRecordFull
        | Reason::ConfigMapMissing
        | Reason::ImageNotAllowed
        | Reason::LimitTooHigh
        | Reason::SecretMissing
        | Reason::SecretNotGranted
        | Reason::HostNotAllowed => 409,
        Reason::ConstraintInvalid
        | Reason::InputInvalid
        | Reason::InputSchemaInvalid
        | Reason::OutputSchemaInvalid
        | Reason::SpecInvalid
        | Reason::ParseFailed => 422,
        Reason::ExecutionDisabled
        | Reason::ImageUnavailable
        | Reason::SandboxUnavailable
        | Reason::Unschedulable
        | Reason::IsolationUnavailable
        | Reason::BrokerUnavailable
        | Reason::WorkspaceUnavailable
        | Reason::ApiError => 503,
        Reason::Succeeded
        | Reason::Queued
        | Reason::Running
        | Reason::OutputInvalid
        | Reason::OutputTooLarge
        | Reason::StartFailed
        | Reason::ExitCode
        | Reason::McpError
        | Reason::ToolFailed
        | Reason::OutOfMemory
        | Reason::TimedOut
        | Reason::Cancelled
        | Reason::SandboxLost
        | Reason::ResultLost
        | egress_refusal!()
        | workspace_refusal!()
        | egress_failure!()
        | condition_reason!() => 200,
    }
}

/// Splits `name@constraint` at the first `@`. Without `@` there is no constraint.
pub fn split_name(text: &str) -> (&str, Option<&str>) {
    match text.split_once('@') {
        Some((name, constraint)) => (name, Some(constraint)),
        None => (text, None),
    }
}

/// A search text: a part of a text, without regard to case, accents and the different Turkish letters i. An empty search
/// text matches every text.
#[derive(Clone, Debug)]
pub struct Search(String);

impl Search {
    pub fn new(query: &str) -> Self {
        Self(trim(&fold(query)).to_owned())
    }

    pub fn is_in(&self, text: &str) -> bool {
        // Most lists are not searched.
        self.0.is_empty() || fold(text).contains(&self.0)
    }
}

/// One page of a list. Pages are counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    pub number: usize,
    /// Most entries on it.
    pub limit: usize,
}

/// A query parameter that is no page; the request is answered with [`PageError::HTTP_STATUS`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} must be a whole number from 1{}", most.map(|most| format!(" to {most}")).unwrap_or_default())]
pub struct PageError {
    pub field: &'static str,
    most: Option<usize>,
}

impl PageError {
    pub const HTTP_STATUS: u16 = 400;
}

impl Page {
    pub const MAX_LIMIT: usize = 200;
    const DEFAULT_LIMIT: usize = 50;

    /// Reads the query parameters `page` and `limit`. Numbers are read as JavaScript reads them.
    pub fn read(page: Option<&str>, limit: Option<&str>) -> Result<Self, PageError> {
        Ok(Self {
            number: whole_number("page", page, 1, None)?,
            limit: whole_number("limit", limit, Self::DEFAULT_LIMIT, Some(Self::MAX_LIMIT))?,
        })
    }

    /// The entries of `all` that are on it.
    pub fn of<T>(self, all: impl IntoIterator<Item = T>) -> Vec<T> {
        let before = self.number.saturating_sub(1).saturating_mul(self.limit);
        all.into_iter().skip(before).take(self.limit).collect()
    }

    /// Returns the number of pages of `total` entries; 0 if there are none.
    pub fn total_pages(self, total: usize) -> usize {
        total.div_ceil(self.limit.max(1))
    }
}

fn whole_number(
    field: &'static str,
    text: Option<&str>,
    default: usize,
    most: Option<usize>,
) -> Result<usize, PageError> {
    /// Above this a float does not hold every whole number.
    const MAX: f64 = 9_007_199_254_740_991.0;
    let Some(text) = text else { return Ok(default) };
    let number = text_to_number(text);
    // Whole and in bounds, so that nothing is lost.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let whole = (number.fract() == 0.0 && (1.0..=MAX).contains(&number)).then_some(number as usize);
    whole.filter(|whole| most.is_none_or(|most| *whole <= most)).ok_or(PageError { field, most })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_searched_without_regard_to_case_and_accents() {
        for (text, query, expected) in [
            ("Şarj", "sarj", true),
            ("Issue", "ISSUE", true),
            ("İstanbul", "ISTANBUL", true),
            ("a résumé", " RESUME ", true),
            ("issue", "issues", false),
            ("", "x", false),
            ("", "", true),
            ("x", " ", true),
        ] {
            assert_eq!(Search::new(query).is_in(text), expected, "{text} {query}");
        }
    }

    #[test]
    fn a_page_is_a_whole_number_within_bounds() {
        let page = |number, limit| Ok(Page { number, limit });
        assert_eq!(Page::read(None, None), page(1, 50));
        assert_eq!(Page::read(Some("3"), Some("200")), page(3, 200));
        assert_eq!(Page::read(Some(" 2 "), Some("1e1")), page(2, 10));
        for text in ["0", "-1", "1.5", "abc", "", "1e300"] {
            let error = Page::read(Some(text), None).unwrap_err();
            assert_eq!(error.to_string(), "page must be a whole number from 1", "{text}");
        }
        let error = Page::read(None, Some("201")).unwrap_err();
        assert_eq!(error.to_string(), "limit must be a whole number from 1 to 200");
        assert_eq!((error.field, PageError::HTTP_STATUS), ("limit", 400));
    }

    #[test]
    fn a_list_is_cut_into_pages_of_which_the_last_may_be_short() {
        let page = |number| Page { number, limit: 3 };
        assert_eq!(page(1).of(0..7), [0, 1, 2]);
        assert_eq!(page(3).of(0..7), [6]);
        assert!(page(4).of(0..7).is_empty() && page(usize::MAX).of(0..7).is_empty());
        assert_eq!([0, 1, 3, 6, 7].map(|total| page(1).total_pages(total)), [0, 1, 1, 2, 3]);
    }

    #[test]
    fn a_refusal_says_whose_turn_it_is() {
        for (reason, status) in [
            (Reason::SkillNotFound, 404),
            (Reason::VersionNotFound, 404),
            (Reason::SkillOff, 409),
            (Reason::SkillDisabled, 409),
            (Reason::SkillNotReady, 409),
            (Reason::ImageNotAllowed, 409),
            (Reason::SecretMissing, 409),
            (Reason::ConstraintInvalid, 422),
            (Reason::InputInvalid, 422),
            (Reason::ExecutionDisabled, 503),
            (Reason::IsolationUnavailable, 503),
            (Reason::WorkspaceUnavailable, 503),
            (Reason::ExitCode, 200),
            (Reason::FileExists, 200),
            (Reason::WorkspaceFull, 200),
            (Reason::TimedOut, 200),
            (Reason::Succeeded, 200),
        ] {
            assert_eq!(http_status(reason), status, "{reason}");
        }
    }

    #[test]
    fn a_name_is_split_at_the_first_at() {
        assert_eq!(split_name("lookup"), ("lookup", None));
        assert_eq!(split_name("lookup@^1.0.0"), ("lookup", Some("^1.0.0")));
        assert_eq!(split_name("lookup@"), ("lookup", Some("")));
        assert_eq!(split_name("a@b@c"), ("a", Some("b@c")));
    }
}
