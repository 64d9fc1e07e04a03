//! The set `omniroute`: observations of OmniRoute's skill functions.

// Every replay has the registry's signature, also where nothing keeps it from being run.
#![allow(clippy::unnecessary_wraps)]

mod execute;
mod image;
mod inject;
mod limits;
mod lists;
mod offer;
mod version;

use crate::registry::Replay;

pub(crate) const KINDS: &[(&str, Replay)] = &[
    ("background_reason", offer::background),
    ("command_args", limits::command_args),
    ("context_text", offer::context),
    ("context_tokens", offer::context_tokens),
    ("detect_provider", offer::detect_provider),
    ("execute", execute::execute),
    ("image_normalise", image::image_normalise),
    ("inject", inject::inject),
    ("list_search", lists::list_search),
    ("list_versions", version::list_versions),
    ("name_tokens", offer::name_tokens),
    ("output_truncate", limits::output_truncate),
    ("pagination", lists::pagination),
    ("positive_int", limits::positive_int),
    ("resolve_version", version::resolve_version),
    ("score", offer::score),
    ("total_pages", lists::total_pages),
];
