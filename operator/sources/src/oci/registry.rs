//! A client of one repository of a registry: manifests, tags and blobs, each checked against its digest.

use std::{io::Write as _, sync::Mutex};

use reqwest::{
    Method, Response, StatusCode, Url,
    header::{ACCEPT, HeaderMap, HeaderValue, LINK},
};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use skillet_kube::lock;

use super::{
    challenge::{Challenge, challenge},
    manifest::{self, ACCEPTED, Descriptor, Manifest},
};
use crate::{
    failure::{Failure, Place},
    http_client::HttpClient,
};

const MANIFEST_LIMIT: usize = 4 << 20;
/// Longest answer of a server of tokens, and longest error of a registry, in bytes.
const ANSWER_LIMIT: usize = 256 << 10;
const TAGS_IN_PAGE: usize = 1000;
/// Most pages of tags.
const MAX_PAGES: usize = 20;

/// A repository of a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repository {
    /// Address of the registry.
    pub(crate) origin: Url,
    /// Host of the registry, with a port if the address names one.
    pub(crate) host: String,
    name: String,
}

impl Repository {
    /// Reads `oci://HOST/REPOSITORY`.
    pub(crate) fn parse(url: &str, is_insecure: bool) -> Result<Self, Failure> {
        let bad = |problem: &str| Failure::BadUrl(Place::Oci, problem.to_owned());
        let address = url.strip_prefix("oci://").and_then(|address| address.split_once('/'));
        let (host, name) = address.ok_or_else(|| bad("write oci://HOST/REPOSITORY"))?;
        let scheme = if is_insecure { "http" } else { "https" };
        let origin = Url::parse(&format!("{scheme}://{host}/")).map_err(|error| bad(&error.to_string()))?;
        if origin.path() != "/" || origin.query().is_some() || origin.fragment().is_some() {
            return Err(bad("the host has characters that no host has"));
        }
        Ok(Self { origin, host: host.to_owned(), name: name.to_owned() })
    }

    /// The reference of an image of this repository, as a pod names it.
    pub(super) fn image(&self, digest: &str) -> String {
        format!("{}/{}@{digest}", self.host, self.name)
    }

    fn url(&self, rest: &str) -> Result<Url, Failure> {
        let url = self.origin.join(&format!("/v2/{}/{rest}", self.name));
        url.map_err(|error| Failure::BadUrl(Place::Oci, error.to_string()))
    }
}

/// The client of one transfer.
pub(super) struct Registry<'a> {
    repository: &'a Repository,
    client: HttpClient,
    /// The header that the registry has asked for.
    authorization: Mutex<Option<HeaderValue>>,
}

impl<'a> Registry<'a> {
    pub(super) fn new(repository: &'a Repository, client: HttpClient) -> Self {
        Self { repository, client, authorization: Mutex::default() }
    }

    /// Returns the digest of the manifest with a tag or digest, if the registry says it without the manifest.
    pub(super) async fn digest(&self, target: &str) -> Result<Option<String>, Failure> {
        let response = self.request(Method::HEAD, self.manifest_url(target)?).await?;
        Ok(if response.status().is_success() { named_digest(&response) } else { None })
    }

    /// Returns the manifest with a tag or digest, and its digest.
    pub(super) async fn manifest(&self, target: &str) -> Result<(String, Manifest), Failure> {
        let mut response = self.request(Method::GET, self.manifest_url(target)?).await?;
        if response.status() == StatusCode::NOT_FOUND {
            let failure = self.client.failure(response.status());
            let is_repository = self.error_code(&mut response).await == "NAME_UNKNOWN";
            let kind = if manifest::is_digest(target) { "manifest" } else { "tag" };
            let missing = Failure::RevisionNotFound(Place::Oci, format!("{kind} {target}"));
            return Err(if is_repository { failure } else { missing });
        }
        let mut response = self.success(response)?;
        let named = named_digest(&response);
        let bytes = self.client.body(&mut response, MANIFEST_LIMIT, "the manifest").await?;
        let digest = manifest::digest(&bytes);
        let expected = if manifest::is_digest(target) { Some(target.to_owned()) } else { named };
        if let Some(expected) = expected.filter(|expected| *expected != digest) {
            return Err(Failure::Invalid(format!("the registry sent a manifest of {digest} as {expected}")));
        }
        Ok((digest, manifest::parse(&bytes).map_err(Failure::Invalid)?))
    }

    /// Returns all tags.
    pub(super) async fn tags(&self) -> Result<Vec<String>, Failure> {
        #[derive(Deserialize)]
        struct Page {
            // A repository without tags has null.
            tags: Option<Vec<String>>,
        }
        let mut next = Some(self.repository.url(&format!("tags/list?n={TAGS_IN_PAGE}"))?);
        let mut tags = Vec::new();
        for _ in 0..MAX_PAGES {
            let Some(url) = next.take() else { return Ok(tags) };
            let mut response = self.success(self.request(Method::GET, url).await?)?;
            next = self.next_page(&response);
            let body = self.client.body(&mut response, MANIFEST_LIMIT, "the list of tags").await?;
            let page: Page = serde_json::from_slice(&body)
                .map_err(|error| Failure::Invalid(format!("the list of tags cannot be read: {error}")))?;
            tags.extend(page.tags.unwrap_or_default());
        }
        let most = MAX_PAGES * TAGS_IN_PAGE;
        if next.is_none() {
            Ok(tags)
        } else {
            Err(Failure::TooLarge(format!("the repository has more than {most} tags")))
        }
    }

