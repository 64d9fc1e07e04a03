//! Commands and flags. `--help` is their documentation, docs/reference/kubectl-skill.md the longer one.

use std::path::PathBuf;

use clap::{
    Args as ClapArgs, Parser, Subcommand,
    builder::{PossibleValuesParser, TypedValueParser as _},
};
use skillet_api::{Phase, duration::SkillDuration, names};

use crate::{
    key::{KeyLifetime, KeyName},
    output_format::OutputFormat,
    partial_objects::phase_name,
    run::WantedVersion,
};

const EXIT_CODES: &str = "\
Exit codes:
    0  the command worked; of `run`: the skill succeeded
    1  the command failed; of `doctor`: a check failed
    2  wrong usage; nothing was sent
    3  refused, no program was started: no such skill or version, wrong input, not allowed
    4  the cluster: not reached, no permission, Skillet not installed, sandbox or result lost
    5  `run` stopped waiting (--wait-timeout); the execution keeps running
  124  the execution ran over its time limit
  126  the program could not be started in its sandbox
  130  the execution was cancelled
  137  the program ran out of memory
A program that exits with a code from 1 to 125 makes `run` exit with the same code.";

const RUN_EXAMPLES: &str = "\
Examples:
  kubectl skill run word-count --input '{\"text\": \"one two three\"}'
  kubectl skill run word-count@^1 --input @letter.json -n team-a
  jq -n '{rows: [1, 2, 3]}' | kubectl skill run csv-stats --input - -o json
  kubectl wait --for=condition=Finished $(kubectl skill run word-count --detach)";

