//! Validation of the MCP servers of instructions, and of one as a program that is kept running.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use skillet_api::{Reason, SkillPolicySpec, mcp::McpServer, skill::RetryOn};
use skillet_instructions::mcp::{Unset, expand_text};

use super::{
    FieldError, Program, ValidContent,
    field_error::FieldErrors,
    sandbox_spec::{check_secret_env, check_variable},
    script::{BundleParts, Interpreter, NODE, PYTHON, SH},
};
use crate::content::Content;

const FIELD: &str = "spec.instructions.mcpServers";
const MAX_SERVERS: usize = 8;
/// Longest name: with it and two marks, half of a tool's name is left for the tool.
const MAX_NAME: usize = 24;
/// Longest time for which a server is kept running.
const MAX_SESSION: Duration = Duration::from_secs(3600);

/// Adds the errors of the servers.
pub(super) fn check(servers: &BTreeMap<String, McpServer>, has_image: bool, errors: &mut FieldErrors) {
    errors.at_most_items(FIELD, servers.len(), MAX_SERVERS);
    for (name, server) in servers {
        let field = format!("{FIELD}.{name}");
        let is_plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
        if name.is_empty() || name.len() > MAX_NAME || !is_plain || name.contains("__") {
            let message = format!(
                "the name must be at most {MAX_NAME} letters, digits, - and _, without __; it is a part of the names of tools"
            );
            errors.spec(&field, message);
        }
        check_server(&field, server, has_image, errors);
    }
}

fn check_server(field: &str, server: &McpServer, has_image: bool, errors: &mut FieldErrors) {
    let McpServer { command, args, env, secret_env, idle_timeout, url } = server;
    if url.is_some() {
        let message =
            "a server at a URL elsewhere is not supported; give command, a program that runs in a sandbox";
        errors.spec(format_args!("{field}.url"), message);
    } else if interpreter(command, has_image).is_none() {
        errors.add(Reason::NoInterpreter, format_args!("{field}.command"), no_interpreter(command));
    }
    for (place, word) in std::iter::once(command).chain(args).enumerate() {
        errors.no_nul(format_args!("{field}.args[{}]", place.saturating_sub(1)), word);
        errors.at_most(format_args!("{field}.args[{}]", place.saturating_sub(1)), word, 4096);
    }
    errors.at_most_items(format_args!("{field}.args"), args.len(), 64);
    errors.at_most_items(format_args!("{field}.env"), env.len(), 64);
    errors.at_most_items(format_args!("{field}.secretEnv"), secret_env.len(), 16);
    let mut seen = BTreeSet::new();
    for (name, value) in env {
        let field = format!("{field}.env.{name}");
        check_variable(&field, name, &mut seen, errors);
        errors.at_most(&field, value, 4096);
        errors.no_nul(&field, value);
    }
    check_secret_env(&format!("{field}.secretEnv"), secret_env, &mut seen, errors);
    if idle_timeout.0.is_zero() || idle_timeout.0 > MAX_SESSION {
        errors.spec(format_args!("{field}.idleTimeout"), "must be more than 0 and at most 1h");
    }
}

fn no_interpreter(command: &str) -> String {
    format!(
        "{command:?} is in no runtime; use python3, node, sh or bash with a file of the skill, or name an image that has the program in spec.run.sandbox.image. A program that downloads the server, such as npx or uvx, is not supported"
    )
}

/// Returns the interpreter that a command names. Any command may be a program of the skill's own image.
fn interpreter(command: &str, has_image: bool) -> Option<Interpreter> {
    match command.rsplit('/').next().unwrap_or(command) {
        "" => None,
        _ if has_image => Some(SH),
        "sh" | "dash" => Some(SH),
        "bash" => Some(Interpreter { program: "bash", ..SH }),
        "node" | "nodejs" => Some(NODE),
        other => other.starts_with("python").then_some(PYTHON),
    }
}

