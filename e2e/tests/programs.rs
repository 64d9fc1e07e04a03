//! The surroundings of a program at its start: input, files, arguments, environment, a place to write, and nothing of the cluster.

use anyhow::Result;
use serde_json::json;
use skillet_api::{Phase, Reason, SkillExecutionSpec};
use skillet_e2e::{SkillDraft, execute::spec, journey};

#[tokio::test]
async fn input_files_arguments_and_environment_are_as_the_skill_says() -> Result<()> {
    journey(async |j| {
        let looking = r#"
import json, os, sys
import words.greeting
json.dump({
    "input": json.load(sys.stdin),
    "args": sys.argv[1:],
    "greeting": words.greeting.TEXT,
    "bytes": list(open("data.bin", "rb").read()),
    "env": {name: os.environ.get(name) for name in ("GREETING", "EMPTY")},
    "script": sys.argv[0],
}, sys.stdout)
"#;
        let skill = SkillDraft::python("looking", looking)
            .sandbox("args", json!(["--width", "80 columns", "$HOME *"]))
            .sandbox("env", json!([{ "name": "GREETING", "value": "good day" }, { "name": "EMPTY" }]))
            .sandbox(
                "files",
                json!([
                    { "path": "words/greeting.py", "content": "TEXT = 'größer'\n" },
                    { "path": "data.bin", "contentBase64": "AP+A" },
                ]),
            );
        j.apply(&skill).await?;
        let input = json!({ "nested": [1, { "text": "日本\n" }, null, true, 1.5] });
        let found = j.run("looking", input.clone()).await?.output();
        assert_eq!(found["input"], input);
        // Arguments pass no shell on their way.
        assert_eq!(found["args"], json!(["--width", "80 columns", "$HOME *"]));
        assert_eq!(found["greeting"], "größer");
        assert_eq!(found["bytes"], json!([0, 255, 128]));
        assert_eq!(found["env"], json!({ "GREETING": "good day", "EMPTY": "" }));
        assert_eq!(found["script"], "main.py");
        Ok(())
    })
    .await
}

