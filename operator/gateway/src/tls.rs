//! TLS by a certificate that is mounted as files, and taken again whenever they change.
//!
//! Whoever renews the certificate (cert-manager, a sidecar) writes the files; no restart is needed.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use arc_swap::ArcSwap;
use rustls_pki_types::{
    CertificateDer, PrivateKeyDer,
    pem::{self, PemObject as _},
};
use thiserror::Error;
use tokio::{net::TcpStream, task::JoinSet, time::sleep};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        ServerConfig,
        crypto::ring::{default_provider, sign::any_supported_type},
        server::{ClientHello, ResolvesServerCert},
        sign::CertifiedKey,
    },
    server::TlsStream,
};
use tracing::{info, warn};

/// Interval between checks of the files.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// Paths of certificate and key: PEM, the certificate with its chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

#[derive(Debug, Error)]
pub enum TlsError {
    #[error("could not read {path}")]
    Read { path: PathBuf, source: io::Error },
    #[error("{path} is not PEM")]
    Pem { path: PathBuf, source: pem::Error },
    #[error("{path} has no certificate")]
    NoCertificate { path: PathBuf },
    #[error("{certificate} and {key} do not go together")]
    Pair { certificate: PathBuf, key: PathBuf, source: tokio_rustls::rustls::Error },
    #[error("could not set up TLS")]
    Setup(#[source] tokio_rustls::rustls::Error),
}

/// The bytes of both files.
#[derive(Clone, PartialEq, Eq)]
struct Mounted {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Mounted {
    fn read(files: &Files) -> Result<Self, TlsError> {
        let read =
            |path: &Path| fs::read(path).map_err(|source| TlsError::Read { path: path.to_owned(), source });
        Ok(Self { certificate: read(&files.certificate)?, key: read(&files.key)? })
    }

    fn certified(&self, files: &Files) -> Result<CertifiedKey, TlsError> {
        let Files { certificate, key } = files;
        let not_pem = |path: &Path, source| TlsError::Pem { path: path.to_owned(), source };
        let chain = CertificateDer::pem_slice_iter(&self.certificate)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|source| not_pem(certificate, source))?;
        if chain.is_empty() {
            return Err(TlsError::NoCertificate { path: certificate.clone() });
        }
        let of_key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|source| not_pem(key, source))?;
        let pair = |source| TlsError::Pair { certificate: certificate.clone(), key: key.clone(), source };
        let certified = CertifiedKey::new(chain, any_supported_type(&of_key).map_err(pair)?);
        certified.keys_match().map_err(pair)?;
        Ok(certified)
    }
}

/// The certificate that is shown now.
#[derive(Debug)]
struct Shown(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for Shown {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

/// TLS under the certificate in the files as it is now.
pub struct Tls {
    acceptor: TlsAcceptor,
    // Dropping it ends it.
    _renewal: JoinSet<()>,
}

impl Tls {
    pub fn new(files: Files) -> Result<Self, TlsError> {
        Self::renewed_every(LOOK_EVERY, files)
    }

    pub(crate) fn renewed_every(every: Duration, files: Files) -> Result<Self, TlsError> {
        let mounted = Mounted::read(&files)?;
        let shown = Arc::new(Shown(ArcSwap::from_pointee(mounted.certified(&files)?)));
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Setup)?
            .with_no_client_auth()
            .with_cert_resolver(shown.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let mut renewal = JoinSet::new();
        renewal.spawn(renew(every, files, mounted, shown));
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), _renewal: renewal })
    }

    /// Agrees on TLS with a client.
    pub(crate) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        self.acceptor.accept(stream).await
    }
}

/// Takes the files again when they change. A pair that cannot be used leaves the last one in place.
async fn renew(every: Duration, files: Files, mut mounted: Mounted, shown: Arc<Shown>) {
    loop {
        sleep(every).await;
        match look(&files, &mounted) {
            Ok(None) => {}
            Ok(Some((now, certified))) => {
                shown.0.store(Arc::new(certified));
                mounted = now;
                info!("Certificate renewed");
            }
            Err(error) => warn!(%error, "Certificate could not be renewed; the last one stays"),
        }
    }
}

fn look(files: &Files, before: &Mounted) -> Result<Option<(Mounted, CertifiedKey)>, TlsError> {
    let now = Mounted::read(files)?;
    if now == *before {
        return Ok(None);
    }
    let certified = now.certified(files)?;
    Ok(Some((now, certified)))
}

#[cfg(test)]
pub(crate) mod tests;
