//! Values made of files that are mounted, and made again when the files change. Nothing runs in the background: the files
//! are looked at when a value is needed, at most once in an interval.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use rustls_pki_types::{
    CertificateDer, PrivateKeyDer,
    pem::{self, PemObject as _},
};
use thiserror::Error;
use tokio_rustls::rustls::{
    ClientConfig, Error as RustlsError, RootCertStore, ServerConfig,
    crypto::{CryptoProvider, ring},
    server::{VerifierBuilderError, WebPkiClientVerifier},
};
use tracing::{info, warn};

use crate::limits::lock;

/// Interval between looks at the files.
pub const LOOK_EVERY: Duration = Duration::from_secs(10);

#[derive(Debug, Error)]
pub enum TlsError {
    #[error("could not read {path}")]
    Read { path: PathBuf, source: io::Error },
    #[error("{path} is not PEM")]
    Pem { path: PathBuf, source: pem::Error },
    #[error("{path} has no certificate")]
    NoCertificate { path: PathBuf },
    #[error("{path} has a certificate that is no authority")]
    Authority { path: PathBuf, source: RustlsError },
    #[error("{certificate} and {key} do not go together")]
    Pair { certificate: PathBuf, key: PathBuf, source: RustlsError },
    #[error("could not set up TLS")]
    Setup(#[source] RustlsError),
    #[error("could not set up the check of clients")]
    Clients(#[source] VerifierBuilderError),
}

type Build<T> = Box<dyn Fn(&[MountedFile]) -> Result<T, TlsError> + Send + Sync>;

/// A value made of files.
pub struct Mounted<T> {
    paths: Vec<PathBuf>,
    build: Build<T>,
    every: Duration,
    state: Mutex<State<T>>,
}

struct State<T> {
    files: Vec<MountedFile>,
    value: Arc<T>,
    looked: Instant,
}

/// A file's path and bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct MountedFile {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl<T> Mounted<T> {
    fn new(paths: Vec<PathBuf>, every: Duration, build: Build<T>) -> Result<Self, TlsError> {
        let files = read(&paths)?;
        let value = Arc::new(build(&files)?);
        let state = Mutex::new(State { files, value, looked: Instant::now() });
        Ok(Self { paths, build, every, state })
    }

    /// Returns the value of the files as they are now. Files that cannot be used leave the last value in place.
    pub fn current(&self) -> Arc<T> {
        let mut state = lock(&self.state);
        if state.looked.elapsed() >= self.every {
            state.looked = Instant::now();
            match self.look(&state.files) {
                Ok(None) => {}
                Ok(Some((files, value))) => {
                    (state.files, state.value) = (files, Arc::new(value));
                    info!(paths = ?self.paths, "Certificates renewed");
                }
                Err(error) => warn!(%error, "Certificates could not be renewed; the last ones stay"),
            }
        }
        Arc::clone(&state.value)
    }

    fn look(&self, before: &[MountedFile]) -> Result<Option<(Vec<MountedFile>, T)>, TlsError> {
        let now = read(&self.paths)?;
        if now == before {
            return Ok(None);
        }
        let value = (self.build)(&now)?;
        Ok(Some((now, value)))
    }
}

/// TLS of a server: only clients of the authority in the folder.
pub fn server(folder: &Path, every: Duration) -> Result<Mounted<ServerConfig>, TlsError> {
    Mounted::new(identity_paths(folder), every, Box::new(server_config))
}

/// TLS of a client: only a server of the authority in the folder.
pub fn client(folder: &Path, every: Duration) -> Result<Mounted<ClientConfig>, TlsError> {
    Mounted::new(identity_paths(folder), every, Box::new(client_config))
}

/// TLS to the hosts of skills: the public authorities, and those of a bundle.
pub fn hosts(bundle: Option<&Path>, every: Duration) -> Result<Mounted<ClientConfig>, TlsError> {
    Mounted::new(bundle.map(Path::to_owned).into_iter().collect(), every, Box::new(hosts_config))
}

fn identity_paths(folder: &Path) -> Vec<PathBuf> {
    ["tls.crt", "tls.key", "ca.crt"].map(|name| folder.join(name)).to_vec()
}

fn read(paths: &[PathBuf]) -> Result<Vec<MountedFile>, TlsError> {
    let read = |path: &PathBuf| match fs::read(path) {
        Ok(bytes) => Ok(MountedFile { path: path.clone(), bytes }),
        Err(source) => Err(TlsError::Read { path: path.clone(), source }),
    };
    paths.iter().map(read).collect()
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn server_config(files: &[MountedFile]) -> Result<ServerConfig, TlsError> {
    let [certificate, key, authority] = identity(files);
    let mut roots = RootCertStore::empty();
    add_authorities(&mut roots, authority)?;
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider())
        .build()
        .map_err(TlsError::Clients)?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Setup)?
        .with_client_cert_verifier(clients)
        .with_single_cert(certificates(certificate)?, private_key(key)?)
        .map_err(|source| pair(certificate, key, source))?;
    // The tickets end with this value: after a change of the files each client shows its certificate again.
    config.ticketer = ring::Ticketer::new().map_err(TlsError::Setup)?;
    Ok(config)
}

fn client_config(files: &[MountedFile]) -> Result<ClientConfig, TlsError> {
    let [certificate, key, authority] = identity(files);
    let mut roots = RootCertStore::empty();
    add_authorities(&mut roots, authority)?;
    ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Setup)?
        .with_root_certificates(roots)
        .with_client_auth_cert(certificates(certificate)?, private_key(key)?)
        .map_err(|source| pair(certificate, key, source))
}

fn hosts_config(files: &[MountedFile]) -> Result<ClientConfig, TlsError> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for file in files {
        add_authorities(&mut roots, file)?;
    }
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Setup)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn identity(files: &[MountedFile]) -> [&MountedFile; 3] {
    let files: &[MountedFile; 3] = files.try_into().expect("identity_paths names three files");
    files.each_ref()
}

fn add_authorities(roots: &mut RootCertStore, file: &MountedFile) -> Result<(), TlsError> {
    for certificate in certificates(file)? {
        let refused = |source| TlsError::Authority { path: file.path.clone(), source };
        roots.add(certificate).map_err(refused)?;
    }
    Ok(())
}

fn certificates(file: &MountedFile) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let MountedFile { path, bytes } = file;
    let chain = CertificateDer::pem_slice_iter(bytes).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|source| TlsError::Pem { path: path.clone(), source })?;
    if chain.is_empty() { Err(TlsError::NoCertificate { path: path.clone() }) } else { Ok(chain) }
}

fn private_key(file: &MountedFile) -> Result<PrivateKeyDer<'static>, TlsError> {
    let MountedFile { path, bytes } = file;
    PrivateKeyDer::from_pem_slice(bytes).map_err(|source| TlsError::Pem { path: path.clone(), source })
}

fn pair(certificate: &MountedFile, key: &MountedFile, source: RustlsError) -> TlsError {
    TlsError::Pair { certificate: certificate.path.clone(), key: key.path.clone(), source }
}