    /// Writes a blob into a file. Its bytes are those of its digest, or it is a failure.
    pub(super) async fn blob(&self, blob: &Descriptor, file: &mut std::fs::File) -> Result<(), Failure> {
        let url = self.repository.url(&format!("blobs/{}", blob.digest))?;
        let response = self.request(Method::GET, url).await?;
        if response.status() == StatusCode::NOT_FOUND {
            return Err(Failure::Invalid(format!("the registry has no layer {}", blob.digest)));
        }
        let mut response = self.success(response)?;
        let (mut digest, mut size) = (Sha256::new(), 0);
        while let Some(chunk) = self.client.chunk(&mut response).await? {
            size += chunk.len() as u64;
            if size > blob.size {
                break;
            }
            digest.update(&chunk);
            file.write_all(&chunk)
                .map_err(|error| Failure::Unavailable(format!("could not keep a layer on disk: {error}")))?;
        }
        let digest = format!("sha256:{:x}", digest.finalize());
        if size != blob.size || digest != blob.digest {
            return Err(Failure::Invalid(format!(
                "the registry sent other bytes than those of layer {}",
                blob.digest
            )));
        }
        Ok(())
    }

    fn manifest_url(&self, target: &str) -> Result<Url, Failure> {
        self.repository.url(&format!("manifests/{target}"))
    }

    /// The address of the next page of a list, on the same server.
    fn next_page(&self, response: &Response) -> Option<Url> {
        let link = response.headers().get(LINK)?.to_str().ok()?;
        let (target, parameters) = link.strip_prefix('<')?.split_once('>')?;
        if !parameters.replace('"', "").contains("rel=next") {
            return None;
        }
        self.repository.origin.join(target).ok().filter(|url| self.client.is_origin(url))
    }

    /// Sends a request, once more if the registry asks for credentials.
    async fn request(&self, method: Method, url: Url) -> Result<Response, Failure> {
        let known = lock(&self.authorization).clone();
        let response = self.exchange(method.clone(), url.clone(), known.as_ref()).await?;
        // What another host asks for after a redirect is not the registry's word.
        if response.status() != StatusCode::UNAUTHORIZED || !self.client.is_origin(response.url()) {
            return Ok(response);
        }
        let Some(new) = self.answer(challenge(response.headers())).await? else { return Ok(response) };
        if known.as_ref() == Some(&new) {
            return Ok(response);
        }
        let response = self.exchange(method, url, Some(&new)).await?;
        *lock(&self.authorization) = Some(new);
        Ok(response)
    }

    async fn exchange(
        &self,
        method: Method,
        url: Url,
        authorization: Option<&HeaderValue>,
    ) -> Result<Response, Failure> {
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(ACCEPTED))]);
        self.client.exchange(method, url, headers, authorization, Vec::new()).await
    }

    /// The header that answers a challenge; `None` without credentials that could.
    async fn answer(&self, challenge: Option<Challenge>) -> Result<Option<HeaderValue>, Failure> {
        let own = self.client.authorization();
        let is_token = own.is_some_and(|own| own.as_bytes().starts_with(b"Bearer "));
        match challenge {
            Some(Challenge::Bearer { realm, service, scope }) if !is_token => {
                self.token(&realm, service, scope).await.map(Some)
            }
            Some(_) => Ok(own.cloned()),
            None => Ok(None),
        }
    }

    /// Asks the registry's server of tokens for one.
    async fn token(
        &self,
        realm: &str,
        service: Option<String>,
        scope: Option<String>,
    ) -> Result<HeaderValue, Failure> {
        #[derive(Deserialize)]
        struct Answer {
            token: Option<String>,
            access_token: Option<String>,
        }
        let bad = |problem: String| Failure::Invalid(format!("the registry's server of tokens: {problem}"));
        let mut url = Url::parse(realm).map_err(|error| bad(error.to_string()))?;
        let own = self.client.authorization();
        if url.scheme() != self.repository.origin.scheme() {
            return Err(bad(format!("its scheme {} is not that of the registry", url.scheme())));
        }
        let scope = scope.unwrap_or_else(|| format!("repository:{}:pull", self.repository.name));
        for (name, value) in [("service", service), ("scope", Some(scope))] {
            if let Some(value) = value {
                url.query_pairs_mut().append_pair(name, &value);
            }
        }
        let response = self.client.exchange(Method::GET, url, HeaderMap::new(), own, Vec::new()).await?;
        let mut response = self.success(response)?;
        let body =
            self.client.body(&mut response, ANSWER_LIMIT, "the answer of the server of tokens").await?;
        let answer: Answer = serde_json::from_slice(&body).map_err(|error| bad(error.to_string()))?;
        let token = answer.token.or(answer.access_token).ok_or_else(|| bad("it gave no token".to_owned()))?;
        let header = HeaderValue::from_str(&format!("Bearer {token}"));
        let mut header =
            header.map_err(|_| bad("its token has characters that no header takes".to_owned()))?;
        header.set_sensitive(true);
        Ok(header)
    }

    fn success(&self, response: Response) -> Result<Response, Failure> {
        match response.status() {
            status if status.is_success() => Ok(response),
            status => Err(self.client.failure(status)),
        }
    }

    /// The registry's word for an error; empty if it has none.
    async fn error_code(&self, response: &mut Response) -> String {
        let body = self.client.body(response, ANSWER_LIMIT, "the error").await.unwrap_or_default();
        let error: Value = serde_json::from_slice(&body).unwrap_or_default();
        error["errors"][0]["code"].as_str().unwrap_or_default().to_owned()
    }
}

fn named_digest(response: &Response) -> Option<String> {
    let header = response.headers().get("docker-content-digest")?.to_str().ok()?;
    Some(header.to_owned())
}
