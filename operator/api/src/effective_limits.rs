//! Limits of a run as a status shows them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration::SkillDuration;

/// Limits of which every one has a value. Those of an earlier version of the operator have no `concurrency`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EffectiveLimits {
    /// Time limit of a run.
    pub timeout: SkillDuration,
    /// CPU limit.
    pub cpu: String,
    /// Memory limit.
    pub memory: String,
    /// Most processes and threads.
    pub processes: u32,
    /// Most bytes kept of each output stream.
    pub output_bytes: u32,
    /// Most runs at one time: those of the skill in its namespace, or those of a whole namespace. A cluster whose places are
    /// all taken may run fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
}
