//! The set `omniroute`: observations of OmniRoute's skill functions.

// Every replay has the registry's signature, also where nothing keeps it from being run.
#![allow(clippy::unnecessary_wraps)]

mod calls_anthropic_gemini;
mod execute;
mod image;
mod limits;
mod responses;
mod version;

use crate::{case::Case, judge::Answer, registry::Replay};

pub(crate) const KINDS: &[(&str, Replay)] = &[
    ("command_args", limits::command_args),
    ("execute", execute::execute),
    ("extract_tool_calls", extract_tool_calls),
    ("follow_up_body", calls_anthropic_gemini::follow_up_body),
    ("image_normalise", image::image_normalise),
    ("list_versions", version::list_versions),
    ("output_truncate", limits::output_truncate),
    ("positive_int", limits::positive_int),
    ("resolve_version", version::resolve_version),
    ("splice_results", splice_results),
];

/// By the first dialect whose form the case has.
fn extract_tool_calls(case: &Case) -> Result<Answer, String> {
    responses::extract_tool_calls(case).or_else(|_| calls_anthropic_gemini::extract_tool_calls(case))
}

fn splice_results(case: &Case) -> Result<Answer, String> {
    responses::splice_results(case).or_else(|_| calls_anthropic_gemini::splice_results(case))
}
