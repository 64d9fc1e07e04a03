//! Flags of the commands about executions.

use clap::{
    Args as ClapArgs, ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser as _},
};
use skillet_api::{Phase, duration::SkillDuration};

use super::FollowArgs;
use crate::{
    execution_name::ExecutionName,
    output_format::{FormatParser, ListFormat, OutputFormat},
};

#[derive(Debug, ClapArgs)]
pub(crate) struct ExecutionsArgs {
    /// Only executions of this Skill.
    pub(crate) name: Option<String>,
    /// Executions of all namespaces.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub(crate) all_namespaces: bool,
    /// Only executions in these phases, separated by commas.
    #[arg(long, value_delimiter = ',', ignore_case = true, value_parser = PossibleValuesParser::new(PHASES.map(Phase::as_str)).map(|word| phase(&word)))]
    pub(crate) phase: Vec<Phase>,
    /// Most executions listed; 0 lists all.
    #[arg(long, default_value_t = 50)]
    pub(crate) limit: usize,
    /// Format of the list; `wide` has the message too.
    #[arg(short, long, default_value = "text", value_parser = FormatParser::<ListFormat>::NEW)]
    pub(crate) output: ListFormat,
    /// After the list, print a line for each execution that changes.
    #[arg(short, long)]
    pub(crate) watch: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ResultArgs {
    /// Name of the SkillExecution.
    #[arg(value_name = "EXECUTION")]
    pub(crate) name: ExecutionName,
    /// Wait until the execution has ended.
    #[arg(short, long)]
    pub(crate) wait: bool,
    /// Stop waiting after this time; the execution keeps running. Default: wait until it ends.
    #[arg(long, value_name = "DURATION", requires = "wait")]
    pub(crate) wait_timeout: Option<SkillDuration>,
    /// `text` prints text as it is and JSON indented; `json` and `yaml` always print the whole output value, and the
    /// status if the run failed.
    #[arg(short, long, default_value = "text", value_parser = FormatParser::<OutputFormat>::NEW)]
    pub(crate) output: OutputFormat,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct LogsArgs {
    /// Name of the SkillExecution.
    #[arg(value_name = "EXECUTION")]
    pub(crate) name: ExecutionName,
    /// Wait until the execution has ended: the streams reach its status only then.
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Stream to print; each goes to the same stream of this program.
    #[arg(long, value_enum, default_value_t = Stream::All)]
    pub(crate) stream: Stream,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ConnectionsArgs {
    /// Name of the SkillExecution.
    #[arg(value_name = "EXECUTION")]
    pub(crate) name: ExecutionName,
    /// Format of the list.
    #[arg(short, long, default_value = "text", value_parser = FormatParser::<OutputFormat>::NEW)]
    pub(crate) output: OutputFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
    All,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CancelArgs {
    /// Names of the SkillExecutions.
    #[arg(value_name = "EXECUTION", required = true)]
    pub(crate) names: Vec<ExecutionName>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RerunArgs {
    /// Name of the SkillExecution.
    #[arg(value_name = "EXECUTION")]
    pub(crate) name: ExecutionName,
    #[command(flatten)]
    pub(crate) follow: FollowArgs,
}

pub(super) const PHASES: [Phase; 6] =
    [Phase::Pending, Phase::Running, Phase::Succeeded, Phase::Failed, Phase::TimedOut, Phase::Cancelled];

/// The value parser admits only the names of [`PHASES`].
pub(super) fn phase(word: &str) -> Phase {
    PHASES.into_iter().find(|phase| phase.as_str().eq_ignore_ascii_case(word)).unwrap_or_default()
}
