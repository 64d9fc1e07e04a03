//! The caller's files: what the built-ins `file_read` and `file_write` of its own runs read and write.

use axum::{
    Json,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{
    StatusCode,
    header::{CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS},
};
use serde::{Deserialize, Serialize};
use skillet_api::Reason;
use skillet_workspace::{Entry, WorkspaceError, WriteMode};
use utoipa::ToSchema;

use crate::{
    auth::Caller,
    error::ApiError,
    memory::{BodyBudget, MemoryReservation},
    rest::{
        operation::{AuthErrors, ConflictErrors, FileErrors, FileParams, NotFoundErrors, WorkspaceParams},
        params::{AuthenticatedCaller, Params},
    },
    service::SkillService,
    workspace::{CallerWorkspace, FileError, MAX_FILE_BYTES},
};

/// A file is in memory once: its clones share it.
const FILE_BUDGET: BodyBudget = BodyBudget { max_bytes: MAX_FILE_BYTES, text_copies: 1, parsed_copies: 0 };
/// Memory of the largest listing of the store: its JSON, its entries, and their JSON.
const LISTING_BYTES: usize = 8 << 20;

/// The files and folders of a workspace.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WorkspaceListing {
    /// In the order of their paths.
    entries: Vec<WorkspaceEntry>,
}

/// A file or folder.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkspaceEntry {
    /// Path from the root of the workspace.
    path: String,
    /// Size of a file; of a folder the sum of its files.
    bytes: u64,
    /// Time of the last change.
    #[schema(value_type = String)]
    modified: jiff::Timestamp,
    /// True for a folder.
    is_folder: bool,
}

/// The file that was written.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WrittenFile {
    /// Path from the root of the workspace.
    path: String,
    /// Size of the file.
    bytes: u64,
}

/// Handling of a file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    /// The request fails with 409.
    Create,
    Overwrite,
    /// The content is added to the file.
    Append,
}

impl From<FileError> for ApiError {
    fn from(error: FileError) -> Self {
        let (status, reason) = match &error {
            FileError::NoStore | FileError::Store(WorkspaceError::Unavailable { .. }) => {
                (StatusCode::SERVICE_UNAVAILABLE, Reason::WorkspaceUnavailable)
            }
            FileError::Path(_)
            | FileError::Store(WorkspaceError::NotAFile { .. } | WorkspaceError::PathRefused { .. }) => {
                (StatusCode::UNPROCESSABLE_ENTITY, Reason::InputInvalid)
            }
            FileError::Store(WorkspaceError::NotFound { .. }) => {
                (StatusCode::NOT_FOUND, Reason::FileNotFound)
            }
            FileError::Store(WorkspaceError::Exists { .. }) => (StatusCode::CONFLICT, Reason::FileExists),
            FileError::Store(WorkspaceError::TooLarge { .. } | WorkspaceError::TooMany { .. }) => {
                (StatusCode::PAYLOAD_TOO_LARGE, Reason::FileTooLarge)
            }
            FileError::Store(WorkspaceError::QuotaExceeded { .. }) => {
                (StatusCode::INSUFFICIENT_STORAGE, Reason::WorkspaceFull)
            }
        };
        let is_path = reason == Reason::InputInvalid;
        let error = Self::new(status, reason.as_str(), error.to_string());
        if is_path { error.at("path") } else { error }
    }
}

/// List the files and folders of the caller's workspace.
#[utoipa::path(
    get, path = "/api/workspace", tag = "workspace", operation_id = "listWorkspace",
    params(
        ("path" = Option<String>, Query, description = "Only what is below this folder."),
        WorkspaceParams,
    ),
    responses((status = 200, body = WorkspaceListing), AuthErrors, NotFoundErrors, FileErrors)
)]
pub(crate) async fn list(
    AuthenticatedCaller(caller): AuthenticatedCaller,
    State(service): State<SkillService>,
    mut params: Params,
) -> Result<Response, ApiError> {
    let path = params.take("path")?.unwrap_or_default();
    let workspace = workspace(&service, &caller, params).await?;
    let mut memory = service.memory.reserve(&caller.namespace, LISTING_BYTES).await?;
    let entries = workspace.list(&path).await?.into_iter().map(WorkspaceEntry::from).collect();
    let body = serde_json::to_vec(&WorkspaceListing { entries })
        .map_err(|error| ApiError::unavailable(format!("the listing cannot be written: {error}")))?;
    memory.shrink_to(body.len());
    Ok(([(CONTENT_TYPE, "application/json")], held(body.into(), memory)).into_response())
}

