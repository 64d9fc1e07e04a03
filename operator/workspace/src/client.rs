//! The client of operator and gateway for the store, over kept connections of mutual TLS.

use std::{error::Error, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioTimer},
};
use serde::de::DeserializeOwned;
use skillet_egress::{ClientIdentity, Connector};
use tokio::time::timeout;

use crate::{
    WorkspaceError, WorkspaceId,
    wire::{ENTRIES_PATH, Entry, FILES_PATH, MAX_LISTING_BYTES, Parameters, STORE_NAME, WriteMode, Written},
};

/// Time for a request with its connection.
const REQUEST_LIMIT: Duration = Duration::from_secs(30);
const IDLE_LIMIT: Duration = Duration::from_secs(60);
const IDLE_CONNECTIONS: usize = 32;
/// Most bytes of an error of the store.
const MAX_ERROR_BYTES: usize = 64 << 10;

/// Address of the store and identity of its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceSettings {
    /// Host and port of the store.
    pub address: String,
    /// Folder with `tls.crt`, `tls.key` and `ca.crt`.
    pub tls_folder: PathBuf,
}

/// A client of the store. Clones share their connections.
#[derive(Clone)]
pub struct WorkspaceClient {
    address: Arc<str>,
    identity: ClientIdentity,
    http: Client<Connector, Full<Bytes>>,
}

impl WorkspaceClient {
    /// The certificates are read at the first request, so that a store that comes later is no failure of the start.
    pub fn new(settings: WorkspaceSettings) -> Self {
        let WorkspaceSettings { address, tls_folder } = settings;
        let identity = ClientIdentity::new(tls_folder);
        let http = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE_LIMIT)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .pool_timer(TokioTimer::new())
            .build(Connector::new(&address, STORE_NAME, identity.clone()));
        Self { address: address.into(), identity, http }
    }

    /// Returns the content of a file that has at most `most` bytes.
    pub async fn read(&self, id: &WorkspaceId, path: &str, most: u64) -> Result<Bytes, WorkspaceError> {
        let parameters = Parameters { most: Some(most), ..Parameters::new(id, path) };
        let limit = usize::try_from(most).unwrap_or(usize::MAX);
        self.exchange(Method::GET, FILES_PATH, &parameters, Bytes::new(), limit).await
    }

    /// Writes a file and its folders, and returns the size of the file.
    pub async fn write(
        &self,
        id: &WorkspaceId,
        path: &str,
        content: Bytes,
        mode: WriteMode,
    ) -> Result<u64, WorkspaceError> {
        let parameters = Parameters { mode: Some(mode), ..Parameters::new(id, path) };
        let body = self.exchange(Method::PUT, FILES_PATH, &parameters, content, MAX_ERROR_BYTES).await?;
        self.parse::<Written>(&body).map(|written| written.bytes)
    }

    /// Returns the files and folders below a folder, in the order of their paths; `""` is the whole workspace. Of a file it returns that file.
    pub async fn list(&self, id: &WorkspaceId, folder: &str) -> Result<Vec<Entry>, WorkspaceError> {
        let parameters = Parameters::new(id, folder);
        let body =
            self.exchange(Method::GET, ENTRIES_PATH, &parameters, Bytes::new(), MAX_LISTING_BYTES).await?;
        self.parse(&body)
    }

    /// Removes a file, or a folder with its content; `""` removes the whole workspace, and is no error if there is none.
    pub async fn remove(&self, id: &WorkspaceId, path: &str) -> Result<(), WorkspaceError> {
        let parameters = Parameters::new(id, path);
        self.exchange(Method::DELETE, FILES_PATH, &parameters, Bytes::new(), MAX_ERROR_BYTES).await.map(drop)
    }

    async fn exchange(
        &self,
        method: Method,
        path: &str,
        parameters: &Parameters,
        content: Bytes,
        most: usize,
    ) -> Result<Bytes, WorkspaceError> {
        self.identity.load().map_err(|error| self.failed("has no usable certificates", &error))?;
        let request = Request::builder()
            .method(method)
            .uri(format!("http://{STORE_NAME}{path}?{}", parameters.to_query()))
            .header(header::CONTENT_TYPE, "application/octet-stream")
            .body(Full::new(content))
            .map_err(|_| WorkspaceError::refused(&parameters.path, "the path is too long"))?;
        let answer = async {
            let response =
                self.http.request(request).await.map_err(|error| self.failed("cannot be reached", &error))?;
            if response.status() != StatusCode::OK {
                return Err(self.refused(response).await);
            }
            self.body(response, most).await
        };
        let late = |_| WorkspaceError::unavailable(format!("{} did not answer in time", self.address));
        timeout(REQUEST_LIMIT, answer).await.map_err(late)?
    }

    async fn refused(&self, response: Response<Incoming>) -> WorkspaceError {
        let status = response.status();
        match self.body(response, MAX_ERROR_BYTES).await {
            Ok(body) => serde_json::from_slice(&body).unwrap_or_else(|_| {
                WorkspaceError::unavailable(format!("{} answered {status}", self.address))
            }),
            Err(error) => error,
        }
    }

    async fn body(&self, response: Response<Incoming>, most: usize) -> Result<Bytes, WorkspaceError> {
        let read = Limited::new(response.into_body(), most).collect().await;
        read.map(http_body_util::Collected::to_bytes).map_err(|error| self.failed("broke off", &*error))
    }

    fn parse<T: DeserializeOwned>(&self, body: &[u8]) -> Result<T, WorkspaceError> {
        serde_json::from_slice(body).map_err(|error| self.failed("answered what is no answer", &error))
    }

    fn failed(&self, what: &str, error: &(dyn Error + 'static)) -> WorkspaceError {
        let mut cause = error;
        while let Some(inner) = cause.source() {
            cause = inner;
        }
        WorkspaceError::unavailable(format!("{} {what}: {cause}", self.address))
    }
}