/// Expands `${NAME}` and `${NAME:-text}` of a server's words and values. A variable without a value or text stays as it is.
pub fn expand_variables(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> String {
    expand_text(text, Unset::Default, lookup)
}

/// Returns the reason why a runtime cannot run this server.
pub fn server_problem(name: &str, server: &McpServer) -> Option<String> {
    let mut errors = FieldErrors::default();
    check(&BTreeMap::from([(name.to_owned(), server.clone())]), false, &mut errors);
    errors.into_vec().first().map(ToString::to_string)
}

/// Validates a server of a version for a run. It has the limits of the skill, but runs until nobody calls it.
pub fn validate_server<'a>(
    content: impl Into<Content<'a>>,
    name: &str,
    policy: &SkillPolicySpec,
) -> Result<ValidContent, Vec<FieldError>> {
    let content = content.into();
    let mut errors = FieldErrors::default();
    let mut parts = BundleParts::read(content, policy, &mut errors);
    let servers = content.instructions.map(|instructions| &instructions.mcp_servers);
    let Some(server) = servers.and_then(|servers| servers.get(name)) else {
        let names: Vec<&str> = servers.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let message = format!("the instructions have no MCP server {name:?}; they have {names}");
        errors.add(Reason::ServerNotFound, "spec.mcpServer", message);
        return Err(errors.into_vec());
    };
    let has_image = content.run.and_then(|run| run.sandbox.as_ref()).is_some_and(|it| it.image.is_some());
    // Of the Secrets, a server gets those that it names.
    parts.secret_env.clone_from(&server.secret_env);
    let mut call_timeout = Duration::ZERO;
    if let Some(limits) = &mut parts.limits {
        call_timeout = std::mem::replace(&mut limits.timeout, MAX_SESSION);
        // Whoever calls it starts it again.
        (limits.retries, limits.retry_on) = (0, RetryOn::Lost);
    }
    parts.finish(content, interpreter(&server.command, has_image), policy, errors, |program| {
        let program = if has_image { server.command.clone() } else { program };
        Program::McpServer {
            argv: std::iter::once(program).chain(server.args.iter().cloned()).collect(),
            env: server.env.clone(),
            idle: server.idle_timeout.0,
            call_timeout,
        }
    })
}

#[cfg(test)]
mod tests {
    use skillet_api::{
        SkillSpec,
        skill::{Runtime, SecretEnvVar},
    };

    use super::*;
    use crate::skill::{ImageChoice, validate_skill};

    fn spec(server: &str, more: &str) -> SkillSpec {
        let yaml = format!(
            "{{version: 1.0.0, instructions: {{body: Read., mcpServers: {{notes: {server}}}}}, files: [{{path: server.py, content: x}}], limits: {{timeout: 7s, retries: 2}}{more}}}"
        );
        serde_saphyr::from_str(&yaml).unwrap()
    }

