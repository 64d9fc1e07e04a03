//! Validation of one script of a bundle as a program: its interpreter, image, files and environment.

use std::{collections::BTreeMap, path::Path};

use skillet_api::{
    Reason, SkillPolicySpec,
    skill::{Runtime, Sandbox, SecretEnvVar},
};

use super::{
    BundleImage, ImageChoice, Program, SandboxProgram, ValidContent, ValidFile, ValidLimits, bundle_image,
    field_error::FieldErrors, image::is_image_reference, instructions, interpreter_path, limits, network,
    sandbox_spec,
};
use crate::content::Content;

/// Path of the instructions' text beside the bundle's files.
const BODY: &str = "SKILL.md";
/// Paths of files that a refusal shows.
const SHOWN_FILES: usize = 20;

/// The interpreter of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interpreter {
    /// The runtime that has it.
    pub runtime: Runtime,
    /// Name of the program in an image of a user.
    pub program: &'static str,
}

pub(super) const SH: Interpreter = Interpreter { runtime: Runtime::Shell, program: "sh" };
const BASH: Interpreter = Interpreter { runtime: Runtime::Shell, program: "bash" };
pub(super) const PYTHON: Interpreter = Interpreter { runtime: Runtime::Python, program: "python3" };
pub(super) const NODE: Interpreter = Interpreter { runtime: Runtime::Node, program: "node" };

impl Interpreter {
    /// Returns the interpreter that the first line names, or else the one for the end of the path.
    pub fn of(path: &str, bytes: &[u8]) -> Option<Self> {
        named_by_first_line(bytes).or_else(|| named_by_extension(path))
    }
}

/// Reads `#!/bin/sh`, `#!/usr/bin/env python3`, and `#!/usr/bin/env -S uv run --script`.
fn named_by_first_line(bytes: &[u8]) -> Option<Interpreter> {
    let line = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).strip_prefix(b"#!")?;
    let line = line.split(|byte| *byte == b'\n').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace().map(base_name);
    let program = match words.next()? {
        "env" => words.find(|word| !word.starts_with('-') && !word.contains('='))?,
        program => program,
    };
    match program {
        "sh" | "dash" | "ash" => Some(SH),
        "bash" => Some(BASH),
        // uv reads the declared packages, which have to be in the image, and starts Python.
        "uv" => Some(PYTHON),
        "node" | "nodejs" | "tsx" | "ts-node" => Some(NODE),
        other => other.starts_with("python").then_some(PYTHON),
    }
}

fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

fn named_by_extension(path: &str) -> Option<Interpreter> {
    let extension = Path::new(path).extension()?.to_str()?.to_ascii_lowercase();
    match extension.as_str() {
        "sh" => Some(SH),
        "bash" => Some(BASH),
        "py" => Some(PYTHON),
        "js" | "mjs" | "cjs" | "ts" | "mts" | "cts" => Some(NODE),
        _ => None,
    }
}

/// Validates a script of a version for a run. It has the limits and the environment of the skill's own program, and its
/// image if that is no runtime.
pub fn validate_script<'a>(
    content: impl Into<Content<'a>>,
    path: &str,
    policy: &SkillPolicySpec,
) -> Result<ValidContent, Vec<super::FieldError>> {
    let content = content.into();
    let mut errors = FieldErrors::default();
    let parts = BundleParts::read(content, policy, &mut errors);
    let path = path.trim_start_matches("./");
    let source = content.instructions.and_then(|instructions| instructions.files_from.as_ref());
    let in_image: &[String] = source.map_or(&[], |source| &source.image.files);
    let interpreter = find_interpreter(path, &parts.files, in_image, &mut errors);
    parts.finish(content, interpreter, policy, errors, |interpreter| Program::BundleScript {
        interpreter,
        path: path.to_owned(),
    })
}

