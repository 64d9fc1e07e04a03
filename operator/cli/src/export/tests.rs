//! Folders that are imported, exported and imported again, and Skills that nobody imported.

use serde_json::{Value, json};
use skillet_instructions::tree::FileTree;

use super::*;
use crate::testing::{not_found, server, targets};

fn tree(files: &[(&str, &[u8])]) -> FileTree {
    let mut tree = FileTree::default();
    for (path, content) in files {
        tree.add_file(path, content.to_vec()).unwrap();
    }
    tree
}

/// Returns the Skills of a tree.
fn skills(tree: &FileTree, prefix: &str) -> Vec<Value> {
    skillet_core::import::read(tree, prefix).iter().filter_map(|verdict| verdict.object().cloned()).collect()
}

fn parse(object: &Value) -> Skill {
    serde_json::from_value(object.clone()).unwrap()
}

fn export(object: &Value) -> Folder {
    folder(&parse(object), object["metadata"]["name"].as_str().unwrap()).unwrap()
}

/// Returns the Skill that an import of the folder makes.
fn import_again(folder: &Folder, prefix: &str) -> Value {
    let mut files = FileTree::default();
    for (path, content) in &folder.files {
        files.add_file(path, content.clone()).unwrap();
    }
    let files = if files.is_skill() { files.within(&folder.name) } else { files };
    let [object] = &skills(&files, prefix)[..] else { panic!("{folder:?}") };
    object.clone()
}

/// Checks that a Skill of these files is the same after an export and another import.
fn check(files: &[(&str, &[u8])], prefix: &str) {
    let objects = skills(&tree(files), prefix);
    assert!(!objects.is_empty(), "{:?}", files[0]);
    for object in objects {
        let folder = export(&object);
        assert_eq!(folder.lost, Vec::<String>::new(), "{folder:?}");
        let again = import_again(&folder, prefix);
        assert_eq!(
            (&again["metadata"]["name"], &again["spec"]),
            (&object["metadata"]["name"], &object["spec"])
        );
        let head =
            |object: &Value| object["metadata"]["annotations"]["skillet.dev/imported-frontmatter"].clone();
        assert_eq!(head(&again), head(&object));
    }
}

const FULL: &[u8] = b"---\nname: pdf\ndescription: Reads PDF files.\nversion: 2.1.0\nlicense: MIT\nmetadata:\n  author: me\n\
    allowed-tools: Read, Bash(pdftotext:*)\ntriggers: [pdf]\ninputs:\n  - {name: page, description: a number, type: integer, default: 1}\n\
    # a comment\nargument-hint: [page]\n---\n\n\n  Read ${page}.\n\n```\n---\n```\n";

#[test]
fn an_imported_folder_comes_back_as_it_was() {
    let files: [(&str, &[u8]); 3] =
        [("x/pdf/SKILL.md", FULL), ("x/pdf/scripts/a.py", b"print(1)\n"), ("x/pdf/b.bin", &[0xff, 0])];
    let folder = export(&skills(&tree(&files), "")[0]);
    assert_eq!(folder.name, "pdf");
    let expected: Vec<(String, Vec<u8>)> =
        [("SKILL.md", FULL), ("b.bin", files[2].1), ("scripts/a.py", files[1].1)]
            .map(|(path, content)| (path.to_owned(), content.to_vec()))
            .into();
    assert_eq!(folder.files, expected);
    check(&files, "");
}

#[test]
fn all_kinds_of_files_are_the_same_after_export_and_import() {
    for (path, text) in [
        ("a/SKILL.md", "x"),
        ("a/SKILL.md", ""),
        ("a/skill.md", "---\nname: other\n---\n"),
        ("a_b/SKILL.md", "Body alone"),
        ("a/SKILL.md", "---\ndescription: Use when: asked\n---\nx"),
        ("a/SKILL.md", "\u{feff}---\r\nname: a\r\ndescription: d\r\n---\r\nOne\r\nTwo\r\n"),
        ("a/SKILL.md", "---\nname: \u{6280}\u{80fd}\ndescription: \u{7ffb}\u{8bd1}\n---\n\u{6587}"),
        ("a/SKILL.md", "---\npaths: src/**, lib/*\n---\nx"),
        ("a/SKILL.md", "---\ntrigger:\n  type: keyword\n  keywords: [one, two]\n---\nx"),
        ("a/SKILL.md", "---\ndisable-model-invocation: true\nuser-invocable: false\n---\nx"),
        ("a/SKILL.md", "---\nunknown: {deep: [1, 2]}\n---\n---\nnot yaml\n---\n"),
        ("AGENTS.md", "  Be kind.\n\n"),
        ("svc/CLAUDE.md", "Rules"),
        (".cursorrules", "r\n"),
        (".openhands/microagents/repo.md", "---\ntriggers: [x]\n---\ny"),
        ("flat.md", "---\nname: f\n---\nz"),
    ] {
        check(&[(path, text.as_bytes())], "");
    }
    check(&[("pdf/SKILL.md", FULL)], "team-");
}

fn skill(instructions: &Value) -> Value {
    json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "Skill", "metadata": { "name": "notes" },
        "spec": { "version": "1.2.3", "description": "Takes notes: short ones.", "instructions": instructions } })
}