/// The least memory and the fewest processes that are admitted work with each runtime.
#[tokio::test]
async fn each_runtime_runs_with_the_least_that_is_admitted() -> Result<()> {
    journey(async |j| {
        let shell = SkillDraft::shell("shell", "echo 1").limit("memory", "8Mi").limit("processes", 2);
        let python = SkillDraft::python("python", "print(1)").limit("memory", "8Mi").limit("processes", 1);
        let node = SkillDraft::new("node", json!({ "runtime": "node", "script": "console.log(1)" }))
            .limit("memory", "16Mi")
            .limit("processes", 8);
        for draft in [&shell, &python, &node] {
            j.apply(draft).await?;
        }
        for name in ["shell", "python", "node"] {
            let ended = j.run(name, json!({})).await?;
            assert_eq!(ended.status.reason, Some(Reason::Succeeded), "{name}: {:?}", ended.status.message);
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn any_json_is_an_input_and_none_is_an_empty_object() -> Result<()> {
    journey(async |j| {
        j.apply(&SkillDraft::shell("echo", "printf '{\"input\": %s}' \"$(cat)\"")).await?;
        let run = async |input| {
            let execution = j.start_with(SkillExecutionSpec { input, ..spec("echo") }).await?;
            anyhow::Ok(j.ended(&execution).await?.output())
        };
        let (none, list, text, number, quote) = tokio::try_join!(
            run(None),
            run(Some(json!([1, 2]))),
            run(Some(json!("plain"))),
            run(Some(json!(7))),
            run(Some(json!({ "a\"b\\": "$(id)\n`id`" }))),
        )?;
        assert_eq!(none, json!({ "input": {} }));
        assert_eq!(list, json!({ "input": [1, 2] }));
        assert_eq!(text, json!({ "input": "plain" }));
        assert_eq!(number, json!({ "input": 7 }));
        assert_eq!(quote, json!({ "input": { "a\"b\\": "$(id)\n`id`" } }));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_program_finds_nothing_of_the_cluster() -> Result<()> {
    journey(async |j| {
        let looking = r#"
import glob, json, os, sys
def tries(path):
    try:
        open(os.path.join(path, "tried"), "w").close()
        return True
    except OSError:
        return False
mounts = [line.split()[1] for line in open("/proc/self/mounts")]
json.dump({
    "tokens": [path for top in ("/var/run", "/run") for path in glob.glob(top + "/**", recursive=True) if os.path.isfile(path)],
    "env": sorted(os.environ),
    "uid": os.getuid() != 0 and os.getgid() != 0,
    "writable": [path for path in ("/", "/etc", "/usr", "/skillet", "/tmp", ".", os.environ["HOME"]) if tries(path)],
    "secrets": [path for path in mounts if "secret" in path or "serviceaccount" in path],
    "interfaces": [line.split(":")[0].strip() for line in open("/proc/net/dev") if ":" in line] if os.path.exists("/proc/net/dev") else [],
    "home": os.environ["HOME"].startswith("/dev/shm"),
    "here": os.getcwd().startswith("/dev/shm"),
}, sys.stdout)
"#;
        j.apply(&SkillDraft::python("looking", looking).sandbox("env", json!([{ "name": "MINE", "value": "1" }])))
            .await?;
        let found = j.run("looking", json!({})).await?.output();
        assert_eq!((&found["tokens"], &found["secrets"]), (&json!([]), &json!([])), "no service account token");
        assert_eq!(found["env"], json!(["HOME", "LANG", "MINE", "PATH", "TMPDIR"]), "nothing of the cluster");
        assert_eq!((&found["uid"], &found["home"], &found["here"]), (&json!(true), &json!(true), &json!(true)));
        let writable = found["writable"].as_array().cloned().unwrap_or_default();
        let outside = writable.iter().filter(|path| ["/", "/etc", "/usr", "/skillet"].iter().any(|p| *path == p));
        assert_eq!(outside.count(), 0, "only scratch can be written: {writable:?}");
        assert!(writable.contains(&json!(".")), "scratch can be written: {writable:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn runs_share_nothing_with_each_other() -> Result<()> {
    journey(async |j| {
        let marking = "ls -A /dev/shm . | sort -u | tr '\\n' ' '; echo mine >/dev/shm/left-behind; echo mine >left-behind";
        j.apply(&SkillDraft::shell("marking", marking)).await?;
        let (one, two) = tokio::try_join!(j.run("marking", json!({})), j.run("marking", json!({})))?;
        let three = j.run("marking", json!({})).await?;
        assert_ne!(one.status.pod, two.status.pod, "each run has a sandbox of its own");
        for ended in [one, two, three] {
            let found = ended.output()["output"].as_str().unwrap_or_default().to_owned();
            assert!(found.contains("main.sh") && !found.contains("left-behind"), "{found}");
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn every_runtime_and_a_plain_command_run() -> Result<()> {
    journey(async |j| {
        let versions = [
            (
                "of-python",
                json!({ "runtime": "python", "script": "import sys; print(list(sys.version_info[:2]))" }),
            ),
            (
                "of-node",
                json!({ "runtime": "node", "script": "console.log(process.versions.node.split('.')[0])" }),
            ),
            ("of-shell", json!({ "runtime": "shell", "script": "jq -c '{twice: (.n * 2)}'" })),
            ("of-command", json!({ "runtime": "shell", "command": ["jq", "-c"], "args": [".n"] })),
        ];
        for (name, sandbox) in versions {
            j.apply(&SkillDraft::new(name, sandbox)).await?;
        }
        let input = json!({ "n": 21 });
        let (python, node, shell, command) = tokio::try_join!(
            j.run("of-python", input.clone()),
            j.run("of-node", input.clone()),
            j.run("of-shell", input.clone()),
            j.run("of-command", input.clone()),
        )?;
        let python = python.output();
        assert!(python[0] == 3 && python[1].as_u64() >= Some(11), "{python}");
        assert!(node.output()["value"].as_u64() >= Some(18));
        assert_eq!(shell.output(), json!({ "twice": 42 }));
        let command = command.is(Phase::Succeeded, Reason::Succeeded);
        assert_eq!(command.output(), json!({ "value": 21 }));
        Ok(())
    })
    .await
}
