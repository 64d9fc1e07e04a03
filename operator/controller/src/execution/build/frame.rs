//! The Run frame: the runner's whole input. Secrets are in it and nowhere else.

use std::{cell::Cell, collections::BTreeMap, fmt::Write as _};

use skillet_api::SkillPolicySpec;
use skillet_core::{
    admission::Admitted,
    builtin::printed_bytes,
    skill::{
        BundleImage, Program as ValidProgram, SandboxProgram, expand_variables, interpreter_path,
        script_file_name,
    },
};
use skillet_protocol::{FileContent, Program, Run, RunFile, RunLimits, SCRATCH, WORK_FOLDER};

use super::egress;
use crate::sandbox::manifest::BUNDLE_FOLDER;

/// From SIGTERM to SIGKILL. With the runner's own half second it stays inside the promised two seconds.
const GRACE_MS: u64 = 1_000;
/// Larger than any scratch space: the memory limit is what holds.
const FILE_BYTES: u64 = 1 << 30;
const OPEN_FILES: u64 = 1024;
/// Most bytes of each output of an MCP server. Its messages are read as they come, and its calls have limits of their own.
pub(crate) const MAX_SESSION_BYTES: u64 = 64 << 20;
/// Variables by which scripts of other clients find the folder of their bundle.
const BUNDLE_VARIABLES: [&str; 4] = ["SKILL_DIR", "SKILL_ROOT", "CLAUDE_SKILL_DIR", "CLAUDE_PLUGIN_ROOT"];

/// The identity of one run of an execution.
#[derive(Clone, Debug)]
pub(crate) struct RunId<'a> {
    pub(crate) execution_uid: &'a str,
    pub(crate) attempt: u32,
    pub(crate) epoch: u64,
}

/// The frame for one attempt.
pub(crate) fn run(
    id: &RunId<'_>,
    admitted: &Admitted,
    (program, policy): (&SandboxProgram, &SkillPolicySpec),
    mut secret_env: BTreeMap<String, String>,
) -> Run {
    let content = &admitted.content;
    let mut files: Vec<RunFile> = program
        .files
        .iter()
        .map(|file| RunFile { path: file.path.clone(), content: bytes(&file.bytes) })
        .collect();
    let mut env = program.env.clone();
    let mut argv = match &program.program {
        ValidProgram::Command { argv } => argv.clone(),
        ValidProgram::Script { runtime, text, args } => {
            let (interpreter, file_name) = (interpreter_path(*runtime), script_file_name(*runtime));
            files.push(RunFile { path: file_name.into(), content: FileContent::Text(text.clone()) });
            [interpreter, file_name].into_iter().map(ToOwned::to_owned).chain(args.iter().cloned()).collect()
        }
        ValidProgram::BundleScript { interpreter, path } => {
            let folder = name_bundle_folder(program, &mut env);
            let is_here = program.files.iter().any(|file| file.path == *path);
            let folder = if is_here { format!("{SCRATCH}/{WORK_FOLDER}") } else { folder };
            // The whole path, so that a script may change its folder and look for itself afterwards.
            vec![interpreter.clone(), format!("{folder}/{path}")]
        }
        ValidProgram::BodyCommand { interpreter, text, inputs: _ } => {
            name_bundle_folder(program, &mut env);
            let is_free = |name: &String| !env.contains_key(name) && !secret_env.contains_key(name);
            let variables: BTreeMap<&String, &String> =
                admitted.variables.iter().filter(|(name, _)| is_free(name)).collect();
            // The word behind the text is $0; those after it are $1 and so on.
            let words =
                [interpreter.clone(), "-c".to_owned(), with_variables(text, &variables), "sh".to_owned()];
            words.into_iter().chain(variables.into_values().cloned()).collect()
        }
        ValidProgram::McpServer { argv, env: own, .. } => {
            name_bundle_folder(program, &mut env);
            add_server_variables(own, &mut env, &mut secret_env);
            argv.iter().map(|word| expand_variables(word, &|name| env.get(name).cloned())).collect()
        }
    };
    let keeps_input_open = matches!(program.program, ValidProgram::McpServer { .. });
    let output_bytes = printed_bytes(program, &content.limits);
    argv.extend(admitted.args.iter().cloned());
    Run {
        execution_uid: id.execution_uid.to_owned(),
        attempt: id.attempt,
        epoch: id.epoch,
        program: Program::Command { argv },
        files,
        input: admitted.stdin.to_string(),
        keeps_input_open,
        env,
        secret_env,
        network: content.network.as_ref().map(|network| egress::run_network(&network.hosts, policy)),
        limits: RunLimits {
            timeout_ms: u64::try_from(admitted.timeout.as_millis()).unwrap_or(u64::MAX),
            grace_ms: GRACE_MS,
            processes: u64::from(content.limits.processes),
            output_bytes: if keeps_input_open { MAX_SESSION_BYTES } else { output_bytes },
            file_bytes: FILE_BYTES,
            open_files: OPEN_FILES,
        },
    }
}

