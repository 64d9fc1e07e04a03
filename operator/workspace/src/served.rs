//! A store that serves on loopback, for the tests of this crate and of its users.

// What is not a test here is still part of one.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc)]

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use prometheus_client::registry::Registry;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tempfile::TempDir;
use tokio::{net::TcpListener, sync::oneshot, task::JoinSet};

use crate::{
    Folder, Limits, Metrics, Place, STORE_NAME, Server, ServerSettings, WorkspaceClient, WorkspaceSettings,
};

/// Limits of a small store.
pub const LIMITS: Limits = Limits {
    quota_bytes: 1 << 20,
    quota_files: 20,
    write_bytes: 64 << 10,
    file_bytes: 256 << 10,
    memory_bytes: 1 << 20,
    expire_after: Some(Duration::from_secs(30 * 24 * 3600)),
};

/// An authority of certificates.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn issue(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.0).unwrap().pem(), key.serialize_pem())
    }

    /// Returns the certificate of the authority.
    #[cfg(test)]
    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// Writes the files of an identity that trusts this authority.
    pub fn mount(&self, folder: &Path, name: &str) -> PathBuf {
        let (certificate, key) = self.issue(name);
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join("tls.crt"), certificate).unwrap();
        std::fs::write(folder.join("tls.key"), key).unwrap();
        std::fs::write(folder.join("ca.crt"), self.0.pem()).unwrap();
        folder.to_owned()
    }
}

/// A store that serves on loopback from a folder.
pub struct Served {
    pub(crate) folder: TempDir,
    pub(crate) address: String,
    pub(crate) authority: Authority,
    #[cfg_attr(not(test), expect(dead_code, reason = "read by the tests of this crate"))]
    pub(crate) registry: Registry,
    stop: Option<oneshot::Sender<()>>,
    tasks: JoinSet<()>,
}

impl Served {
    /// Starts a store with these limits over an empty folder.
    pub async fn start(limits: Limits) -> Self {
        let folder = TempDir::new().unwrap();
        let authority = Authority::new("authority");
        let tls_folder = authority.mount(&folder.path().join("store"), STORE_NAME);
        let place = Place::Folder(Folder::open(&folder.path().join("workspaces")).unwrap());
        let mut registry = Registry::default();
        let metrics = Metrics::register(&mut registry);
        let settings = ServerSettings { tls_folder, limits, drain: Duration::from_secs(5) };
        let mut server = Server::new(settings, place, metrics).unwrap();
        server.settle = Duration::ZERO;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (stop, stopped) = oneshot::channel::<()>();
        let mut tasks = JoinSet::new();
        tasks.spawn(server.serve(listener, async { drop(stopped.await) }));
        Self { folder, address, authority, registry, stop: Some(stop), tasks }
    }

    /// Returns a client that the store trusts.
    pub fn client(&self) -> WorkspaceClient {
        self.client_of(&self.authority)
    }

    /// Returns the same client, of a store that is said to be elsewhere.
    pub fn client_at(&self, address: String) -> WorkspaceClient {
        let tls_folder = self.authority.mount(&self.folder.path().join("client"), "skillet-operator");
        WorkspaceClient::new(WorkspaceSettings { address, tls_folder })
    }

    pub(crate) fn client_of(&self, authority: &Authority) -> WorkspaceClient {
        let tls_folder = authority.mount(&self.folder.path().join("client"), "skillet-operator");
        WorkspaceClient::new(WorkspaceSettings { address: self.address.clone(), tls_folder })
    }

    /// Stops the store, and waits until it has.
    pub async fn stop(mut self) {
        drop(self.stop.take());
        while self.tasks.join_next().await.is_some() {}
    }

    #[cfg(test)]
    pub(crate) fn metrics(&self) -> String {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry).unwrap();
        text
    }
}
