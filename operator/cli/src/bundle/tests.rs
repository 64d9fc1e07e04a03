//! Skills in several files, in directories of the tests' own.

use std::path::PathBuf;

use serde_json::json;

use super::*;

const SKILL: &str = "apiVersion: skillet.dev/v1alpha1\nkind: Skill\nmetadata: {name: count}\n\
                     spec: {version: 1.0.0, run: {sandbox: {runtime: python}}}\n";

/// A directory with these files, which is removed at the end of the test.
struct Directory(PathBuf);

impl Directory {
    fn of(test: &str, files: &[(&str, &[u8])]) -> Self {
        let path = std::env::temp_dir().join(format!("kubectl-skill-{test}-{}", std::process::id()));
        for (name, content) in files {
            let file = path.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, content).unwrap();
        }
        Self(path)
    }

    fn read(&self) -> Result<Vec<SkillSource>, BundleError> {
        read_all(std::slice::from_ref(&self.0))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

#[test]
fn a_directory_is_one_skill_with_script_schemas_and_files() {
    let directory = Directory::of(
        "assemble",
        &[
            ("skill.yaml", SKILL.as_bytes()),
            ("main.py", b"print(1)\n"),
            ("schema.json", br#"{"type": "object"}"#),
            ("output-schema.json", br#"{"type": "number"}"#),
            ("files/lib/words.txt", b"one\n"),
            ("files/picture.bin", b"\xff\xfe"),
        ],
    );
    let sources = directory.read().unwrap();
    assert_eq!(sources[0].name().unwrap(), "count");
    assert_eq!(
        sources[0].object["spec"],
        json!({
            "version": "1.0.0",
            "tool": { "inputSchema": { "type": "object" }, "outputSchema": { "type": "number" } },
            "run": { "sandbox": { "runtime": "python", "script": "print(1)\n", "files": [
                { "path": "lib/words.txt", "content": "one\n" },
                { "path": "picture.bin", "contentBase64": "//4=" },
            ] } },
        })
    );
}

#[test]
fn a_part_that_is_missing_or_given_twice_is_refused_with_its_file() {
    let missing = Directory::of("missing", &[("skill.yaml", SKILL.as_bytes())]);
    let error = missing.read().unwrap_err().to_string();
    assert!(error.contains("there is no script") && error.contains("main.py"), "{error}");
    let whole = SKILL.replace("runtime: python", "runtime: python, script: print(1)");
    let twice = Directory::of("twice", &[("skill.yaml", whole.as_bytes()), ("main.py", b"print(2)")]);
    let error = twice.read().unwrap_err().to_string();
    assert!(error.contains("main.py gives the program, and skill.yaml gives it too"), "{error}");
}

#[test]
fn any_other_directory_holds_whole_skills_beside_other_objects() {
    let two = format!("kind: Secret\n---\n{SKILL}---\n{SKILL}");
    let directory = Directory::of("whole", &[("a.yaml", two.as_bytes()), ("notes.txt", b"x")]);
    let sources = directory.read().unwrap();
    assert_eq!(sources.len(), 2);
    assert_eq!(sources[0].tests, directory.0.join("tests"));
    let empty = Directory::of("empty", &[("a.yaml", b"kind: Secret\n")]);
    assert!(matches!(empty.read().unwrap_err(), BundleError::NoSkill { .. }));
}