/// Parts of a run that scripts and commands of a version have in common.
pub(super) struct BundleParts {
    files: Vec<ValidFile>,
    pub(super) limits: Option<ValidLimits>,
    bundle_image: Option<BundleImage>,
    env: BTreeMap<String, String>,
    pub(super) secret_env: Vec<SecretEnvVar>,
}

impl BundleParts {
    pub(super) fn read(content: Content<'_>, policy: &SkillPolicySpec, errors: &mut FieldErrors) -> Self {
        let files = instructions::check(content, errors);
        let limits = limits::read(content.limits, policy, errors);
        let bundle_image = bundle_image::read(content, policy, errors);
        let sandbox = content.run.and_then(|run| run.sandbox.as_ref());
        let environment = sandbox.and_then(|sandbox| sandbox_spec::read(sandbox, policy, errors));
        let (env, secret_env) =
            environment.map(|environment| (environment.env, environment.secret_env)).unwrap_or_default();
        Self { files, limits, bundle_image, env, secret_env }
    }

    /// Returns the content of a run if there are no errors. `program` takes the path or the name of the interpreter.
    pub(super) fn finish(
        self,
        content: Content<'_>,
        interpreter: Option<Interpreter>,
        policy: &SkillPolicySpec,
        mut errors: FieldErrors,
        program: impl FnOnce(String) -> Program,
    ) -> Result<ValidContent, Vec<super::FieldError>> {
        let Self { mut files, limits, bundle_image, env, secret_env } = self;
        let network = network::read(content.network, &mut errors);
        let sandbox = content.run.and_then(|run| run.sandbox.as_ref());
        let image = interpreter.map(|interpreter| choose_image(interpreter, sandbox, policy, &mut errors));
        if let (Some(limits), Some(image)) = (&limits, &image) {
            limits::check_image(limits, image, &mut errors);
        }
        let (true, Some(interpreter), Some(image), Some(limits)) =
            (errors.is_empty(), interpreter, image, limits)
        else {
            return Err(errors.into_vec());
        };
        add_body(content, &mut files);
        let interpreter = match &image {
            ImageChoice::Runtime(runtime) => interpreter_path(*runtime),
            ImageChoice::Image(_) | ImageChoice::Browser => interpreter.program,
        };
        let program = program(interpreter.to_owned());
        let program = SandboxProgram { image, program, files, env, secret_env, bundle_image, builtin: None };
        Ok(ValidContent { handler: program.into(), network, limits, input_schema: None, output_schema: None })
    }
}

fn find_interpreter(
    path: &str,
    files: &[ValidFile],
    in_image: &[String],
    errors: &mut FieldErrors,
) -> Option<Interpreter> {
    let field = "spec.script.path";
    let bytes = files.iter().find(|file| file.path == path).map(|file| file.bytes.as_slice());
    // Of a file in an image only the end of its name is known.
    let bytes = bytes.or_else(|| in_image.iter().any(|file| file == path).then_some(&[][..]));
    let Some(bytes) = bytes else {
        let all = files.iter().map(|file| file.path.as_str()).chain(in_image.iter().map(String::as_str));
        let shown: Vec<&str> = all.take(SHOWN_FILES).collect();
        let shown = if shown.is_empty() { "no files".to_owned() } else { shown.join(", ") };
        let message = format!("{path:?} is no file of the bundle; it has {shown}");
        errors.add(Reason::FileNotFound, field, message);
        return None;
    };
    let found = Interpreter::of(path, bytes);
    if found.is_none() {
        let message = format!(
            "no interpreter is known for {path:?}; begin it with a line such as #!/usr/bin/env python3, or end its name in .py, .sh, .js or .ts"
        );
        errors.add(Reason::NoInterpreter, field, message);
    }
    found
}

