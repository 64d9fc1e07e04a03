//! The kinds of each set of cases, and the function that replays each kind.

use crate::{
    case::Case,
    judge::{Answer, Judgement, judge},
    omniroute, openhands, skillmd, uniskill,
};

#[cfg(test)]
use serde_json::{Value, json};

/// Runs a case through the product; `Err` is the reason why it cannot run.
pub(crate) type Replay = fn(&Case) -> Result<Answer, String>;

const SETS: [(&str, &[(&str, Replay)]); 4] = [
    ("omniroute", omniroute::KINDS),
    ("openhands", openhands::KINDS),
    ("skillmd", skillmd::KINDS),
    ("uniskill", uniskill::KINDS),
];

pub(crate) fn replay(case: &Case) -> Judgement {
    match find(case) {
        None => Judgement::Skipped { why: "this kind is not implemented".to_owned() },
        Some(replay) => match replay(case) {
            Ok(answer) => judge(case, answer),
            Err(why) => Judgement::Skipped { why },
        },
    }
}

/// Finds the set by its folder, else by the head of the file, since folders of cases get copied and renamed.
fn find(case: &Case) -> Option<Replay> {
    let named = |name: &str| SETS.iter().find(|(set, _)| set.eq_ignore_ascii_case(name));
    let (_, kinds) = named(&case.set).or_else(|| named(case.origin.as_deref()?))?;
    kinds.iter().find(|(kind, _)| *kind == case.kind).map(|(_, replay)| *replay)
}

/// Replays a case of the set `omniroute`. Returns `passed`, `failed` or the reason why it is skipped.
#[cfg(test)]
pub(crate) fn replay_case(
    kind: &str,
    verdict: &str,
    want: Option<&str>,
    input: &Value,
    expected: &Value,
) -> String {
    let case = json!({"kind": kind, "verdict": verdict, "want": want, "input": input, "expected": expected});
    judged("omniroute", case)
}