#[test]
fn a_skill_that_nobody_imported_gets_a_frontmatter_of_its_fields() {
    let object = skill(&json!({
        "body": "Write ${text}.", "activation": "Listed", "allowedTools": ["Read"], "argumentHint": "[text]",
        "triggers": { "keywords": ["note", "/notes"] },
        "inputs": [{ "name": "text", "description": "what: to write", "type": "string", "required": true }],
        "userInvocable": false,
    }));
    let folder = export(&object);
    assert_eq!((folder.name.as_str(), &folder.lost), ("notes", &Vec::new()));
    let text = String::from_utf8(folder.files[0].1.clone()).unwrap();
    assert!(text.starts_with("---\nname: notes\ndescription: "), "{text}");
    let again = import_again(&folder, "");
    assert_eq!(parse(&again).spec.instructions, parse(&object).spec.instructions);
    assert_eq!(again["spec"]["version"], "1.2.3");
}

#[test]
fn what_a_changed_skill_has_replaces_what_was_imported() {
    let mut object = skills(&tree(&[("pdf/SKILL.md", FULL)]), "").remove(0);
    object["spec"]["description"] = json!("Reads pages.");
    object["spec"]["instructions"]["body"] = json!("Read all.");
    let folder = export(&object);
    assert_eq!(folder.lost, Vec::<String>::new());
    let again = import_again(&folder, "");
    assert_eq!(
        (&again["spec"]["description"], &again["spec"]["instructions"]["body"]),
        (&json!("Reads pages."), &json!("Read all."))
    );
}

#[test]
fn fields_that_no_skill_md_has_are_named() {
    let mut object = skill(&json!({ "body": "x", "activation": "Always", "deniedTools": ["Bash"],
        "triggers": { "exclude": ["draft"] } }));
    object["spec"]["tags"] = json!(["office"]);
    let lost = export(&object).lost;
    assert_eq!(
        lost,
        [
            "spec.instructions.activation",
            "spec.instructions.deniedTools",
            "spec.instructions.triggers",
            "spec.tags"
        ]
    );
}

#[test]
fn paths_of_the_cluster_stay_in_the_folder() {
    for path in ["../x", "/etc/x", "a/../../x", ""] {
        let mut object = skill(&json!({ "body": "x" }));
        object["spec"]["files"] = json!([{ "path": path, "content": "y" }]);
        let refused = folder(&parse(&object), "notes").unwrap_err().to_string();
        assert!(refused.contains("not below its folder"), "{refused}");
        object["spec"]["files"] = json!([{ "path": "x", "contentBase64": "?" }]);
        let refused = folder(&parse(&object), "notes").unwrap_err().to_string();
        assert!(refused.contains("invalid base64"), "{refused}");
        object["spec"]["files"] = json!([]);
        object["metadata"]["annotations"] = json!({ "skillet.dev/imported-file": path });
        assert_eq!(export(&object).files[0].0, "SKILL.md", "{path}");
    }
}

const SKILL: &str = "GET /apis/skillet.dev/v1alpha1/namespaces/team-a/skills/notes";

#[tokio::test]
async fn the_files_are_written_once_and_nothing_is_overwritten() {
    let (connection, requests) = server(json!({ SKILL: skill(&json!({ "body": "x" })) }));
    let read = skills::read(&connection.client, &connection.namespace, "notes").await.unwrap();
    assert_eq!(targets(&requests), [SKILL]);
    let directory = std::env::temp_dir().join(format!("skillet-export-{}", std::process::id()));
    let files = folder(&read, "notes").unwrap().files;
    let written = write(&directory, &files).unwrap();
    assert_eq!(written, [directory.join("SKILL.md")]);
    assert_eq!(fs::read(&written[0]).unwrap(), files[0].1);
    let refused = write(&directory, &files).unwrap_err().to_string();
    assert!(refused.ends_with("SKILL.md is there already; nothing was written"), "{refused}");
    fs::remove_dir_all(&directory).unwrap();
    let program = json!({ "metadata": { "name": "sum" }, "spec": { "version": "1.0.0", "run": {} } });
    let refused = folder(&parse(&program), "sum").unwrap_err().to_string();
    assert!(refused.contains("has no instructions; kubectl get skill sum"), "{refused}");
}

#[tokio::test]
async fn a_text_of_a_config_map_is_in_the_folder() {
    let guide = skill(&json!({ "bodyFrom": { "configMapKeyRef": { "name": "texts", "key": "k" } } }));
    let map = "GET /api/v1/namespaces/team-a/configmaps/texts";
    let read = async |answers: Value| {
        let (connection, _) = server(answers);
        let skill = with_text(&connection.client, &connection.namespace, parse(&guide), "notes").await;
        skill.map(|skill| folder(&skill, "notes").unwrap()).map_err(|error| error.to_string())
    };
    let found =
        read(json!({ map: { "metadata": { "name": "texts" }, "data": { "k": "Read." } } })).await.unwrap();
    assert!(found.files[0].1.ends_with(b"\nRead.\n"), "{found:?}");
    assert!(found.lost.is_empty());
    let empty = read(json!({ map: { "metadata": { "name": "texts" } } })).await.unwrap_err();
    assert!(empty.contains("ConfigMap texts has no text under the key k"), "{empty}");
    let missing = read(json!({ map: not_found("configmaps", "texts") })).await.unwrap_err();
    assert!(missing.contains("read ConfigMap team-a/texts"), "{missing}");
}
