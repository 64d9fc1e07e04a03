//! TLS, conditional writes and failures of the bucket's service. The rules of workspaces are tested in the store.

use std::time::Instant;

use super::*;
use crate::testing::{Authority, S3Server, id};

fn path(path: &str) -> StorePath {
    StorePath::parse(path).unwrap()
}

async fn write(
    bucket: &Bucket,
    name: &str,
    content: &'static str,
    mode: WriteMode,
) -> Result<u64, WorkspaceError> {
    bucket.write(&id("a"), &path(name), Bytes::from_static(content.as_bytes()), mode, 1000).await
}

#[tokio::test]
async fn keys_are_below_the_prefix() {
    let server = S3Server::start().await;
    let bucket = server.bucket();
    write(&bucket, "folder/file", "content", WriteMode::Create).await.unwrap();
    bucket.mark_used(&id("a")).await.unwrap();
    let root = server.folder.path().join("root/files/team/skillet");
    let file = root.join("files").join(id("a").as_str()).join("folder/file");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "content");
    assert!(root.join("used").join(id("a").as_str()).exists());
    let marks = bucket.workspaces().await.unwrap();
    assert_eq!(marks.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>(), [id("a")]);
}

#[tokio::test]
async fn the_service_itself_refuses_a_second_creation_and_a_stale_append() {
    let server = S3Server::start().await;
    // Two processes that know nothing of each other.
    let (one, two) = (server.bucket(), server.bucket());
    write(&one, "f", "one", WriteMode::Create).await.unwrap();
    let second = write(&two, "f", "two", WriteMode::Create).await;
    assert_eq!(second, Err(WorkspaceError::Exists { path: "f".into() }));
    let key = one.key(&id("a"), &path("f")).unwrap();
    let version = one.objects.head(&key).await.unwrap();
    write(&two, "f", "changed", WriteMode::Overwrite).await.unwrap();
    let stale = PutMode::Update(UpdateVersion { e_tag: version.e_tag, version: version.version });
    let put = one.put(&key, Bytes::from_static(b"one, more").into(), stale).await;
    assert!(matches!(put, Err(ObjectError::Precondition { .. })), "{put:?}");
    assert_eq!(one.read(&id("a"), &path("f"), 100).await.unwrap(), "changed");
}

#[tokio::test]
async fn a_bucket_is_reached_by_tls_with_a_bundle_and_not_without() {
    let authority = Authority::new("authority of the bucket");
    let server = S3Server::start_tls(&authority).await;
    assert_eq!(write(&server.bucket(), "f", "x", WriteMode::Create).await, Ok(1));
    let public = S3Server::bucket_of(BucketSettings { ca_bundle: None, ..server.settings() });
    let error = write(&public, "g", "x", WriteMode::Create).await.unwrap_err().to_string();
    assert!(error.contains("could not write g in the bucket"), "{error}");
}

#[tokio::test]
async fn a_service_that_is_gone_is_an_error_that_names_no_bucket() {
    let server = S3Server::start().await;
    let settings = server.settings();
    drop(server);
    let started = Instant::now();
    let bucket = S3Server::bucket_of(settings);
    let error = bucket.read(&id("a"), &path("f"), 100).await.unwrap_err().to_string();
    assert_eq!(error, "the store of workspaces is not available: could not read f in the bucket");
    assert!(started.elapsed() < OPERATION_LIMIT);
}

#[tokio::test]
async fn wrong_credentials_are_an_error_and_no_absence() {
    let server = S3Server::start().await;
    let keys = AmazonS3Builder::new().with_access_key_id("AKIAOTHER").with_secret_access_key("wrong");
    let bucket = Bucket::from_builder(keys, server.settings()).unwrap();
    let error = bucket.read(&id("a"), &path("f"), 100).await.unwrap_err();
    assert!(matches!(error, WorkspaceError::Unavailable { .. }), "{error}");
    let error = write(&bucket, "f", "x", WriteMode::Create).await.unwrap_err();
    assert!(matches!(error, WorkspaceError::Unavailable { .. }), "{error}");
}

#[tokio::test]
async fn more_files_than_a_listing_has_are_refused_and_counted() {
    let server = S3Server::start().await;
    let bucket = server.bucket();
    for name in ["1", "2", "3"] {
        write(&bucket, name, "12", WriteMode::Create).await.unwrap();
    }
    assert_eq!(bucket.files(&id("a"), None, 3).await.unwrap().len(), 3);
    let error = bucket.files(&id("a"), None, 2).await.unwrap_err();
    assert_eq!(error, WorkspaceError::TooMany { path: String::new(), most: 2 });
    assert_eq!(bucket.usage(&id("a")).await.unwrap(), Usage { bytes: 6, files: 3 });
}

#[test]
fn an_address_needs_the_bucket_in_the_path() {
    let settings = BucketSettings {
        bucket: "files".into(),
        prefix: "a".into(),
        endpoint: Some("http://10.0.0.1:9000".into()),
        region: None,
        is_path_style: false,
        ca_bundle: None,
    };
    let error = Bucket::open(settings).err().unwrap().to_string();
    assert!(
        error.contains("http://10.0.0.1:9000") && error.contains("name the bucket in the path"),
        "{error}"
    );
}

#[test]
fn a_prefix_that_starts_no_key_is_refused() {
    let settings = BucketSettings {
        bucket: "files".into(),
        prefix: "a/../b".into(),
        endpoint: None,
        region: None,
        is_path_style: false,
        ca_bundle: None,
    };
    let error = Bucket::open(settings).err().unwrap().to_string();
    assert!(error.contains("\"a/../b\""), "{error}");
}
