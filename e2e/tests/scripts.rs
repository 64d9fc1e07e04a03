//! Scripts of a bundle and commands of a body in sandboxes: each interpreter, the folder of the bundle, and what cannot run.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use skillet_api::{
    Phase, Reason, SkillExecution, SkillExecutionSpec, dynamic::BodyCommand, execution::BundleScript,
};
use skillet_e2e::{Journey, SkillDraft, execute::spec, image, journey, journey_under, policy};

const PYTHON: &str = r#"
import json, os, sys
here = os.path.dirname(os.path.abspath(__file__))
json.dump({
    "text": open(os.path.join(here, "..", "lib", "text.txt")).read(),
    "same": open(os.environ["SKILL_DIR"] + "/lib/text.txt").read() == open("lib/text.txt").read(),
    "args": sys.argv[1:],
    "stdin": sys.stdin.read(),
    "body": open("SKILL.md").read(),
}, sys.stdout)
"#;
const SHELL: &str =
    "#!/usr/bin/env bash\ncd /\necho \"$(cat \"$(dirname \"$0\")/../lib/text.txt\") $1 $(cat)\"\n";
const NODE: &str = r#"
import { readFileSync } from "node:fs";
const text: string = readFileSync(new URL("../lib/text.txt", import.meta.url), "utf8");
console.log(JSON.stringify([text, ...process.argv.slice(2), process.env.CLAUDE_PLUGIN_ROOT === process.cwd()]));
"#;

fn bundle() -> SkillDraft {
    SkillDraft::bundle(
        "tools",
        &[
            ("lib/text.txt", "größer"),
            ("scripts/look.py", PYTHON),
            ("scripts/look", SHELL),
            ("scripts/look.mts", NODE),
            ("scripts/broken.py", "# /// script\n# dependencies = [\"requests\"]\n# ///\nimport requests\n"),
        ],
    )
}

async fn start(j: &Journey, path: &str, args: &[&str], stdin: &str) -> Result<SkillExecution> {
    let args = args.iter().map(ToString::to_string).collect();
    let script = BundleScript { path: path.to_owned(), args, stdin: stdin.to_owned() };
    j.start_with(SkillExecutionSpec { script: Some(script), ..spec("tools") }).await
}

