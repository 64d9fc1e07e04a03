//! Validation of `run.sandbox`: image, program, files and environment.

use std::collections::{BTreeMap, BTreeSet};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use skillet_api::{
    Reason, SkillPolicySpec,
    skill::{File, Sandbox, SecretEnvVar},
};

use super::{
    ImageChoice, Program, SandboxProgram, ValidFile,
    field_error::FieldErrors,
    image::{is_image_allowed, is_image_reference},
    is_dns_label, script_file_name,
};

/// Entries of `spec.allowedImages` that a refusal shows.
const SHOWN_IMAGES: usize = 10;
const FIELD: &str = "spec.run.sandbox";
/// Longest script and longest file, in characters, as in the CRD.
const MAX_TEXT: usize = 262_144;

/// Returns `None` only if it added an error.
pub(super) fn read(
    sandbox: &Sandbox,
    policy: &SkillPolicySpec,
    errors: &mut FieldErrors,
) -> Option<SandboxProgram> {
    let image = read_image(sandbox, policy, errors);
    let program = read_program(sandbox, errors);
    let script = sandbox.script.as_ref().and(sandbox.runtime).map(script_file_name);
    let list = FileList { field: "spec.run.sandbox.files", most: 64, script };
    let files = read_files(&sandbox.files, list, errors);
    let env = read_env(sandbox, errors);
    Some(SandboxProgram {
        image: image?,
        program: program?,
        files,
        env,
        secret_env: sandbox.secret_env.clone(),
        bundle_image: None,
        builtin: None,
    })
}

fn read_image(sandbox: &Sandbox, policy: &SkillPolicySpec, errors: &mut FieldErrors) -> Option<ImageChoice> {
    let field = format!("{FIELD}.image");
    match (&sandbox.image, sandbox.runtime) {
        (None, Some(runtime)) => Some(ImageChoice::Runtime(runtime)),
        (None, None) | (Some(_), Some(_)) => {
            errors.spec(FIELD, "give exactly one of image and runtime");
            None
        }
        (Some(image), None) if image.chars().count() > 512 || !is_image_reference(image) => {
            let shown = crate::text::truncate(image, 100).0;
            errors.spec(
                field,
                format!("{shown:?} is not an image reference; write it like ghcr.io/acme/tool:1.2"),
            );
            None
        }
        (Some(image), None) if is_image_allowed(image, &policy.allowed_images) => {
            Some(ImageChoice::Image(image.clone()))
        }
        (Some(image), None) => {
            let shown: Vec<&str> =
                policy.allowed_images.iter().take(SHOWN_IMAGES).map(String::as_str).collect();
            let allowed = if shown.is_empty() { String::new() } else { format!(": {}", shown.join(", ")) };
            let message = format!(
                "SkillPolicy does not allow {image}; use runtime, or have it added to spec.allowedImages of the SkillPolicy{allowed}"
            );
            errors.add(Reason::ImageNotAllowed, field, message);
            None
        }
    }
}

fn read_program(sandbox: &Sandbox, errors: &mut FieldErrors) -> Option<Program> {
    errors.at_most_items(format_args!("{FIELD}.command"), sandbox.command.len(), 64);
    errors.at_most_items(format_args!("{FIELD}.args"), sandbox.args.len(), 256);
    for (list, words) in [("command", &sandbox.command), ("args", &sandbox.args)] {
        for (place, word) in words.iter().enumerate() {
            errors.at_most(format_args!("{FIELD}.{list}[{place}]"), word, 4096);
            errors.no_nul(format_args!("{FIELD}.{list}[{place}]"), word);
        }
    }
    match (&sandbox.script, sandbox.command.first()) {
        (Some(_), Some(_)) | (None, None) => {
            errors.spec(FIELD, "give exactly one of script and command");
            None
        }
        (Some(script), None) => {
            errors.not_empty(format_args!("{FIELD}.script"), script);
            errors.at_most(format_args!("{FIELD}.script"), script, MAX_TEXT);
            let Some(runtime) = sandbox.runtime else {
                let message = "script needs runtime: shell, python or node; with image, use command";
                errors.spec(FIELD, message);
                return None;
            };
            Some(Program::Script { runtime, text: script.clone(), args: sandbox.args.clone() })
        }
        (None, Some(program)) => {
            errors.not_empty(format_args!("{FIELD}.command[0]"), program);
            Some(Program::Command { argv: sandbox.command.iter().chain(&sandbox.args).cloned().collect() })
        }
    }
}

/// A list of files in a Skill.
#[derive(Clone, Copy)]
pub(super) struct FileList<'a> {
    pub(super) field: &'static str,
    /// Most files.
    pub(super) most: usize,
    /// Name of the script that lies beside the files.
    pub(super) script: Option<&'a str>,
}

