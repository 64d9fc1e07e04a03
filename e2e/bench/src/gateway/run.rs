//! The real gateway as a process of its own, before an API server of this process.

use std::{
    env, fs,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use tokio::{
    process::{Child, Command},
    time::{Instant, sleep},
};

use crate::{
    http::{self, Connection},
    process::Process,
};

const READY_WITHIN: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);

/// A gateway that runs until it is dropped.
pub(crate) struct Running {
    pub(crate) address: String,
    pub(crate) process: Process,
    _child: Child,
    _folder: Folder,
}

/// A folder that goes with its owner.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left lies in the system's folder for such things.
        fs::remove_dir_all(&self.0).ok();
    }
}

/// Starts it and waits until it says that it is ready.
pub(crate) async fn start(program: &Path, api: SocketAddr) -> anyhow::Result<Running> {
    let folder = Folder(env::temp_dir().join(format!("skillet-bench-{}-{}", std::process::id(), api.port())));
    fs::create_dir_all(&folder.0)?;
    let (config, log) = (folder.0.join("kubeconfig"), folder.0.join("log"));
    fs::write(&config, kubeconfig(api).to_string())?;
    let (address, probes) = (free_address()?, free_address()?);
    let mut child = Command::new(program)
        .args(["gateway", "--gateway-address", &address, "--gateway-probes-address", &probes])
        // As the chart starts it, and with no proxy of this environment between it and this process.
        .env_clear()
        .env("MALLOC_ARENA_MAX", "1")
        .env("KUBECONFIG", &config)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs::File::create(&log)?)
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("could not start {}", program.display()))?;
    let process = Process { pid: child.id().context("the gateway has ended at once")? };
    let deadline = Instant::now() + READY_WITHIN;
    while !is_ready(&probes).await {
        let said = || fs::read_to_string(&log).unwrap_or_default();
        if let Some(status) = child.try_wait()? {
            bail!("the gateway ended with {status}: {}", said().trim());
        }
        if Instant::now() > deadline {
            bail!("the gateway was not ready within {READY_WITHIN:?}: {}", said().trim());
        }
        sleep(PAUSE).await;
    }
    Ok(Running { address, process, _child: child, _folder: folder })
}

async fn is_ready(probes: &str) -> bool {
    let Ok(mut connection) = Connection::open(probes).await else { return false };
    let asked = connection.write(&http::request("GET /readyz", &[], "")).await;
    asked.is_ok() && matches!(connection.head().await, Ok(Some(head)) if head.status() == "200")
}

/// A port that nobody has at this moment.
fn free_address() -> anyhow::Result<String> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string())
}

fn kubeconfig(api: SocketAddr) -> Value {
    let named = |kind: &str, value: Value| json!([{ "name": "bench", kind: value }]);
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "bench",
        "clusters": named("cluster", json!({ "server": format!("http://{api}") })),
        "contexts": named("context", json!({ "cluster": "bench", "user": "bench" })),
        "users": named("user", json!({})),
    })
}

/// The program to measure: the one that was asked for, else that of the images, else one that cargo builds now.
pub(crate) async fn program(asked: Option<&Path>, root: &Path) -> anyhow::Result<PathBuf> {
    let of_images = root.join("target/images/bin/skillet");
    match asked {
        Some(program) => Ok(program.to_owned()),
        None if of_images.exists() => Ok(of_images),
        None => built(root).await,
    }
}

async fn built(root: &Path) -> anyhow::Result<PathBuf> {
    println!("{} is not there: building the gateway", root.join("target/images/bin/skillet").display());
    let arguments = ["build", "--release", "--quiet", "-p", "skillet", "--message-format", "json"];
    let output =
        Command::new("cargo").args(arguments).current_dir(root).stderr(Stdio::inherit()).output().await?;
    if !output.status.success() {
        bail!("could not build the gateway");
    }
    executable(&String::from_utf8_lossy(&output.stdout)).context("cargo did not say where the gateway is")
}

/// The program's path, from cargo's messages.
fn executable(messages: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut of_program = messages.filter(|message| message["target"]["name"] == "skillet");
    of_program.find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_says_where_the_program_is() {
        let messages = "{\"target\":{\"name\":\"a\"},\"executable\":\"/x/a\"}\nno message\n\
            {\"target\":{\"name\":\"skillet\"},\"executable\":null}\n\
            {\"target\":{\"name\":\"skillet\"},\"executable\":\"/x/skillet\"}\n";
        assert_eq!(executable(messages), Some("/x/skillet".into()));
        assert_eq!(executable(""), None);
    }

    #[test]
    fn the_configuration_leads_to_the_api_server() {
        let config = kubeconfig("127.0.0.1:7".parse().unwrap());
        let read: kube::config::Kubeconfig = serde_json::from_value(config).unwrap();
        let server = read.clusters[0].cluster.as_ref().unwrap().server.as_deref();
        assert_eq!((server, read.current_context.as_deref()), (Some("http://127.0.0.1:7"), Some("bench")));
    }
}
