//! Stores over a folder and over a bucket of a real S3 server.

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use async_trait::async_trait;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use object_store::aws::AmazonS3Builder;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use s3s::{S3, S3Request, S3Response, S3Result, auth::SimpleAuth, dto, s3_error, service::S3ServiceBuilder};
use s3s_fs::FileSystem;
use tempfile::TempDir;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    task::JoinSet,
};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, crypto::ring},
};

pub(crate) use crate::served::{Authority, LIMITS, Served};
use crate::{Bucket, BucketSettings, Folder, Limits, Metrics, WorkspaceId, backend::Backend, store::Store};

const ACCESS_KEY: &str = "AKIAEXAMPLE";
const SECRET_KEY: &str = "example-secret";

pub(crate) fn id(owner: &str) -> WorkspaceId {
    WorkspaceId::of_owner(owner)
}

/// A file system as S3, in which a folder is no key.
struct Keys {
    files: FileSystem,
    root: PathBuf,
}

impl Keys {
    fn check(&self, bucket: &str, key: &str) -> S3Result<()> {
        if self.root.join(bucket).join(key).is_dir() { Err(s3_error!(NoSuchKey)) } else { Ok(()) }
    }
}

#[async_trait]
impl S3 for Keys {
    async fn head_object(
        &self,
        request: S3Request<dto::HeadObjectInput>,
    ) -> S3Result<S3Response<dto::HeadObjectOutput>> {
        self.check(&request.input.bucket, &request.input.key)?;
        self.files.head_object(request).await
    }

    async fn get_object(
        &self,
        request: S3Request<dto::GetObjectInput>,
    ) -> S3Result<S3Response<dto::GetObjectOutput>> {
        self.check(&request.input.bucket, &request.input.key)?;
        self.files.get_object(request).await
    }

    async fn put_object(
        &self,
        request: S3Request<dto::PutObjectInput>,
    ) -> S3Result<S3Response<dto::PutObjectOutput>> {
        self.files.put_object(request).await
    }

    async fn delete_object(
        &self,
        request: S3Request<dto::DeleteObjectInput>,
    ) -> S3Result<S3Response<dto::DeleteObjectOutput>> {
        self.files.delete_object(request).await
    }

    async fn delete_objects(
        &self,
        request: S3Request<dto::DeleteObjectsInput>,
    ) -> S3Result<S3Response<dto::DeleteObjectsOutput>> {
        self.files.delete_objects(request).await
    }

    async fn list_objects_v2(
        &self,
        request: S3Request<dto::ListObjectsV2Input>,
    ) -> S3Result<S3Response<dto::ListObjectsV2Output>> {
        self.files.list_objects_v2(request).await
    }
}

/// An S3 server over a folder, with the bucket `files`.
pub(crate) struct S3Server {
    pub(crate) address: SocketAddr,
    pub(crate) folder: TempDir,
    ca_bundle: Option<PathBuf>,
    _tasks: JoinSet<()>,
}

impl S3Server {
    pub(crate) async fn start() -> Self {
        Self::start_with(None).await
    }

    /// Starts a server that proves the name `localhost` by the authority.
    pub(crate) async fn start_tls(authority: &Authority) -> Self {
        Self::start_with(Some(authority)).await
    }

    async fn start_with(authority: Option<&Authority>) -> Self {
        let folder = TempDir::new().unwrap();
        std::fs::create_dir_all(folder.path().join("root/files")).unwrap();
        let root = folder.path().join("root");
        let keys = Keys { files: FileSystem::new(&root).unwrap(), root };
        let mut service = S3ServiceBuilder::new(keys);
        service.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY));
        let service = service.build();
        let tls = authority.map(|authority| {
            let (certificate, key) = authority.issue("localhost");
            let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
                .with_safe_default_protocol_versions()
                .unwrap()
                .with_no_client_auth()
                .with_single_cert(
                    vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
                    PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
                );
            TlsAcceptor::from(Arc::new(config.unwrap()))
        });
        let ca_bundle = authority.map(|authority| {
            let path = folder.path().join("bundle.crt");
            std::fs::write(&path, authority.pem()).unwrap();
            path
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (service, tls) = (service.clone(), tls.clone());
                connections.spawn(async move {
                    let stream: Box<dyn Stream> = match tls {
                        None => Box::new(stream),
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => Box::new(stream),
                            Err(_) => return,
                        },
                    };
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
                });
            }
        });
        Self { address, folder, ca_bundle, _tasks: tasks }
    }

    pub(crate) fn settings(&self) -> BucketSettings {
        let port = self.address.port();
        let scheme = if self.ca_bundle.is_some() { "https" } else { "http" };
        BucketSettings {
            bucket: "files".into(),
            prefix: "team/skillet".into(),
            endpoint: Some(format!("{scheme}://localhost:{port}")),
            region: Some("us-east-1".into()),
            is_path_style: true,
            ca_bundle: self.ca_bundle.clone(),
        }
    }

    pub(crate) fn bucket_of(settings: BucketSettings) -> Bucket {
        let keys = AmazonS3Builder::new().with_access_key_id(ACCESS_KEY).with_secret_access_key(SECRET_KEY);
        Bucket::from_builder(keys, settings).unwrap()
    }

    pub(crate) fn bucket(&self) -> Bucket {
        Self::bucket_of(self.settings())
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

pub(crate) fn store_over(backend: Arc<dyn Backend>, limits: Limits) -> Store {
    Store::new(backend, limits, Metrics::default())
}

/// Runs a test over a folder, and over a bucket.
pub(crate) async fn with_each(limits: Limits, test: impl AsyncFn(&'static str, Store)) {
    let folder = TempDir::new().unwrap();
    test("folder", store_over(Arc::new(Folder::open(folder.path()).unwrap()), limits)).await;
    let server = S3Server::start().await;
    test("bucket", store_over(Arc::new(server.bucket()), limits)).await;
}