/// Returns a command behind the assignment of variables, whose values are its first arguments.
///
/// They are variables of the shell and not of its environment: no program that the command starts takes one for a setting.
fn with_variables(command: &str, variables: &BTreeMap<&String, &String>) -> String {
    let mut text = String::new();
    for (place, name) in variables.keys().enumerate() {
        // Writing to a String does not fail.
        let _ = write!(text, "{name}=${{{}}} ", place + 1);
    }
    if variables.is_empty() {
        command.to_owned()
    } else {
        format!("{text}; shift {}; {command}", variables.len())
    }
}

/// Adds the variables that name the folder of the bundle, and returns the folder.
fn name_bundle_folder(program: &SandboxProgram, env: &mut BTreeMap<String, String>) -> String {
    let folder = match &program.bundle_image {
        None => format!("{SCRATCH}/{WORK_FOLDER}"),
        Some(BundleImage { path, .. }) => format!("{BUNDLE_FOLDER}/{path}").trim_end_matches('/').to_owned(),
    };
    for name in BUNDLE_VARIABLES {
        env.entry(name.to_owned()).or_insert_with(|| folder.clone());
    }
    folder
}

/// Adds the variables of a server. One whose value has a Secret's is a secret too.
fn add_server_variables(
    own: &BTreeMap<String, String>,
    env: &mut BTreeMap<String, String>,
    secret_env: &mut BTreeMap<String, String>,
) {
    let (plain, secrets) = (env.clone(), secret_env.clone());
    for (name, text) in own {
        let is_secret = Cell::new(false);
        let value = expand_variables(text, &|name| {
            let secret = secrets.get(name).inspect(|_secret| is_secret.set(true));
            secret.or_else(|| plain.get(name)).cloned()
        });
        if is_secret.get() { &mut *secret_env } else { &mut *env }.insert(name.clone(), value);
    }
}