/// Returns the skill's own image, or that of the policy, or the runtime of the interpreter.
pub(super) fn choose_image(
    interpreter: Interpreter,
    sandbox: Option<&Sandbox>,
    policy: &SkillPolicySpec,
    errors: &mut FieldErrors,
) -> ImageChoice {
    if let Some(image) = sandbox.and_then(|sandbox| sandbox.image.as_ref()) {
        return ImageChoice::Image(image.clone());
    }
    let images = &policy.script_images;
    let (name, image) = match interpreter.runtime {
        Runtime::Shell => ("shell", &images.shell),
        Runtime::Python => ("python", &images.python),
        Runtime::Node => ("node", &images.node),
    };
    let Some(image) = image else { return ImageChoice::Runtime(interpreter.runtime) };
    if !is_image_reference(image) {
        let message = format!(
            "of the SkillPolicy: {image:?} is not an image reference; write it like ghcr.io/acme/tool:1.2"
        );
        errors.add(Reason::ImageNotAllowed, format_args!("spec.scriptImages.{name}"), message);
    }
    ImageChoice::Image(image.clone())
}

/// Adds the instructions as a file, as in the folder that a bundle comes from.
fn add_body(content: Content<'_>, files: &mut Vec<ValidFile>) {
    let is_taken = files.iter().any(|file| file.path.split('/').next() == Some(BODY));
    if let (Some(instructions), false) = (content.instructions, is_taken) {
        files.push(ValidFile { path: BODY.to_owned(), bytes: instructions.body.clone().into_bytes() });
    }
}

#[cfg(test)]
mod tests {
    use skillet_api::SkillSpec;

    use super::*;

    fn validate(fields: &str, path: &str, policy: &str) -> Result<ValidContent, String> {
        let yaml = format!("{{version: 1.0.0, instructions: {{body: Read.}}, {fields}}}");
        let spec: SkillSpec = serde_saphyr::from_str(&yaml).unwrap();
        let policy: SkillPolicySpec = serde_saphyr::from_str(policy).unwrap();
        validate_script(&spec, path, &policy).map_err(|errors| {
            let texts: Vec<String> =
                errors.iter().map(|error| format!("{} {error}", error.reason())).collect();
            texts.join("; ")
        })
    }

    const FILES: &str = "files: [{path: scripts/a.py, content: 'print(1)'}, {path: lib/b.txt, content: x}]";

    #[test]
    fn the_first_line_names_the_interpreter_and_else_the_end_of_the_path() {
        for (path, text, expected) in [
            ("a", "#!/bin/sh\necho", Some(SH)),
            ("a", "#! /usr/bin/env bash\r\necho", Some(BASH)),
            ("a", "#!/usr/bin/env -S uv run --script\n", Some(PYTHON)),
            ("a", "#!/opt/venv/bin/python3.12 -u", Some(PYTHON)),
            ("a", "#!/usr/bin/env LANG=C node", Some(NODE)),
            ("a", "\u{feff}#!/usr/bin/env tsx\n", Some(NODE)),
            ("a.py", "#!/bin/bash\n", Some(BASH)),
            ("a.ts", "#!/usr/bin/env bun\n", Some(NODE)),
            ("a.PY", "import os", Some(PYTHON)),
            ("b/a.sh", "", Some(SH)),
            ("a.bash", "", Some(BASH)),
            ("a.mjs", "", Some(NODE)),
            ("a.cts", "", Some(NODE)),
            ("a.rb", "#!/usr/bin/env ruby\n", None),
            ("a.md", "# Title", None),
            ("sh", "echo", None),
            ("a", "#!", None),
            ("a", "#!/usr/bin/env -S", None),
        ] {
            assert_eq!(Interpreter::of(path, text.as_bytes()), expected, "{path} {text:?}");
        }
        assert_eq!(Interpreter::of("a", b"#!\xff"), None);
    }

