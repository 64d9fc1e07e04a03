//! Packages that the scripts of a bundle declare, against those of the images in which they run.
//!
//! Skillet's own runtimes have no packages beside what comes with Python and Node.js. Of an image of a user nothing is known.

use std::{collections::BTreeMap, fmt};

use skillet_api::{
    SkillPolicySpec, SkillSpec,
    skill::{File, Runtime},
};
use skillet_instructions::dependencies::{package_json, requirements, script_metadata};

use super::{
    ImageChoice,
    field_error::FieldErrors,
    script::{Interpreter, NODE, PYTHON, choose_image},
};

mod built_in;

/// Packages that a message names.
const SHOWN: usize = 10;
/// Folders whose files are for the user's project, such as templates of one, and not for the scripts of the skill.
const FOR_USERS: [&str; 5] = ["assets", "examples", "references", "resources", "templates"];

/// The packages of a bundle's scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dependencies {
    /// Every declared package is there.
    Met,
    /// Packages that the runtime does not have, each with the file that declares it.
    Missing { packages: Vec<String> },
    /// Packages of scripts that run in an image of a user.
    Unknown { image: String, packages: Vec<String> },
}

impl fmt::Display for Dependencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Met => Ok(()),
            Self::Missing { packages } => write!(
                f,
                "the runtime of the scripts lacks {}; name an image that has them in scriptImages of the SkillPolicy or in spec.run.sandbox.image, or put them into spec.files",
                list(packages)
            ),
            Self::Unknown { image, packages } => write!(
                f,
                "the scripts need {}, and the packages in {image} are not known; run a script to see",
                list(packages)
            ),
        }
    }
}

