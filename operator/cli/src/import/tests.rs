//! Import of trees in memory, and its requests to a small API server.

use skillet_instructions::tree::FileTree;

use super::*;
use crate::testing::{refusal, server, targets};

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
    verdict.object().unwrap()
}

#[test]
fn each_file_has_a_verdict_and_the_reasons() {
    let long = format!("---\nname: long\n---\n{}", "x".repeat(300_000));
    let found = text(&import(&[
        ("csv/SKILL.md", "---\nname: csv\ndescription: Use when: asked\n---\nx"),
        ("bad/SKILL.md", "---\ndescription: 42\n---\n"),
        ("long/SKILL.md", &long),
        ("Two/SKILL.md", "x"),
        ("two/SKILL.md", "x"),
        ("my_skill/SKILL.md", "x"),
        ("AGENTS.md", "Be kind."),
    ]));
    for line in [
        "imported agents AGENTS.md\n",
        "repaired csv csv/SKILL.md: 3:13: warning: description is no YAML",
        "refused - bad/SKILL.md: 2:14: description must be text",
        "refused - long/SKILL.md: spec.instructions.body: has 300000 bytes, at most 204800 are allowed; move parts of it to spec.files",
        "refused - two/SKILL.md: Two/SKILL.md is Skill two already; give one of them another name\n",
        "imported my-skill my_skill/SKILL.md: ",
        "Skills: 4 imported (1 repaired), 3 refused\n",
    ] {
        assert!(found.contains(line), "{line}\n{found}");
    }
}

const SKILL: &str = "/apis/skillet.dev/v1alpha1/namespaces/team-a/skills/pdf";

fn arguments() -> ImportArgs {
    ImportArgs {
        paths: Vec::new(),
        openapi: None,
        server: None,
        prefix: String::new(),
        dry_run: DryRun::None,
        force_conflicts: false,
        output: ImportFormat::Text,
    }
}

#[tokio::test]
async fn changed_content_gets_the_next_version_and_equal_content_keeps_it() {
    let files = [("pdf/SKILL.md", "---\ndescription: New.\n---\nx")];
    let mut present = object(&import(&files)[0]).clone();
    present["spec"]["version"] = json!("1.4.2");
    for (description, expected) in [("New.", "1.4.2"), ("Old.", "1.4.3")] {
        present["spec"]["description"] = json!(description);
        let (get, patch) = (format!("GET {SKILL}"), format!("PATCH {SKILL}"));
        let (connection, requests) = server(json!({ get: present, patch: present }));
        let mut verdict = import(&files).remove(0);
        apply_one(&connection, &mut verdict, &arguments()).await.unwrap();
        assert_eq!(requests.lock().unwrap()[1].body["spec"]["version"], expected);
    }
}

#[tokio::test]
async fn a_refusal_of_the_server_is_the_verdict_of_its_file_alone() {
    let patch = format!("PATCH {SKILL}");
    let (connection, requests) = server(json!({ patch.clone(): refusal(422, "spec is wrong") }));
    let mut verdict = import(&[("pdf/SKILL.md", "x")]).remove(0);
    apply_one(&connection, &mut verdict, &arguments()).await.unwrap();
    assert!(verdict.outcome == Outcome::Refused && verdict.notes[0].contains("spec is wrong"), "{verdict:?}");
    assert_eq!(targets(&requests), [format!("GET {SKILL}"), patch]);
}
