//! Flags of the commands about skills in the cluster.

use clap::{Args as ClapArgs, ValueEnum};

use super::workspace::GatewayArgs;
use crate::output_format::{FormatParser, ListFormat, OutputFormat};

#[derive(Debug, ClapArgs)]
pub(crate) struct ListArgs {
    /// Skills of all namespaces.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub(crate) all_namespaces: bool,
    /// Format of the list; `wide` has the reason and the description too.
    #[arg(short, long, default_value = "text", value_parser = FormatParser::<ListFormat>::NEW)]
    pub(crate) output: ListFormat,
    /// After the list, print a line for each skill that changes.
    #[arg(short, long)]
    pub(crate) watch: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DescribeArgs {
    /// Name of the Skill.
    pub(crate) name: String,
    /// Format of the description.
    #[arg(short, long, default_value = "text", value_parser = FormatParser::<OutputFormat>::NEW)]
    pub(crate) output: OutputFormat,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct VersionsArgs {
    /// Name of the Skill.
    pub(crate) name: String,
    /// Format of the list.
    #[arg(short, long, default_value = "text", value_parser = FormatParser::<OutputFormat>::NEW)]
    pub(crate) output: OutputFormat,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SwitchArgs {
    /// Name of the Skill.
    pub(crate) name: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ModeArgs {
    /// Name of the Skill.
    pub(crate) name: String,
    /// `on` always, `auto` if it matches the request, `off` never; a skill that is `off` does not run either.
    #[arg(value_enum)]
    pub(crate) mode: ModeArg,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ModeArg {
    On,
    Auto,
    Off,
}

impl ModeArg {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            ModeArg::On => "on",
            ModeArg::Auto => "auto",
            ModeArg::Off => "off",
        }
    }
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ExplainArgs {
    /// Text of the user's message to the model.
    pub(crate) text: String,
    #[command(flatten)]
    pub(crate) gateway: GatewayArgs,
    /// Model of the request, because SkillPolicy may treat models differently.
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// Format of the explanation; `wide` has the signals too.
    #[arg(short, long, default_value = "text", value_parser = FormatParser::<ListFormat>::NEW)]
    pub(crate) output: ListFormat,
}
