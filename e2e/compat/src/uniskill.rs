//! The set `uniskill`: observations of the UniSkill gateway.

mod cli_runtime;

use crate::registry::Replay;

pub(crate) const KINDS: &[(&str, Replay)] =
    &[("outcome", cli_runtime::outcome), ("stdout", cli_runtime::stdout)];