/// Runs skills in a Kubernetes cluster with Skillet, lists executions, and checks the cluster.
#[derive(Debug, Parser)]
#[command(name = "kubectl-skill", bin_name = "kubectl skill", version, after_help = EXIT_CODES)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The cluster and the namespace, in kubectl's flags.
#[derive(Debug, Default, ClapArgs)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClusterArgs {
    /// Namespace. Default the context's, else `default`.
    #[arg(short, long, global = true)]
    pub(crate) namespace: Option<String>,
    /// Context of the kubeconfig. Default its current one.
    #[arg(long, global = true)]
    pub(crate) context: Option<String>,
    /// Kubeconfig file. Default $KUBECONFIG, else ~/.kube/config, else the pod's service account.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs a skill and prints its output.
    ///
    /// Creates a SkillExecution, shows its progress on standard error, and prints its output on standard output.
    /// Ctrl-C cancels the execution; a second Ctrl-C leaves at once.
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArgs),
    /// Lists the sealed versions of a skill, newest first.
    Versions(VersionsArgs),
    /// Lists executions, newest first.
    Executions(ExecutionsArgs),
    /// Makes, lists and deletes API keys for the gateway.
    #[command(subcommand)]
    Key(KeyCommand),
    /// Checks the cluster and each node, and says how to repair what fails.
    ///
    /// Checks the installation, the operator, the isolation that each node proved, the sandbox namespace, and your
    /// rights. Exits with 1 if a check failed; warnings do not count.
    Doctor(DoctorArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RunArgs {
    /// Name of the Skill, or NAME@VERSION.
    #[arg(value_name = "NAME[@VERSION]")]
    pub(crate) name: String,
    /// Version to run: `1.2.3`, `^1`, `~1.2`, `>=1.0.0 <2.0.0`, `latest`. The newest one that matches is run. Default:
    /// the newest.
    #[arg(long)]
    pub(crate) version: Option<WantedVersion>,
    /// Input as JSON, `-` to read it from standard input, or `@FILE`. Default {}.
    #[arg(short, long, value_name = "JSON|-|@FILE")]
    pub(crate) input: Option<String>,
    /// Time limit of the program, such as 10s; it can only lower the skill's own.
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<SkillDuration>,
    /// Stop waiting after this time; the execution keeps running. Default: wait until it ends.
    #[arg(long, value_name = "DURATION", conflicts_with = "detach")]
    pub(crate) wait_timeout: Option<SkillDuration>,
    /// Do not wait: print the name of the execution and return.
    #[arg(long)]
    pub(crate) detach: bool,
    /// Show no progress.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// `text` prints text as it is and JSON indented; `json` and `yaml` always print the whole output value.
    #[arg(short, long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) output: OutputFormat,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct VersionsArgs {
    /// Name of the Skill.
    pub(crate) name: String,
    /// Format of the list.
    #[arg(short, long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) output: OutputFormat,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ExecutionsArgs {
    /// Only executions of this Skill.
    pub(crate) name: Option<String>,
    /// Executions of all namespaces.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub(crate) all_namespaces: bool,
    /// Only executions in these phases, separated by commas.
    #[arg(long, value_delimiter = ',', ignore_case = true, value_parser = PossibleValuesParser::new(PHASES.map(phase_name)).map(|word| phase(&word)))]
    pub(crate) phase: Vec<Phase>,
    /// Most executions listed; 0 lists all.
    #[arg(long, default_value_t = 50)]
    pub(crate) limit: usize,
    /// Format of the list.
    #[arg(short, long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) output: OutputFormat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Makes an API key and prints it once: the cluster keeps its sha256 only.
    Create(KeyCreateArgs),
    /// Lists the API keys of a namespace, never the keys themselves.
    List(KeyListArgs),
    /// Deletes an API key. The gateway refuses it at once.
    Delete(KeyDeleteArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct KeyCreateArgs {
    /// Name of the key in its namespace.
    pub(crate) name: KeyName,
    /// The service account that the key acts as, with the same rights.
    #[arg(long, value_name = "NAME", default_value = names::DEFAULT_SERVICE_ACCOUNT)]
    pub(crate) service_account: String,
    /// Lifetime of the key, such as 90d or 12h. Default: until it is deleted.
    #[arg(long, value_name = "TIME")]
    pub(crate) expires: Option<KeyLifetime>,
    /// `text` prints the key alone.
    #[arg(short, long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) output: OutputFormat,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct KeyListArgs {
    /// Format of the list.
    #[arg(short, long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) output: OutputFormat,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct KeyDeleteArgs {
    /// Name of the key.
    pub(crate) name: KeyName,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DoctorArgs {
    /// Format of the report.
    #[arg(short, long, value_enum, default_value_t = OutputFormat::Text)]
    pub(crate) output: OutputFormat,
}

const PHASES: [Phase; 6] =
    [Phase::Pending, Phase::Running, Phase::Succeeded, Phase::Failed, Phase::TimedOut, Phase::Cancelled];

/// The value parser admits only the names of [`PHASES`].
fn phase(word: &str) -> Phase {
    PHASES.into_iter().find(|phase| phase_name(*phase).eq_ignore_ascii_case(word)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, error::ErrorKind};

    use super::*;

    const REFERENCE: &str = include_str!("../../../docs/reference/kubectl-skill.md");

    fn parse(line: &str) -> Result<Args, ErrorKind> {
        Args::try_parse_from(line.split(' ')).map_err(|error| error.kind())
    }

    #[test]
    fn the_flags_are_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn every_command_and_flag_is_in_the_reference() {
        let all = Args::command();
        let nested = all.get_subcommands().flat_map(clap::Command::get_subcommands);
        for command in all.get_subcommands().chain(nested) {
            let name = command.get_name();
            assert!(REFERENCE.contains(&format!("## {name}")), "{name}");
            for flag in command.get_arguments().filter_map(clap::Arg::get_long).filter(|flag| *flag != "help")
            {
                assert!(REFERENCE.contains(&format!("--{flag}")), "{name} --{flag}");
            }
        }
    }

    #[test]
    fn phases_are_accepted_in_any_case() {
        let args = parse("kubectl-skill executions --phase timedout,Failed,PENDING").unwrap();
        let Command::Executions(args) = args.command else { panic!("not executions") };
        assert_eq!(args.phase, [Phase::TimedOut, Phase::Failed, Phase::Pending]);
        for known in PHASES {
            assert_eq!(phase(phase_name(known)), known);
        }
        assert_eq!(parse("kubectl-skill executions --phase Lost").unwrap_err(), ErrorKind::InvalidValue);
    }

    #[test]
    fn an_invalid_constraint_duration_or_name_is_wrong_usage() {
        for line in [
            "kubectl-skill run x --version 1",
            "kubectl-skill run x --timeout 10",
            "kubectl-skill run x --wait-timeout soon",
            "kubectl-skill key create x --expires 90",
            "kubectl-skill key delete a/b",
        ] {
            assert_eq!(parse(line).unwrap_err(), ErrorKind::ValueValidation, "{line}");
        }
    }

    #[test]
    fn the_namespace_may_come_before_or_after_the_command() {
        for line in ["kubectl-skill -n a versions x", "kubectl-skill versions x -n a"] {
            assert_eq!(parse(line).unwrap().cluster.namespace.as_deref(), Some("a"));
        }
    }

    #[test]
    fn input_may_begin_with_a_dash_and_be_negative() {
        let args = parse("kubectl-skill run x --input -").unwrap();
        assert!(matches!(args.command, Command::Run(RunArgs { input: Some(input), .. }) if input == "-"));
        let args = parse("kubectl-skill run x --input=-5").unwrap();
        assert!(matches!(args.command, Command::Run(RunArgs { input: Some(input), .. }) if input == "-5"));
    }
}
