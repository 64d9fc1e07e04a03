//! Import of trees in memory, and its requests to a small API server.

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
    match &verdict.outcome {
        Outcome::Taken { object, .. } => object,
        Outcome::Refused => panic!("{verdict:?}"),
    }
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

const SKILL: &str = "/apis/skillet.dev/v1alpha1/namespaces/team-a/skills/pdf";

fn arguments() -> ImportArgs {
    ImportArgs {
        paths: Vec::new(),
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
    assert_eq!(raised("1.0.0", "1.1.0"), None);
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