/// Read a file of the caller's workspace.
#[utoipa::path(
    get, path = "/api/workspace/file", tag = "workspace", operation_id = "readFile",
    params(FileParams, WorkspaceParams),
    responses(
        (status = 200, description = "The bytes of the file.", content_type = "application/octet-stream", body = Vec<u8>),
        AuthErrors, NotFoundErrors, FileErrors
    )
)]
pub(crate) async fn read(
    AuthenticatedCaller(caller): AuthenticatedCaller,
    State(service): State<SkillService>,
    mut params: Params,
) -> Result<Response, ApiError> {
    let path = take_path(&mut params)?;
    let workspace = workspace(&service, &caller, params).await?;
    // The path may be that of a folder, whose listing comes then.
    let listing = service.memory.reserve(&caller.namespace, LISTING_BYTES).await?;
    let bytes = workspace.size(&path).await?;
    drop(listing);
    let most = MAX_FILE_BYTES as u64;
    if bytes > most {
        return Err(FileError::from(WorkspaceError::TooLarge { path, bytes, most }).into());
    }
    let memory =
        service.memory.reserve(&caller.namespace, usize::try_from(bytes).unwrap_or(usize::MAX)).await?;
    let content = workspace.read(&path, bytes).await?;
    // A model may have written the file: no browser may take it for a page.
    let headers = [(CONTENT_TYPE, "application/octet-stream"), (X_CONTENT_TYPE_OPTIONS, "nosniff")];
    Ok((headers, held(content, memory)).into_response())
}

/// Write a file of the caller's workspace.
#[utoipa::path(
    put, path = "/api/workspace/file", tag = "workspace", operation_id = "writeFile",
    params(
        FileParams,
        ("mode" = inline(Option<Mode>), Query, description = "Handling of a file that is there. Default overwrite."),
        WorkspaceParams,
    ),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 200, body = WrittenFile), AuthErrors, ConflictErrors, FileErrors)
)]
pub(crate) async fn write(
    AuthenticatedCaller(caller): AuthenticatedCaller,
    State(service): State<SkillService>,
    mut params: Params,
    request: Request,
) -> Result<Json<WrittenFile>, ApiError> {
    let path = take_path(&mut params)?;
    let mode = match params.take_word("mode")?.unwrap_or(Mode::Overwrite) {
        Mode::Create => WriteMode::Create,
        Mode::Overwrite => WriteMode::Overwrite,
        Mode::Append => WriteMode::Append,
    };
    let workspace = workspace(&service, &caller, params).await?;
    let (content, _memory) = service.memory.read(&caller.namespace, request.into_body(), FILE_BUDGET).await?;
    let (path, bytes) = workspace.write(&path, content, mode).await?;
    Ok(Json(WrittenFile { path: path.to_string(), bytes }))
}

/// Remove a file of the caller's workspace, or a folder with its content.
#[utoipa::path(
    delete, path = "/api/workspace/file", tag = "workspace", operation_id = "removeFile",
    params(FileParams, WorkspaceParams),
    responses((status = 204, description = "It is removed."), AuthErrors, NotFoundErrors, FileErrors)
)]
pub(crate) async fn remove(
    AuthenticatedCaller(caller): AuthenticatedCaller,
    State(service): State<SkillService>,
    mut params: Params,
) -> Result<StatusCode, ApiError> {
    let path = take_path(&mut params)?;
    workspace(&service, &caller, params).await?.remove(&path).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn take_path(params: &mut Params) -> Result<String, ApiError> {
    params.take("path")?.ok_or_else(|| ApiError::bad_request("give the path of the file").at("path"))
}

/// Takes the last parameters that are expected.
async fn workspace(
    service: &SkillService,
    caller: &Caller,
    mut params: Params,
) -> Result<CallerWorkspace, ApiError> {
    let skill = params.take("skill")?;
    let namespace = params.take_namespace()?;
    Ok(service.workspace(caller, namespace.as_deref(), skill.as_deref()).await?)
}

/// Bytes that give their memory back when the response has been sent.
fn held(bytes: Bytes, memory: MemoryReservation) -> Bytes {
    struct Held(Bytes, #[expect(dead_code, reason = "dropped with the bytes")] MemoryReservation);
    impl AsRef<[u8]> for Held {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    Bytes::from_owner(Held(bytes, memory))
}

impl From<Entry> for WorkspaceEntry {
    fn from(entry: Entry) -> Self {
        let Entry { path, bytes, modified, is_folder } = entry;
        Self { path, bytes, modified, is_folder }
    }
}

#[cfg(test)]
mod tests;
