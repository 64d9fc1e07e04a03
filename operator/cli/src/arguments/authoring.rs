//! Flags of the commands that write, check and test skills.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use skillet_api::{duration::SkillDuration, skill::Runtime};

use crate::output_format::{FormatParser, OutputFormat};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RuntimeArg {
    Python,
    Node,
    Shell,
}

impl From<RuntimeArg> for Runtime {
    fn from(runtime: RuntimeArg) -> Self {
        match runtime {
            RuntimeArg::Python => Runtime::Python,
            RuntimeArg::Node => Runtime::Node,
            RuntimeArg::Shell => Runtime::Shell,
        }
    }
}

/// The side that checks objects without storing them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DryRun {
    None,
    Client,
    Server,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct InitArgs {
    /// Directory to create. Its name is the skill's.
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Runtime of the script.
    #[arg(long, value_enum, default_value_t = RuntimeArg::Python)]
    pub(crate) runtime: RuntimeArg,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ApplyArgs {
    /// Directories with a skill.yaml, or files with a Skill.
    #[arg(value_name = "DIR|FILE", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Print the Skill and change nothing: `client` sends nothing, `server` lets the API server check it.
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_value = "none", default_missing_value = "client")]
    pub(crate) dry_run: DryRun,
    /// Overwrite fields that another manager owns.
    #[arg(long)]
    pub(crate) force_conflicts: bool,
    /// Wait until the operator has checked the skill and sealed its version.
    #[arg(long)]
    pub(crate) wait: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct LintArgs {
    /// Directories with a skill.yaml or with SKILL.md files, files with Skills, or SKILL.md and other .md files; `-` is standard input.
    #[arg(value_name = "DIR|FILE", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// SkillPolicy with the cluster's limits and images. Default: the default limits, and every image.
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// Count the rules of the Agent Skills standard as errors. Default: as warnings.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Format of the report.
    #[arg(short, long, default_value = "text", value_parser = FormatParser::<OutputFormat>::NEW)]
    pub(crate) output: OutputFormat,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct TestArgs {
    /// Directories with a skill.yaml, or files with a Skill. Tests stand in `tests` beside them.
    #[arg(value_name = "DIR|FILE", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Test the skill of the cluster as it is; apply nothing.
    #[arg(long)]
    pub(crate) no_apply: bool,
    /// Longest wait for the skill and for each run.
    #[arg(long, value_name = "DURATION", default_value = "2m")]
    pub(crate) wait_timeout: SkillDuration,
    /// Format of the report.
    #[arg(short, long, default_value = "text", value_parser = FormatParser::<OutputFormat>::NEW)]
    pub(crate) output: OutputFormat,
}
