//! Paths that calls of the client's own tools name.
//!
//! The gateway does not know the folder in which a client works. A path from the root therefore counts as each of its ends.

use std::collections::BTreeSet;

use serde_json::Value;
use skillet_instructions::triggers::Triggers;
use skillet_llm::history::{HistoryCall, ResultLocation};

use super::listing::InstructionsRequest;

/// Arguments of file tools that are paths, or lists of them.
const FIELDS: [&str; 13] = [
    "path",
    "file_path",
    "filePath",
    "filepath",
    "file",
    "filename",
    "absolute_path",
    "relative_path",
    "target_file",
    "notebook_path",
    "paths",
    "file_paths",
    "files",
];
/// Most different paths of one request that are compared.
const MAX_PATHS: usize = 1000;

/// A path that a call names, and the place of the call's result.
pub(super) struct NamedPath {
    pub(super) path: String,
    pub(super) location: ResultLocation,
}

/// Returns the paths in their order, each at the first call that names it.
pub(super) fn named_paths(request: &InstructionsRequest<'_>) -> Vec<NamedPath> {
    let (mut seen, mut named) = (BTreeSet::new(), Vec::new());
    let own = request.calls.iter().filter(|call| request.client_tools.contains(&call.name));
    for call in own {
        for path in paths_of(call) {
            if named.len() < MAX_PATHS && seen.insert(path.clone()) {
                named.push(NamedPath { path, location: call.location });
            }
        }
    }
    named
}

/// Returns the first of the paths that one of a skill's globs matches, with the glob.
pub(super) fn find<'a>(named: &'a [NamedPath], triggers: &'a Triggers) -> Option<(&'a NamedPath, &'a str)> {
    if triggers.paths.is_empty() {
        return None;
    }
    let glob = |named: &'a NamedPath| ends(&named.path).find_map(|path| triggers.matches_path(path));
    named.iter().find_map(|named| Some((named, glob(named)?)))
}

fn paths_of(call: &HistoryCall<'_>) -> Vec<String> {
    let arguments = call.arguments().unwrap_or_default();
    let values = FIELDS.iter().filter_map(|field| arguments.get(field));
    let texts = values.flat_map(|value| match value {
        Value::Array(values) => values.iter().filter_map(Value::as_str).collect(),
        value => value.as_str().into_iter().collect::<Vec<&str>>(),
    });
    texts.filter_map(readable).collect()
}

/// Returns a path with slashes and without a leading `./`; `None` if it leads up, or is an address.
fn readable(text: &str) -> Option<String> {
    let path = text.trim().replace('\\', "/");
    let path = path.trim_start_matches("./");
    let is_plain = !path.is_empty() && !path.contains("://") && path.split('/').all(|name| name != "..");
    is_plain.then(|| path.to_owned())
}

/// Returns a relative path, or every end of one from the root, the longest first.
fn ends(path: &str) -> impl Iterator<Item = &str> {
    let is_from_root = path.starts_with('/') || path.as_bytes().get(1) == Some(&b':');
    let slashes = path.match_indices('/').map(|(at, _)| &path[at + 1..]);
    let relative = (!is_from_root).then_some(path);
    relative.into_iter().chain(slashes.take_while(move |_| is_from_root)).filter(|path| !path.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_from_the_root_counts_as_each_of_its_ends() {
        let of = |path: &str| -> Vec<String> {
            readable(path)
                .iter()
                .flat_map(|path| ends(path).map(ToOwned::to_owned).collect::<Vec<_>>())
                .collect()
        };
        assert_eq!(of("./src/a.rs"), ["src/a.rs"]);
        assert_eq!(of("/home/u/src/a.rs"), ["home/u/src/a.rs", "u/src/a.rs", "src/a.rs", "a.rs"]);
        assert_eq!(of(r"C:\src\a.rs"), ["src/a.rs", "a.rs"]);
        for outside in ["../a.rs", "a/../../b", "", " ", "https://x/a.rs"] {
            assert!(of(outside).is_empty(), "{outside}");
        }
    }
}
