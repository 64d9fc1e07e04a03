//! Requests to the store and their responses.

use std::{sync::Arc, time::Duration};

use bytes::{Bytes, BytesMut};
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use serde::Serialize;
use tokio::time::timeout;

use crate::{
    WorkspaceError, WriteMode,
    memory::Reservation,
    store::Store,
    wire::{ENTRIES_PATH, FILES_PATH, Parameters, Written},
};

/// Time for the body of a write.
const BODY_LIMIT: Duration = Duration::from_secs(20);
/// Most bytes of a body that is refused and read all the same, so that its client sees why.
const MAX_DISCARDED: u64 = 64 << 20;

pub(super) async fn respond(request: Request<Incoming>, store: Arc<Store>) -> Response<Full<Bytes>> {
    let parameters = Parameters::from_query(request.uri().query().unwrap_or_default());
    let Some(parameters) = parameters else {
        return text(StatusCode::BAD_REQUEST, "the parameters are not those of this version");
    };
    let (operation, done) = match (request.method(), request.uri().path()) {
        (&Method::GET, FILES_PATH) => ("read", detached(read(store.clone(), parameters)).await),
        (&Method::PUT, FILES_PATH) => ("write", write(&store, parameters, request.into_body()).await),
        (&Method::DELETE, FILES_PATH) => ("remove", detached(remove(store.clone(), parameters)).await),
        (&Method::GET, ENTRIES_PATH) => ("list", detached(list(store.clone(), parameters)).await),
        _ => return text(StatusCode::NOT_FOUND, "the store has no such path"),
    };
    store.metrics.operation(operation, &done);
    match done {
        Ok(body) => Response::new(Full::new(body)),
        Err(error) => {
            let mut response = Response::new(Full::new(json(&error)));
            *response.status_mut() = status(&error);
            response
                .headers_mut()
                .insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
            response
        }
    }
}

/// Completes an operation also if its client does not wait for it.
async fn detached<T: Send + 'static>(
    work: impl Future<Output = Result<T, WorkspaceError>> + Send + 'static,
) -> Result<T, WorkspaceError> {
    match tokio::spawn(work).await {
        Ok(result) => result,
        Err(error) => Err(WorkspaceError::unavailable(error.to_string())),
    }
}

async fn read(store: Arc<Store>, parameters: Parameters) -> Result<Bytes, WorkspaceError> {
    let Parameters { workspace, path, most, .. } = parameters;
    let content = store.read(&workspace, &path, most.unwrap_or(u64::MAX)).await?;
    store.metrics.read(content.len() as u64);
    Ok(content)
}

async fn write(store: &Arc<Store>, parameters: Parameters, body: Incoming) -> Result<Bytes, WorkspaceError> {
    let Parameters { workspace, path, mode, .. } = parameters;
    let (content, reservation) = content(store, &path, body).await?;
    let store = Arc::clone(store);
    detached(async move {
        let bytes = content.len() as u64;
        let content = reservation.hold(content);
        let size = store.write(&workspace, &path, content, mode.unwrap_or(WriteMode::Create)).await?;
        store.metrics.written(bytes);
        Ok(json(&Written { bytes: size }))
    })
    .await
}

/// Reads the body of a write, after its memory is reserved.
async fn content(
    store: &Store,
    path: &str,
    mut body: Incoming,
) -> Result<(Bytes, Reservation), WorkspaceError> {
    let most = store.limits().write_bytes;
    let read = async {
        let length = body.size_hint().exact();
        let Some(length) = length.filter(|length| *length <= most) else {
            discard(&mut body).await;
            let bytes = length.unwrap_or(u64::MAX);
            return Err(WorkspaceError::TooLarge { path: path.to_owned(), bytes, most });
        };
        let reservation = match store.memory.reserve(length).await {
            Ok(reservation) => reservation,
            Err(error) => {
                discard(&mut body).await;
                return Err(error);
            }
        };
        // The body has the length that its head says, or breaks off.
        let mut content = BytesMut::with_capacity(usize::try_from(length).unwrap_or_default());
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| WorkspaceError::unavailable(error.to_string()))?;
            content.extend_from_slice(frame.data_ref().map_or(&[][..], |data| data));
        }
        Ok((content.freeze(), reservation))
    };
    let late = |_| WorkspaceError::unavailable("the content did not arrive in time");
    timeout(BODY_LIMIT, read).await.map_err(late)?
}

async fn discard(body: &mut Incoming) {
    let mut discarded = 0;
    while let Some(Ok(frame)) = body.frame().await {
        discarded += frame.data_ref().map_or(0, |data| data.len() as u64);
        if discarded > MAX_DISCARDED {
            break;
        }
    }
}

async fn remove(store: Arc<Store>, parameters: Parameters) -> Result<Bytes, WorkspaceError> {
    store.remove(&parameters.workspace, &parameters.path).await.map(|()| Bytes::new())
}

async fn list(store: Arc<Store>, parameters: Parameters) -> Result<Bytes, WorkspaceError> {
    let reservation = store.memory.reserve(store.listing_bytes(&parameters.workspace).await?).await?;
    let entries = store.list(&parameters.workspace, &parameters.path).await?;
    Ok(reservation.hold(json(&entries)))
}

fn status(error: &WorkspaceError) -> StatusCode {
    match error {
        WorkspaceError::NotFound { .. } => StatusCode::NOT_FOUND,
        WorkspaceError::Exists { .. } | WorkspaceError::NotAFile { .. } => StatusCode::CONFLICT,
        WorkspaceError::TooLarge { .. } | WorkspaceError::TooMany { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        WorkspaceError::QuotaExceeded { .. } => StatusCode::INSUFFICIENT_STORAGE,
        WorkspaceError::PathRefused { .. } => StatusCode::BAD_REQUEST,
        WorkspaceError::Unavailable { .. } => StatusCode::SERVICE_UNAVAILABLE,
    }
}

fn json(body: &impl Serialize) -> Bytes {
    serde_json::to_vec(body).expect("texts, numbers and lists are always JSON").into()
}

fn text(status: StatusCode, message: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(message));
    *response.status_mut() = status;
    response
}
