//! Instructions and the files beside them, as resources: `skill://NAME/PATH`, with the text itself as `SKILL.md`.

use std::{borrow::Cow, collections::BTreeMap};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use rmcp::{
    ErrorData,
    model::{
        CacheScope, ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult, Resource,
        ResourceContents, ResourceTemplate,
    },
};
use skillet_instructions::block::defuse;
use tracing::warn;

use super::tools::{self, PAGE};
use crate::{
    auth::AuthError,
    bundles::BundleReader,
    catalog::{CachedInstructions, CachedVersion},
    resolve::{Lookup, ResolvedSkill},
};

const SCHEME: &str = "skill://";
/// Path of the instructions themselves.
const BODY: &str = "SKILL.md";
/// The bytes of a path that a URI has as they are.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const MARKDOWN: &str = "text/markdown";

/// The skills whose files one caller may read, by name.
pub(super) struct ResourceList(BTreeMap<String, ResolvedSkill>);

/// A file of a skill.
pub(super) struct ResourceFile<'a> {
    skill: &'a ResolvedSkill,
    version: &'a CachedVersion,
    guide: &'a CachedInstructions,
    path: String,
}

impl ResourceList {
    pub(super) async fn of(lookup: Lookup<'_>) -> Result<Self, AuthError> {
        let namespaces = tools::namespaces(lookup).await?;
        let skills = tools::callable(lookup.catalog, &namespaces).into_iter();
        let readable = skills.filter(|skill| guide(skill).is_some());
        Ok(Self(readable.map(|skill| (skill.name().to_string(), skill)).collect()))
    }

    /// The page after `cursor`, by skill and path. The text of a skill comes before its files.
    pub(super) fn page(&self, cursor: Option<&str>) -> Result<ListResourcesResult, ErrorData> {
        let last = cursor.map(tools::read_cursor).transpose()?;
        let last = last.as_ref().map(|last| last.split_once('/').unwrap_or((last, "")));
        let rest = self.0.iter().flat_map(|(name, skill)| {
            paths(skill).into_iter().map(move |path| ((name.as_str(), path), skill))
        });
        let mut rest = rest.filter(|(place, _)| last.is_none_or(|last| *place > last)).peekable();
        let (mut page, mut end) = (Vec::new(), String::new());
        for ((name, path), skill) in rest.by_ref().take(PAGE) {
            page.extend(resource(skill, name, path));
            end = format!("{name}/{path}");
        }
        let mut result = ListResourcesResult::with_all_items(page);
        result.next_cursor = rest.peek().map(|_| tools::cursor(&end));
        result.ttl_ms = Some(0);
        result.cache_scope = Some(CacheScope::Private);
        Ok(result)
    }

    /// Returns the file of a URI.
    pub(super) fn find(&self, uri: &str) -> Result<ResourceFile<'_>, ErrorData> {
        self.file(uri).ok_or_else(|| ErrorData::resource_not_found(format!("Unknown resource: {uri}"), None))
    }

    fn file(&self, uri: &str) -> Option<ResourceFile<'_>> {
        let (name, path) = uri.strip_prefix(SCHEME)?.split_once('/')?;
        let path = percent_decode_str(path).decode_utf8().ok().map(Cow::into_owned)?;
        let skill = self.0.get(name)?;
        let (version, guide) = guide(skill)?;
        let is_there = path == BODY || guide.files.contains(&path);
        is_there.then_some(ResourceFile { skill, version, guide, path })
    }
}

impl ResourceFile<'_> {
    /// Reads the file of the version that is current now.
    pub(super) async fn read(&self, bundles: &BundleReader) -> Result<ReadResourceResult, ErrorData> {
        let Self { skill, version, guide, path } = self;
        let uri = uri(skill.name(), path);
        let bytes = if guide.files.contains(path) {
            let (namespace, name) = (&skill.namespace, skill.name());
            let file = bundles.file(namespace, name, &version.spec.version, path).await;
            file.map_err(|error| {
                warn!(%error, %namespace, skill = %name, "File of a skill could not be read");
                ErrorData::internal_error("the file could not be read now; read it again", None)
            })?
            .ok_or_else(|| ErrorData::resource_not_found(format!("{uri} is not there any more"), None))?
        } else {
            guide.body.as_bytes().to_vec()
        };
        let contents = match String::from_utf8(bytes) {
            // A model may get the text through the gateway, so it has no marks that only the gateway makes.
            Ok(text) => ResourceContents::text(defuse(&text), uri)
                .with_mime_type(mime_type(path).unwrap_or("text/plain")),
            Err(error) => ResourceContents::blob(STANDARD.encode(error.as_bytes()), uri)
                .with_mime_type("application/octet-stream"),
        };
        let result = ReadResourceResult::new(vec![contents]);
        Ok(result.with_ttl_ms(0).with_cache_scope(CacheScope::Private))
    }
}

/// The form of all URIs.
pub(super) fn templates() -> ListResourceTemplatesResult {
    let file = ResourceTemplate::new(format!("{SCHEME}{{name}}/{{+path}}"), "skill")
        .with_title("File of a skill")
        .with_description("A file of the skill NAME; its instructions are SKILL.md.");
    let mut result = ListResourceTemplatesResult::with_all_items(vec![file]);
    result.ttl_ms = Some(0);
    result.cache_scope = Some(CacheScope::Private);
    result
}

/// The instructions of a skill that a model may read before a user names it.
fn guide(skill: &ResolvedSkill) -> Option<(&CachedVersion, &CachedInstructions)> {
    let (version, guide) = skill.entry.guide()?;
    (!guide.is_hidden).then_some((version, guide))
}

/// Paths of a skill's files in the order of the list. The empty path is the text.
fn paths(skill: &ResolvedSkill) -> Vec<&str> {
    let files = guide(skill).into_iter().flat_map(|(_, guide)| guide.files.iter());
    let mut paths: Vec<&str> = files.map(String::as_str).filter(|path| *path != BODY).chain([""]).collect();
    paths.sort_unstable();
    paths
}

fn resource(skill: &ResolvedSkill, name: &str, path: &str) -> Option<Resource> {
    let (version, _) = guide(skill)?;
    let file = if path.is_empty() { BODY } else { path };
    let resource = Resource::new(uri(name, file), format!("{name}/{file}"));
    let resource = match mime_type(file) {
        Some(mime_type) => resource.with_mime_type(mime_type),
        None => resource,
    };
    let is_body = path.is_empty();
    Some(if is_body { resource.with_description(version.spec.description.to_string()) } else { resource })
}

fn uri(name: &str, path: &str) -> String {
    format!("{SCHEME}{name}/{}", utf8_percent_encode(path, PATH))
}

/// Returns the type of a text that clients show in a way of its own.
fn mime_type(path: &str) -> Option<&'static str> {
    match path.rsplit_once('.')?.1 {
        "md" => Some(MARKDOWN),
        "json" => Some("application/json"),
        "html" => Some("text/html"),
        "csv" => Some("text/csv"),
        _ => None,
    }
}
