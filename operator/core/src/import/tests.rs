//! Trees of files in memory, and the Skills that they become.

use serde_json::json;
use skillet_api::dynamic::DynamicContent;

use super::*;

fn tree(files: &[(&str, &str)]) -> FileTree {
    let mut tree = FileTree::default();
    for (path, text) in files {
        tree.add_file(path, text.as_bytes().to_vec()).unwrap();
    }
    tree
}

fn import(files: &[(&str, &str)]) -> Vec<Verdict> {
    let mut verdicts = read(&tree(files), "");
    refuse_repeated_names(&mut verdicts);
    verdicts
}

fn object(verdict: &Verdict) -> &Value {
    verdict.object().unwrap_or_else(|| panic!("{verdict:?}"))
}

#[test]
fn a_skill_md_becomes_a_skill_with_its_bundle() {
    let text = "---\nname: pdf\ndescription: Reads PDF files.\nversion: 2.1.0\nallowed-tools: Read, Bash(pdftotext:*)\n\
                triggers: [pdf]\ninputs:\n  - {name: page, description: a number, type: integer, default: 1}\n---\nRead ${page}.\n";
    let verdicts =
        import(&[("pdf/SKILL.md", text), ("pdf/scripts/a.py", "print(1)\n"), ("pdf/ref/x.md", "y")]);
    let object = object(&verdicts[0]);
    assert_eq!(object["metadata"]["name"], "pdf");
    assert_eq!(
        object["spec"],
        json!({
            "version": "2.1.0",
            "description": "Reads PDF files.",
            "instructions": {
                "body": "Read ${page}.",
                "activation": "Listed",
                "triggers": { "keywords": ["pdf", "/pdf"] },
                "inputs": [{ "name": "page", "description": "a number", "type": "integer", "required": false, "default": "1" }],
                "allowedTools": ["Read", "Bash(pdftotext:*)"],
            },
            "files": [{ "path": "ref/x.md", "content": "y" }, { "path": "scripts/a.py", "content": "print(1)\n" }],
        })
    );
}

#[test]
fn a_renamed_skill_keeps_its_slash_name_and_rules_keep_their_paths() {
    let verdicts = import(&[("a_b/SKILL.md", "x"), ("AGENTS.md", "r"), ("svc/AGENTS.md", "s")]);
    let spec = |at: usize| object(&verdicts[at])["spec"]["instructions"].clone();
    assert_eq!(spec(0)["activation"], "Always");
    assert_eq!(spec(1)["triggers"], json!({ "slash": ["a_b"] }));
    assert_eq!(
        (spec(2)["activation"].clone(), spec(2)["triggers"]["paths"].clone()),
        (json!("Triggered"), json!(["svc/**"]))
    );
}

#[test]
fn files_that_no_skill_can_hold_are_refused_with_what_to_do() {
    let mut large = tree(&[("a/SKILL.md", "x")]);
    large.add_large_file("a/movie.mp4").unwrap();
    let verdicts = read(&large, "");
    assert!(verdicts[0].notes[0].contains("movie.mp4 is larger than 1 MiB"), "{verdicts:?}");
    let mut binary = tree(&[("a/SKILL.md", "x")]);
    binary.add_file("a/b.bin", vec![0xff, 0]).unwrap();
    assert_eq!(
        object(&read(&binary, "")[0])["spec"]["files"],
        json!([{ "path": "b.bin", "contentBase64": "/wA=" }])
    );
}