pub(super) fn read_files(files: &[File], list: FileList<'_>, errors: &mut FieldErrors) -> Vec<ValidFile> {
    let FileList { field: list_field, most, script } = list;
    errors.at_most_items(list_field, files.len(), most);
    let paths: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let mut seen = BTreeSet::new();
    let mut valid = Vec::with_capacity(files.len());
    for (place, file) in files.iter().enumerate() {
        let field = format!("{list_field}[{place}]");
        check_path(&field, &file.path, errors);
        if !seen.insert(&file.path) {
            errors.spec(&field, format!("the path {:?} is used twice", file.path));
        }
        let first = file.path.split('/').next();
        if script.is_some() && first == script {
            errors
                .spec(&field, format!("{:?} is where the script itself lies; take another path", file.path));
        }
        let folders = file.path.match_indices('/').map(|(slash, _)| &file.path[..slash]);
        if let Some(folder) = folders.into_iter().find(|folder| paths.contains(folder)) {
            errors.spec(&field, format!("{folder:?} is a file, so {:?} cannot be below it", file.path));
        }
        if let Some(bytes) = read_bytes(&field, file, errors) {
            valid.push(ValidFile { path: file.path.clone(), bytes });
        }
    }
    valid
}

fn check_path(field: &str, path: &str, errors: &mut FieldErrors) {
    let field = format!("{field}.path");
    errors.at_most(&field, path, 256);
    errors.no_nul(&field, path);
    if path.split('/').any(|segment| matches!(segment, "" | "." | "..")) {
        errors.spec(&field, "must be relative, without empty, . or .. segments, like lib/words.txt");
    }
    if path.split('/').any(|segment| segment.len() > 255) {
        errors.spec(&field, "has a segment of more than 255 bytes");
    }
}

fn read_bytes(field: &str, file: &File, errors: &mut FieldErrors) -> Option<Vec<u8>> {
    match (&file.content, &file.content_base64) {
        (Some(text), None) => {
            errors.at_most(format_args!("{field}.content"), text, MAX_TEXT);
            Some(text.clone().into_bytes())
        }
        (None, Some(text)) => {
            errors.at_most(format_args!("{field}.contentBase64"), text, 350_000);
            // The base64 command and YAML's block form break lines.
            let joined: String = text.split_ascii_whitespace().collect();
            STANDARD
                .decode(joined)
                .map_err(|error| {
                    errors.spec(format_args!("{field}.contentBase64"), format!("is not base64: {error}"));
                })
                .ok()
        }
        (Some(_), Some(_)) | (None, None) => {
            errors.spec(field, "give exactly one of content and contentBase64");
            None
        }
    }
}

fn read_env(sandbox: &Sandbox, errors: &mut FieldErrors) -> BTreeMap<String, String> {
    errors.at_most_items(format_args!("{FIELD}.env"), sandbox.env.len(), 128);
    errors.at_most_items(format_args!("{FIELD}.secretEnv"), sandbox.secret_env.len(), 64);
    let mut seen = BTreeSet::new();
    let mut env = BTreeMap::new();
    for (place, variable) in sandbox.env.iter().enumerate() {
        let field = format!("{FIELD}.env[{place}]");
        check_variable(&field, &variable.name, &mut seen, errors);
        errors.at_most(format_args!("{field}.value"), &variable.value, 32_768);
        errors.no_nul(format_args!("{field}.value"), &variable.value);
        env.insert(variable.name.clone(), variable.value.clone());
    }
    check_secret_env(&format!("{FIELD}.secretEnv"), &sandbox.secret_env, &mut seen, errors);
    env
}

/// Checks variables from Secrets. `seen` has the names of all variables before them.
pub(super) fn check_secret_env<'a>(
    list_field: &str,
    variables: &'a [SecretEnvVar],
    seen: &mut BTreeSet<&'a str>,
    errors: &mut FieldErrors,
) {
    for (place, variable) in variables.iter().enumerate() {
        let field = format!("{list_field}[{place}]");
        check_variable(&field, &variable.name, seen, errors);
        check_object_name("Secret", &format!("{field}.secret"), &variable.secret, errors);
        check_object_key("Secret", &format!("{field}.key"), &variable.key, errors);
    }
}

/// Checks the name of a Secret or ConfigMap.
pub(super) fn check_object_name(kind: &str, field: &str, name: &str, errors: &mut FieldErrors) {
    errors.not_empty(field, name);
    errors.at_most(field, name, 253);
    if !name.is_empty() && !name.split('.').all(is_dns_label) {
        let message = format!(
            "must be the name of a {kind}: a-z, 0-9, - and ., with a letter or digit at each end and around each dot"
        );
        errors.spec(field, message);
    }
}

/// Checks a key of a Secret or ConfigMap.
pub(super) fn check_object_key(kind: &str, field: &str, key: &str, errors: &mut FieldErrors) {
    errors.not_empty(field, key);
    errors.at_most(field, key, 253);
    if !key.bytes().all(is_key_byte) {
        errors.spec(field, format!("must be a key of a {kind}: letters, digits, -, _ and ."));
    }
}

fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.')
}

/// Checks the name of a variable.
pub(super) fn check_variable<'a>(
    field: &str,
    name: &'a str,
    seen: &mut BTreeSet<&'a str>,
    errors: &mut FieldErrors,
) {
    let is_first_legal = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let are_others_legal = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if !is_first_legal || !are_others_legal || name.len() > 128 {
        let message = "must be at most 128 letters, digits and _, not beginning with a digit";
        errors.spec(format_args!("{field}.name"), message);
    }
    if !seen.insert(name) {
        errors.spec(format_args!("{field}.name"), format!("{name} is set twice in env and secretEnv"));
    }
}
