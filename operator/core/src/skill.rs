//! Validation of a Skill's spec and of a sealed version: raw spec in, the valid type or every error out.
//!
//! Validation also refuses everything that the CRD refuses, since an object may have been stored under an older CRD. It reads
//! the spec and the SkillPolicy only; whether Secrets and images exist shows when a run starts.

mod builtin;
mod bundle_image;
mod command;
mod dependencies;
mod field_error;
mod http;
mod image;
mod instructions;
mod limits;
mod mcp_server;
mod network;
mod sandbox_spec;
mod script;
mod valid;
mod warnings;

use std::{collections::BTreeSet, sync::Arc};

use serde_json::Value;
use skillet_api::{
    Reason, SkillExecutionSpec, SkillPolicySpec, SkillSpec,
    builtin::Builtin,
    skill::{Run, Runtime, SecretEnvVar},
};

use crate::{
    content::{Content, digest},
    schema::Schema,
    version::{SkillSemver, VersionError},
};
use field_error::FieldErrors;

pub use self::{
    bundle_image::BundleImage,
    command::{declared_inputs, validate_command},
    dependencies::{Dependencies, dependencies},
    field_error::FieldError,
    image::is_image_reference,
    instructions::{BODY_SOURCE, MAX_BODY_BYTES, MAX_BUNDLE_BYTES, body_problem, body_source, with_body},
    limits::{ValidLimits, effective_limits, maximum_limits},
    mcp_server::{expand_variables, server_problem, validate_server},
    network::{HostPattern, ValidNetwork, check_hosts, may_reach},
    script::{Interpreter, validate_script},
    valid::{Handler, ImageChoice, Program, SandboxProgram, ValidContent, ValidFile},
    warnings::warnings,
};

/// A Skill whose present content can be sealed.
#[derive(Clone, Debug)]
pub struct ValidSkill {
    pub version: SkillSemver,
    pub digest: String,
    /// Content of a run. `None` for a skill of instructions alone.
    pub content: Option<ValidContent>,
}

impl ValidSkill {
    /// Returns the hosts of its program, or of the scripts of its bundle, whose spec this is.
    pub fn network(&self, spec: &SkillSpec) -> Option<ValidNetwork> {
        let of_spec = || spec.network.as_ref().map(|network| ValidNetwork { hosts: network.hosts.clone() });
        self.content.as_ref().and_then(|content| content.network.clone()).or_else(of_spec)
    }

    /// Returns the values from Secrets of its program and of its MCP servers, whose spec this is.
    pub fn secret_env(&self, spec: &SkillSpec) -> Vec<SecretEnvVar> {
        let program = self.content.iter().flat_map(ValidContent::secrets);
        let servers = spec.instructions.iter().flat_map(|instructions| instructions.mcp_servers.values());
        program.chain(servers.flat_map(|server| server.secret_env.iter().cloned())).collect()
    }
}

/// The part of a version that an execution runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunPart {
    Program,
    /// The script of this path.
    Script(String),
    /// The command of this text.
    Command(String),
    /// The MCP server of this name.
    McpServer(String),
}

impl RunPart {
    /// Returns the part that an execution names. Admission refuses one that names two.
    pub fn of(execution: &SkillExecutionSpec) -> Self {
        match (&execution.script, &execution.command, &execution.mcp_server) {
            (Some(script), ..) => Self::Script(script.path.clone()),
            (None, Some(command), _) => Self::Command(command.text.clone()),
            (None, None, Some(server)) => Self::McpServer(server.clone()),
            (None, None, None) => Self::Program,
        }
    }

    /// Validates the content of a version for a run of this part.
    pub fn validate<'a>(
        &self,
        content: impl Into<Content<'a>>,
        policy: &SkillPolicySpec,
    ) -> Result<ValidContent, Vec<FieldError>> {
        match self {
            Self::Program => validate_content(content, policy),
            Self::Script(path) => validate_script(content, path, policy),
            Self::Command(text) => validate_command(content, text, policy),
            Self::McpServer(name) => validate_server(content, name, policy),
        }
    }
}

/// Returns the name of the script in the working directory, beside the skill's files.
pub fn script_file_name(runtime: Runtime) -> &'static str {
    match runtime {
        Runtime::Shell => "main.sh",
        Runtime::Python => "main.py",
        Runtime::Node => "main.js",
    }
}

/// Returns the path of the interpreter in the runtime's image.
pub fn interpreter_path(runtime: Runtime) -> &'static str {
    match runtime {
        Runtime::Shell => "/bin/sh",
        Runtime::Python => "/usr/bin/python3",
        Runtime::Node => "/usr/bin/node",
    }
}

/// Returns the versions that a Skill withdraws.
pub fn yanked_versions(spec: &SkillSpec) -> BTreeSet<SkillSemver> {
    spec.yanked_versions.iter().filter_map(|text| text.parse().ok()).collect()
}

/// Tells if a Skill's own image has a digest, so that it never changes. `None` for a runtime, whose image is Skillet's.
pub fn is_image_pinned(spec: &SkillSpec) -> Option<bool> {
    let image = spec.run.as_ref()?.sandbox.as_ref()?.image.as_ref()?;
    Some(image.contains('@'))
}