#[test]
fn changed_content_gets_a_higher_version_and_equal_content_keeps_its_own() {
    let verdicts = import(&[("pdf/SKILL.md", "---\ndescription: New.\n---\nx")]);
    let desired: SkillSpec = serde_json::from_value(object(&verdicts[0])["spec"].clone()).unwrap();
    let mut present = SkillSpec { version: "1.4.2".to_owned(), ..desired.clone() };
    assert_eq!(next_version(&present, &desired).as_deref(), Some("1.4.2"));
    "Old.".clone_into(&mut present.description);
    assert_eq!(next_version(&present, &desired).as_deref(), Some("1.4.3"));
    "New.".clone_into(&mut present.description);
    let instructions = present.instructions.as_mut().unwrap();
    (instructions.dynamic, instructions.denied_tools) = (DynamicContent::Run, vec!["Write".to_owned()]);
    let mut kept = object(&verdicts[0]).clone();
    keep_own_fields(&present, &mut kept);
    let kept: SkillSpec = serde_json::from_value(kept["spec"].clone()).unwrap();
    assert_eq!(next_version(&present, &kept).as_deref(), Some("1.4.2"), "{kept:?}");
    present.version = "0.9.0".to_owned();
    "Old.".clone_into(&mut present.description);
    assert_eq!(next_version(&present, &desired), None);
    assert_eq!((raised("1.0.0", "1.1.0"), raised("1.0.0", "1.0.0").as_deref()), (None, Some("1.0.1")));
}

#[test]
fn a_repaired_file_leaves_its_findings_on_the_skill() {
    let verdicts =
        import(&[("csv/SKILL.md", "---\ndescription: Use when: asked\n---\nx"), ("pdf/SKILL.md", "x")]);
    let annotation =
        |at: usize| object(&verdicts[at])["metadata"]["annotations"][manifest::FINDINGS_ANNOTATION].clone();
    assert!(annotation(0).as_str().unwrap().starts_with("2:13: warning: "), "{}", annotation(0));
    assert_eq!(annotation(1), Value::Null);
    let first = &verdicts[0];
    assert!(matches!(first.outcome, Outcome::Taken { is_repaired: true, .. }), "{first:?}");
}

#[test]
fn a_command_of_a_body_is_noted_as_it_does_not_run_by_itself() {
    let verdicts = import(&[
        ("a/SKILL.md", "It is !`date`, or !`uptime`."),
        ("b/SKILL.md", "```\n!`date`\n```\nCode is shown."),
    ]);
    let [note] = verdicts[0].notes.as_slice() else { panic!("{:?}", verdicts[0].notes) };
    assert!(
        note.contains(": warning: the command `date` is shown") && note.contains("spec.instructions.dynamic")
    );
    assert!(matches!(verdicts[0].outcome, Outcome::Taken { is_repaired: false, .. }));
    assert_eq!(verdicts[1].notes, [""; 0]);
}

#[test]
fn mcp_servers_that_a_sandbox_can_run_are_the_skills_and_others_are_noted() {
    let config = r#"{"mcpServers": {
        "notes": {"command": "python3", "args": ["${SKILL_ROOT}/server.py"], "env": {"A": "b"}, "timeout": 5},
        "docs": {"command": "uvx", "args": ["docs"]},
        "far": {"type": "http", "url": "https://example.com/mcp"},
        "my server": {"command": "node", "args": ["a.js"]},
        "elsewhere": {"command": "sh", "cwd": "/opt"}}}"#;
    let flat =
        "mcp_tools:\n  mcpServers:\n    docs: {command: uvx}\n    own: {command: node, args: [a.js]}\n";
    let mut verdicts = import(&[
        ("a/SKILL.md", "Read it."),
        ("a/.mcp.json", config),
        ("b/SKILL.md", "Read it."),
        ("b/.mcp.json", "{]"),
    ]);
    verdicts.extend(import(&[("flat.md", &format!("---\ndescription: d\n{flat}---\nRead it."))]));
    let servers = |at: usize| verdicts[at].object().unwrap()["spec"]["instructions"]["mcpServers"].clone();
    let notes = json!({ "command": "python3", "args": ["${SKILL_ROOT}/server.py"], "env": { "A": "b" } });
    assert_eq!(servers(0), json!({ "notes": notes }));
    assert_eq!(
        (servers(1), servers(2)),
        (Value::Null, json!({ "own": { "command": "node", "args": ["a.js"] } }))
    );
    for (at, begin) in [
        (0, "of the MCP servers of .mcp.json, docs, elsewhere, far, my server cannot run in a sandbox"),
        (1, "the MCP servers of .mcp.json are not started: "),
        (2, "of the MCP servers of mcp_tools, docs cannot run in a sandbox"),
    ] {
        assert!(verdicts[at].notes.last().unwrap().starts_with(begin), "{:?}", verdicts[at].notes);
    }
}
