//! The page of the runtimes is true: pip and npm, as it calls them, put packages where the programs of an image find them.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use skillet_e2e::{Journey, SkillDraft, image, journey};
use tokio::process::Command;

use crate::{
    clients::Clients,
    readme::{blocks, section},
};

const PAGE: &str = include_str!("../../docs/reference/runtimes.md");

/// A package of the registry, and a program that prints `{"said": ...}` by it.
struct Case {
    runtime: &'static str,
    /// Files of a reader, by their paths.
    files: &'static [(&'static str, &'static str)],
    /// The program that installs, whose block of the page is run.
    installer: &'static str,
    command: [&'static str; 2],
    program: &'static str,
    said: &'static str,
}

const CASES: [Case; 2] = [
    Case {
        runtime: "python",
        files: &[("requirements.txt", "six==1.17.0\n")],
        installer: "pip",
        command: ["python3", "main.py"],
        program: "import json, six, sys\njson.dump({'said': six.ensure_str(b'six ' + six.__version__.encode())}, sys.stdout)\n",
        said: "six 1.17.0",
    },
    Case {
        runtime: "node",
        files: &[
            (
                "build/package.json",
                r#"{ "name": "greet", "version": "1.0.0", "dependencies": { "ms": "2.1.3" } }"#,
            ),
            (
                "build/package-lock.json",
                r#"{ "name": "greet", "version": "1.0.0", "lockfileVersion": 3, "packages": {
                    "": { "name": "greet", "version": "1.0.0", "dependencies": { "ms": "2.1.3" } },
                    "node_modules/ms": { "version": "2.1.3", "resolved": "https://registry.npmjs.org/ms/-/ms-2.1.3.tgz" } } }"#,
            ),
        ],
        installer: "npm",
        command: ["node", "main.js"],
        program: "console.log(JSON.stringify({ said: require('ms')('2h') + ' ms' }));\n",
        said: "7200000 ms",
    },
];

#[tokio::test(flavor = "multi_thread")]
async fn packages_that_pip_and_npm_install_as_the_page_says_are_found() -> Result<()> {
    journey(async |j| {
        for case in &CASES {
            let folder = env::temp_dir().join(format!("{}-{}", j.namespace, case.runtime));
            let found = check(j, case, &folder).await;
            fs::remove_dir_all(&folder).context("the reader's folder")?;
            found.context(case.runtime)?;
        }
        Ok(())
    })
    .await
}

async fn check(j: &Journey, case: &Case, folder: &Path) -> Result<()> {
    for (path, content) in case.files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().context("no folder")?)?;
        fs::write(path, content)?;
    }
    let packages = install(case, folder).await?;
    let image = image::with_packages(case.runtime, &packages).await?;
    let files = json!([{ "path": case.command[1], "content": case.program }]);
    j.apply(&SkillDraft::new(
        case.runtime,
        json!({ "image": image, "command": case.command, "files": files }),
    ))
    .await?;
    let said = j.run(case.runtime, json!({})).await?.output();
    ensure!(said == json!({ "said": case.said }), "{said}");
    Ok(())
}

/// Runs the block of the page that calls the installer. Returns the folder of packages that the page speaks of.
async fn install(case: &Case, folder: &Path) -> Result<PathBuf> {
    let own = blocks(section(PAGE, "Packages of your own")?, "sh");
    let block = own.iter().find(|block| block.starts_with(case.installer)).context("no block installs")?;
    let programs = Clients::installed().await?.python_programs();
    let path = format!("{}:{}", programs.display(), env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("bash");
    shell.args(["-euo", "pipefail", "-c", block]).current_dir(folder).env("PATH", path).env("HOME", folder);
    let output = shell.output().await.context("could not start bash")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{block}\n{complaint}");
    Ok(folder.join("packages"))
}