/// Replays a case of a set, which needs no id. Returns `passed`, `failed` or the reason why it is skipped.
#[cfg(test)]
pub(crate) fn judged(set: &str, mut case: Value) -> String {
    case["id"] = "i".into();
    let case: Case = serde_json::from_value(case).unwrap();
    match replay(&Case { set: set.to_owned(), ..case }) {
        Judgement::Passed => "passed".to_owned(),
        Judgement::Failed { got } => format!("failed {got}"),
        Judgement::Skipped { why } => why,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{
        case::{self, CaseFile},
        report::Report,
    };

    /// Results of the sample cases.
    const SAMPLES: &str = "\
omniroute/background_reason 3 passed 0 failed 0 skipped
omniroute/bounded_result 3 passed 0 failed 0 skipped
omniroute/command_args 3 passed 0 failed 0 skipped
omniroute/context_text 2 passed 0 failed 0 skipped
omniroute/context_tokens 1 passed 0 failed 0 skipped
omniroute/detect_provider 3 passed 0 failed 0 skipped
omniroute/execute 4 passed 0 failed 0 skipped
omniroute/extract_tool_calls 9 passed 0 failed 1 skipped
omniroute/follow_up_body 2 passed 0 failed 0 skipped
omniroute/header_filter 5 passed 0 failed 0 skipped
omniroute/http_request 7 passed 0 failed 0 skipped
omniroute/image_normalise 5 passed 0 failed 0 skipped
omniroute/inject 6 passed 0 failed 0 skipped
omniroute/input_schema_normalise 4 passed 0 failed 0 skipped
omniroute/list_search 2 passed 0 failed 0 skipped
omniroute/list_versions 1 passed 0 failed 0 skipped
omniroute/mcp_dynamic_tool_name 2 passed 0 failed 0 skipped
omniroute/name_tokens 2 passed 0 failed 0 skipped
omniroute/output_truncate 2 passed 0 failed 0 skipped
omniroute/pagination 2 passed 0 failed 0 skipped
omniroute/positive_int 5 passed 0 failed 0 skipped
omniroute/resolve_builtin 4 passed 0 failed 0 skipped
omniroute/resolve_version 17 passed 0 failed 3 skipped
omniroute/sandbox_command 3 passed 0 failed 0 skipped
omniroute/sandbox_config 2 passed 0 failed 0 skipped
omniroute/score 5 passed 0 failed 0 skipped
omniroute/splice_results 8 passed 0 failed 0 skipped
omniroute/tool_name_decode 2 passed 0 failed 0 skipped
omniroute/tool_name_encode 3 passed 0 failed 0 skipped
omniroute/total_pages 1 passed 0 failed 0 skipped
omniroute/url_guard 29 passed 0 failed 0 skipped
omniroute/web_search_fallback 2 passed 0 failed 0 skipped
omniroute/workspace_id 2 passed 0 failed 0 skipped
omniroute/workspace_path 11 passed 0 failed 0 skipped
openhands/available_skills_listing 1 passed 0 failed 0 skipped
openhands/context_build 2 passed 0 failed 0 skipped
openhands/description_truncation 2 passed 0 failed 0 skipped
openhands/dynamic_render 5 passed 0 failed 0 skipped
openhands/dynamic_render_where 2 passed 0 failed 0 skipped
openhands/frontmatter_load 18 passed 0 failed 1 skipped
openhands/installed_name_validate 1 passed 0 failed 0 skipped
openhands/invoke_skill 3 passed 0 failed 0 skipped
openhands/keyword_match 4 passed 0 failed 0 skipped
openhands/mcp_tools_validate 8 passed 0 failed 0 skipped
openhands/mcp_variable_expansion 2 passed 0 failed 0 skipped
openhands/merge_by_name 2 passed 0 failed 0 skipped
openhands/message_activation 1 passed 0 failed 0 skipped
openhands/path_activation 2 passed 0 failed 0 skipped
openhands/path_glob 2 passed 0 failed 0 skipped
openhands/path_rule_first_match 1 passed 0 failed 0 skipped
openhands/project_skills 4 passed 0 failed 0 skipped
openhands/skill_name_validate 2 passed 0 failed 0 skipped
openhands/source_parse 5 passed 0 failed 0 skipped
openhands/system_prompt_partition 3 passed 0 failed 0 skipped
openhands/task_activation 1 passed 0 failed 0 skipped
openhands/task_skill_inputs 4 passed 0 failed 0 skipped
skillmd/agentskills_validate 11 passed 0 failed 0 skipped
skillmd/real_skillmd 3 passed 0 failed 0 skipped
uniskill/decrypt 0 passed 0 failed 1 skipped
uniskill/error 4 passed 0 failed 0 skipped
uniskill/fixture 1 passed 0 failed 0 skipped
uniskill/format_helper 1 passed 0 failed 1 skipped
uniskill/map 9 passed 0 failed 1 skipped
uniskill/merge 1 passed 0 failed 1 skipped
uniskill/outcome 2 passed 0 failed 0 skipped
uniskill/render 18 passed 0 failed 2 skipped
uniskill/resolve 0 passed 0 failed 1 skipped
uniskill/ssrf 2 passed 0 failed 0 skipped
uniskill/stdout 3 passed 0 failed 0 skipped
uniskill/whole_result 1 passed 0 failed 0 skipped
";

    #[test]
    fn the_sample_cases_are_answered() {
        let mut report = Report::default();
        let files = case::read(Path::new("cases")).unwrap();
        for case in files.iter().flat_map(CaseFile::cases) {
            report.add(case, replay(case));
        }
        assert_eq!(report.to_text(false), SAMPLES);
        assert!(!report.has_failures());
    }

    /// Changes every leaf of an expected answer.
    fn falsify(value: &Value) -> Value {
        match value {
            Value::Null => json!("something"),
            Value::Bool(is_true) => json!(!is_true),
            Value::Number(_) => json!(-1),
            Value::String(text) => json!(format!("not {text}")),
            Value::Array(items) if items.is_empty() => json!(["something"]),
            Value::Array(items) => items.iter().map(falsify).collect(),
            Value::Object(map) => map
                .iter()
                .map(|(key, value)| (key.clone(), falsify(value)))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        }
    }

    #[test]
    fn other_answers_than_those_of_the_instructions_cases_do_not_pass() {
        let files = case::read(Path::new("cases")).unwrap();
        let cases = files.iter().flat_map(CaseFile::cases);
        for case in cases.filter(|case| matches!(case.set.as_str(), "openhands" | "skillmd") && !case.quirk) {
            let falsified = Case { expected: falsify(&case.expected), ..case.clone() };
            assert_ne!(replay(&falsified), Judgement::Passed, "{}", case.id);
        }
    }

    #[test]
    fn a_renamed_folder_is_known_by_the_files_head_and_an_unknown_kind_is_skipped() {
        let case = |set: &str, origin: Option<&str>, kind: &str| {
            let text = format!(r#"{{"id": "i", "kind": "{kind}", "input": {{"available": []}}}}"#);
            let case: Case = serde_json::from_str(&text).unwrap();
            Case { set: set.to_owned(), origin: origin.map(str::to_owned), ..case }
        };
        assert!(find(&case("copy", Some("OmniRoute"), "list_versions")).is_some());
        assert!(find(&case("copy", None, "list_versions")).is_none());
        assert!(find(&case("omniroute", None, "tea_ceremony")).is_none());
        assert!(matches!(replay(&case("x", None, "y")), Judgement::Skipped { .. }));
    }
}
