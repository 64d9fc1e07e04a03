//! A real git server for tests: repositories on disk, served by git's own `http-backend` over HTTP on the loopback
//! address or another. A real registry is in [`registry`].

// Helpers here are part of tests, too.
#![allow(clippy::unwrap_used, clippy::panic)]

pub mod registry;

use std::{
    collections::HashMap,
    ffi::OsStr,
    fs,
    net::{IpAddr, Ipv4Addr},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{Method, Request, Response, StatusCode, header},
};
use futures::StreamExt as _;
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use skillet_kube::lock;
use tempfile::TempDir;
use tokio::{io::AsyncWriteExt as _, net::TcpListener, task::JoinHandle};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        self, ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _},
    },
};

/// Header of a user `me` with the password `secret`.
pub const AUTHORIZATION: &str = "Basic bWU6c2VjcmV0";

/// The answer of the server to each request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Mood {
    /// As git answers.
    #[default]
    Well,
    /// Git's answers, for requests with [`AUTHORIZATION`] only.
    Private,
    /// This status.
    Status(u16),
    /// A redirect to the same path of another host.
    RedirectTo(String),
    /// Nothing, ever.
    Silent,
    /// This text, as if it were git's.
    Text(String),
    /// Endless bytes behind the beginning of git's answer.
    Endless,
}

#[derive(Default)]
struct Shared {
    root: PathBuf,
    moods: Mutex<HashMap<String, Mood>>,
    requests: Mutex<Vec<(Method, String, Option<String>)>>,
}

/// The server, and the repositories that it serves.
pub struct GitServer {
    /// `ADDRESS:PORT`.
    pub host: String,
    scheme: &'static str,
    shared: Arc<Shared>,
    folder: TempDir,
    serving: JoinHandle<()>,
}

impl GitServer {
    /// Starts a server on the loopback address.
    pub async fn start() -> Self {
        Self::start_on(Ipv4Addr::LOCALHOST.into()).await
    }

    /// Starts a server on an address of this machine.
    pub async fn start_on(address: IpAddr) -> Self {
        let (listener, shared, folder) = Self::bind(address).await;
        let host = listener.local_addr().unwrap().to_string();
        let routes = Router::new().fallback(serve).with_state(Arc::clone(&shared));
        let serving = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { host, scheme: "http", shared, folder, serving }
    }

    /// Starts a server with TLS; returns its certificate, too, in PEM.
    pub async fn start_tls() -> (Self, String) {
        let (listener, shared, folder) = Self::bind(Ipv4Addr::LOCALHOST.into()).await;
        let host = listener.local_addr().unwrap().to_string();
        let routes = Router::new().fallback(serve).with_state(Arc::clone(&shared));
        let (serving, certificate) = serve_tls(listener, folder.path(), routes);
        (Self { host, scheme: "https", shared, folder, serving }, certificate)
    }

    async fn bind(address: IpAddr) -> (TcpListener, Arc<Shared>, TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let shared = Arc::new(Shared { root: folder.path().to_owned(), ..Shared::default() });
        (listener, shared, folder)
    }

    /// Sets the answers about one repository.
    pub fn set_mood(&self, repository: &str, mood: Mood) {
        lock(&self.shared.moods).insert(format!("{repository}.git"), mood);
    }

    pub fn url(&self, repository: &str) -> String {
        format!("{}://{}/{repository}.git", self.scheme, self.host)
    }

    /// Returns the path and credentials of each request so far, and forgets them.
    pub fn take_requests(&self) -> Vec<(String, Option<String>)> {
        let requests = std::mem::take(&mut *lock(&self.shared.requests));
        requests.into_iter().map(|(_, path, authorization)| (path, authorization)).collect()
    }

    /// Creates an empty repository with the branch `main`.
    pub fn repository(&self, name: &str) -> Repository {
        let bare = self.folder.path().join(format!("{name}.git"));
        let work = self.folder.path().join(format!("{name}-work"));
        fs::create_dir_all(&work).unwrap();
        let path = |path: &Path| path.to_str().unwrap().to_owned();
        git(self.folder.path(), &["init", "--quiet", "--bare", "--initial-branch=main", &path(&bare)]);
        git(&work, &["init", "--quiet", "--initial-branch=main"]);
        git(&work, &["remote", "add", "origin", &path(&bare)]);
        Repository { bare, work }
    }
}

impl Drop for GitServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// A repository, and a checkout of it in which commits are made.
pub struct Repository {
    pub bare: PathBuf,
    pub work: PathBuf,
}