fn bytes(bytes: &[u8]) -> FileContent {
    match std::str::from_utf8(bytes) {
        Ok(text) => FileContent::Text(text.to_owned()),
        Err(_) => FileContent::Base64(bytes.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use serde_json::json;
    use skillet_api::SkillSpec;
    use skillet_core::skill::{
        ValidContent, validate_command, validate_content, validate_script, validate_server,
    };

    use super::*;

    fn frame(sandbox: &str) -> Run {
        let yaml = format!(
            "version: 1.0.0\nrun: {{sandbox: {{{sandbox}}}}}\nlimits: {{processes: 9, outputBytes: 77}}"
        );
        let spec: SkillSpec = serde_saphyr::from_str(&yaml).unwrap();
        let content = validate_content(&spec, &SkillPolicySpec::default()).unwrap();
        frame_of(content, &[], r#"{"b":1,"a":[true]}"#)
    }

    fn frame_of(content: ValidContent, args: &[&str], stdin: &str) -> Run {
        let admitted = Admitted {
            skill: "s".into(),
            version: "1.0.0".parse().unwrap(),
            digest: String::new(),
            content: Arc::new(content),
            args: args.iter().map(ToString::to_string).collect(),
            stdin: stdin.into(),
            variables: BTreeMap::from([
                ("tag".to_owned(), "v1".to_owned()),
                ("A".to_owned(), "x".to_owned()),
            ]),
            timeout: Duration::from_millis(1500),
            retries: 0,
        };
        let secrets = BTreeMap::from([("TOKEN".to_owned(), "hush".to_owned())]);
        let program = admitted.content.sandbox().unwrap();
        let id = RunId { execution_uid: "uid", attempt: 2, epoch: 5 };
        run(&id, &admitted, (program, &SkillPolicySpec::default()), secrets)
    }

    fn argv(run: &Run) -> Vec<&str> {
        let Program::Command { argv } = &run.program;
        argv.iter().map(String::as_str).collect()
    }

    #[test]
    fn a_script_is_a_file_given_to_its_interpreter_with_its_arguments() {
        let run = frame("runtime: python, script: print(1), args: [--fast]");
        assert_eq!(argv(&run), ["/usr/bin/python3", "main.py", "--fast"]);
        assert_eq!(
            run.files.last(),
            Some(&RunFile { path: "main.py".into(), content: FileContent::Text("print(1)".into()) })
        );
        assert_eq!(argv(&frame("runtime: shell, script: cat")), ["/bin/sh", "main.sh"]);
        assert_eq!(argv(&frame("runtime: node, script: '1'")), ["/usr/bin/node", "main.js"]);
    }

    #[test]
    fn a_script_of_a_bundle_gets_its_arguments_and_finds_the_bundle() {
        let yaml = "{version: 1.0.0, instructions: {}, files: [{path: scripts/a.py, content: x}, {path: b.txt, content: y}], \
                    run: {sandbox: {runtime: shell, script: cat, env: [{name: SKILL_ROOT, value: mine}]}}}";
        let spec: SkillSpec = serde_saphyr::from_str(yaml).unwrap();
        let content = validate_script(&spec, "scripts/a.py", &SkillPolicySpec::default()).unwrap();
        let run = frame_of(content, &["-x", "y z"], "text");
        assert_eq!(argv(&run), ["/usr/bin/python3", "/dev/shm/work/scripts/a.py", "-x", "y z"]);
        let paths: Vec<&str> = run.files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["scripts/a.py", "b.txt", "SKILL.md"]);
        assert_eq!((run.input.as_str(), run.env["SKILL_ROOT"].as_str()), ("text", "mine"));
        for name in ["SKILL_DIR", "CLAUDE_SKILL_DIR", "CLAUDE_PLUGIN_ROOT"] {
            assert_eq!(run.env[name], "/dev/shm/work", "{name}");
        }
        assert_eq!(run.check(), Ok(()));
    }

    #[test]
    fn a_script_in_an_image_runs_from_there_and_the_bundle_is_the_image() {
        let digest = "0".repeat(64);
        for (directory, folder) in [("'skills/pdf/'", "/bundle/skills/pdf"), ("''", "/bundle")] {
            let yaml = format!(
                "{{version: 1.0.0, instructions: {{filesFrom: {{image: {{reference: 'own/a@sha256:{digest}', path: {directory}, files: [big.py]}}}}}}, files: [{{path: a.sh, content: ls}}]}}"
            );
            let spec: SkillSpec = serde_saphyr::from_str(&yaml).unwrap();
            let policy: SkillPolicySpec = serde_saphyr::from_str("{allowedImages: [own/]}").unwrap();
            let run = |path| frame_of(validate_script(&spec, path, &policy).unwrap(), &[], "");
            assert_eq!(argv(&run("big.py")), ["/usr/bin/python3".to_owned(), format!("{folder}/big.py")]);
            let own = run("a.sh");
            assert_eq!(argv(&own), ["/bin/sh", "/dev/shm/work/a.sh"]);
            assert_eq!((own.env["SKILL_DIR"].as_str(), own.files.len()), (folder, 2));
        }
    }

    #[test]
    fn a_command_of_a_body_is_one_word_of_its_shell_and_gets_its_values_beside_it() {
        let yaml = "{version: 1.0.0, instructions: {body: 'See !`echo $1 ${tag}`', dynamic: Run, inputs: [{name: tag}]}, \
                    run: {sandbox: {runtime: shell, script: cat, env: [{name: A, value: own}]}}}";
        let spec: SkillSpec = serde_saphyr::from_str(yaml).unwrap();
        let content = validate_command(&spec, "echo $1 ${tag}", &SkillPolicySpec::default()).unwrap();
        let run = frame_of(content, &["a; id"], "");
        assert_eq!(argv(&run), ["/bin/sh", "-c", "tag=${1} ; shift 1; echo $1 ${tag}", "sh", "v1", "a; id"]);
        assert_eq!((run.env.get("tag"), run.env["A"].as_str()), (None, "own"), "no program sees a value");
        assert_eq!(run.env["SKILL_DIR"], "/dev/shm/work");
        assert_eq!(run.check(), Ok(()));
    }

    #[test]
    fn an_mcp_server_finds_its_files_keeps_its_input_and_its_secrets_are_masked() {
        let yaml = "{version: 1.0.0, instructions: {mcpServers: {notes: {command: python3, args: ['${SKILL_ROOT}/s.py', '${NO}', '${TOKEN}'], env: {DB: '${SKILL_DIR}/db', AUTH: 'Bearer ${TOKEN:-none}', D: '${X:-y}'}}}}, files: [{path: s.py, content: x}]}";
        let spec: SkillSpec = serde_saphyr::from_str(yaml).unwrap();
        let content = validate_server(&spec, "notes", &SkillPolicySpec::default()).unwrap();
        let run = frame_of(content, &[], "");
        assert_eq!(argv(&run), ["/usr/bin/python3", "/dev/shm/work/s.py", "${NO}", "${TOKEN}"]);
        assert_eq!((run.env["DB"].as_str(), run.env["D"].as_str()), ("/dev/shm/work/db", "y"));
        assert_eq!((run.secret_env["AUTH"].as_str(), run.env.get("AUTH")), ("Bearer hush", None));
        assert!(run.keeps_input_open && run.input.is_empty());
        assert_eq!((run.limits.output_bytes, run.check()), (MAX_SESSION_BYTES, Ok(())));
    }

    #[test]
    fn a_command_is_run_as_written() {
        assert_eq!(
            argv(&frame("runtime: shell, command: [sed, -e], args: [s/a/b/]")),
            ["sed", "-e", "s/a/b/"]
        );
    }

    #[test]
    fn identity_input_secrets_and_limits_are_passed() {
        let run = frame("runtime: shell, script: cat, env: [{name: A, value: b}]");
        assert_eq!((run.execution_uid.as_str(), run.attempt, run.epoch), ("uid", 2, 5));
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&run.input).unwrap(),
            json!({"a": [true], "b": 1})
        );
        assert_eq!(run.env["A"], "b");
        assert_eq!(run.secret_env["TOKEN"], "hush");
        assert_eq!((run.limits.timeout_ms, run.limits.processes, run.limits.output_bytes), (1500, 9, 77));
        assert_eq!(run.check(), Ok(()));
    }

    #[test]
    fn bytes_that_are_not_text_travel_as_base64() {
        let run = frame(
            "runtime: shell, script: cat, files: [{path: a.bin, contentBase64: /w==}, {path: b, content: hi}]",
        );
        assert_eq!(run.files[0].content, FileContent::Base64(vec![0xff]));
        assert_eq!(run.files[1].content, FileContent::Text("hi".into()));
    }
}
