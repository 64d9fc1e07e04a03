//! The set `openhands`: observations of the skills of OpenHands' software-agent-sdk.

// Every replay has the registry's signature, also where nothing keeps it from being run.
#![allow(clippy::unnecessary_wraps)]

mod conversation;
mod dynamic;
mod fields;
mod files;
mod invoke;
mod listing;
mod mcp;
mod merge;
mod project;
mod sources;
mod triggers;

use crate::registry::Replay;

pub(crate) use fields::error_category;

pub(crate) const KINDS: &[(&str, Replay)] = &[
    ("available_skills_listing", listing::available_skills_listing),
    ("context_build", merge::context_build),
    ("description_truncation", files::description_truncation),
    ("dynamic_render", dynamic::dynamic_render),
    ("dynamic_render_where", dynamic::dynamic_render_where),
    ("frontmatter_load", files::frontmatter_load),
    ("install_lifecycle", sources::install_lifecycle),
    ("installed_name_validate", sources::installed_name_validate),
    ("invoke_skill", invoke::invoke_skill),
    ("keyword_match", triggers::keyword_match),
    ("mcp_tools_validate", mcp::mcp_tools_validate),
    ("mcp_variable_expansion", mcp::mcp_variable_expansion),
    ("merge_by_name", merge::merge_by_name),
    ("message_activation", conversation::message_activation),
    ("path_activation", conversation::path_activation),
    ("path_glob", triggers::path_glob),
    ("path_rule_first_match", triggers::path_rule_first_match),
    ("project_skills", project::project_skills),
    ("skill_name_validate", sources::skill_name_validate),
    ("source_parse", sources::source_parse),
    ("system_prompt_partition", conversation::system_prompt_partition),
    ("task_activation", conversation::message_activation),
    ("task_skill_inputs", files::task_skill_inputs),
];