impl Repository {
    /// Writes files, commits them and pushes the branch; returns the commit. An empty text removes its file.
    pub fn commit(&self, files: &[(&str, &str)]) -> String {
        for (path, text) in files {
            let path = self.work.join(path);
            if text.is_empty() {
                fs::remove_file(path).unwrap();
            } else {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
        }
        self.commit_all()
    }

    /// Commits whatever the checkout has, and pushes the branch; returns the commit.
    pub fn commit_all(&self) -> String {
        git(&self.work, &["add", "--all"]);
        git(&self.work, &["commit", "--quiet", "--allow-empty", "--message=change"]);
        git(&self.work, &["push", "--quiet", "--force", "origin", "HEAD"]);
        git(&self.work, &["rev-parse", "HEAD"])
    }

    /// Runs git in the checkout.
    pub fn git(&self, arguments: &[&str]) -> String {
        git(&self.work, arguments)
    }
}

fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@example.com")])
        .envs([("GIT_COMMITTER_NAME", "a"), ("GIT_COMMITTER_EMAIL", "a@example.com")])
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Serves routes with TLS; returns the certificate, too, in PEM.
pub(crate) fn serve_tls(listener: TcpListener, folder: &Path, routes: Router) -> (JoinHandle<()>, String) {
    let certificate = make_certificate(folder);
    let acceptor = acceptor(folder);
    let serving = tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (acceptor, service) = (acceptor.clone(), TowerToHyperService::new(routes.clone()));
            tokio::spawn(async move {
                // A client may refuse the certificate.
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let builder = hyper::server::conn::http1::Builder::new();
                builder.serve_connection(TokioIo::new(stream), service).await.ok();
            });
        }
    });
    (serving, certificate)
}

/// Makes `tls.key` and `tls.crt` for 127.0.0.1 by openssl; returns the certificate.
fn make_certificate(folder: &Path) -> String {
    let (key, certificate) = (folder.join("tls.key"), folder.join("tls.crt"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"])
        .args(["-days", "2", "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args([OsStr::new("-keyout"), key.as_os_str(), OsStr::new("-out"), certificate.as_os_str()])
        .output()
        .unwrap();
    assert!(made.status.success(), "openssl: {}", String::from_utf8_lossy(&made.stderr));
    fs::read_to_string(certificate).unwrap()
}

fn acceptor(folder: &Path) -> TlsAcceptor {
    let chain = vec![CertificateDer::from_pem_file(folder.join("tls.crt")).unwrap()];
    let key = PrivateKeyDer::from_pem_file(folder.join("tls.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(chain, key).unwrap();
    TlsAcceptor::from(Arc::new(config))
}

async fn serve(State(shared): State<Arc<Shared>>, request: Request<Body>) -> Response<Body> {
    let authorization = request.headers().get(header::AUTHORIZATION);
    let authorization = authorization.map(|value| value.to_str().unwrap().to_owned());
    let target = request.uri().to_string();
    lock(&shared.requests).push((request.method().clone(), target.clone(), authorization.clone()));
    let repository = request.uri().path().split('/').nth(1).unwrap_or_default().to_owned();
    let mood = lock(&shared.moods).get(&repository).cloned().unwrap_or_default();
    let status = |status: u16| Response::builder().status(status);
    match mood {
        Mood::Well => {}
        Mood::Private if authorization.as_deref() == Some(AUTHORIZATION) => {}
        Mood::Private => {
            let refused = status(401).header(header::WWW_AUTHENTICATE, "Basic realm=\"git\"");
            return refused.body(Body::empty()).unwrap();
        }
        Mood::Status(number) => return status(number).body(Body::from("an inner page")).unwrap(),
        Mood::RedirectTo(base) => {
            let path = request.uri().path_and_query().unwrap();
            return status(302)
                .header(header::LOCATION, format!("{base}{path}"))
                .body(Body::empty())
                .unwrap();
        }
        Mood::Silent => {
            drop(request);
            return std::future::pending().await;
        }
        Mood::Text(text) => {
            let kind = "application/x-git-upload-pack-advertisement";
            return status(200).header(header::CONTENT_TYPE, kind).body(Body::from(text)).unwrap();
        }
        Mood::Endless => {
            let kind = "application/x-git-upload-pack-advertisement";
            let start = Bytes::from_static(b"001e# service=git-upload-pack\n0000000eversion 2\n");
            let line = Bytes::from([b"fff0".as_slice(), &vec![b'x'; 0xfff0 - 4]].concat());
            let endless = futures::stream::iter(std::iter::once(start).chain(std::iter::repeat(line)))
                .map(Ok::<_, std::io::Error>);
            return status(200).header(header::CONTENT_TYPE, kind).body(Body::from_stream(endless)).unwrap();
        }
    }
    backend(&shared.root, request).await
}

/// Answers a request as git's own CGI program does.
async fn backend(root: &Path, request: Request<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 64 << 20).await.unwrap();
    let header = |name: &str| parts.headers.get(name).map(|v| v.to_str().unwrap()).unwrap_or_default();
    let mut child = tokio::process::Command::new("git")
        .args(["-c", "safe.directory=*", "http-backend"])
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("PATH_INFO", parts.uri.path())
        .env("QUERY_STRING", parts.uri.query().unwrap_or_default())
        .env("REQUEST_METHOD", parts.method.as_str())
        .env("CONTENT_TYPE", header("content-type"))
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("GIT_PROTOCOL", header("git-protocol"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // It may end without having read all.
    stdin.write_all(&body).await.ok();
    drop(stdin);
    let output = child.wait_with_output().await.unwrap().stdout;
    let end = output.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let mut response = Response::builder();
    for line in std::str::from_utf8(&output[..end]).unwrap().lines() {
        let (name, value) = line.split_once(": ").unwrap();
        response = match name {
            "Status" => response.status(value[..3].parse::<StatusCode>().unwrap()),
            _ => response.header(name, value),
        };
    }
    response.body(Body::from(output[end + 4..].to_vec())).unwrap()
}
