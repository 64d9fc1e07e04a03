//! A real registry for tests: Debian's docker-registry in a folder of its own, and artifacts that are pushed to it.

use std::{
    env, fs,
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use flate2::{Compression, write::GzEncoder};
use reqwest::{Client, StatusCode, header::LOCATION};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use super::make_certificate;

/// Password of the user `me` of a registry with TLS.
pub const PASSWORD: &str = "secret";
/// Line of a user `me` with [`PASSWORD`], by bcrypt.
const USER: &str = "me:$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW\n";
const START_LIMIT: Duration = Duration::from_secs(30);
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// The registry. It ends with its value, and with the program that started it.
pub struct Registry {
    /// `ADDRESS:PORT`.
    pub host: String,
    /// Certificate in PEM; empty without TLS.
    pub certificate: String,
    client: Client,
    folder: TempDir,
    server: Option<Child>,
}

/// A blob of an artifact, and its entry in the manifest.
#[derive(Clone, Debug)]
pub struct Blob {
    pub bytes: Vec<u8>,
    pub descriptor: Value,
}

impl Blob {
    pub fn new(media_type: &str, bytes: Vec<u8>) -> Self {
        let descriptor = json!({ "mediaType": media_type, "digest": digest(&bytes), "size": bytes.len() });
        Self { bytes, descriptor }
    }

    /// A layer of a tar archive, compressed by gzip.
    pub fn layer(files: &[(&str, &[u8])]) -> Self {
        Self::new("application/vnd.oci.image.layer.v1.tar+gzip", gzip(&tar(files)))
    }

    /// A file, as ORAS pushes it.
    pub fn file(title: &str, bytes: &[u8]) -> Self {
        let mut blob = Self::new("application/vnd.oci.image.layer.v1.tar", bytes.to_vec());
        blob.descriptor["annotations"] = json!({ "org.opencontainers.image.title": title });
        blob
    }
}

/// A tar archive, also with paths that no good archive has.
pub fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_old();
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        header.set_cksum();
        builder.append(&header, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    std::io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}

pub fn digest(bytes: &[u8]) -> String {
    format!("sha256:{:x}", Sha256::digest(bytes))
}

/// The manifest of an artifact with these layers.
pub fn manifest(layers: &[Blob]) -> Value {
    let layers: Vec<&Value> = layers.iter().map(|layer| &layer.descriptor).collect();
    let config = Blob::new("application/vnd.oci.empty.v1+json", b"{}".to_vec());
    json!({ "schemaVersion": 2, "mediaType": MANIFEST, "config": config.descriptor, "layers": layers })
}

impl Registry {
    /// Starts a registry for everybody, without TLS, on the loopback address.
    pub async fn start() -> Self {
        Self::start_on(Ipv4Addr::LOCALHOST, false).await
    }

    /// Starts a registry with TLS, for the user `me` only.
    pub async fn start_tls() -> Self {
        Self::start_on(Ipv4Addr::LOCALHOST, true).await
    }

    async fn start_on(address: Ipv4Addr, has_tls: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = TcpListener::bind((address, 0)).unwrap().local_addr().unwrap().port();
        let certificate = if has_tls { make_certificate(folder.path()) } else { String::new() };
        // Tests have runtimes of their own, and a connection ends with the runtime that opened it.
        let mut builder = Client::builder().pool_max_idle_per_host(0);
        if has_tls {
            builder =
                builder.add_root_certificate(reqwest::Certificate::from_pem(certificate.as_bytes()).unwrap());
        }
        let client = builder.build().unwrap();
        let mut registry =
            Self { host: format!("{address}:{port}"), certificate, client, folder, server: None };
        registry.configure();
        registry.set_users(true);
        registry.resume().await;
        registry
    }

    fn configure(&self) {
        let at = |name: &str| self.folder.path().join(name);
        let mut http = json!({ "addr": self.host, "secret": "tests" });
        let mut config = json!({ "version": 0.1, "log": { "level": "error" },
            "storage": { "filesystem": { "rootdirectory": at("data") }, "delete": { "enabled": true } } });
        if !self.certificate.is_empty() {
            http["tls"] = json!({ "certificate": at("tls.crt"), "key": at("tls.key") });
            config["auth"] = json!({ "htpasswd": { "realm": "tests", "path": at("users") } });
        }
        config["http"] = http;
        fs::write(at("config.yml"), config.to_string()).unwrap();
    }

    /// Gives the user `me` its rights, or takes them.
    pub fn set_users(&self, has_me: bool) {
        let path = self.folder.path().join("users");
        fs::write(&path, if has_me { USER } else { "nobody:x\n" }).unwrap();
        // The registry reads the file again if its time is another.
        let time = std::time::SystemTime::now() + Duration::from_secs(u64::from(!has_me) + 1);
        fs::File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    }

    /// Ends the server. Its data stays.
    pub fn stop(&mut self) {
        if let Some(mut server) = self.server.take() {
            drop(server.stdin.take());
            server.wait().unwrap();
        }
    }

    /// Starts the server again, at the same address.
    pub async fn resume(&mut self) {
        // The shell ends the server when the other end of its standard input is gone, however that came.
        let script = "\"$0\" serve \"$1\" </dev/null >\"$2\" 2>&1 & read -r _; kill -KILL $!; wait";
        let at = |name: &str| self.folder.path().join(name);
        let server = Command::new("/bin/sh")
            .args(["-c", script])
            .args([program(), at("config.yml"), at("log")])
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        self.server = Some(server.unwrap());
        let until = Instant::now() + START_LIMIT;
        while self.client.get(self.url("")).send().await.is_err() {
            let log = fs::read_to_string(at("log")).unwrap_or_default();
            assert!(Instant::now() < until, "the registry does not answer: {log}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Pushes layers and a manifest that names them; returns its digest.
    pub async fn push(&self, repository: &str, tag: &str, layers: &[Blob]) -> String {
        self.push_blob(repository, b"{}").await;
        for layer in layers {
            self.push_blob(repository, &layer.bytes).await;
        }
        self.push_manifest(repository, tag, &manifest(layers)).await
    }

    pub async fn push_manifest(&self, repository: &str, tag: &str, manifest: &Value) -> String {
        let kind = manifest["mediaType"].as_str().unwrap().to_owned();
        let url = self.url(&format!("{repository}/manifests/{tag}"));
        let request = self.client.put(url).header("content-type", kind).body(manifest.to_string());
        let response = self.with_user(request).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::CREATED, "{:?}", response.text().await);
        digest(manifest.to_string().as_bytes())
    }

    pub async fn push_blob(&self, repository: &str, bytes: &[u8]) {
        let start = self.client.post(self.url(&format!("{repository}/blobs/uploads/")));
        let response = self.with_user(start).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::ACCEPTED);
        let place = response.headers()[LOCATION].to_str().unwrap();
        let place = format!("{place}&digest={}", digest(bytes));
        let response = self.with_user(self.client.put(place).body(bytes.to_vec())).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::CREATED, "{:?}", response.text().await);
    }

    /// Deletes a manifest and with it all its tags.
    pub async fn delete(&self, repository: &str, digest: &str) {
        let request = self.client.delete(self.url(&format!("{repository}/manifests/{digest}")));
        assert_eq!(self.with_user(request).send().await.unwrap().status(), StatusCode::ACCEPTED);
    }

    fn with_user(&self, request: reqwest::RequestBuilder) -> reqwest::RequestBuilder {
        if self.certificate.is_empty() { request } else { request.basic_auth("me", Some(PASSWORD)) }
    }

    fn url(&self, rest: &str) -> String {
        let scheme = if self.certificate.is_empty() { "http" } else { "https" };
        format!("{scheme}://{}/v2/{rest}", self.host)
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The registry's program, on PATH or in the folder of tools.
fn program() -> PathBuf {
    let home = || Path::new(&env::var_os("HOME").unwrap_or_default()).join(".cache/skillet");
    let cache = env::var_os("SKILLET_CACHE").map_or_else(home, PathBuf::from);
    let path = env::var_os("PATH").unwrap_or_default();
    let mut folders = env::split_paths(&path).chain([cache.join("tools/bin")]);
    let found = folders.find_map(|folder| Some(folder.join("docker-registry")).filter(|file| file.is_file()));
    found.expect("no docker-registry: `e2e/install-debian-program.sh docker-registry docker-registry ~/.cache/skillet/tools` brings it")
}
