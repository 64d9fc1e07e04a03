//! `list_search`, `pagination`, `total_pages`: lists of the HTTP interface.

use serde_json::json;
use skillet_core::rest::{Page, PageError, Search};

use crate::{
    case::Case,
    judge::{Answer, Sense, wanted_statuses},
};

pub(super) fn list_search(case: &Case) -> Result<Answer, String> {
    Ok(Answer::exact(case, json!({ "match": Search::new(case.text("query")).is_in(case.text("text")) })))
}

pub(super) fn pagination(case: &Case) -> Result<Answer, String> {
    let query = case.text("query");
    if query.contains('%') {
        return Err("percent signs in a query are the web server's to read".to_owned());
    }
    let parameters: Vec<(&str, String)> = query
        .trim_start_matches('?')
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (name, value.replace('+', " ")))
        .collect();
    let parameter =
        |name: &str| parameters.iter().find(|(given, _)| *given == name).map(|(_, value)| value.as_str());
    let (value, status) = match Page::read(parameter("page"), parameter("limit")) {
        Ok(page) => (json!({"ok": true, "page": page.number, "limit": page.limit}), 200),
        Err(_) => (json!({"ok": false, "httpStatus": PageError::HTTP_STATUS}), PageError::HTTP_STATUS),
    };
    let wanted = case.want.as_deref().map(wanted_statuses).unwrap_or_default();
    let meets_want =
        if wanted.is_empty() { Sense::Unknown } else { Sense::of(wanted.contains(&status.into())) };
    Ok(Answer { meets_want, ..Answer::exact(case, value) })
}

pub(super) fn total_pages(case: &Case) -> Result<Answer, String> {
    let number = |field: &str| {
        let number = case.input[field].as_u64().and_then(|number| usize::try_from(number).ok());
        number.ok_or_else(|| format!("{field} is no whole number"))
    };
    let page = Page { number: 1, limit: number("limit")? };
    Ok(Answer::exact(case, json!({ "totalPages": page.total_pages(number("total")?) })))
}
