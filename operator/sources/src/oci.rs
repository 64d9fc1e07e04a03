//! One manifest of an OCI artifact, as files in memory. Nothing of the artifact is run.

mod challenge;
pub(crate) mod docker_config;
mod layers;
mod manifest;
mod registry;

use std::{
    fs::File,
    io::{Read, Seek as _},
    path::Path,
    sync::atomic::AtomicBool,
};

use skillet_api::source::OciReference;
use skillet_core::version::{Constraint, SkillSemver};
use tokio::runtime::Handle;

use self::{
    layers::Overlay,
    manifest::{Descriptor, Layer, Manifest},
    registry::Registry,
};
use crate::{
    failure::{Failure, Place},
    fetch::{Files, Found, Wanted, directory},
    http_client::{HttpClient, TRANSFER_LIMIT},
};

pub(crate) use registry::Repository;

/// The tag of an artifact without a reference.
const LATEST: &str = "latest";

/// Fetches the layers of one manifest through files of `work`, and reads what they hold together. Blocks, and ends when the
/// client's time is over.
pub(crate) fn fetch(
    repository: &Repository,
    wanted: &Wanted<OciReference>,
    client: HttpClient,
    runtime: &Handle,
    work: &Path,
    interrupted: &AtomicBool,
) -> Result<Found, Failure> {
    let registry = Registry::new(repository, client);
    let (name, target) = target(&registry, wanted.reference.as_ref(), runtime)?;
    let revision = |digest: &str| match &name {
        Some(tag) => format!("{tag}@{digest}"),
        None => digest.to_owned(),
    };
    if let Some(known) = &wanted.known
        && runtime.block_on(registry.digest(&target))?.is_some_and(|digest| revision(&digest) == *known)
    {
        return Ok(Found::Unchanged);
    }
    let (digest, mut manifest) = runtime.block_on(registry.manifest(&target))?;
    let revision = revision(&digest);
    if wanted.known.as_ref() == Some(&revision) {
        return Ok(Found::Unchanged);
    }
    if let Manifest::Index(chosen) = &manifest {
        manifest = runtime.block_on(registry.manifest(&chosen.digest))?.1;
    }
    let Manifest::Layers { layers, is_image } = manifest else {
        return Err(Failure::Invalid("an index of the artifact names another index".to_owned()));
    };
    let size: u64 = layers.iter().map(|layer| layer.size).fold(0, u64::saturating_add);
    if size > TRANSFER_LIMIT {
        return Err(Failure::TooLarge(format!("the artifact has more than {} MiB", TRANSFER_LIMIT >> 20)));
    }
    let mut overlay = Overlay::new(directory(&wanted.path), &wanted.selection, interrupted);
    // From the last layer to the first, so that nothing is kept that a later one replaces or removes.
    for layer in layers.iter().rev() {
        add(layer, &registry, runtime, work, &mut overlay)?;
    }
    let image = is_image.then(|| repository.image(&digest));
    overlay.files(revision).map(|files| Found::Files(Files { image, ..files }))
}

fn add(
    layer: &Descriptor,
    registry: &Registry<'_>,
    runtime: &Handle,
    work: &Path,
    overlay: &mut Overlay<'_>,
) -> Result<(), Failure> {
    let content = layer.layer().map_err(Failure::Invalid)?;
    if content == Layer::Empty {
        return Ok(());
    }
    let no_file =
        |error: std::io::Error| Failure::Unavailable(format!("could not keep a layer on disk: {error}"));
    let mut file = tempfile::tempfile_in(work).map_err(no_file)?;
    runtime.block_on(registry.blob(layer, &mut file))?;
    file.rewind().map_err(no_file)?;
    match content {
        Layer::File(path) => overlay.add_file(&path, file),
        Layer::Archive => {
            let is_gzip = is_gzip(&mut file).map_err(no_file)?;
            overlay.add_archive(std::io::BufReader::new(file), is_gzip)
        }
        Layer::Empty => Ok(()),
    }
}

/// True if the file begins as gzip does. Media types do not always say it.
fn is_gzip(file: &mut File) -> std::io::Result<bool> {
    let mut start = [0; 2];
    let count = file.read(&mut start)?;
    file.rewind()?;
    Ok(count == 2 && start == [0x1f, 0x8b])
}

/// The tag of a revision, if it has one, and the tag or digest of the manifest.
fn target(
    registry: &Registry<'_>,
    reference: Option<&OciReference>,
    runtime: &Handle,
) -> Result<(Option<String>, String), Failure> {
    let tagged = |tag: String| (Some(tag.clone()), tag);
    match reference {
        Some(OciReference { digest: Some(digest), .. }) => Ok((None, digest.clone())),
        Some(OciReference { semver: Some(range), .. }) => {
            let constraint = Constraint::parse(range)
                .map_err(|error| Failure::BadReference(Place::Oci, format!("semver: {error}")))?;
            let tags = runtime.block_on(registry.tags())?;
            let missing =
                || Failure::RevisionNotFound(Place::Oci, format!("tag of a version that matches {range}"));
            highest(&constraint, &tags).map(|tag| tagged(tag.to_owned())).ok_or_else(missing)
        }
        Some(OciReference { tag: Some(tag), .. }) => Ok(tagged(tag.clone())),
        Some(_) | None => Ok(tagged(LATEST.to_owned())),
    }
}

/// The tag of the highest version that matches. Tags that are no versions do not count.
fn highest<'a>(constraint: &Constraint, tags: &'a [String]) -> Option<&'a str> {
    let versions = tags.iter().filter_map(|tag| {
        let version: SkillSemver = tag.strip_prefix('v').unwrap_or(tag).parse().ok()?;
        constraint.matches(&version).then_some((version, tag.as_str()))
    });
    versions.max().map(|(_, tag)| tag)
}

#[cfg(test)]
mod tests;
