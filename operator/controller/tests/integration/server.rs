//! A private API server with its etcd, for this test program alone: real, and with nobody else in it.
//!
//! There is no kubelet and no controller manager: a Job gets no pod, and a deleted owner takes nothing with it.

use std::{
    env, fmt, fs,
    io::Write as _,
    net::TcpListener,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Once, OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use k8s_openapi::{
    api::core::v1::Namespace, apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, Config,
    api::{ListParams, Patch, PatchParams, PostParams, Request},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::eventually::{LIMIT, eventually};

/// Asks for this lane; without it every test says that it was skipped, and passes.
const GATE: &str = "SKILLET_INTEGRATION";
const SKIPPED: &str = "skipped: integration tests need SKILLET_INTEGRATION=1\n";
const ADMIN_TOKEN: &str = "the-tests-own-administrator";
const START_LIMIT: Duration = Duration::from_secs(120);
/// A watch is logged at its start, because it ends with the program.
const AUDIT_POLICY: &str =
    "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules: [{level: Metadata}]\n";

/// Tells if the variable asks for these tests, and reports if it does not.
pub fn is_wanted() -> bool {
    static REPORTED: Once = Once::new();
    let wanted = env::var(GATE).is_ok_and(|value| value == "1");
    if !wanted {
        // Around the test harness, which keeps what a passing test prints to itself.
        REPORTED.call_once(|| std::io::stderr().write_all(SKIPPED.as_bytes()).unwrap());
        println!("skipped: {GATE}=1 is not set");
    }
    wanted
}

/// The server whose kinds nobody watches: for rules and for what the API server itself does.
pub fn rules() -> Option<&'static Server> {
    static SERVER: OnceLock<Server> = OnceLock::new();
    is_wanted().then(|| SERVER.get_or_init(Server::start))
}

/// Cheap to clone; the servers end with this program.
#[derive(Clone)]
pub struct Server {
    folder: PathBuf,
    url: String,
    // Its standard input is what keeps the servers running.
    _keeper: Arc<Child>,
}

impl Server {
    /// Starts etcd and kube-apiserver.
    pub fn start() -> Self {
        let folder = new_folder();
        let (port, etcd) = (free_port(), format!("http://127.0.0.1:{}", free_port()));
        fs::write(folder.join("audit-policy.yaml"), AUDIT_POLICY).unwrap();
        fs::write(folder.join("tokens.csv"), format!("{ADMIN_TOKEN},admin,admin,system:masters\n")).unwrap();
        make_key(&folder.join("service-account.key"));
        let keeper = Command::new("/bin/sh")
            .arg(std::env::current_dir().unwrap().join("tests/integration/keeper.sh"))
            .env("PATH", search_path())
            .env("DIR", &folder)
            .env("PORT", port.to_string())
            .env("ETCD", etcd)
            .stdin(Stdio::piped())
            // An interrupt from the terminal reaches the test program, whose end is all that counts.
            .process_group(0)
            .spawn()
            .unwrap();
        Self { folder, url: format!("https://127.0.0.1:{port}"), _keeper: Arc::new(keeper) }
    }

    /// An administrator's client, once the server is ready. Each test needs one of its own: a client lives in the
    /// runtime that made it.
    pub async fn admin(&self) -> Client {
        eventually(Readiness(self), START_LIMIT, async || {
            let client = self.client(ADMIN_TOKEN).await.ok()?;
            let ready = Request::new("/readyz").list(&ListParams::default()).ok()?;
            client.request_text(ready).await.ok().filter(|answer| answer == "ok").map(|_| client)
        })
        .await
    }

    /// A client that comes with `token`.
    pub async fn client(&self, token: &str) -> anyhow::Result<Client> {
        self.client_of(json!({ "token": token })).await
    }

    /// A client of an administrator who acts as `user`.
    pub async fn client_as(&self, user: &str) -> Client {
        self.client_of(json!({ "token": ADMIN_TOKEN, "as": user })).await.unwrap()
    }

    async fn client_of(&self, user: Value) -> anyhow::Result<Client> {
        let authority = self.folder.join("pki/apiserver.crt");
        let kubeconfig = json!({
            "clusters": [{ "name": "c", "cluster": { "server": self.url, "certificate-authority": authority } }],
            "users": [{ "name": "u", "user": user }],
            "contexts": [{ "name": "x", "context": { "cluster": "c", "user": "u" } }],
            "current-context": "x",
        });
        let kubeconfig = Kubeconfig::from_yaml(&kubeconfig.to_string())?;
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        Ok(Client::try_from(config)?)
    }

    /// One line of JSON for each request that was answered.
    pub fn audit_log(&self) -> String {
        fs::read_to_string(self.folder.join("audit.log")).unwrap_or_default()
    }
}

/// The state that the start waits for, and the end of the log that explains a failure.
struct Readiness<'a>(&'a Server);

