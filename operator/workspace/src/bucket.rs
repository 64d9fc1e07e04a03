//! Workspaces in an S3 bucket.
//!
//! `<prefix>/files/<id>/` has the files of a workspace, and `<prefix>/used/<id>` is an empty object as old as its last use.
//! A bucket has no folders: a folder is there as long as a key below it is.

mod http_service;
mod settings;
#[cfg(test)]
mod tests;

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream::BoxStream};
use jiff::Timestamp;
use object_store::{
    Error as ObjectError, ObjectMeta, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutPayload,
    PutResult, RetryConfig, UpdateVersion,
    aws::{AmazonS3, AmazonS3Builder},
    path::Path,
};
use tokio::{sync::Semaphore, time::timeout};
use tracing::warn;

use self::http_service::Connector;
pub use self::settings::{BucketError, BucketSettings};
use crate::{
    WorkspaceError, WorkspaceId, WriteMode,
    backend::{Backend, StoredFile, Usage},
    path::StorePath,
};

/// Time for all requests of one operation.
const OPERATION_LIMIT: Duration = Duration::from_secs(25);
/// Attempts of a request that failed by no fault of its own.
const RETRIES: usize = 3;
/// Appends at one time: each holds the whole file in memory.
const APPENDS: usize = 2;
/// Objects that are removed at one time.
const REMOVALS: usize = 8;

/// Workspaces in a bucket.
pub struct Bucket {
    objects: AmazonS3,
    prefix: Path,
    appends: Semaphore,
}

impl Bucket {
    pub fn open(settings: BucketSettings) -> Result<Self, BucketError> {
        Self::from_builder(AmazonS3Builder::from_env(), settings)
    }

    pub(crate) fn from_builder(
        mut builder: AmazonS3Builder,
        settings: BucketSettings,
    ) -> Result<Self, BucketError> {
        let BucketSettings { bucket, prefix, endpoint, region, is_path_style, ca_bundle } = settings;
        if let Some(endpoint) = endpoint {
            let url = if is_path_style {
                Some(endpoint.clone())
            } else {
                settings::url_of_bucket(&endpoint, &bucket)
            };
            let url = url.ok_or(BucketError::Endpoint { bucket: bucket.clone(), endpoint })?;
            builder = builder.with_allow_http(url.starts_with("http://")).with_endpoint(url);
        }
        if let Some(region) = region {
            builder = builder.with_region(region);
        }
        let retry =
            RetryConfig { max_retries: RETRIES, retry_timeout: OPERATION_LIMIT, ..Default::default() };
        let connector = Connector::new(ca_bundle.as_deref()).map_err(BucketError::Tls)?;
        let objects = builder
            .with_bucket_name(bucket)
            .with_virtual_hosted_style_request(!is_path_style)
            .with_retry(retry)
            .with_http_connector(connector)
            .build()
            .map_err(BucketError::Client)?;
        let prefix =
            Path::parse(&prefix).map_err(|source| BucketError::Prefix { prefix: prefix.clone(), source })?;
        Ok(Self { objects, prefix, appends: Semaphore::new(APPENDS) })
    }

    fn files_key(&self, id: &WorkspaceId) -> Path {
        self.prefix.clone().join("files").join(id.as_str())
    }

    fn mark_key(&self, id: &WorkspaceId) -> Path {
        self.prefix.clone().join("used").join(id.as_str())
    }

    fn key(&self, id: &WorkspaceId, path: &StorePath) -> Result<Path, WorkspaceError> {
        let key = format!("{}/{path}", self.files_key(id));
        Path::parse(key).map_err(|error| WorkspaceError::refused(path.as_str(), error.to_string()))
    }

