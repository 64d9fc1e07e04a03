//! Commands and flags. `--help` is their documentation, docs/reference/kubectl-skill.md the longer one.

mod authoring;
mod executions;
mod instructions;
mod keys;
mod run;
mod skills;
mod workspace;

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand};
use skillet_api::duration::SkillDuration;

pub(crate) use self::{
    authoring::{ApplyArgs, DryRun, InitArgs, LintArgs, TestArgs},
    executions::{CancelArgs, ConnectionsArgs, ExecutionsArgs, LogsArgs, RerunArgs, ResultArgs, Stream},
    instructions::{ExportArgs, ImportArgs, ImportFormat, SyncArgs},
    keys::{KeyCommand, KeyCreateArgs, KeyDeleteArgs, KeyListArgs, KeyRotateArgs},
    run::{FollowArgs, RunArgs},
    skills::{DescribeArgs, ExplainArgs, ListArgs, ModeArgs, SwitchArgs, VersionsArgs},
    workspace::{
        GatewayArgs, WorkspaceArgs, WorkspaceCommand, WorkspaceCpArgs, WorkspaceLsArgs, WorkspaceRmArgs,
    },
};
use crate::output_format::{FormatParser, OutputFormat};

const EXIT_CODES: &str = "\
Exit codes:
    0  the command worked; of `run`: the skill succeeded
    1  the command failed; of `doctor`, `lint` and `test`: a check failed
    2  wrong usage; nothing was sent
    3  refused, no program was started: no such skill or version, wrong input, not allowed
    4  the cluster: not reached, no permission, Skillet not installed, sandbox or result lost
    5  `run` stopped waiting (--wait-timeout); the execution keeps running
  124  the execution ran over its time limit
  126  the program could not be started in its sandbox
  130  the execution was cancelled
  137  the program ran out of memory
A program that exits with a code from 1 to 125 makes `run` exit with the same code.";

/// Writes, tests and runs skills in a Kubernetes cluster with Skillet, and checks the cluster.
#[derive(Debug, Parser)]
#[command(name = "kubectl-skill", bin_name = "kubectl skill", version, after_help = EXIT_CODES)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The cluster, the user and the namespace, in kubectl's flags.
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
    /// URL of the API server. Default the kubeconfig's.
    #[arg(long, short, global = true, value_name = "URL")]
    pub(crate) server: Option<http::Uri>,
    /// Bearer token for the API server. Default the kubeconfig's user.
    #[arg(long, global = true)]
    pub(crate) token: Option<String>,
    /// User to impersonate, such as system:serviceaccount:team-a:agent.
    #[arg(long = "as", global = true, value_name = "USER")]
    pub(crate) impersonate: Option<String>,
    /// Group to impersonate, beside --as; may be repeated.
    #[arg(long, global = true, value_name = "GROUP", requires = "impersonate")]
    pub(crate) as_group: Vec<String>,
    /// Longest wait for the response to one request to the API server, such as 30s. Default: no limit.
    #[arg(long, global = true, value_name = "DURATION")]
    pub(crate) request_timeout: Option<SkillDuration>,
    /// From 6 on, a line on standard error for each request to the API server.
    #[arg(short = 'v', long = "v", global = true, value_name = "LEVEL", default_value_t = 0)]
    pub(crate) verbosity: u8,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs a skill and prints its output.
    ///
    /// Creates a SkillExecution, shows its progress on standard error, and prints its output on standard output.
    /// Ctrl-C cancels the execution; a second Ctrl-C leaves at once.
    #[command(after_help = run::EXAMPLES)]
    Run(RunArgs),
    /// Lists skills.
    List(ListArgs),
    /// Describes a skill: schema, example call, versions, last executions, and why it is not ready.
    Describe(DescribeArgs),
    /// Lists the sealed versions of a skill, newest first.
    Versions(VersionsArgs),
    /// Lets a skill run again: sets spec.enabled to true.
    Enable(SwitchArgs),
    /// Disables a skill completely: sets spec.enabled to false.
    Disable(SwitchArgs),
    /// Sets the offer of a skill to models: always, if it matches the request, or never.
    Mode(ModeArgs),
    /// Explains for each skill if a model would be offered it for a request.
    ///
    /// Asks the gateway, through the API server or at --gateway. The gateway knows the caller by an API key, or by a
    /// token that the plugin creates for a service account.
    Explain(ExplainArgs),
    /// Lists executions, newest first.
    Executions(ExecutionsArgs),
    /// Prints the output of an execution, as `run` does.
    Result(ResultArgs),
    /// Prints what the status keeps of standard output and standard error of an execution.
    Logs(LogsArgs),
    /// Lists the connections that a run asked for, refused ones included.
    Connections(ConnectionsArgs),
    /// Cancels executions.
    Cancel(CancelArgs),
    /// Runs the skill of an execution again, with the same version constraint and input.
    Rerun(RerunArgs),
    /// Creates a directory with a skill, its script, its schema and a test in files of their own.
    Init(InitArgs),
    /// Puts the files of a skill together and applies it on the server.
    Apply(ApplyArgs),
    /// Makes Skills of SKILL.md folders, instruction files and archives, and applies them.
    Import(ImportArgs),
    /// Looks at the repository of a SkillSource at once.
    Sync(SyncArgs),
    /// Writes the SKILL.md folder of a Skill with instructions.
    Export(ExportArgs),
    /// Validates skills without a cluster, as the operator does.
    Lint(LintArgs),
    /// Applies a skill, runs its test inputs in the cluster, and compares the results.
    Test(TestArgs),
    /// Makes, lists, replaces and deletes API keys for the gateway.
    #[command(subcommand)]
    Key(KeyCommand),
    /// Lists, copies and removes the files that `file_read` and `file_write` of a caller's runs use.
    ///
    /// Asks the gateway, as `explain` does. Each caller has a workspace of its own in each namespace.
    #[command(subcommand, after_help = workspace::EXAMPLES)]
    Workspace(WorkspaceCommand),
    /// Checks the cluster and each node, and says how to repair what fails.
    ///
    /// Checks the installation, the operator, the isolation that each node proved, the sandbox namespace, and your
    /// rights. Exits with 1 if a check failed; warnings do not count.
    Doctor(DoctorArgs),
    /// Completes a command line for kubectl's shell completion.
    #[command(name = "__complete", hide = true)]
    Complete(CompleteArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DoctorArgs {
    /// Format of the report.
    #[arg(short, long, default_value = "text", value_parser = FormatParser::<OutputFormat>::NEW)]
    pub(crate) output: OutputFormat,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CompleteArgs {
    /// Words after `kubectl skill`; the last one is to be completed.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<String>,
}

#[cfg(test)]
mod tests;
