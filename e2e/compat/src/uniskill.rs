//! The set `uniskill`: observations of the UniSkill gateway.

mod cli_runtime;
mod identity;
mod manifest;
mod mapping;
mod reach;
mod render;
mod secrets;
mod upstream;

use crate::registry::Replay;

pub(crate) const KINDS: &[(&str, Replay)] = &[
    ("decrypt", secrets::decrypt),
    ("error", upstream::error),
    ("fixture", mapping::fixture),
    ("format_helper", identity::format_helper),
    ("map", mapping::map),
    ("map_alias", mapping::map),
    ("market_reads_caller_secret", secrets::foreign_secret),
    ("market_system_key", secrets::foreign_secret),
    ("merge", secrets::merge),
    ("missing_endpoint_charge", secrets::missing),
    ("missing_secret_charge", secrets::missing),
    ("outcome", cli_runtime::outcome),
    ("render", render::render),
    ("resolve", identity::resolve),
    ("secret_exposure", secrets::exposure),
    ("ssrf", reach::ssrf),
    ("stdout", cli_runtime::stdout),
    ("timeout", upstream::timeout),
    ("whole_result", mapping::whole_result),
];