fn list(packages: &[String]) -> String {
    let shown = packages[..packages.len().min(SHOWN)].join(", ");
    match packages.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Checks the packages that a bundle declares; `None` if it declares none.
pub fn dependencies(spec: &SkillSpec, policy: &SkillPolicySpec) -> Option<Dependencies> {
    let declared = [(PYTHON, python_packages(&spec.files)), (NODE, node_packages(&spec.files))];
    if declared.iter().all(|(_, packages)| packages.is_empty()) {
        return None;
    }
    let sandbox = spec.run.as_ref().and_then(|run| run.sandbox.as_ref());
    let (mut missing, mut unknown) = (Vec::new(), None);
    for (interpreter, packages) in declared {
        let is_absent = |name: &str| {
            !built_in::has(interpreter.runtime, name) && !is_in_bundle(interpreter.runtime, name, &spec.files)
        };
        let absent = packages.iter().filter(|(name, _)| is_absent(name));
        let absent: Vec<String> = absent.map(|(name, file)| format!("{name} ({file})")).collect();
        // An image that is not allowed is an error elsewhere.
        match choose_image(interpreter, sandbox, policy, &mut FieldErrors::default()) {
            ImageChoice::Runtime(_) => missing.extend(absent),
            ImageChoice::Image(image) if !absent.is_empty() => {
                unknown.get_or_insert((image, Vec::new())).1.extend(absent);
            }
            ImageChoice::Image(_) | ImageChoice::Browser => {}
        }
    }
    Some(match unknown {
        _ if !missing.is_empty() => Dependencies::Missing { packages: missing },
        Some((image, packages)) => Dependencies::Unknown { image, packages },
        None => Dependencies::Met,
    })
}

/// Returns the declared packages by name, each with the first file that declares it.
fn python_packages(files: &[File]) -> BTreeMap<String, &str> {
    let is_python = |file: &File| is_script_of(Runtime::Python, file);
    let mut packages = BTreeMap::new();
    for file in files {
        let text = file.content.as_deref().unwrap_or_default();
        let declared = if is_python(file) {
            script_metadata(text)
        } else if is_for_scripts(file, "requirements.txt", files, is_python) {
            requirements(text)
        } else {
            continue;
        };
        for name in declared {
            packages.entry(name).or_insert(file.path.as_str());
        }
    }
    packages
}

fn node_packages(files: &[File]) -> BTreeMap<String, &str> {
    let is_node = |file: &File| is_script_of(Runtime::Node, file);
    let mut packages = BTreeMap::new();
    for file in files.iter().filter(|file| is_for_scripts(file, "package.json", files, is_node)) {
        for name in package_json(file.content.as_deref().unwrap_or_default()) {
            packages.entry(name).or_insert(file.path.as_str());
        }
    }
    packages
}

fn is_script_of(runtime: Runtime, file: &File) -> bool {
    let text = file.content.as_deref().unwrap_or_default();
    Interpreter::of(&file.path, text.as_bytes()).is_some_and(|interpreter| interpreter.runtime == runtime)
}

/// True for a file of that name whose folder, or a folder below, has a script that it can be for.
fn is_for_scripts(file: &File, name: &str, files: &[File], is_script: impl Fn(&File) -> bool) -> bool {
    let Some(folder) = file.path.strip_suffix(name) else { return false };
    let is_whole_name = folder.is_empty() || folder.ends_with('/');
    let is_of_skill =
        |path: &str| path.split('/').all(|part| !FOR_USERS.contains(&part) && part != "node_modules");
    is_whole_name
        && is_of_skill(&file.path)
        && files
            .iter()
            .any(|other| other.path.starts_with(folder) && is_of_skill(&other.path) && is_script(other))
}

/// True for a package that the bundle brings along.
fn is_in_bundle(runtime: Runtime, name: &str, files: &[File]) -> bool {
    let has = |part: &str| {
        files.iter().any(|file| file.path.starts_with(part) || file.path.contains(&format!("/{part}")))
    };
    match runtime {
        Runtime::Node => has(&format!("node_modules/{name}/")),
        Runtime::Python | Runtime::Shell => {
            let module = name.replace('-', "_");
            has(&format!("{module}/__init__.py")) || has(&format!("{module}.py"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(fields: &str, policy: &str, expected: Option<&str>) {
        let yaml = format!("{{version: 1.0.0, instructions: {{body: Read.}}, {fields}}}");
        let spec: SkillSpec = serde_saphyr::from_str(&yaml).unwrap();
        let policy: SkillPolicySpec = serde_saphyr::from_str(policy).unwrap();
        let found = dependencies(&spec, &policy).map(|found| match found {
            Dependencies::Met => "met".to_owned(),
            Dependencies::Missing { packages } => format!("missing {}", packages.join(" ")),
            Dependencies::Unknown { image, packages } => format!("unknown {image} {}", packages.join(" ")),
        });
        assert_eq!(found.as_deref(), expected, "{fields}");
    }

    const INLINE: &str = r##"{path: scripts/a.py, content: "# /// script\n# dependencies = ['Rich>=13', 'requests']\n# ///\n"}"##;
    const PYTHON_SCRIPT: &str = "{path: scripts/a.py, content: 'import yaml'}";
    const NODE_SCRIPT: &str = "{path: scripts/b.mjs, content: ''}";

    #[test]
    fn packages_that_a_runtime_does_not_have_are_missing_with_their_files() {
        check("files: []", "{}", None);
        check(&format!("files: [{PYTHON_SCRIPT}]"), "{}", None);
        check(
            &format!("files: [{INLINE}]"),
            "{}",
            Some("missing requests (scripts/a.py) rich (scripts/a.py)"),
        );
        check(
            &format!(
                "files: [{PYTHON_SCRIPT}, {{path: requirements.txt, content: \"PyYAML==6\\nargparse\"}}]"
            ),
            "{}",
            Some("missing pyyaml (requirements.txt)"),
        );
        check(
            &format!("files: [{PYTHON_SCRIPT}, {{path: requirements.txt, content: dataclasses}}]"),
            "{}",
            Some("met"),
        );
        let package = r#"{path: package.json, content: '{"dependencies": {"chalk": "5", "fs": "*"}, "devDependencies": {"tsx": "4"}}'}"#;
        check(&format!("files: [{NODE_SCRIPT}, {package}]"), "{}", Some("missing chalk (package.json)"));
    }

    #[test]
    fn packages_of_the_bundle_are_there() {
        let files = format!(
            "files: [{INLINE}, {{path: scripts/rich/__init__.py, content: ''}}, {{path: lib/requests.py, content: ''}}]"
        );
        check(&files, "{}", Some("met"));
        let node = r#"files: [{path: b.js, content: ''}, {path: package.json, content: '{"dependencies": {"@a/b": "5"}}'}, {path: node_modules/@a/b/index.js, content: ''}]"#;
        check(node, "{}", Some("met"));
    }

    #[test]
    fn files_without_a_script_and_templates_for_users_declare_nothing() {
        let requirements = "content: rich}";
        for files in [
            format!("{{path: requirements.txt, {requirements}"),
            format!("{PYTHON_SCRIPT}, {{path: other/requirements.txt, {requirements}"),
            format!("{PYTHON_SCRIPT}, {{path: my-requirements.txt, {requirements}"),
            format!(
                "{{path: assets/t/requirements.txt, {requirements}, {{path: assets/t/a.py, content: ''}}"
            ),
        ] {
            check(&format!("files: [{files}]"), "{}", None);
        }
    }

    #[test]
    fn of_an_image_of_a_user_nothing_is_known() {
        let files = format!("files: [{INLINE}]");
        let policy = "{scriptImages: {python: 'py:1'}}";
        check(&files, policy, Some("unknown py:1 requests (scripts/a.py) rich (scripts/a.py)"));
        let own = format!("{files}, run: {{sandbox: {{image: 'own:1', command: [x]}}}}");
        check(&own, "{}", Some("unknown own:1 requests (scripts/a.py) rich (scripts/a.py)"));
        let package = r#"{path: package.json, content: '{"dependencies": {"chalk": "5"}}'}"#;
        let both = format!("files: [{INLINE}, {NODE_SCRIPT}, {package}]");
        check(&both, policy, Some("missing chalk (package.json)"));
    }

    #[test]
    fn a_message_names_ten_packages_and_the_fix() {
        let packages: Vec<String> = (0..12).map(|n| format!("p{n} (a.py)")).collect();
        let text = Dependencies::Missing { packages }.to_string();
        assert!(text.starts_with("the runtime of the scripts lacks p0 (a.py), "), "{text}");
        assert!(text.contains("p9 (a.py) and 2 more; name an image that has them in scriptImages"), "{text}");
        let unknown = Dependencies::Unknown { image: "i".into(), packages: vec!["p (a.py)".into()] };
        assert!(
            unknown.to_string().contains("need p (a.py), and the packages in i are not known"),
            "{unknown}"
        );
    }
}
