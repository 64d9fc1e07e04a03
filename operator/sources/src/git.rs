//! One commit of a git repository, as files in memory. Nothing of the repository is run: no hooks, no filters, no helpers.

mod files;
mod transport;

use std::{
    num::NonZeroU32,
    path::Path,
    sync::{Arc, Mutex, atomic::AtomicBool},
};

use gix::{
    ObjectId,
    protocol::handshake::Ref,
    remote::{Direction, fetch::Shallow, fetch::Tags, ref_map},
};
use gix_transport::{Protocol, client::blocking_io::http};
use skillet_api::source::GitReference;
use skillet_core::text::truncate;
use skillet_kube::{chain, lock};
use tokio::runtime::Handle;

use self::transport::Transport;
use crate::{
    failure::{Failure, Place},
    fetch::{Found, Wanted},
    http_client::HttpClient,
};

/// Largest object of a repository in memory, in bytes.
const OBJECT_LIMIT: usize = 32 << 20;

/// Longest text of an error, in bytes.
const MAX_CAUSES: usize = 500;

/// Fetches one commit into a directory of `work`, and reads its files. Blocks, and ends when the client's time is over.
pub(crate) fn fetch(
    wanted: &Wanted<GitReference>,
    client: HttpClient,
    runtime: Handle,
    work: &Path,
    interrupted: &AtomicBool,
) -> Result<Found, Failure> {
    let failure = Arc::new(Mutex::new(None));
    let transport = Transport::new(client, runtime, Arc::clone(&failure));
    let found = fetch_over(wanted, transport, work, interrupted);
    // gix tells a failure of the transport as text only, and may go on after one.
    found.map_err(|error| lock(&failure).take().unwrap_or(error))
}

fn fetch_over(
    wanted: &Wanted<GitReference>,
    transport: Transport,
    work: &Path,
    interrupted: &AtomicBool,
) -> Result<Found, Failure> {
    let directory = tempfile::tempdir_in(work).map_err(|error| {
        Failure::Unavailable(format!("could not make a directory for the files: {error}"))
    })?;
    // No configuration of the machine, and no program that one could name.
    let options = gix::open::Options::isolated()
        .config_overrides([format!("gitoxide.objects.allocLimit={OBJECT_LIMIT}")]);
    let repository = gix::ThreadSafeRepository::init_opts(
        directory.path(),
        gix::create::Kind::Bare,
        gix::create::Options::default(),
        options,
    );
    let repository = repository.map_err(|error| invalid(&error))?.to_thread_local();
    let url = gix::url::parse(wanted.url.as_str())
        .map_err(|error| Failure::BadUrl(Place::Git, error.to_string()))?;
    let remote = repository.remote_at(url.clone()).map_err(|error| invalid(&error))?;
    let remote = remote
        .with_fetch_tags(Tags::None)
        .with_refspecs([refspec(wanted.reference.as_ref()).as_str()], Direction::Fetch)
        .map_err(|error| {
            Failure::RevisionNotFound(Place::Git, format!("{} ({error})", name(wanted.reference.as_ref())))
        })?;
    let transport = http::Transport::new_http(transport, url, Protocol::V2, false);
    let connection = remote.to_connection_with_transport(transport).with_credentials(|_action| Ok(None));
    let progress = gix::progress::Discard;
    let prepared = connection
        .prepare_fetch(progress, ref_map::Options::default())
        .map_err(|error| missing_or_invalid(wanted.reference.as_ref(), &error))?;
    let (commit, branch) = newest(wanted.reference.as_ref(), &prepared.ref_map().remote_refs)?;
    let revision = match branch {
        Some(branch) => format!("{branch}@sha1:{commit}"),
        None => format!("sha1:{commit}"),
    };
    if wanted.known.as_ref() == Some(&revision) {
        return Ok(Found::Unchanged);
    }
    prepared
        .with_shallow(Shallow::DepthAtRemote(NonZeroU32::MIN))
        .receive(gix::progress::Discard, interrupted)
        .map_err(|error| missing_or_invalid(wanted.reference.as_ref(), &error))?;
    files::read(&repository, commit, revision, &wanted.path, &wanted.selection, interrupted).map(Found::Files)
}

/// The one reference to fetch. Its name in the copy has no meaning.
fn refspec(reference: Option<&GitReference>) -> String {
    let source = match reference {
        Some(GitReference { branch: Some(branch), .. }) => format!("refs/heads/{branch}"),
        Some(GitReference { tag: Some(tag), .. }) => format!("refs/tags/{tag}"),
        Some(GitReference { commit: Some(commit), .. }) => commit.clone(),
        Some(_) | None => "HEAD".to_owned(),
    };
    format!("+{source}:refs/skillet/wanted")
}

/// The reference in words.
fn name(reference: Option<&GitReference>) -> String {
    match reference {
        Some(GitReference { branch: Some(branch), .. }) => format!("branch {branch}"),
        Some(GitReference { tag: Some(tag), .. }) => format!("tag {tag}"),
        Some(GitReference { commit: Some(commit), .. }) => format!("commit {commit}"),
        Some(_) | None => "default branch".to_owned(),
    }
}

/// The wanted commit by what the server lists, and the name that a revision has before it.
fn newest(reference: Option<&GitReference>, listed: &[Ref]) -> Result<(ObjectId, Option<String>), Failure> {
    let not_found = || Failure::RevisionNotFound(Place::Git, name(reference));
    let full_name = match reference {
        Some(GitReference { branch: Some(branch), .. }) => format!("refs/heads/{branch}"),
        Some(GitReference { tag: Some(tag), .. }) => format!("refs/tags/{tag}"),
        Some(GitReference { commit: Some(commit), .. }) => {
            return Ok((ObjectId::from_hex(commit.as_bytes()).map_err(|_| not_found())?, None));
        }
        Some(_) | None => "HEAD".to_owned(),
    };
    let found = listed.iter().find_map(|listed| match listed {
        Ref::Direct { full_ref_name, object } => {
            (*full_ref_name == full_name.as_str()).then(|| (*object, full_ref_name.to_string()))
        }
        // An annotated tag is an object of its own, and names its commit.
        Ref::Peeled { full_ref_name, object, .. } => {
            (*full_ref_name == full_name.as_str()).then(|| (*object, full_ref_name.to_string()))
        }
        Ref::Symbolic { full_ref_name, target, object, .. } => {
            (*full_ref_name == full_name.as_str()).then(|| (*object, target.to_string()))
        }
        Ref::Unborn { .. } => None,
    });
    let (commit, full_name) = found.ok_or_else(not_found)?;
    let short = full_name.trim_start_matches("refs/heads/").trim_start_matches("refs/tags/");
    Ok((commit, Some(short.to_owned())))
}

fn missing_or_invalid(reference: Option<&GitReference>, error: &dyn std::error::Error) -> Failure {
    let text = causes(error);
    // The words of git's own server, and of gix for a reference that the server does not list.
    let is_missing = ["not our ref", "didn't match", "did not match", "No refspec", "unadvertised object"]
        .iter()
        .any(|words| text.contains(words));
    if is_missing { Failure::RevisionNotFound(Place::Git, name(reference)) } else { Failure::Invalid(text) }
}

fn invalid(error: &dyn std::error::Error) -> Failure {
    Failure::Invalid(causes(error))
}

/// All causes of an error as one line.
fn causes(error: &dyn std::error::Error) -> String {
    let line = chain(error).split_whitespace().collect::<Vec<_>>().join(" ");
    truncate(&line, MAX_CAUSES).0.to_owned()
}

#[cfg(test)]
mod tests;
