//! The store over the wire: operations and their errors, who may ask, and its memory under many clients.

use bytes::Bytes;
use futures::future::join_all;

use super::*;
use crate::{
    WorkspaceError, WriteMode,
    testing::{Authority, LIMITS, Served, id},
};

fn bytes(count: usize) -> Bytes {
    vec![b'x'; count].into()
}

#[tokio::test]
async fn every_operation_and_its_errors_pass_the_wire() {
    let served = Served::start(LIMITS).await;
    let (client, id) = (served.client(), id("a"));
    let path = "folder/a b&c=ä";
    assert_eq!(client.write(&id, path, bytes(3), WriteMode::Create).await, Ok(3));
    assert_eq!(client.write(&id, path, bytes(2), WriteMode::Append).await, Ok(5));
    assert_eq!(client.read(&id, path, 5).await, Ok(bytes(5)));
    let listed = client.list(&id, "").await.unwrap();
    let paths: Vec<_> =
        listed.iter().map(|entry| (entry.path.as_str(), entry.bytes, entry.is_folder)).collect();
    assert_eq!(paths, [("folder", 5, true), (path, 5, false)]);
    let text = || path.to_owned();
    let exists = client.write(&id, path, bytes(1), WriteMode::Create).await;
    assert_eq!(exists, Err(WorkspaceError::Exists { path: text() }));
    let large = client.read(&id, path, 4).await;
    assert_eq!(large, Err(WorkspaceError::TooLarge { path: text(), bytes: 5, most: 4 }));
    let folder = client.read(&id, "folder", 4).await;
    assert_eq!(folder, Err(WorkspaceError::NotAFile { path: "folder".into() }));
    let refused = client.read(&id, "../x", 4).await.unwrap_err();
    assert!(refused.to_string().contains("segment . or .."), "{refused}");
    assert_eq!(client.remove(&id, "folder").await, Ok(()));
    assert_eq!(client.read(&id, path, 5).await, Err(WorkspaceError::NotFound { path: text() }));
    assert_eq!(client.remove(&id, "").await, Ok(()));
    let metrics = served.metrics();
    for line in [
        "operations_total{operation=\"write\",outcome=\"Done\"} 2",
        "operations_total{operation=\"write\",outcome=\"Exists\"} 1",
        "operations_total{operation=\"read\",outcome=\"NotFound\"} 1",
        "transferred_bytes_total{direction=\"written\"} 5",
        "transferred_bytes_total{direction=\"read\"} 5",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
    served.stop().await;
}

#[tokio::test]
async fn a_write_over_the_limit_is_refused_with_the_limit_also_if_it_is_large() {
    let served = Served::start(LIMITS).await;
    let (client, id) = (served.client(), id("a"));
    let most = LIMITS.write_bytes;
    for length in [most + 1, 20 << 20] {
        let written =
            client.write(&id, "f", bytes(usize::try_from(length).unwrap()), WriteMode::Create).await;
        assert_eq!(written, Err(WorkspaceError::TooLarge { path: "f".into(), bytes: length, most }));
    }
    let length = usize::try_from(most).unwrap();
    assert_eq!(client.write(&id, "f", bytes(length), WriteMode::Create).await, Ok(most));
    served.stop().await;
}

#[tokio::test]
async fn a_client_of_another_authority_is_refused() {
    let served = Served::start(LIMITS).await;
    let error = served.client_of(&Authority::new("other")).list(&id("a"), "").await.unwrap_err();
    assert!(matches!(error, WorkspaceError::Unavailable { .. }), "{error}");
    assert!(!served.metrics().contains("operations_total{"));
    served.stop().await;
}

#[tokio::test]
async fn a_client_without_certificates_or_store_names_what_is_missing() {
    let served = Served::start(LIMITS).await;
    let client = |folder: &std::path::Path| {
        let (address, tls_folder) = (served.address.clone(), folder.to_owned());
        crate::WorkspaceClient::new(crate::WorkspaceSettings { address, tls_folder })
    };
    let error = client(std::path::Path::new("/none")).list(&id("a"), "").await.unwrap_err().to_string();
    assert!(error.contains("has no usable certificates"), "{error}");
    let folder = tempfile::TempDir::new().unwrap();
    let client = client(&served.authority.mount(folder.path(), "skillet-gateway"));
    client.list(&id("a"), "").await.unwrap();
    let address = served.address.clone();
    served.stop().await;
    let error = client.list(&id("a"), "").await.unwrap_err().to_string();
    let start = format!("the store of workspaces is not available: {address} cannot be reached");
    assert!(error.starts_with(&start), "{error}");
}

#[tokio::test]
async fn many_clients_share_a_memory_that_is_far_smaller_than_their_files() {
    // Sixteen writes of 64 KiB fit into the memory of this store at one time, and a read takes four of those.
    let served = Served::start(LIMITS).await;
    let client = served.client();
    let content = bytes(64 << 10);
    let owners: Vec<_> = (0..64).map(|number| id(&number.to_string())).collect();
    let writes = owners.iter().map(async |id| {
        for _ in 0..4 {
            client.write(id, "log", content.clone(), WriteMode::Append).await.unwrap();
        }
        client.read(id, "log", 1 << 20).await.unwrap().len()
    });
    assert!(join_all(writes).await.into_iter().all(|length| length == 256 << 10));
    served.stop().await;
}

#[tokio::test]
async fn a_request_that_the_store_does_not_know_is_refused() {
    let served = Served::start(LIMITS).await;
    served.client();
    let folder = served.folder.path().join("client");
    let identity = skillet_egress::ClientIdentity::new(folder);
    identity.load().unwrap();
    let connector = skillet_egress::Connector::new(&served.address, crate::STORE_NAME, identity);
    let http = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new())
        .build::<_, http_body_util::Empty<Bytes>>(connector);
    let id = id("a");
    for (method, uri, status) in [
        ("GET", "/v1/files?workspace=..&path=a".to_owned(), 400),
        ("GET", format!("/v1/files?workspace={id}"), 400),
        ("POST", format!("/v1/files?workspace={id}&path=a"), 404),
        ("GET", format!("/metrics?workspace={id}&path=a"), 404),
    ] {
        let request =
            http::Request::builder().method(method).uri(format!("http://{}{uri}", crate::STORE_NAME));
        let response = http.request(request.body(http_body_util::Empty::new()).unwrap()).await.unwrap();
        assert_eq!(response.status(), status, "{method} {uri}");
    }
    served.stop().await;
}

#[tokio::test]
async fn requests_in_flight_end_before_the_store_does() {
    let served = Served::start(LIMITS).await;
    let (client, id) = (served.client(), id("a"));
    client.write(&id, "f", bytes(10), WriteMode::Create).await.unwrap();
    let write = client.write(&id, "g", bytes(64 << 10), WriteMode::Create);
    let (written, ()) = tokio::join!(write, async {
        let metrics = "operations_total{operation=\"write\",outcome=\"Done\"} 1";
        assert!(served.metrics().contains(metrics));
    });
    assert_eq!(written, Ok(64 << 10));
    timeout(Duration::from_secs(5), served.stop()).await.expect("an idle connection does not hold the store");
}
