//! Requests to the gateway about the files of a workspace.

use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use super::Entry;
use crate::{
    error::CliError,
    gateway::{self, Gateway},
    gateway_error::GatewayError,
};

const LISTING: &str = "/api/workspace";
const FILE: &str = "/api/workspace/file";
const BYTES: &str = "application/octet-stream";

/// The workspace of a caller.
pub(super) struct Files {
    gateway: Gateway,
    namespace: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Listing {
    entries: Vec<Entry>,
}

impl Files {
    pub(super) fn new(gateway: Gateway, namespace: Option<String>) -> Self {
        Self { gateway, namespace }
    }

    /// Returns what is below a folder; `""` is the whole workspace.
    pub(super) async fn list(&self, folder: &str) -> Result<Vec<Entry>, CliError> {
        let body = self.send(Method::GET, LISTING, folder, Vec::new()).await?;
        Ok(gateway::read::<Listing>(&body)?.entries)
    }

    pub(super) async fn read(&self, path: &str) -> Result<Vec<u8>, CliError> {
        Ok(self.send(Method::GET, FILE, path, Vec::new()).await?)
    }

    pub(super) async fn write(&self, path: &str, content: Vec<u8>) -> Result<(), CliError> {
        self.send(Method::PUT, FILE, path, content).await?;
        Ok(())
    }

    pub(super) async fn remove(&self, path: &str) -> Result<(), CliError> {
        self.send(Method::DELETE, FILE, path, Vec::new()).await?;
        Ok(())
    }

    async fn send(
        &self,
        method: Method,
        route: &str,
        path: &str,
        body: Vec<u8>,
    ) -> Result<Vec<u8>, GatewayError> {
        let escaped = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let namespace =
            self.namespace.as_deref().map(|namespace| format!("&namespace={}", escaped(namespace)));
        let target = format!("{route}?path={}{}", escaped(path), namespace.unwrap_or_default());
        self.gateway.send(method, &target, BYTES, body).await
    }
}