#[tokio::test]
async fn scripts_of_a_bundle_run_with_their_interpreter_and_read_its_files() -> Result<()> {
    journey(async |j| {
        j.apply(&bundle()).await?;
        let run = async |path, args, stdin| {
            let execution = start(j, path, args, stdin).await?;
            anyhow::Ok(j.ended(&execution).await?.output())
        };
        let (python, shell, node) = tokio::try_join!(
            run("scripts/look.py", &["--width", "80 $HOME"], "in"),
            run("./scripts/look", &["one"], "two"),
            run("scripts/look.mts", &["-x"], ""),
        )?;
        let expected = json!({ "text": "größer", "same": true, "args": ["--width", "80 $HOME"], "stdin": "in",
            "body": "Run the scripts." });
        assert_eq!(python, expected);
        assert_eq!(shell, json!({ "output": "größer one two" }));
        assert_eq!(node, json!(["größer", "-x", true]));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_script_that_cannot_run_says_why() -> Result<()> {
    journey(async |j| {
        j.apply(&bundle()).await?;
        let end = async |path| {
            let execution = start(j, path, &[], "").await?;
            j.ended(&execution).await
        };
        let (absent, outside, text, broken) = tokio::try_join!(
            end("scripts/other.py"),
            end("../../etc/passwd"),
            end("lib/text.txt"),
            end("scripts/broken.py"),
        )?;
        absent.is(Phase::Failed, Reason::FileNotFound).says(&["spec.script.path", "scripts/look.py"]);
        outside.is(Phase::Failed, Reason::FileNotFound);
        text.is(Phase::Failed, Reason::NoInterpreter).says(&["#!/usr/bin/env python3"]);
        let broken = broken.is(Phase::Failed, Reason::ExitCode);
        broken.says(&["ModuleNotFoundError", "no packages; use an image that has them"]);
        j.run("tools", json!({})).await?.is(Phase::Failed, Reason::NoProgram);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn the_plugin_runs_a_script_with_the_words_behind_two_dashes() -> Result<()> {
    journey(async |j| {
        j.apply(&bundle()).await?;
        let here = ["skill", "run", "tools", "--namespace", &j.namespace];
        let script = ["--script", "scripts/look.py", "--stdin", "-", "-o", "json", "--", "-v"];
        let printed: Value =
            serde_json::from_str(&j.kubectl(&[&here[..], &script[..]].concat(), "typed").await?)?;
        ensure!(printed["args"] == json!(["-v"]) && printed["stdin"] == "typed", "{printed}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn commands_of_a_body_run_with_their_values_where_the_policy_lets_them() -> Result<()> {
    const LOOK: &str = r#"echo "$(cat lib/text.txt)|$1|$2|$ARGUMENTS|$tag|$(ls "$SKILL_DIR"/SKILL.md)""#;
    journey_under(json!({}), async |j| {
        let body = format!("Read !`{LOOK}` and !`exit 3`, but not ``!`id` ``.");
        let inputs = json!([{ "name": "tag" }, { "name": "rest" }]);
        let instructions = json!({ "body": body, "dynamic": "Run", "inputs": inputs });
        j.apply(&bundle().spec("instructions", instructions)).await?;
        let run = async |text: &str| {
            let arguments = "v1 \"a; touch lib/x; $(id)\"".to_owned();
            let command = BodyCommand { text: text.to_owned(), arguments, ..BodyCommand::default() };
            let execution =
                j.start_with(SkillExecutionSpec { command: Some(command), ..spec("tools") }).await?;
            j.ended(&execution).await
        };
        run(LOOK).await?.is(Phase::Failed, Reason::DynamicContentDisabled).says(&["dynamicContent"]);
        let namespaces = json!({ "dynamicContent": { "namespaces": [j.namespace] } });
        policy::change(&j.client, namespaces).await?;
        let (done, failed, other) = tokio::try_join!(run(LOOK), run("exit 3"), run("id"))?;
        let words = "größer|v1|a; touch lib/x; $(id)|v1 \"a; touch lib/x; $(id)\"|v1";
        let expected = format!("{words}|/dev/shm/work/SKILL.md");
        assert_eq!(done.output(), json!({ "output": expected }));
        failed.is(Phase::Failed, Reason::ExitCode);
        other.is(Phase::Failed, Reason::CommandNotFound).says(&["spec.command.text", "exit 3"]);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_script_of_a_large_bundle_runs_from_its_image() -> Result<()> {
    const SCRIPT: &str = "import json, os\nroot = os.environ['SKILL_DIR']\nopened = {}\ntry:\n    open(root + '/new', 'w')\nexcept OSError as error:\n    opened = type(error).__name__\nprint(json.dumps({'bytes': os.path.getsize(root + '/model.bin'), 'here': os.path.dirname(os.path.abspath(__file__)), 'write': opened}))\n";
    journey(async |j| {
        let folder = std::env::temp_dir().join(format!("skillet-bundle-{}", std::process::id()));
        let pdf = folder.join("skills/pdf/scripts");
        std::fs::create_dir_all(&pdf)?;
        std::fs::write(pdf.join("measure.py"), SCRIPT)?;
        std::fs::write(folder.join("skills/pdf/model.bin"), vec![7; 3 << 20])?;
        let loaded = image::with_files("bundle", &folder).await;
        std::fs::remove_dir_all(&folder)?;
        let reference = loaded?;
        let image = json!({ "reference": reference, "path": "skills/pdf", "files": ["scripts/measure.py", "model.bin"] });
        let instructions = json!({ "body": "Measure.", "filesFrom": { "image": image } });
        let inline = SkillDraft::bundle("tools", &[("scripts/note.sh", "ls \"$SKILL_DIR\"")]);
        j.apply(&inline.spec("instructions", instructions)).await?;
        let run = async |path| {
            let execution = start(j, path, &[], "").await?;
            anyhow::Ok(j.ended(&execution).await?.output())
        };
        let (measured, listed) = tokio::try_join!(run("scripts/measure.py"), run("scripts/note.sh"))?;
        let here = "/bundle/skills/pdf/scripts";
        ensure!(measured["bytes"] == 3 << 20 && measured["here"] == here, "{measured}");
        ensure!(measured["write"] != json!({}), "the image can be written to: {measured}");
        ensure!(listed == json!({ "output": "model.bin\nscripts" }), "{listed}");
        Ok(())
    })
    .await
}
