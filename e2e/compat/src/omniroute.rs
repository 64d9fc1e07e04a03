//! The set `omniroute`: observations of OmniRoute's skill functions.

// Every replay has the registry's signature, also where nothing keeps it from being run.
#![allow(clippy::unnecessary_wraps)]

mod execute;
mod image;
mod limits;
mod responses;
mod version;

use crate::registry::Replay;

pub(crate) const KINDS: &[(&str, Replay)] = &[
    ("command_args", limits::command_args),
    ("execute", execute::execute),
    ("extract_tool_calls", responses::extract_tool_calls),
    ("image_normalise", image::image_normalise),
    ("list_versions", version::list_versions),
    ("output_truncate", limits::output_truncate),
    ("positive_int", limits::positive_int),
    ("resolve_version", version::resolve_version),
    ("splice_results", responses::splice_results),
];
