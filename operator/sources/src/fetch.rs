//! The files of a source, from wherever they are: what is wanted, the transfer in its time, and what came of it.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use reqwest::Url;
use skillet_api::{
    SkillSource,
    source::{GitReference, OciReference},
};
use skillet_instructions::tree::{FileTree, TreeError};
use tokio::{runtime::Handle, time::Instant};

use crate::{
    allowed_hosts::AllowedHosts,
    context::Context,
    failure::{Failure, Place},
    gather, git,
    http_client::HttpClient,
    oci::{self, Repository},
    selection::Selection,
};

/// The files of one revision.
#[derive(Debug)]
pub(crate) struct Files {
    /// `BRANCH@sha1:COMMIT` or `sha1:COMMIT`; of an artifact, `TAG@sha256:DIGEST` or `sha256:DIGEST`.
    pub(crate) revision: String,
    pub(crate) tree: FileTree,
    /// The image that a kubelet can mount, if the files are of one.
    pub(crate) image: Option<String>,
    /// Files that no tree takes, by path, with the reason.
    pub(crate) refused: Vec<(String, String)>,
}

impl Files {
    /// Records what the tree said of a file: a bad path costs its file, too much costs the whole.
    pub(crate) fn keep(&mut self, path: &str, added: Result<(), TreeError>) -> Result<(), Failure> {
        match added {
            Err(error @ TreeError::BadPath(_)) => {
                self.refused.push((path.to_owned(), error.to_string()));
                Ok(())
            }
            other => Ok(other?),
        }
    }
}

/// The outcome of a fetch.
#[derive(Debug)]
pub(crate) enum Found {
    /// It still has the known revision.
    Unchanged,
    Files(Files),
}

/// The part of a repository or artifact that is read.
#[derive(Debug)]
pub(crate) struct Wanted<R> {
    pub(crate) url: String,
    pub(crate) reference: Option<R>,
    /// Directory to read; empty for the root.
    pub(crate) path: String,
    pub(crate) selection: Selection,
    /// The revision whose files are not wanted again.
    pub(crate) known: Option<String>,
}

/// A transfer that is ready to start.
enum Transfer {
    Git { wanted: Wanted<GitReference>, client: HttpClient },
    Oci { repository: Repository, wanted: Wanted<OciReference>, client: HttpClient },
}

impl Transfer {
    fn run(self, runtime: Handle, work: &Path, interrupted: &AtomicBool) -> Result<Found, Failure> {
        match self {
            Self::Git { wanted, client } => git::fetch(&wanted, client, runtime, work, interrupted),
            Self::Oci { repository, wanted, client } => {
                oci::fetch(&repository, &wanted, client, &runtime, work, interrupted)
            }
        }
    }
}

/// Fetches the files; `None` if the source still has the known revision.
pub(crate) async fn fetch(
    ctx: &Arc<Context>,
    source: &SkillSource,
    known: Option<String>,
    allowed: &AllowedHosts,
) -> Result<Option<Files>, gather::Error> {
    let deadline = Instant::now() + source.spec.timeout.0;
    let transfer = prepare(ctx, source, known, allowed, deadline).await?;
    let (work, runtime) = (ctx.settings.work.clone(), Handle::current());
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&interrupted);
    let mut transfer = tokio::task::spawn_blocking(move || transfer.run(runtime, &work, &flag));
    let ended = tokio::select! {
        ended = &mut transfer => ended,
        () = tokio::time::sleep_until(deadline) => {
            interrupted.store(true, Ordering::Relaxed);
            transfer.await
        }
    };
    let found = ended.map_err(|_| Failure::Invalid("the repository could not be read".to_owned()))?;
    match found {
        Ok(Found::Unchanged) => Ok(None),
        Ok(Found::Files(files)) => Ok(Some(files)),
        Err(_) if interrupted.load(Ordering::Relaxed) => Err(Failure::TimedOut.into()),
        Err(failure) => Err(failure.into()),
    }
}

async fn prepare(
    ctx: &Arc<Context>,
    source: &SkillSource,
    known: Option<String>,
    allowed: &AllowedHosts,
    deadline: Instant,
) -> Result<Transfer, gather::Error> {
    let spec = &source.spec;
    let selection = Selection::new(&spec.include, &spec.exclude);
    let path = spec.path.clone();
    let client = async |place: Place, origin: Url, host: &str| {
        allowed.check(place, &origin)?;
        let credentials = gather::credentials(&ctx.client, source, place, host).await?;
        Ok::<_, gather::Error>(HttpClient::new(place, origin, allowed.clone(), credentials, deadline)?)
    };
    match (&spec.git, &spec.oci) {
        (Some(git), _) => {
            let origin = Url::parse(&git.url);
            let origin = origin.map_err(|error| Failure::BadUrl(Place::Git, error.to_string()))?;
            let client = client(Place::Git, origin, "").await?;
            let wanted =
                Wanted { url: git.url.clone(), reference: git.reference.clone(), path, selection, known };
            Ok(Transfer::Git { wanted, client })
        }
        (None, Some(oci)) => {
            let repository = Repository::parse(&oci.url, oci.insecure)?;
            let client = client(Place::Oci, repository.origin.clone(), &repository.host).await?;
            let wanted =
                Wanted { url: oci.url.clone(), reference: oci.reference.clone(), path, selection, known };
            Ok(Transfer::Oci { repository, wanted, client })
        }
        // A rule of the definition refuses it.
        (None, None) => {
            Err(Failure::BadUrl(Place::Git, "is missing; write it, or spec.oci".to_owned()).into())
        }
    }
}

/// The directory that `spec.path` names, without slashes around it; empty for the root.
pub(crate) fn directory(path: &str) -> &str {
    let path = path.trim_matches('/').trim_start_matches("./");
    if path == "." { "" } else { path }
}
