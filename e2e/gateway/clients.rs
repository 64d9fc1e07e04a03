//! The providers' own SDKs, each a program of its own: tasks go in, what the SDK understood comes out.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use skillet_e2e::PATIENCE;
use tokio::{io::AsyncWriteExt as _, process::Command, sync::OnceCell, time::timeout};

/// Many start at once, on few cores.
const WITHIN: Duration = Duration::from_secs(80);

/// No 5xx, and nothing that the document does not tell: status, kind and form of every answer.
const CHECKS: &str =
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";

/// In which language a client is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Python,
    Node,
}

/// The installed SDKs.
pub(crate) struct Clients {
    installed: PathBuf,
    scripts: PathBuf,
}

impl Clients {
    /// Installs them where they are not yet.
    pub(crate) async fn installed() -> Result<&'static Self> {
        static INSTALLED: OnceCell<Clients> = OnceCell::const_new();
        INSTALLED
            .get_or_try_init(async || {
                let folder = skillet_e2e::package_folder().join("gateway");
                let script = folder.join("install-clients.sh");
                let output = Command::new(&script).stderr(Stdio::inherit()).output().await;
                let output = output.with_context(|| format!("could not start {}", script.display()))?;
                ensure!(output.status.success(), "the SDKs could not be installed");
                let installed = String::from_utf8(output.stdout)?.trim().into();
                Ok(Self { installed, scripts: folder.join("clients") })
            })
            .await
    }

    /// The folder with Python, as it stands in a PATH.
    pub(crate) fn python_programs(&self) -> PathBuf {
        self.installed.join("python/bin")
    }

    /// Gives a script of `clients/` its tasks; one answer for each.
    pub(crate) async fn run(
        &self,
        language: Language,
        script: &str,
        (url, token): (&str, &str),
        tasks: &[Value],
    ) -> Result<Vec<Value>> {
        let name = format!("{language:?} {script}");
        let (program, file) = match language {
            Language::Python => ("python/bin/python", format!("python/{script}.py")),
            Language::Node => ("node/node", format!("node/{script}.mjs")),
        };
        let mut command = self.command(program);
        command.arg(self.scripts.join(file)).envs([("SKILLET_URL", url), ("SKILLET_TOKEN", token)]);
        let input: String = tasks.iter().flat_map(|task| [task.to_string(), "\n".to_owned()]).collect();
        let output = output(command, &name, &input).await?;
        let responses: Result<Vec<Value>, _> = output.lines().map(serde_json::from_str).collect();
        let responses = responses.with_context(|| format!("{name} printed something else: {output}"))?;
        ensure!(responses.len() == tasks.len(), "{name} gave {} answers to {}", responses.len(), tasks.len());
        Ok(responses)
    }

    /// Runs the MCP inspector's command line; what it prints.
    pub(crate) async fn inspect(&self, (url, token): (&str, &str), arguments: &[&str]) -> Result<Value> {
        let launcher = "node/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js";
        let mut command = self.command("node/node");
        command
            .arg(self.installed.join(launcher))
            .args(["--cli", &format!("{url}/mcp"), "--transport", "http"])
            .args(["--header", &format!("Authorization: Bearer {token}")])
            .args(arguments);
        let output = output(command, "the MCP inspector", "").await?;
        serde_json::from_str(&output).with_context(|| format!("the MCP inspector printed no JSON: {output}"))
    }

    /// Tries out every operation that the served OpenAPI document has, and a few thousand variations. `known` are values for
    /// its path parameters, such as `path.name`.
    pub(crate) async fn try_out(
        &self,
        (url, token): (&str, &str),
        known: &[(&str, &str)],
        folder: &Path,
    ) -> Result<()> {
        let lines = known.iter().map(|(name, value)| format!("{name:?} = {value:?}\n"));
        let settings = folder.join("schemathesis.toml");
        fs::write(&settings, format!("[parameters]\n{}", lines.collect::<String>()))?;
        let mut command = self.command("python/bin/python");
        command
            .current_dir(folder)
            .args(["-m", "schemathesis.cli", "--config-file"])
            .arg(&settings)
            .args([
                "run",
                &format!("{url}/openapi.json"),
                "--header",
                &format!("Authorization: Bearer {token}"),
            ])
            .args(["--checks", CHECKS, "--phases", "examples,coverage,fuzzing,stateful"])
            .args(["--max-examples", "100", "--request-timeout", "30", "--no-color"])
            // The other paths are the providers' and the MCP protocol's.
            .args(["--include-path-regex", "^/api/"])
            // The same requests each time: what fails, fails again.
            .args(["--seed", "1"]);
        output(command, "schemathesis", "").await.map(drop)
    }

    /// With nothing of this process's environment: it may hold a provider's key, or a proxy.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.installed.join(program));
        let path = env::var("PATH").unwrap_or_default();
        let node = self.installed.join("node/node");
        let node = node.canonicalize().unwrap_or(node);
        let path = format!("{}:{path}", node.parent().unwrap_or(&node).display());
        command
            .env_clear()
            .env("PATH", path)
            .env("HOME", &self.installed)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .kill_on_drop(true);
        command
    }
}

async fn output(mut command: Command, name: &str, input: &str) -> Result<String> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("could not start {name}"))?;
    let mut stdin = child.stdin.take().context("no input")?;
    stdin.write_all(input.as_bytes()).await.with_context(|| format!("{name} takes no tasks"))?;
    drop(stdin);
    let output = timeout(WITHIN * PATIENCE, child.wait_with_output()).await;
    let output =
        output.with_context(|| format!("{name} has not ended within {PATIENCE} times {WITHIN:?}"))??;
    let said = String::from_utf8_lossy(&output.stderr);
    let printed = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "{name} failed: {said}\n{printed}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
