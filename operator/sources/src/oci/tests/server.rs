//! A registry that answers as a test wants it to: from a table of answers, with a server of tokens, and with errors.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Body,
    extract::State,
    http::{HeaderMap, Request, Response, header},
};
use serde_json::{Value, json};
use skillet_kube::lock;
use tempfile::TempDir;
use tokio::{net::TcpListener, task::JoinHandle};

use crate::testing::{
    registry::{Blob, digest, manifest},
    serve_tls,
};

/// The token that the server of tokens gives.
const TOKEN: &str = "Bearer of-this-test";

/// The answer to requests.
#[derive(Clone, Debug, Default)]
pub(super) enum Mood {
    #[default]
    Well,
    /// Asks for this header, after a challenge.
    Wants {
        challenge: String,
        header: String,
    },
    /// Asks for the token of a server of tokens at this host, or of its own.
    Tokens {
        realm_host: Option<String>,
        wanted: Option<String>,
    },
    Status(u16),
    /// Sends these bytes for each blob, and for each manifest.
    Blob(Vec<u8>),
    Manifest(Vec<u8>),
    RedirectBlobs(String),
    /// Blobs without an end.
    EndlessBlob,
    Silent,
}

#[derive(Default)]
struct Shared {
    scheme: &'static str,
    host: Mutex<String>,
    mood: Mutex<Mood>,
    /// Content by path.
    content: Mutex<HashMap<String, Vec<u8>>>,
    requests: Mutex<Vec<(String, Option<String>)>>,
}

pub(super) struct Server {
    pub(super) host: String,
    pub(super) certificate: String,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
    _folder: TempDir,
}

impl Server {
    pub(super) async fn start(has_tls: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let scheme = if has_tls { "https" } else { "http" };
        let shared = Arc::new(Shared { scheme, host: Mutex::new(host.clone()), ..Shared::default() });
        let routes = Router::new().fallback(serve).with_state(Arc::clone(&shared));
        let (serving, certificate) = if has_tls {
            serve_tls(listener, folder.path(), routes)
        } else {
            (tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() }), String::new())
        };
        Self { host, certificate, shared, serving, _folder: folder }
    }

    /// Puts an artifact under a tag of the repository `skills`; returns its digest.
    pub(super) fn put(&self, tag: &str, layers: &[Blob]) -> String {
        for layer in layers {
            let path = format!("/v2/skills/blobs/{}", layer.descriptor["digest"].as_str().unwrap());
            self.put_at(&path, layer.bytes.clone());
        }
        self.put_manifest(tag, &manifest(layers))
    }

    pub(super) fn put_manifest(&self, tag: &str, manifest: &Value) -> String {
        let bytes = manifest.to_string().into_bytes();
        let digest = digest(&bytes);
        self.put_at(&format!("/v2/skills/manifests/{digest}"), bytes.clone());
        self.put_at(&format!("/v2/skills/manifests/{tag}"), bytes);
        digest
    }

    pub(super) fn put_at(&self, path: &str, bytes: Vec<u8>) {
        lock(&self.shared.content).insert(path.to_owned(), bytes);
    }

    pub(super) fn set_mood(&self, mood: Mood) {
        *lock(&self.shared.mood) = mood;
    }

    /// Returns method, path and credentials of each request so far, and forgets them.
    pub(super) fn take_requests(&self) -> Vec<(String, Option<String>)> {
        std::mem::take(&mut *lock(&self.shared.requests))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(State(shared): State<Arc<Shared>>, request: Request<Body>) -> Response<Body> {
    let (parts, _) = request.into_parts();
    let authorization = credentials(&parts.headers);
    let target = parts.uri.path_and_query().unwrap().to_string();
    lock(&shared.requests).push((format!("{} {target}", parts.method), authorization.clone()));
    let path = parts.uri.path();
    let mood = lock(&shared.mood).clone();
    let is_blob = path.contains("/blobs/");
    let status = |status: u16| Response::builder().status(status);
    let challenge =
        |text: String| status(401).header(header::WWW_AUTHENTICATE, text).body(Body::from("{}")).unwrap();
    match mood {
        Mood::Wants { challenge: text, header } if authorization.as_ref() != Some(&header) => {
            return challenge(text);
        }
        Mood::Tokens { wanted, .. } if path == "/token" => {
            let is_right = wanted.is_none() || wanted == authorization;
            let body = json!({ "access_token": TOKEN.trim_start_matches("Bearer ") }).to_string();
            return status(if is_right { 200 } else { 401 }).body(Body::from(body)).unwrap();
        }
        Mood::Tokens { realm_host, .. } if authorization.as_deref() != Some(TOKEN) => {
            let host = realm_host.unwrap_or_else(|| lock(&shared.host).clone());
            let realm = format!("{}://{host}/token", shared.scheme);
            return challenge(format!(
                "Bearer realm=\"{realm}\",service=\"tests\",scope=\"repository:skills:pull\""
            ));
        }
        Mood::Status(number) => return status(number).body(Body::from("an inner page")).unwrap(),
        Mood::Blob(bytes) if is_blob => return status(200).body(Body::from(bytes)).unwrap(),
        Mood::Manifest(bytes) if !is_blob => return status(200).body(Body::from(bytes)).unwrap(),
        Mood::RedirectBlobs(host) if is_blob => {
            let place = format!("{}://{host}{path}", shared.scheme);
            return status(307).header(header::LOCATION, place).body(Body::empty()).unwrap();
        }
        Mood::EndlessBlob if is_blob => {
            let chunk = axum::body::Bytes::from(vec![0; 1 << 16]);
            let endless = futures::stream::repeat_with(move || Ok::<_, std::io::Error>(chunk.clone()));
            return status(200).body(Body::from_stream(endless)).unwrap();
        }
        Mood::Silent => return std::future::pending().await,
        Mood::Well
        | Mood::Wants { .. }
        | Mood::Tokens { .. }
        | Mood::Blob(_)
        | Mood::Manifest(_)
        | Mood::RedirectBlobs(_)
        | Mood::EndlessBlob => {}
    }
    content(&shared, &target)
}

/// The answer of a registry that is well.
fn content(shared: &Shared, target: &str) -> Response<Body> {
    let status = |status: u16| Response::builder().status(status);
    let content = lock(&shared.content).get(target).cloned();
    match content {
        Some(bytes) => {
            let mut response = status(200);
            if target.contains("/manifests/") {
                response = response.header("docker-content-digest", digest(&bytes));
            }
            if target.ends_with("tags/list?n=1000") {
                response =
                    response.header(header::LINK, "</v2/skills/tags/list?n=1000&last=x>; rel=\"next\"");
            }
            response.body(Body::from(bytes)).unwrap()
        }
        None => status(404)
            .body(Body::from(json!({ "errors": [{ "code": "MANIFEST_UNKNOWN" }] }).to_string()))
            .unwrap(),
    }
}

fn credentials(headers: &HeaderMap) -> Option<String> {
    Some(headers.get(header::AUTHORIZATION)?.to_str().unwrap().to_owned())
}