/// Validates a Skill; returns all its errors at once.
pub fn validate_skill(
    name: &str,
    spec: &SkillSpec,
    policy: &SkillPolicySpec,
) -> Result<ValidSkill, Vec<FieldError>> {
    let mut errors = FieldErrors::default();
    if !is_skill_name(name) {
        errors.spec(
            "metadata.name",
            "must be at most 63 characters of a-z, 0-9 and -, beginning and ending with a letter or digit",
        );
    }
    let version: Result<SkillSemver, VersionError> = spec.version.parse();
    if let Err(error) = &version {
        errors.spec("spec.version", error.to_string());
    }
    errors.at_most_items("spec.tags", spec.tags.len(), 32);
    for (place, tag) in spec.tags.iter().enumerate() {
        errors.not_empty(format_args!("spec.tags[{place}]"), tag);
        errors.at_most(format_args!("spec.tags[{place}]"), tag, 64);
    }
    errors.at_most_items("spec.examples", spec.examples.len(), 32);
    for (place, example) in spec.examples.iter().enumerate() {
        errors.not_empty(format_args!("spec.examples[{place}]"), example);
        errors.at_most(format_args!("spec.examples[{place}]"), example, 256);
    }
    errors.at_most_items("spec.yankedVersions", spec.yanked_versions.len(), 256);
    for (place, text) in spec.yanked_versions.iter().enumerate() {
        if let Err(error) = text.parse::<SkillSemver>() {
            errors.spec(format_args!("spec.yankedVersions[{place}]"), error.to_string());
        }
    }
    instructions::check(spec.into(), &mut errors);
    bundle_image::read(spec.into(), policy, &mut errors);
    let content = match (&spec.run, &spec.instructions) {
        (None, None) => {
            errors.spec(
                "spec.run",
                "is not set; give run (a program), spec.instructions (a text for models), or both",
            );
            None
        }
        (None, Some(_)) => {
            check_interface(spec.into(), &mut errors);
            None
        }
        (Some(run), _) => read_content(spec.into(), run, policy, &mut errors),
    };
    match version {
        Ok(version) if errors.is_empty() => Ok(ValidSkill { version, digest: digest(spec), content }),
        _ => Err(errors.into_vec()),
    }
}

/// Validates content for a run, such as that of a sealed version. Content without a program is the error `NoProgram`.
pub fn validate_content<'a>(
    content: impl Into<Content<'a>>,
    policy: &SkillPolicySpec,
) -> Result<ValidContent, Vec<FieldError>> {
    let mut errors = FieldErrors::default();
    let content = content.into();
    let Some(run) = content.run else {
        let message = "is not set: the skill has instructions, which models read, and no program";
        errors.add(Reason::NoProgram, "spec.run", message);
        return Err(errors.into_vec());
    };
    instructions::check(content, &mut errors);
    match read_content(content, run, policy, &mut errors) {
        Some(content) if errors.is_empty() => Ok(content),
        _ => Err(errors.into_vec()),
    }
}

/// True for a DNS label, which is also a legal label value and part of an object's name.
pub fn is_skill_name(name: &str) -> bool {
    name.len() <= 63 && is_dns_label(name)
}

/// True for a DNS label of any length.
fn is_dns_label(name: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = name.as_bytes();
    let are_edges_plain =
        bytes.first().copied().is_some_and(is_plain) && bytes.last().copied().is_some_and(is_plain);
    are_edges_plain && bytes.iter().all(|b| is_plain(*b) || *b == b'-')
}

/// The schemas of input and output, compiled.
type Schemas = (Option<Arc<Schema>>, Option<Arc<Schema>>);

/// Checks description and schemas, which skills with and without a program have.
fn check_interface(content: Content<'_>, errors: &mut FieldErrors) -> Schemas {
    errors.at_most("spec.description", content.description, 1024);
    let input = crate::builtin::input_schema(content.tool, content.run);
    let output = content.tool.and_then(|tool| tool.output_schema.as_ref());
    (
        read_schema("spec.tool.inputSchema", input, errors),
        read_schema("spec.tool.outputSchema", output, errors),
    )
}

/// Returns `None` only if it added an error.
fn read_content(
    content: Content<'_>,
    run: &Run,
    policy: &SkillPolicySpec,
    errors: &mut FieldErrors,
) -> Option<ValidContent> {
    let (input_schema, output_schema) = check_interface(content, errors);
    let handler = match (&run.sandbox, &run.http, run.builtin) {
        (Some(sandbox), None, None) => sandbox_spec::read(sandbox, policy, errors).map(Handler::from),
        (None, Some(http), None) => http::read(http, content, errors).map(Handler::from),
        (None, None, Some(builtin)) => builtin::read(builtin, policy, errors),
        (Some(_), Some(_), _) | (Some(_), _, Some(_)) | (_, Some(_), Some(_)) | (None, None, None) => {
            errors.spec("spec.run", "needs exactly one handler: sandbox, http or builtin");
            None
        }
    };
    let network = network::read(content.network, errors);
    let network = match &handler {
        Some(Handler::Builtin(program)) => builtin::network(program, network, errors),
        Some(Handler::File(_)) => {
            builtin::check_no_network(network.as_ref(), errors);
            None
        }
        Some(Handler::Sandbox(program)) if program.builtin == Some(Builtin::Browser) => {
            network.or_else(|| Some(builtin::every_host()))
        }
        Some(Handler::Sandbox(_) | Handler::Http(_)) | None => network,
    };
    let limits = limits::read(content.limits, &limits::policy_of(Some(run), policy), errors);
    let (handler, limits) = (handler?, limits?);
    if let Handler::Sandbox(sandbox) = &handler {
        limits::check_image(&limits, &sandbox.image, errors);
    }
    let mut valid = ValidContent { handler, network, limits, input_schema, output_schema };
    http::fill_defaults(content, &mut valid);
    Some(valid)
}

fn read_schema(field: &str, schema: Option<&Value>, errors: &mut FieldErrors) -> Option<Arc<Schema>> {
    match Schema::compile(field, schema?) {
        Ok(schema) => Some(Arc::new(schema)),
        Err(error) => {
            errors.add(
                error.reason(),
                field,
                format!("is not a JSON Schema that can be used: {}", error.why),
            );
            None
        }
    }
}

#[cfg(test)]
mod tests;
