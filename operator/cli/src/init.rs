//! `kubectl skill init`: creates a directory with a skill, its script, its schema and a test.

use std::{
    fs,
    path::{Path, PathBuf},
};

use skillet_api::skill::Runtime;
use skillet_core::skill::{is_skill_name, script_file_name};

use crate::{
    arguments::InitArgs,
    bundle::{BundleError, INPUT_SCHEMA_FILE, OUTPUT_SCHEMA_FILE, SKILL_FILE, TESTS},
    console::{self, Console},
    error::CliError,
    exit::Exit,
};

const SKILL: &str = include_str!("init/skill.yaml");
const INPUT_SCHEMA: &str = include_str!("init/schema.json");
const OUTPUT_SCHEMA: &str = include_str!("init/output-schema.json");
const TEST_INPUT: &str = include_str!("init/example.input.json");
const TEST_EXPECTED: &str = include_str!("init/example.expected.json");

pub(crate) fn run(args: &InitArgs, console: &Console) -> Result<Exit, CliError> {
    let InitArgs { directory, runtime } = args;
    let written = write(directory, (*runtime).into())?;
    for path in &written {
        console.print(&format!("{}\n", path.display()))?;
    }
    let place = directory.display();
    console::explain(&format!(
        "Change the files, and then:\n  kubectl skill lint {place}\n  kubectl skill test {place}\n  kubectl skill apply {place}\n"
    ));
    Ok(Exit::Done)
}

/// Writes every file, or none if one of them exists.
fn write(directory: &Path, runtime: Runtime) -> Result<Vec<PathBuf>, BundleError> {
    let absolute = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    let name = absolute.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if !is_skill_name(&name) {
        return Err(BundleError::Name(name));
    }
    let files = files(&name, runtime);
    if let Some((taken, _)) = files.iter().find(|(file, _)| directory.join(file).exists()) {
        return Err(BundleError::Exists { path: directory.join(taken) });
    }
    let unwritable = |path: &Path| {
        let path = path.to_owned();
        |source| BundleError::Unwritable { path, source }
    };
    let tests = directory.join(TESTS);
    fs::create_dir_all(&tests).map_err(unwritable(&tests))?;
    let mut written = Vec::new();
    for (file, text) in files {
        let path = directory.join(file);
        fs::write(&path, text).map_err(unwritable(&path))?;
        written.push(path);
    }
    Ok(written)
}

fn files(name: &str, runtime: Runtime) -> [(PathBuf, String); 6] {
    let (word, script) = match runtime {
        Runtime::Python => ("python", include_str!("init/main.py")),
        Runtime::Node => ("node", include_str!("init/main.js")),
        Runtime::Shell => ("shell", include_str!("init/shell-script.txt")),
    };
    let skill = SKILL.replace("$NAME", name).replace("$RUNTIME", word);
    let test = |file: &str| Path::new(TESTS).join(file);
    [
        (SKILL_FILE.into(), skill),
        (script_file_name(runtime).into(), script.to_owned()),
        (INPUT_SCHEMA_FILE.into(), INPUT_SCHEMA.to_owned()),
        (OUTPUT_SCHEMA_FILE.into(), OUTPUT_SCHEMA.to_owned()),
        (test("example.input.json"), TEST_INPUT.to_owned()),
        (test("example.expected.json"), TEST_EXPECTED.to_owned()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(test: &str) -> PathBuf {
        std::env::temp_dir().join(format!("init-{test}-{}", std::process::id()))
    }

    #[test]
    fn the_files_of_every_runtime_are_a_valid_skill_with_a_test() {
        for runtime in [Runtime::Python, Runtime::Node, Runtime::Shell] {
            let path = directory(&format!("{runtime:?}").to_lowercase());
            let written = write(&path, runtime).unwrap();
            let problems = crate::lint::problems_of(&path);
            let sources = crate::bundle::read_all(std::slice::from_ref(&path)).unwrap();
            let tests = crate::skill_test::cases_of(&sources[0]).unwrap();
            fs::remove_dir_all(&path).unwrap();
            assert_eq!(written.len(), 6, "{runtime:?}");
            assert_eq!(problems.unwrap(), Vec::<String>::new(), "{runtime:?}");
            assert_eq!(tests, ["example"], "{runtime:?}");
        }
    }

    #[test]
    fn a_file_that_exists_is_not_overwritten() {
        let path = directory("taken");
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("main.py"), "mine").unwrap();
        let error = write(&path, Runtime::Python).unwrap_err();
        let kept = fs::read_to_string(path.join("main.py")).unwrap();
        let is_there = path.join("skill.yaml").exists();
        fs::remove_dir_all(&path).unwrap();
        assert!(matches!(error, BundleError::Exists { .. }), "{error}");
        assert_eq!((kept.as_str(), is_there), ("mine", false));
    }

    #[test]
    fn a_directory_whose_name_no_skill_can_have_is_refused() {
        assert!(matches!(write(Path::new("/tmp/My Skill"), Runtime::Node), Err(BundleError::Name(_))));
    }
}
