//! `kubectl skill run`: creates an execution, follows it to its end, and prints its output.

mod advice;
mod follow;
mod input;
mod manifest;
mod progress;
mod report;
mod request;
mod set_value;

use std::time::{Duration, Instant};

use kube::{Api, ResourceExt, api::PostParams};
use skillet_api::{Phase, Reason, SkillExecution};

use self::progress::ProgressStyle;
pub(crate) use self::{
    follow::{Interrupts, follow},
    input::InputError,
    progress::Progress,
    report::output as render_output,
    request::{WantedVersion, execution_of},
    set_value::SetValue,
};
use crate::{
    arguments::{ClusterArgs, DryRun, FollowArgs, RunArgs},
    connection::{ClusterClient, connect},
    console::{self, Console},
    error::CliError,
    exit::Exit,
    output_format::OutputFormat,
    skills,
};

pub(crate) async fn run(cluster: &ClusterArgs, args: &RunArgs, console: &Console) -> Result<Exit, CliError> {
    let wanted = request::execution(args)?;
    skills::check_name(&wanted.spec.skill)?;
    input::check_size(wanted.spec.input.as_ref())?;
    if args.dry_run == DryRun::Client {
        return print_manifest(&wanted, &args.follow.output, console);
    }
    let connection = connect(cluster).await?;
    if args.dry_run == DryRun::Server {
        skills::must_exist(&connection.client, &connection.namespace, &wanted.spec.skill).await?;
        let created = create(&connection, &wanted, true).await?;
        return print_manifest(&created, &args.follow.output, console);
    }
    execute(&connection, &wanted, &args.follow, console).await
}

/// Creates the execution, and follows it unless it is detached.
pub(crate) async fn execute(
    connection: &ClusterClient,
    wanted: &SkillExecution,
    args: &FollowArgs,
    console: &Console,
) -> Result<Exit, CliError> {
    let ClusterClient { client, namespace } = connection;
    skills::must_exist(client, namespace, &wanted.spec.skill).await?;
    let mut interrupts = Interrupts::listen();
    let started = Instant::now();
    let created = create(connection, wanted, false).await?;
    if args.detach {
        return detach(&created, &args.output, console);
    }
    let style = match (args.quiet, console.is_live()) {
        (true, _) => ProgressStyle::Quiet,
        (false, true) => ProgressStyle::Live,
        (false, false) => ProgressStyle::Lines,
    };
    let mut progress = Progress::new(style, &created.name_any());
    let api: Api<SkillExecution> = Api::namespaced(client.clone(), namespace);
    let result = follow(&api, &created, args.wait_timeout, &mut interrupts, &mut progress).await;
    progress.clear();
    let ended = result?;
    let status = ended.status.clone().unwrap_or_default();
    if status.reason == Some(Reason::SkillNotFound) {
        return Err(skills::no_skill(client, namespace, &wanted.spec.skill).await);
    }
    if args.quiet && status.phase == Phase::Succeeded {
        console.print(&report::result(&ended, &status, &args.output)?)?;
        return Ok(Exit::Done);
    }
    print_result(&ended, started.elapsed(), &args.output, console)
}

pub(crate) async fn create(
    connection: &ClusterClient,
    wanted: &SkillExecution,
    dry_run: bool,
) -> Result<SkillExecution, CliError> {
    let ClusterClient { client, namespace } = connection;
    let api: Api<SkillExecution> = Api::namespaced(client.clone(), namespace);
    let params = PostParams { dry_run, ..PostParams::default() };
    api.create(&params, wanted).await.map_err(|error| {
        CliError::from_api(format!("create a SkillExecution in namespace {namespace}"), &error)
    })
}

/// Prints the summary and the output of an execution that has ended, and returns its exit.
pub(crate) fn print_result(
    ended: &SkillExecution,
    elapsed: Duration,
    format: &OutputFormat,
    console: &Console,
) -> Result<Exit, CliError> {
    let status = ended.status.clone().unwrap_or_default();
    console::explain(&report::summary(ended, &status, elapsed, console.error_style()));
    console.print(&report::result(ended, &status, format)?)?;
    Ok(Exit::from_execution(&status))
}

/// Prints the name in the format of `kubectl get` and `kubectl wait`.
fn detach(created: &SkillExecution, format: &OutputFormat, console: &Console) -> Result<Exit, CliError> {
    let text = || format!("skillexecution.skillet.dev/{}\n", created.name_any());
    console.print(&format.render(created, text)?)?;
    Ok(Exit::Done)
}

/// Prints the object that a dry run did not create, as YAML unless JSON is wanted.
fn print_manifest(
    wanted: &SkillExecution,
    format: &OutputFormat,
    console: &Console,
) -> Result<Exit, CliError> {
    let format = if *format == OutputFormat::Text { &OutputFormat::Yaml } else { format };
    console.print(&format.render(wanted, String::new)?)?;
    Ok(Exit::Done)
}