    #[test]
    fn a_script_runs_in_the_runtime_of_its_interpreter_with_the_whole_bundle() {
        for path in ["scripts/a.py", "./scripts/a.py"] {
            let valid = validate(FILES, path, "{}").unwrap();
            assert_eq!(valid.sandbox().unwrap().image, ImageChoice::Runtime(Runtime::Python));
            let program =
                Program::BundleScript { interpreter: "/usr/bin/python3".into(), path: "scripts/a.py".into() };
            assert_eq!(valid.sandbox().unwrap().program, program);
            let paths: Vec<&str> =
                valid.sandbox().unwrap().files.iter().map(|file| file.path.as_str()).collect();
            assert_eq!(paths, ["scripts/a.py", "lib/b.txt", "SKILL.md"]);
            assert_eq!(valid.sandbox().unwrap().files[2].bytes, b"Read.");
        }
        let own = "files: [{path: SKILL.md, content: x}, {path: a.sh, content: ls}]";
        assert_eq!(validate(own, "a.sh", "{}").unwrap().sandbox().unwrap().files.len(), 2);
    }

    #[test]
    fn the_image_is_the_skills_own_or_the_policys_or_the_runtime() {
        let image = |fields: &str, path: &str, policy: &str| {
            let valid = validate(fields, path, policy).unwrap();
            let sandbox = valid.sandbox().unwrap();
            let Program::BundleScript { interpreter, .. } = &sandbox.program else { panic!("no script") };
            (sandbox.image.clone(), interpreter.clone())
        };
        let policy = "{allowedImages: [own/], scriptImages: {python: 'py:1', shell: 'sh:1', node: 'js:1'}}";
        let of = |name: &str| ImageChoice::Image(name.to_owned());
        let files =
            "files: [{path: a.py, content: x}, {path: b, content: '#!/bin/bash'}, {path: c.ts, content: x}]";
        assert_eq!(image(files, "a.py", policy), (of("py:1"), "python3".into()));
        assert_eq!(image(files, "b", policy), (of("sh:1"), "bash".into()));
        assert_eq!(image(files, "c.ts", policy), (of("js:1"), "node".into()));
        assert_eq!(image(files, "b", "{}"), (ImageChoice::Runtime(Runtime::Shell), "/bin/sh".into()));
        let own = format!(
            "{files}, run: {{sandbox: {{image: own/a, command: [x], env: [{{name: A, value: b}}]}}}}"
        );
        assert_eq!(image(&own, "a.py", policy), (of("own/a"), "python3".into()));
        assert_eq!(validate(&own, "a.py", policy).unwrap().sandbox().unwrap().env["A"], "b");
        let runtime = format!("{files}, run: {{sandbox: {{runtime: shell, script: cat}}}}");
        assert_eq!(image(&runtime, "a.py", policy), (of("py:1"), "python3".into()));
    }

    #[test]
    fn what_cannot_run_is_refused_with_the_field_and_the_fix() {
        let refused = |fields: &str, path: &str, policy: &str| validate(fields, path, policy).unwrap_err();
        for path in ["../scripts/a.py", "/etc/passwd", "scripts", ""] {
            let message = format!(
                "FileNotFound spec.script.path: {path:?} is no file of the bundle; it has scripts/a.py, lib/b.txt"
            );
            assert_eq!(refused(FILES, path, "{}"), message.replace("\"./", "\""));
        }
        assert!(refused("tags: []", "a", "{}").ends_with("is no file of the bundle; it has no files"));
        assert!(
            refused(FILES, "lib/b.txt", "{}").starts_with("NoInterpreter spec.script.path: no interpreter")
        );
        assert_eq!(
            refused(FILES, "scripts/a.py", "{scriptImages: {python: 'No image'}}"),
            "ImageNotAllowed spec.scriptImages.python: of the SkillPolicy: \"No image\" is not an image reference; write it like ghcr.io/acme/tool:1.2"
        );
        let own = format!("{FILES}, run: {{sandbox: {{image: own/a, command: [x]}}}}");
        assert!(refused(&own, "scripts/a.py", "{}").starts_with("ImageNotAllowed spec.run.sandbox.image"));
        let node = "files: [{path: a.js, content: x}], limits: {memory: 8Mi}";
        assert!(refused(node, "a.js", "{}").contains("too small for node"));
    }
}
