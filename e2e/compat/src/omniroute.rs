//! The set `omniroute`: observations of OmniRoute's skill functions.

// Every replay has the registry's signature, also where nothing keeps it from being run.
#![allow(clippy::unnecessary_wraps)]

mod calls;
mod execute;
mod image;
mod limits;
mod schema;
mod splice;
mod tool_loop;
mod tool_name;
mod version;

use crate::registry::Replay;

pub(crate) const KINDS: &[(&str, Replay)] = &[
    ("bounded_result", tool_loop::bounded_result),
    ("command_args", limits::command_args),
    ("execute", execute::execute),
    ("extract_tool_calls", calls::extract_tool_calls),
    ("follow_up_body", tool_loop::follow_up_body),
    ("image_normalise", image::image_normalise),
    ("input_schema_normalise", schema::input_schema_normalise),
    ("list_versions", version::list_versions),
    ("mcp_dynamic_tool_name", tool_name::mcp_dynamic_tool_name),
    ("output_truncate", limits::output_truncate),
    ("positive_int", limits::positive_int),
    ("resolve_version", version::resolve_version),
    ("splice_results", splice::splice_results),
    ("tool_name_decode", tool_name::tool_name_decode),
    ("tool_name_encode", tool_name::tool_name_encode),
];
