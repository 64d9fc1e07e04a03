//! TLS by a certificate that is mounted as files, and taken again whenever they change.
//!
//! Whoever renews the certificate (cert-manager, a sidecar) writes the files; no restart is needed.

use std::{
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use arc_swap::ArcSwap;
use axum::serve::Listener;
use rustls_pki_types::{
    CertificateDer, PrivateKeyDer,
    pem::{self, PemObject as _},
};
use thiserror::Error;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, mpsc},
    task::JoinSet,
    time::{sleep, timeout},
};
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
use tracing::{debug, info, warn};

/// A client that takes longer is let go.
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
/// Clients that are greeted at one time. A greeting costs time of the processor.
const HANDSHAKES: usize = 256;
/// Interval between checks of the files.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// After an error of the listener itself, such as no free descriptor.
const PAUSE: Duration = Duration::from_millis(100);

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

/// Connections on which TLS is agreed.
pub struct TlsListener {
    address: io::Result<SocketAddr>,
    agreed: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    // Dropping them ends them.
    _tasks: JoinSet<()>,
}

impl TlsListener {
    /// Greets clients of `listener` with the certificate in `files`.
    pub fn new(listener: TcpListener, files: Files) -> Result<Self, TlsError> {
        Self::renewed_every(LOOK_EVERY, listener, files)
    }

    fn renewed_every(every: Duration, listener: TcpListener, files: Files) -> Result<Self, TlsError> {
        let mounted = Mounted::read(&files)?;
        let shown = Arc::new(Shown(ArcSwap::from_pointee(mounted.certified(&files)?)));
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Setup)?
            .with_no_client_auth()
            .with_cert_resolver(shown.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let (connected, agreed) = mpsc::channel(HANDSHAKES);
        let address = listener.local_addr();
        let mut tasks = JoinSet::new();
        tasks.spawn(greet(listener, TlsAcceptor::from(Arc::new(config)), connected));
        tasks.spawn(renew(every, files, mounted, shown));
        Ok(Self { address, agreed, _tasks: tasks })
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.agreed.recv().await {
            Some(connection) => connection,
            // Its task ends only with this listener.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        match &self.address {
            Ok(address) => Ok(*address),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        }
    }
}

/// One client does not wait for another's greeting.
async fn greet(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    connected: mpsc::Sender<(TlsStream<TcpStream>, SocketAddr)>,
) {
    let room = Arc::new(Semaphore::new(HANDSHAKES));
    let mut greetings = JoinSet::new();
    loop {
        while greetings.try_join_next().is_some() {}
        let Ok(place) = room.clone().acquire_owned().await else { return };
        let (stream, peer) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                warn!(%error, "Connection could not be accepted");
                sleep(PAUSE).await;
                continue;
            }
        };
        let (acceptor, connected) = (acceptor.clone(), connected.clone());
        greetings.spawn(async move {
            let _place = place;
            match timeout(HANDSHAKE_LIMIT, acceptor.accept(stream)).await {
                // An error means that the listener is gone.
                Ok(Ok(stream)) => drop(connected.send((stream, peer)).await),
                Ok(Err(error)) => debug!(%peer, %error, "TLS was not agreed"),
                Err(_) => debug!(%peer, "TLS was not agreed in time"),
            }
        });
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
mod tests;
