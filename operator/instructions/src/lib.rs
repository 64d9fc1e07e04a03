//! Instructions of skills: text that a model reads, in the format of SKILL.md.
//!
//! This crate reads, checks and renders. It takes bytes and returns values: no paths, no clock, no cluster, no model provider.

pub mod archive;
pub mod block;
pub mod collect;
pub mod dependencies;
mod diagnostics;
pub mod discovery;
pub mod document;
pub mod dynamic;
pub mod frontmatter;
mod ignored;
pub mod inputs;
pub mod lint;
pub mod listing;
pub mod mcp;
pub mod names;
pub mod source;
pub mod third_party;
pub mod tool_rules;
pub mod tools;
pub mod tree;
pub mod triggers;
mod yaml;

pub use self::{
    diagnostics::{Code, Diagnostic, Severity},
    document::{FileKind, SkillDocument, read},
    ignored::without_ignored,
    yaml::Position,
};
