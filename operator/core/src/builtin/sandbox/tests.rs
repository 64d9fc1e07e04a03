//! Built-ins that run in a sandbox: their programs, arguments and outputs.

use std::{
    process::{Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

use serde_json::json;
use skillet_api::{SkillPolicySpec, SkillSpec};

use super::*;
use crate::{
    admission::ProgramInput,
    skill::{RunPart, ValidContent, validate_content},
};

fn content(builtin: &str) -> ValidContent {
    let yaml =
        format!("{{version: 1.0.0, run: {{builtin: {builtin}}}, network: {{hosts: [{{name: a.example}}]}}}}");
    let spec: SkillSpec = serde_saphyr::from_str(&yaml).unwrap();
    let policy: SkillPolicySpec = serde_saphyr::from_str("{builtins: [eval_code, execute_command]}").unwrap();
    validate_content(&spec, &policy).unwrap()
}

fn call(builtin: Builtin, input: &Value) -> Result<SandboxCall, String> {
    sandbox_call(builtin, input, &content(builtin.as_str()).limits).map_err(|error| error.to_string())
}

#[test]
fn the_language_chooses_the_runtime() {
    for (language, runtime) in [
        ("js", Runtime::Node),
        ("JavaScript", Runtime::Node),
        ("py", Runtime::Python),
        ("python", Runtime::Python),
    ] {
        let call = call(Builtin::EvalCode, &json!({"code": "1", "language": language, "timeoutMs": 90_000}))
            .unwrap();
        assert_eq!(call.program.image, ImageChoice::Runtime(runtime));
        assert_eq!(
            (call.args, call.has_network),
            (["60000", "100000", "1"].map(String::from).to_vec(), false)
        );
    }
    let refused = |input: Value| call(Builtin::EvalCode, &input).unwrap_err();
    assert_eq!(
        refused(json!({"code": "1", "language": "ruby"})),
        r#"language: must be javascript or python, not "ruby""#
    );
    assert_eq!(refused(json!({"code": " "})), "Missing required field: code");
    assert!(refused(json!({"code": "1", "image": "alpine:3.20"})).starts_with("image: is not taken"));
    assert!(refused(json!({"code": "x".repeat(100_001)})).starts_with("has more than 100000 bytes"));
}

#[test]
fn a_command_is_a_program_and_its_arguments() {
    let input = json!({"command": "ls", "args": ["-l", 1, true], "networkEnabled": true});
    let call = call(Builtin::ExecuteCommand, &input).unwrap();
    assert_eq!(call.program.image, ImageChoice::Runtime(Runtime::Shell));
    assert_eq!(call.args, ["10000", "100000", "ls", "-l", "1", "true"]);
    assert!(call.has_network);
    let refused = |input: Value| self::call(Builtin::ExecuteCommand, &input).unwrap_err();
    assert_eq!(refused(json!({})), "Missing required field: command");
    assert_eq!(refused(json!({"command": "a", "args": null})), "Field args must be an array");
}

#[test]
fn only_an_input_that_asks_for_it_gets_the_hosts_of_the_skill() {
    let network = |text: &str| {
        let content = content("eval_code");
        let input = ProgramInput::of_text(&RunPart::Program, text.into(), &content).unwrap();
        input.content().is_some_and(|content| content.network.is_some())
    };
    assert!(network(r#"{"code": "1", "networkEnabled": true}"#));
    assert!(!network(r#"{"code": "1"}"#));
    assert!(!network(r#"{"code": "1", "networkEnabled": "true"}"#));
    let nul =
        ProgramInput::of_text(&RunPart::Program, r#"{"code": "a\u0000"}"#.into(), &content("eval_code"));
    assert_eq!(nul.unwrap_err().message, "spec.input: must not contain a NUL character");
}

/// Runs of scripts, each in a folder of its own.
static RUNS: AtomicU32 = AtomicU32::new(0);

/// Runs the script of a runtime as the sandbox does. `None` on a machine without its interpreter, which is a failure in CI.
fn run(runtime: Runtime, args: &[&str]) -> Option<Value> {
    let (interpreter, file) = match runtime {
        Runtime::Shell => ("sh", "run.sh"),
        Runtime::Python => ("python3", "run.py"),
        Runtime::Node => ("node", "run.js"),
    };
    let number = RUNS.fetch_add(1, Ordering::Relaxed);
    let folder = std::env::temp_dir().join(format!("skillet-builtin-{}-{number}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let script = std::env::current_dir().unwrap().join("src/builtin/sandbox").join(file);
    let mut command = Command::new(interpreter);
    command.arg(script).args(args).current_dir(&folder).stdin(Stdio::null());
    let output = command.output().ok();
    std::fs::remove_dir_all(&folder).unwrap();
    let is_optional = std::env::var_os("CI").is_none_or(|value| value != "true");
    assert!(output.is_some() || is_optional, "this test needs {interpreter}");
    Some(serde_json::from_slice(&output?.stdout).unwrap())
}

fn check(runtime: Runtime, args: &[&str], expected: &Value) {
    let Some(mut result) = run(runtime, args) else { return };
    assert!(result["durationMs"].as_u64().is_some_and(|ms| ms < 60_000), "{result}");
    for field in expected.as_object().unwrap().keys() {
        assert_eq!(result[field].take(), expected[field], "{args:?} {field}");
    }
}

#[test]
fn scripts_print_how_the_code_ended() {
    let failed = |stdout: &str, code: u8| json!({"success": false, "exitCode": code, "stdout": stdout, "output": stdout, "truncated": false, "killed": false});
    check(
        Runtime::Shell,
        &["9000", "100000", "sh", "-c", "echo \"$1\"; exit 3", "x", "a \"b'\n"],
        &failed("a \"b'\n\n", 3),
    );
    check(Runtime::Python, &["9000", "100000", "import sys; print('é'); sys.exit(4)"], &failed("é\n", 4));
    check(Runtime::Node, &["9000", "100000", "console.log('é'); process.exit(5)"], &failed("é\n", 5));
    let fine = json!({"success": true, "exitCode": 0, "killed": false, "stderr": "e\n"});
    check(Runtime::Shell, &["9000", "100000", "sh", "-c", "echo e >&2"], &fine);
    check(Runtime::Python, &["9000", "100000", "import sys; print('e', file=sys.stderr)"], &fine);
    check(Runtime::Node, &["9000", "100000", "console.error('e')"], &fine);
    check(
        Runtime::Shell,
        &["9000", "100000", "no-such-program"],
        &json!({"success": false, "exitCode": 127}),
    );
}

#[test]
fn scripts_end_what_runs_too_long_and_cut_what_is_too_long() {
    let killed = json!({"success": false, "exitCode": null, "killed": true});
    check(Runtime::Shell, &["300", "100000", "sleep", "20"], &killed);
    check(Runtime::Python, &["300", "100000", "import time; time.sleep(20)"], &killed);
    check(Runtime::Node, &["300", "100000", "for (;;);"], &killed);
    for (runtime, args) in [
        (Runtime::Shell, &["9000", "5000", "seq", "1", "9000"][..]),
        (Runtime::Python, &["9000", "5000", "print('\\x01' * 200000)"]),
        (Runtime::Node, &["9000", "5000", "console.log('\\x01'.repeat(200000))"]),
    ] {
        let Some(result) = run(runtime, args) else { continue };
        assert_eq!((&result["truncated"], &result["success"]), (&json!(true), &json!(true)), "{runtime:?}");
        let size = result.to_string().len();
        assert!((1000..=5000).contains(&size), "{runtime:?}: {size}");
    }
}

#[test]
fn code_that_prints_without_end_costs_no_memory_and_ends_as_it_does() {
    // It prints 400 MB. Neither the code nor the script may have 200 MB.
    let print = "import sys\nfor n in range(400): sys.stdout.write('é' * 500000)\nsys.stderr.write('e' * 100000); sys.exit(6)";
    let script = "src/builtin/sandbox/run.py";
    let limited = format!("ulimit -v 200000; exec python3 {script} 60000 2000000 \"$1\"");
    let output = Command::new("sh").args(["-c", &limited, "sh", print]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&result["exitCode"], &result["killed"]), (&json!(6), &json!(false)), "{}", result["stderr"]);
    assert_eq!(result["truncated"], true);
    assert_eq!(result["stdout"], "é".repeat(100_000));
    assert_eq!(result["stderr"], "e".repeat(100_000));
}

#[test]
fn a_child_of_the_code_that_keeps_its_streams_does_not_change_its_end() {
    let spawn = "import subprocess; print('done', flush=True); subprocess.Popen(['sleep', '4'])";
    let fine = json!({"success": true, "exitCode": 0, "killed": false, "stdout": "done\n", "stderr": "", "truncated": false});
    check(Runtime::Python, &["2500", "100000", spawn], &fine);
    let spawn =
        "console.log('done'); require('child_process').spawn('sleep', ['4'], {stdio: 'inherit'}).unref()";
    check(Runtime::Node, &["2500", "100000", spawn], &fine);
    let killed = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)";
    let by_itself = json!({"success": false, "exitCode": 137, "killed": false});
    check(Runtime::Python, &["9000", "100000", killed], &by_itself);
}
