//! The definition of a skill in the place of a provider's search: it has the number of results and the domains that the client
//! asked the provider for.

use std::{fmt::Write as _, sync::Arc};

use serde_json::{Value, json};

use super::{NativeTool, NativeUse};
use crate::{ToolDefinition, wire::items};

/// Number of results by the size of context that a client asks for.
const RESULTS: [(&str, u64); 3] = [("low", 5), ("medium", 8), ("high", 10)];
const DEFAULT_RESULTS: u64 = 8;
/// Input of a search with its number of results.
const MAX_RESULTS: &str = "max_results";
/// Most domains that a description names.
const MAX_DOMAINS: usize = 32;

/// Returns a skill's definition with the settings of the tool that it replaces.
pub fn stand_in(of: &NativeUse, skill: ToolDefinition) -> ToolDefinition {
    let mut parameters = skill.parameters.clone();
    let mut description = skill.description.to_string();
    if of.tool == NativeTool::WebSearch {
        let limit = results(&of.settings);
        if let Some(limit) = set_default(&mut parameters, limit) {
            let _ = write!(description, " If {MAX_RESULTS} is omitted, prefer about {limit} results.");
        }
    }
    for (name, words) in [
        ("allowed_domains", "Use results of these domains alone"),
        ("blocked_domains", "Use no results of these domains"),
    ] {
        let domains = domains(&of.settings, name);
        if !domains.is_empty() {
            let _ = write!(description, " {words}: {}.", domains.join(", "));
        }
    }
    ToolDefinition { parameters, description: description.into(), ..skill }
}

/// Returns true if the tool may use only some domains.
pub fn limits_domains(of: &NativeUse) -> bool {
    ["allowed_domains", "blocked_domains"].iter().any(|name| !domains(&of.settings, name).is_empty())
}

fn results(settings: &Value) -> u64 {
    let size = settings["search_context_size"].as_str().unwrap_or_default().trim().to_lowercase();
    RESULTS.iter().find(|(name, _)| *name == size).map_or(DEFAULT_RESULTS, |(_, results)| *results)
}

/// Writes the default number into a schema that has such an input, within its bounds. Returns the number.
fn set_default(parameters: &mut Arc<Value>, wanted: u64) -> Option<u64> {
    let property = parameters.pointer(&format!("/properties/{MAX_RESULTS}"))?.as_object()?;
    let bound = |name: &str| property.get(name).and_then(Value::as_u64);
    let limit = wanted.max(bound("minimum").unwrap_or(0)).min(bound("maximum").unwrap_or(u64::MAX));
    let property = Arc::make_mut(parameters).pointer_mut(&format!("/properties/{MAX_RESULTS}"))?;
    property["default"] = json!(limit);
    Some(limit)
}

/// Returns the domains of a setting, which OpenAI nests in `filters`.
fn domains<'a>(settings: &'a Value, name: &str) -> Vec<&'a str> {
    let lists = [&settings[name], &settings["filters"][name]].into_iter().flat_map(items);
    lists.filter_map(Value::as_str).take(MAX_DOMAINS).collect()
}
