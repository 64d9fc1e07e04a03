//! Reading of whole SKILL.md files: the tests.

use super::*;
use crate::inputs::InputType;

fn skill_md(text: &str) -> Result<SkillDocument, Vec<String>> {
    read_as("SKILL.md", "log-triage", text, Reading::LENIENT)
}

fn read_as(
    name: &str,
    default_name: &str,
    text: &str,
    reading: Reading,
) -> Result<SkillDocument, Vec<String>> {
    let file = FileName { name, default_name };
    read(text.as_bytes(), file, reading).map_err(|found| found.iter().map(ToString::to_string).collect())
}

fn front(fields: &str) -> String {
    format!("---\nname: log-triage\n{fields}\n---\nBody.\n")
}

fn refused(fields: &str, expected: &str) {
    let found = skill_md(&front(fields)).unwrap_err();
    assert!(found.iter().any(|line| line.contains(expected)), "{fields}: {found:?}");
}

fn warnings(fields: &str) -> Vec<String> {
    skill_md(&front(fields)).unwrap().warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn a_skill_md_has_all_fields_of_the_standard_and_keeps_the_others() {
    let text = front(
        "description: >-\n  Triage logs\n  quickly.\nlicense: MIT\ncompatibility: any\nallowed-tools: Read, Bash(git log:*)\n\
         metadata:\n  version: 1.10\n  tags: [a]\nargument-hint: [file]\nuser-invocable: no\nmodel: opus\neffort: 3",
    );
    let found = skill_md(&text).unwrap();
    assert_eq!((found.name.as_str(), found.body.as_str()), ("log-triage", "Body."));
    assert_eq!(found.description.as_deref(), Some("Triage logs quickly."));
    assert_eq!((found.license.as_deref(), found.compatibility.as_deref()), (Some("MIT"), Some("any")));
    assert_eq!(found.allowed_tools, ["Read", "Bash(git log:*)"]);
    assert_eq!(found.metadata["version"], "1.10");
    assert_eq!(found.metadata["tags"], "[\"a\"]");
    assert_eq!((found.argument_hint.as_deref(), found.user_invocable), (Some("[file]"), Some(false)));
    assert_eq!(found.unknown_fields.keys().collect::<Vec<_>>(), ["effort", "model"]);
    assert_eq!(found.warnings, []);
}

#[test]
fn the_first_trigger_that_applies_is_taken() {
    let trigger = |fields: &str| skill_md(&front(fields)).unwrap().trigger;
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    assert_eq!(trigger("license: x"), Trigger::None);
    assert_eq!(trigger("triggers: []"), Trigger::None);
    assert_eq!(trigger("triggers: [a, B]"), Trigger::Keyword(texts(&["a", "B"])));
    assert_eq!(trigger("trigger:\n  type: keyword\n  keywords: [logs]"), Trigger::Keyword(texts(&["logs"])));
    assert_eq!(trigger("inputs: []"), Trigger::Task(texts(&["/log-triage"])));
    assert_eq!(trigger("paths: \"**/*.log, logs/** ,\""), Trigger::Path(texts(&["**/*.log", "logs/**"])));
    let task = trigger("triggers: [fix it]\ninputs: []").triggers("log-triage");
    assert_eq!((task.keywords, task.slash), (texts(&["fix it", "/log-triage"]), texts(&["log-triage"])));
    assert_eq!(trigger("paths: x").triggers("log-triage").paths, texts(&["x"]));
    assert_eq!(trigger("paths: [' ']\ntriggers: [a]"), Trigger::Keyword(texts(&["a"])));
    let both = warnings("paths: x\ntriggers: [1]\ninputs: []");
    assert_eq!(both.len(), 2, "{both:?}");
    assert!(skill_md(&front("paths: x")).unwrap().disable_model_invocation);
}

#[test]
fn inputs_keep_type_default_and_requirement() {
    let text = front(
        "inputs:\n  - name: n\n    description: count\n    type: integer\n    default: 3\n  - {name: a, description: b}",
    );
    let inputs = skill_md(&text).unwrap().inputs;
    assert_eq!((inputs[0].value_type, inputs[0].default.as_deref()), (InputType::Integer, Some("3")));
    assert_eq!((inputs[0].is_required, inputs[1].is_required), (false, true));
}

#[test]
fn a_wrong_type_is_refused_with_line_and_column() {
    refused("description: 42", "3:14: description must be text, not a number");
    refused("license: [x]", "3:10: license must be text, not a list");
    refused("metadata: x", "metadata must be a map");
    refused("allowed-tools: 5", "allowed-tools must be text or a list");
    refused("disable-model-invocation: maybe", "must be true or false");
    refused("triggers:", "triggers must be a list, not empty");
    refused("triggers: [1]", "3:12: triggers must hold text");
    refused("inputs: {a: b}", "inputs must be a list");
    refused("inputs: [a]", "an input must be a map");
    refused("inputs: [{description: x}]", "an input needs name");
    refused("paths: 3", "paths must be a list");
    refused("metadata:\n\ta: b", "4:");
}

#[test]
fn prose_that_is_no_yaml_is_read_as_if_in_quotes() {
    for (value, expected) in [
        ("Use when: logs are noisy", "Use when: logs are noisy"),
        ("`tail` first: it's short", "`tail` first: it's short"),
        ("*.log files", "*.log files"),
        ("[x] y", "[x] y"),
        ("Use when:\n  a: b and\n  c: d", "Use when: a: b and c: d"),
        ("\"Triage\" logs: fast", "\"Triage\" logs: fast"),
    ] {
        let text = front(&format!("description: {value}\nlicense: MIT"));
        let found = skill_md(&text).unwrap_or_else(|found| panic!("{value}: {found:?}"));
        assert_eq!(found.description.as_deref(), Some(expected));
        assert_eq!(found.license.as_deref(), Some("MIT"));
        assert!(
            found.warnings[0].to_string().starts_with("3:13: warning: description is no YAML"),
            "{:?}",
            found.warnings
        );
        let reading = Reading { is_repairing: false, ..Reading::LENIENT };
        assert!(read_as("SKILL.md", "log-triage", &text, reading).is_err(), "{value}");
    }
    refused("tools:\n  - - read\n- exec", "(invalid_yaml)");
    refused("allowed-tools: *", "(invalid_yaml)");
}

#[test]
fn a_file_without_frontmatter_is_a_body_and_takes_the_directory_s_name() {
    let found = skill_md("\u{feff}# T\r\n\r\nDo it.\r\n").unwrap();
    assert_eq!((found.name.as_str(), found.body.as_str()), ("log-triage", "# T\n\nDo it."));
    assert_eq!(skill_md("---\n- a\n---\nx").unwrap().warnings[0].code, Code::NotAMapping);
    assert_eq!(skill_md("---\nname:\n---\nx").unwrap().name, "log-triage");
    assert_eq!(skill_md("---\nname: 123\n---\nx").unwrap().name, "123");
}

#[test]
fn names_are_checked_only_in_a_skill_md_and_refused_only_if_strict() {
    let strict = Reading { is_name_strict: true, ..Reading::LENIENT };
    let text = "---\nname: Other_Name\n---\nx";
    assert_eq!(skill_md(text).unwrap().warnings.len(), 2);
    assert_eq!(read_as("skill.MD", "log-triage", text, strict).unwrap_err().len(), 2);
    let flat = read_as("notes.md", "team/notes", text, strict).unwrap();
    assert_eq!((flat.name.as_str(), flat.kind, flat.warnings.len()), ("Other_Name", FileKind::Flat, 0));
}

#[test]
fn files_of_other_products_keep_their_whole_text() {
    let text = "---\nname: zzz\ntriggers: [a]\n---\nbody\n";
    let found = read_as("AGENTS.md", "", text, Reading::LENIENT).unwrap();
    assert_eq!((found.name.as_str(), found.body.as_str(), found.trigger), ("agents", text, Trigger::None));
}

#[test]
fn mcp_tools_belong_to_flat_files_only() {
    let text = "---\nname: log-triage\nmcp_tools:\n  mcpServers:\n    fs: {command: npx}\n---\nx";
    let flat = read_as("repo.md", "repo", text, Reading::LENIENT).unwrap();
    assert_eq!(flat.mcp_servers["fs"]["command"], "npx");
    let found = skill_md(text).unwrap();
    assert_eq!((found.mcp_servers.len(), found.warnings[0].code), (0, Code::UnusedField));
    assert!(read_as("repo.md", "repo", "---\nmcp_tools: fs\n---\n", Reading::LENIENT).is_err());
}

#[test]
fn odd_bytes_keys_and_comments_are_reported_where_they_stand() {
    let file = FileName { name: "SKILL.md", default_name: "a" };
    let found = read(b"---\nname: \xff\n---\n", file, Reading::LENIENT).unwrap_err();
    assert_eq!(found[0].to_string(), "2:7: is not UTF-8 (encoding)");
    assert_eq!(
        warnings("license: a\nlicense: b"),
        ["4:10: warning: license is there twice; the last one counts (duplicate_key)"]
    );
    assert!(warnings("description: Fixes issue #12")[0].starts_with("3:26: warning: ` #` begins a comment"));
}

#[test]
fn a_long_description_is_cut_in_its_middle() {
    let found = skill_md(&front(&format!("description: {}end", "x".repeat(5000)))).unwrap();
    let description = found.description.unwrap();
    assert_eq!(description.chars().count(), DESCRIPTION_LIMIT);
    assert!(description.starts_with("xxx") && description.ends_with("end") && description.contains("cut"));
    assert_eq!(found.warnings[0].code, Code::DescriptionTooLong);
}

#[test]
fn a_task_with_inputs_or_variables_asks_for_values() {
    let asks = |text: &str| skill_md(text).unwrap().asks_for_inputs();
    assert!(asks("---\ninputs: []\n---\nHas ${x}"));
    assert!(!asks("---\ninputs: []\n---\nHas none"));
    assert!(!asks("---\ntriggers: [a]\n---\nHas ${x}"));
    assert!(!asks("---\ninputs: [{name: a, description: b}]\n---\n"));
}

#[test]
fn a_skill_is_always_there_listed_or_hidden() {
    let placement = |name: &str, fields: &str| {
        let text = format!("---\n{fields}\n---\nx");
        read_as(name, "a", &text, Reading::LENIENT).unwrap().placement()
    };
    assert_eq!(placement("SKILL.md", "name: a"), Placement::Listed);
    assert_eq!(placement("SKILL.md", "disable-model-invocation: true"), Placement::Hidden);
    assert_eq!(placement("SKILL.md", "paths: x"), Placement::Hidden);
    assert_eq!(placement("a.md", "disable-model-invocation: true"), Placement::Always);
    assert_eq!(placement("a.md", "triggers: [x]"), Placement::Listed);
    assert_eq!(placement("AGENTS.md", "paths: x"), Placement::Always);
}

#[test]
fn what_restricts_is_never_dropped_in_silence_and_what_does_not_is_a_warning() {
    let tools = |fields: &str| skill_md(&front(fields)).unwrap().allowed_tools;
    assert_eq!(tools("allowed-tools: [Read, {a: b}, null, 5]"), ["Read", "{\"a\":\"b\"}", "null", "5"]);
    refused("disable-model-invocation: maybe", "disable-model-invocation must be true or false");
    let found = warnings("user-invocable: maybe");
    assert!(found[0].contains("user-invocable must be true or false"), "{found:?}");
}

#[test]
fn inputs_count_only_without_paths() {
    let found = skill_md(&front("paths: [a]\ninputs: 5")).unwrap();
    assert_eq!((found.trigger, found.inputs), (Trigger::Path(vec!["a".into()]), vec![]));
    refused("inputs: 5", "inputs must be a list");
}

#[test]
fn a_strict_reader_refuses_a_name_that_it_would_have_to_change() {
    let strict = Reading { is_name_strict: true, is_repairing: false };
    for name in ["''", "' log-triage '", "", "[a]"] {
        let text = format!("---\nname: {name}\n---\n");
        let found = read_as("SKILL.md", "log-triage", &text, strict).unwrap_err();
        assert!(found.iter().any(|line| line.contains("name")), "{name}: {found:?}");
        if name != "[a]" {
            assert_eq!(skill_md(&text).unwrap().name, "log-triage");
        }
    }
    let rooted = read_as("SKILL.md", "", "---\nname: any\n---\n", strict).unwrap();
    assert_eq!((rooted.name.as_str(), rooted.warnings), ("any", vec![]));
}

#[test]
fn all_line_ends_are_line_feeds_also_in_files_of_other_products() {
    let body = |name: &str, text: &str| read_as(name, "a", text, Reading::LENIENT).unwrap().body;
    assert_eq!(body("AGENTS.md", "a\r\nb\rc\r\n"), "a\nb\nc\n");
    assert_eq!(body("SKILL.md", "---\rname: a\r---\rx\ry"), "x\ny");
}