impl fmt::Display for Readiness<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let log = fs::read_to_string(self.0.folder.join("kube-apiserver.log")).unwrap_or_default();
        let end: Vec<&str> = log.lines().rev().take(5).collect();
        write!(f, "the API server is ready; its log ends with: {}", end.join(" | "))
    }
}

/// An administrator's client of the server for rules, with the definitions in place.
pub async fn rules_admin() -> Option<Client> {
    static APPLIED: OnceCell<()> = OnceCell::const_new();
    let client = rules()?.admin().await;
    APPLIED.get_or_init(|| apply_crds(&client, skillet_api::custom_resource_definitions())).await;
    Some(client)
}

/// Applies definitions and waits until their objects are served.
pub async fn apply_crds(client: &Client, crds: Vec<CustomResourceDefinition>) {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in crds {
        let name = crd.metadata.name.as_deref().unwrap();
        api.patch(name, &PatchParams::apply("tests").force(), &Patch::Apply(&crd)).await.unwrap();
        let objects = format!("/apis/{}/v1alpha1/{}", crd.spec.group, crd.spec.names.plural);
        eventually(format!("{objects} is served"), LIMIT, async || {
            let list = Request::new(&objects).list(&ListParams::default()).unwrap();
            client.request_text(list).await.ok()
        })
        .await;
    }
}

/// A namespace of the test's own.
pub async fn namespace(client: &Client, name: &str) -> String {
    let api: Api<Namespace> = Api::all(client.clone());
    let object = serde_json::from_value(json!({ "metadata": { "name": name } })).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
    name.to_owned()
}

fn new_folder() -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let folder = env::temp_dir().join(format!("skillet-integration-{}-{number}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    folder
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn make_key(path: &Path) {
    let made = Command::new("openssl")
        .args(["genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out"])
        .arg(path)
        .output()
        .expect("openssl is missing: install the package openssl");
    assert!(made.status.success(), "openssl: {}", String::from_utf8_lossy(&made.stderr));
}

/// PATH with the programs of a control plane in it: the user's own, or those that the local cluster is built with.
pub fn search_path() -> String {
    let path = env::var("PATH").unwrap_or_default();
    let has =
        |folder: &Path| ["kube-apiserver", "etcd", "helm"].iter().all(|name| folder.join(name).is_file());
    let of_user = env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from);
    if let Some(folder) = of_user.filter(|folder| folder.join("kube-apiserver").is_file()) {
        return format!("{}:{path}", folder.display());
    }
    if env::split_paths(&path).any(|folder| has(&folder)) {
        return path;
    }
    let built = built_folders().into_iter().find(|folder| has(folder));
    let built = built.expect(
        "no kube-apiserver, etcd and helm on PATH or in KUBEBUILDER_ASSETS: build them with `e2e/cluster/cluster.sh build`",
    );
    format!("{}:{path}", built.display())
}

/// The folders of the programs that the local cluster built, newest first.
fn built_folders() -> Vec<PathBuf> {
    let home = |below: &str| PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(below);
    let cache = env::var_os("SKILLET_CACHE").map_or_else(
        || env::var_os("XDG_CACHE_HOME").map_or_else(|| home(".cache"), PathBuf::from).join("skillet"),
        PathBuf::from,
    );
    let mut found: Vec<PathBuf> = fs::read_dir(cache.join("cluster"))
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin"))
        .collect();
    found.sort_by_key(|folder| fs::metadata(folder).and_then(|data| data.modified()).ok());
    found.reverse();
    found
}
