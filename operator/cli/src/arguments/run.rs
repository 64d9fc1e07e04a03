//! Flags of `run`, and those that every command has that follows an execution.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use skillet_api::duration::SkillDuration;

use super::DryRun;
use crate::{
    output_format::{FormatParser, OutputFormat},
    run::{SetValue, WantedVersion},
};

pub(super) const EXAMPLES: &str = "\
Examples:
  kubectl skill run word-count --input '{\"text\": \"one two three\"}'
  kubectl skill run word-count --set text='one two three'
  kubectl skill run word-count@^1 --input @letter.json -n team-a
  kubectl skill run -f execution.yaml --set text=other
  kubectl skill run pdf-tools --script scripts/pages.py --stdin @letter.txt -- --first 3
  jq -n '{rows: [1, 2, 3]}' | kubectl skill run csv-stats --input - -o json
  kubectl wait --for=condition=Finished $(kubectl skill run word-count --detach)";

#[derive(Debug, ClapArgs)]
pub(crate) struct RunArgs {
    /// Name of the Skill, or NAME@VERSION.
    #[arg(value_name = "NAME[@VERSION]", required_unless_present = "filename", conflicts_with = "filename")]
    pub(crate) name: Option<String>,
    /// SkillExecution in YAML or JSON with skill, version, input and limits; `-` is standard input. Flags overwrite its fields.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) filename: Option<PathBuf>,
    /// Version to run: `1.2.3`, `^1`, `~1.2`, `>=1.0.0 <2.0.0`, `latest`. The newest one that matches is run. Default:
    /// the version in the Skill's `spec.version`.
    #[arg(long)]
    pub(crate) version: Option<WantedVersion>,
    /// Input as JSON, `-` to read it from standard input, or `@FILE`. Default {}.
    #[arg(short, long, value_name = "JSON|-|@FILE")]
    pub(crate) input: Option<String>,
    /// Field of the input, over --input; may be repeated. `a.b=1` sets b within a. The value is JSON, or else text.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<SetValue>,
    /// Script of the skill's bundle to run instead of its program. The words behind `--` are its arguments.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["input", "set"])]
    pub(crate) script: Option<String>,
    /// Text on the script's standard input, `-` to pass standard input on, or `@FILE`.
    #[arg(long, value_name = "TEXT|-|@FILE", requires = "script", allow_hyphen_values = true)]
    pub(crate) stdin: Option<String>,
    /// Arguments of the script, behind `--`.
    #[arg(last = true, value_name = "ARGS", requires = "script")]
    pub(crate) args: Vec<String>,
    /// Time limit of the program, such as 10s; it can only lower the skill's own.
    #[arg(long, value_name = "DURATION", allow_hyphen_values = true)]
    pub(crate) timeout: Option<SkillDuration>,
    /// Print the SkillExecution and run nothing: `client` sends nothing, `server` lets the API server check it.
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_value = "none", default_missing_value = "client")]
    pub(crate) dry_run: DryRun,
    #[command(flatten)]
    pub(crate) follow: FollowArgs,
}

/// The way in which a command follows an execution.
#[derive(Debug, ClapArgs)]
pub(crate) struct FollowArgs {
    /// Stop waiting after this time; the execution keeps running. Default: wait until it ends.
    #[arg(long, value_name = "DURATION", conflicts_with = "detach")]
    pub(crate) wait_timeout: Option<SkillDuration>,
    /// Do not wait: print the name of the execution and return.
    #[arg(long)]
    pub(crate) detach: bool,
    /// Show no progress.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// `text` prints text as it is and JSON indented; `json` and `yaml` always print the whole output value, and the
    /// status if the run failed.
    #[arg(short, long, default_value = "text", value_parser = FormatParser::<OutputFormat>::NEW)]
    pub(crate) output: OutputFormat,
}
