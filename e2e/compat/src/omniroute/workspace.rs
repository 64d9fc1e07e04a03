//! `workspace_path`, `workspace_id`: paths of OmniRoute's file tools, and the directory of an owner's files.

use serde_json::{Value, json};
use skillet_core::builtin::WorkspacePath;
use skillet_workspace::WorkspaceId;

use crate::{
    case::Case,
    judge::{Answer, Sense, mentions},
};

pub(super) fn workspace_path(case: &Case) -> Result<Answer, String> {
    let parsed = WorkspacePath::parse(case.text("path"));
    let is_ok = parsed.is_ok();
    let value = match parsed {
        Ok(path) => json!({ "ok": true, "relative": path.as_str() }),
        Err(refusal) => json!({ "ok": false, "error": refusal.to_string() }),
    };
    let want = case.want.as_deref().unwrap_or_default();
    let meets_want = if mentions(want, &["refuse", "reject"]) {
        Sense::of(!is_ok)
    } else if mentions(want, &["accept", "allow"]) {
        Sense::of(is_ok)
    } else {
        Sense::Unknown
    };
    Ok(Answer { meets_want, ..Answer::by_fields(case, value, &["ok", "relative", "error"]) })
}

pub(super) fn workspace_id(case: &Case) -> Result<Answer, String> {
    let owner = case.input.get("owner").and_then(Value::as_str).unwrap_or_default();
    Ok(Answer::exact(case, json!({ "directory": WorkspaceId::of_owner(owner).as_str() })))
}