    fn refused(server: &str, more: &str) -> Vec<String> {
        let policy: SkillPolicySpec = serde_saphyr::from_str("{allowedImages: [own/]}").unwrap();
        match validate_skill("s", &spec(server, more), &policy) {
            Ok(_) => Vec::new(),
            Err(errors) => errors.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn a_server_is_a_program_that_runs_until_nobody_calls_it() {
        let server = "{command: /usr/bin/python3, args: ['${SKILL_ROOT}/server.py'], env: {A: '${B:-c}'}, secretEnv: [{name: T, secret: s, key: k}], idleTimeout: 30s}";
        let valid = validate_server(&spec(server, ""), "notes", &SkillPolicySpec::default()).unwrap();
        assert_eq!(valid.sandbox().unwrap().image, ImageChoice::Runtime(Runtime::Python));
        let program = Program::McpServer {
            argv: vec!["/usr/bin/python3".into(), "${SKILL_ROOT}/server.py".into()],
            env: BTreeMap::from([("A".to_owned(), "${B:-c}".to_owned())]),
            idle: Duration::from_secs(30),
            call_timeout: Duration::from_secs(7),
        };
        assert_eq!(valid.sandbox().unwrap().program, program);
        assert_eq!((valid.limits.timeout, valid.limits.retries), (MAX_SESSION, 0));
        let secret = SecretEnvVar { name: "T".into(), secret: "s".into(), key: "k".into() };
        assert_eq!(valid.sandbox().unwrap().secret_env, [secret]);
        let skill = spec(
            server,
            ", run: {sandbox: {runtime: shell, script: cat, secretEnv: [{name: U, secret: u, key: k}]}}",
        );
        let sealed = validate_skill("s", &skill, &SkillPolicySpec::default()).unwrap();
        let names: Vec<String> =
            sealed.secret_env(&skill).into_iter().map(|variable| variable.name).collect();
        assert_eq!(names, ["U", "T"]);
        let paths: Vec<&str> = valid.sandbox().unwrap().files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["server.py", "SKILL.md"]);
    }

    #[test]
    fn the_servers_program_may_be_in_an_image_and_has_no_secrets_but_its_own() {
        let run = ", run: {sandbox: {image: own/a, command: [x], secretEnv: [{name: T, secret: s, key: k}]}}";
        let policy: SkillPolicySpec = serde_saphyr::from_str("{allowedImages: [own/]}").unwrap();
        let valid = validate_server(&spec("{command: my-server}", run), "notes", &policy).unwrap();
        assert_eq!(valid.sandbox().unwrap().image, ImageChoice::Image("own/a".into()));
        let Program::McpServer { argv, .. } = &valid.sandbox().unwrap().program else { panic!("no server") };
        assert_eq!((argv, valid.sandbox().unwrap().secret_env.len()), (&vec!["my-server".to_owned()], 0));
        assert_eq!(refused("{command: my-server}", run), [""; 0]);
    }

    #[test]
    fn what_cannot_run_is_refused_with_the_field_and_the_fix() {
        let first = |server: &str| refused(server, "").remove(0);
        assert!(first("{command: npx, args: [-y, x]}").starts_with(
            "spec.instructions.mcpServers.notes.command: \"npx\" is in no runtime; use python3, node"
        ));
        assert!(first("{}").starts_with("spec.instructions.mcpServers.notes.command: \"\" is in no runtime"));
        assert!(first("{url: 'https://x'}").starts_with(
            "spec.instructions.mcpServers.notes.url: a server at a URL elsewhere is not supported"
        ));
        assert_eq!(
            first("{command: sh, idleTimeout: 2h}"),
            "spec.instructions.mcpServers.notes.idleTimeout: must be more than 0 and at most 1h"
        );
        assert_eq!(
            first("{command: sh, env: {1A: x}}"),
            "spec.instructions.mcpServers.notes.env.1A.name: must be at most 128 letters, digits and _, not beginning with a digit"
        );
        assert_eq!(
            first("{command: sh, env: {A: x}, secretEnv: [{name: A, secret: s, key: k}]}"),
            "spec.instructions.mcpServers.notes.secretEnv[0].name: A is set twice in env and secretEnv"
        );
        let name = spec("{command: sh}", "");
        let mut bad = name.clone();
        let servers = &mut bad.instructions.as_mut().unwrap().mcp_servers;
        let server = servers.remove("notes").unwrap();
        servers.insert("a__b".into(), server);
        let errors = validate_skill("s", &bad, &SkillPolicySpec::default()).unwrap_err();
        assert!(errors[0].to_string().starts_with("spec.instructions.mcpServers.a__b: the name must be"));
        let unknown = validate_server(&name, "x", &SkillPolicySpec::default()).unwrap_err();
        assert_eq!(unknown[0].reason(), Reason::ServerNotFound);
        assert_eq!(
            unknown[0].to_string(),
            "spec.mcpServer: the instructions have no MCP server \"x\"; they have notes"
        );
    }
}