    async fn head(&self, key: &Path) -> Result<Option<ObjectMeta>, ObjectError> {
        match self.objects.head(key).await {
            Ok(object) => Ok(Some(object)),
            Err(ObjectError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn has_keys_below(&self, key: &Path) -> Result<bool, ObjectError> {
        self.objects.list(Some(key)).try_next().await.map(|object| object.is_some())
    }

    fn stored(&self, id: &WorkspaceId, object: &ObjectMeta) -> Option<StoredFile> {
        let folder = format!("{}/", self.files_key(id));
        let path = object.location.as_ref().strip_prefix(&folder)?.to_owned();
        Some(StoredFile { path, bytes: object.size, modified: modified(object) })
    }

    /// Refuses a path that is a folder, or that has a file for a folder.
    async fn check_place(&self, id: &WorkspaceId, path: &StorePath) -> Result<(), WorkspaceError> {
        let failed = |error| failed("write", path.as_str(), &error);
        for folder in path.folders().rev() {
            let key = self.key(id, &StorePath::parse(folder)?)?;
            if self.has_keys_below(&key).await.map_err(failed)? {
                // What is above it was checked when these keys were written.
                break;
            }
            if self.head(&key).await.map_err(failed)?.is_some() {
                let cause = format!("{folder} is a file and no folder");
                return Err(WorkspaceError::refused(path.as_str(), cause));
            }
        }
        if self.has_keys_below(&self.key(id, path)?).await.map_err(failed)? {
            return Err(WorkspaceError::NotAFile { path: path.to_string() });
        }
        Ok(())
    }

    async fn append(&self, key: &Path, path: &StorePath, content: Bytes, most: u64) -> Appended {
        let before = match self.objects.get(key).await {
            Ok(before) => before,
            Err(ObjectError::NotFound { .. }) => {
                let bytes = content.len() as u64;
                return Ok((bytes, self.put(key, content.into(), PutMode::Create).await));
            }
            Err(error) => return Err(failed("read", path.as_str(), &error)),
        };
        let bytes = before.meta.size.saturating_add(content.len() as u64);
        if bytes > most {
            return Err(WorkspaceError::TooLarge { path: path.to_string(), bytes, most });
        }
        let version =
            UpdateVersion { e_tag: before.meta.e_tag.clone(), version: before.meta.version.clone() };
        let old = before.bytes().await.map_err(|error| failed("read", path.as_str(), &error))?;
        Ok((bytes, self.put(key, [old, content].into_iter().collect(), PutMode::Update(version)).await))
    }

    async fn put(&self, key: &Path, content: PutPayload, mode: PutMode) -> Result<PutResult, ObjectError> {
        self.objects.put_opts(key, content, PutOptions::from(mode)).await
    }

    async fn remove_below(&self, key: &Path) -> Result<usize, ObjectError> {
        let removals = self.objects.list(Some(key)).map_ok(|object| async move {
            match self.objects.delete(&object.location).await {
                Ok(()) | Err(ObjectError::NotFound { .. }) => Ok(()),
                Err(error) => Err(error),
            }
        });
        removals.try_buffer_unordered(REMOVALS).try_fold(0, async |count, ()| Ok(count + 1)).await
    }
}

/// Size of the file, and the end of the write.
type Appended = Result<(u64, Result<PutResult, ObjectError>), WorkspaceError>;

#[async_trait]
impl Backend for Bucket {
    async fn file(&self, id: &WorkspaceId, path: &StorePath) -> Result<Option<StoredFile>, WorkspaceError> {
        let key = self.key(id, path)?;
        let work = async {
            match self.head(&key).await {
                Ok(Some(object)) => Ok(self.stored(id, &object)),
                Ok(None) if self.has_keys_below(&key).await.unwrap_or(false) => {
                    Err(WorkspaceError::NotAFile { path: path.to_string() })
                }
                Ok(None) => Ok(None),
                Err(error) => Err(failed("read", path.as_str(), &error)),
            }
        };
        limited(work).await
    }

    async fn read(&self, id: &WorkspaceId, path: &StorePath, most: u64) -> Result<Bytes, WorkspaceError> {
        let key = self.key(id, path)?;
        let work = async {
            let object = self.objects.get(&key).await.map_err(|error| match error {
                ObjectError::NotFound { .. } => WorkspaceError::NotFound { path: path.to_string() },
                error => failed("read", path.as_str(), &error),
            })?;
            if object.meta.size > most {
                return Err(WorkspaceError::TooLarge {
                    path: path.to_string(),
                    bytes: object.meta.size,
                    most,
                });
            }
            object.bytes().await.map_err(|error| failed("read", path.as_str(), &error))
        };
        limited(work).await
    }

    async fn write(
        &self,
        id: &WorkspaceId,
        path: &StorePath,
        content: Bytes,
        mode: WriteMode,
        most: u64,
    ) -> Result<u64, WorkspaceError> {
        let key = self.key(id, path)?;
        let work = async {
            self.check_place(id, path).await?;
            let size = content.len() as u64;
            let (bytes, put) = match mode {
                WriteMode::Create => (size, self.put(&key, content.into(), PutMode::Create).await),
                WriteMode::Overwrite => (size, self.put(&key, content.into(), PutMode::Overwrite).await),
                WriteMode::Append => {
                    let _turn = self.appends.acquire().await;
                    self.append(&key, path, content, most).await?
                }
            };
            put.map(|_| bytes).map_err(|error| match error {
                ObjectError::AlreadyExists { .. } => WorkspaceError::Exists { path: path.to_string() },
                error => failed("write", path.as_str(), &error),
            })
        };
        limited(work).await
    }

    async fn files(
        &self,
        id: &WorkspaceId,
        folder: Option<&StorePath>,
        most: usize,
    ) -> Result<Vec<StoredFile>, WorkspaceError> {
        let key = folder.map_or_else(|| Ok(self.files_key(id)), |folder| self.key(id, folder))?;
        let path = folder.map_or("", StorePath::as_str);
        let work = async {
            let listed: Result<Vec<_>, _> =
                self.objects.list(Some(&key)).take(most.saturating_add(1)).try_collect().await;
            let mut listed = listed.map_err(|error| failed("list", path, &error))?;
            if listed.len() > most {
                return Err(WorkspaceError::TooMany { path: path.to_owned(), most: most as u64 });
            }
            if listed.is_empty() && folder.is_some() {
                listed.extend(self.head(&key).await.map_err(|error| failed("list", path, &error))?);
            }
            Ok(listed.iter().filter_map(|object| self.stored(id, object)).collect())
        };
        limited(work).await
    }

    async fn usage(&self, id: &WorkspaceId) -> Result<Usage, WorkspaceError> {
        let key = self.files_key(id);
        let work = self.objects.list(Some(&key)).try_fold(Usage::default(), async |usage, object| {
            Ok(Usage { bytes: usage.bytes.saturating_add(object.size), files: usage.files + 1 })
        });
        limited(async { work.await.map_err(|error| failed("list", "the workspace", &error)) }).await
    }

    async fn remove(&self, id: &WorkspaceId, path: Option<&StorePath>) -> Result<(), WorkspaceError> {
        let key = path.map_or_else(|| Ok(self.files_key(id)), |path| self.key(id, path))?;
        let shown = path.map_or("the workspace", StorePath::as_str);
        let work = async {
            let mut removed = self.remove_below(&key).await?;
            if path.is_some() && self.head(&key).await?.is_some() {
                self.objects.delete(&key).await?;
                removed += 1;
            }
            Ok(removed)
        };
        let work = async { work.await.map_err(|error: ObjectError| failed("remove", shown, &error)) };
        match (limited(work).await?, path) {
            (0, Some(path)) => Err(WorkspaceError::NotFound { path: path.to_string() }),
            _ => Ok(()),
        }
    }

    async fn mark_used(&self, id: &WorkspaceId) -> Result<(), WorkspaceError> {
        let key = self.mark_key(id);
        let put = self.put(&key, Bytes::new().into(), PutMode::Overwrite);
        limited(async { put.await.map(drop).map_err(|error| failed("mark the use of", id.as_str(), &error)) })
            .await
    }

    async fn forget(&self, id: &WorkspaceId) -> Result<(), WorkspaceError> {
        let key = self.mark_key(id);
        let work = async {
            match self.objects.delete(&key).await {
                Ok(()) | Err(ObjectError::NotFound { .. }) => Ok(()),
                Err(error) => Err(failed("remove the mark of", id.as_str(), &error)),
            }
        };
        limited(work).await
    }

    async fn workspaces(&self) -> Result<Vec<(WorkspaceId, Timestamp)>, WorkspaceError> {
        let key = self.prefix.clone().join("used");
        let (mut objects, mut marks) = (self.objects.list(Some(&key)), Vec::new());
        // The whole listing may take long; each page of it may not.
        let next = async |objects: &mut BoxStream<'static, _>| {
            let next = async {
                objects.try_next().await.map_err(|error| failed("list the marks of", "workspaces", &error))
            };
            limited(next).await
        };
        while let Some(object) = next(&mut objects).await? {
            if let Some(id) = object.location.filename().and_then(|name| name.parse().ok()) {
                marks.push((id, modified(&object)));
            }
        }
        Ok(marks)
    }
}

fn modified(object: &ObjectMeta) -> Timestamp {
    Timestamp::from_millisecond(object.last_modified.timestamp_millis()).unwrap_or_default()
}

async fn limited<T>(work: impl Future<Output = Result<T, WorkspaceError>>) -> Result<T, WorkspaceError> {
    let late = |_| WorkspaceError::unavailable("the bucket did not answer in time");
    timeout(OPERATION_LIMIT, work).await.map_err(late)?
}

// The error names endpoint and bucket, which are the administrator's and not the caller's.
fn failed(what: &str, path: &str, error: &ObjectError) -> WorkspaceError {
    warn!(%error, operation = what, "Bucket could not be used");
    WorkspaceError::unavailable(format!("could not {what} {path} in the bucket"))
}
