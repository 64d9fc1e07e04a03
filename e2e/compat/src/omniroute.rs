//! The set `omniroute`: observations of OmniRoute's skill functions.

// Every replay has the registry's signature, also where nothing keeps it from being run.
#![allow(clippy::unnecessary_wraps)]

mod arguments;
mod background;
mod builtin;
mod calls;
mod calls_anthropic_gemini;
mod execute;
mod image;
mod inject;
mod limits;
mod lists;
mod offer;
mod responses;
mod sandbox;
mod schema;
mod splice;
mod tool_loop;
mod tool_name;
mod version;
mod web_search;
mod workspace;

use crate::{case::Case, judge::Answer, registry::Replay};

pub(crate) const KINDS: &[(&str, Replay)] = &[
    ("background_reason", background::background_reason),
    ("bounded_result", tool_loop::bounded_result),
    ("command_args", arguments::replay_command_args),
    ("context_text", offer::context),
    ("context_tokens", offer::context_tokens),
    ("detect_provider", offer::detect_provider),
    ("execute", execute::execute),
    ("extract_tool_calls", extract_tool_calls),
    ("follow_up_body", follow_up_body),
    ("header_filter", builtin::header_filter),
    ("http_request", builtin::http_request),
    ("http_request_sizes", builtin::http_request_sizes),
    ("image_normalise", image::replay),
    ("inject", inject::inject),
    ("input_schema_normalise", schema::input_schema_normalise),
    ("list_search", lists::list_search),
    ("list_versions", version::list_versions),
    ("mcp_dynamic_tool_name", tool_name::mcp_dynamic_tool_name),
    ("name_tokens", offer::name_tokens),
    ("output_truncate", limits::output_truncate),
    ("pagination", lists::pagination),
    ("positive_int", arguments::replay_positive_int),
    ("resolve_builtin", web_search::resolve_builtin),
    ("resolve_version", version::resolve_version),
    ("sandbox_command", sandbox::sandbox_command),
    ("sandbox_config", arguments::replay_sandbox_config),
    ("score", offer::score),
    ("splice_results", splice_results),
    ("tool_name_decode", tool_name::tool_name_decode),
    ("tool_name_encode", tool_name::tool_name_encode),
    ("total_pages", lists::total_pages),
    ("url_guard", builtin::url_guard),
    ("web_search_fallback", web_search::web_search_fallback),
    ("workspace_id", workspace::workspace_id),
    ("workspace_path", workspace::workspace_path),
];

/// By the first dialect whose form the case has; else why none of them reads it.
fn first(case: &Case, dialects: &[Replay]) -> Result<Answer, String> {
    let mut refusal = String::new();
    for replay in dialects {
        match replay(case) {
            Ok(answer) => return Ok(answer),
            Err(why) => refusal = why,
        }
    }
    Err(refusal)
}

fn extract_tool_calls(case: &Case) -> Result<Answer, String> {
    let dialects: [Replay; 3] = [
        responses::extract_tool_calls,
        calls_anthropic_gemini::extract_tool_calls,
        calls::extract_tool_calls,
    ];
    first(case, &dialects)
}

fn splice_results(case: &Case) -> Result<Answer, String> {
    let dialects: [Replay; 3] =
        [responses::splice_results, calls_anthropic_gemini::splice_results, splice::splice_results];
    first(case, &dialects)
}

fn follow_up_body(case: &Case) -> Result<Answer, String> {
    first(case, &[calls_anthropic_gemini::follow_up_body, tool_loop::follow_up_body])
}
