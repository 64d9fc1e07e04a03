//! `kubectl skill run`: creates an execution, follows it to its end, and prints its output.

mod advice;
mod follow;
mod input;
mod progress;
mod report;
mod request;

use std::time::Instant;

use kube::{
    Api, Client, ResourceExt,
    api::{ListParams, PostParams},
};
use skillet_api::{Phase, Reason, Skill, SkillExecution, SkillExecutionStatus};

use self::{
    follow::{Interrupts, follow},
    progress::{Progress, ProgressStyle},
};
pub(crate) use self::{input::InputError, request::WantedVersion};
use crate::{
    arguments::{ClusterArgs, RunArgs},
    connection::{ClusterClient, connect},
    console::{self, Console},
    error::CliError,
    exit::Exit,
    output_format::OutputFormat,
    suggest::suggest,
};

pub(crate) async fn run(cluster: &ClusterArgs, args: &RunArgs, console: &Console) -> Result<Exit, CliError> {
    let (skill, version) = request::target(args)?;
    let input = args.input.as_deref().map(input::read).transpose()?;
    let ClusterClient { client, namespace } = connect(cluster).await?;
    must_exist(&client, &namespace, &skill).await?;
    let api: Api<SkillExecution> = Api::namespaced(client.clone(), &namespace);
    let wanted = request::execution(&skill, version.as_ref(), input, args);
    let mut interrupts = Interrupts::listen();
    let started = Instant::now();
    let created = api.create(&PostParams::default(), &wanted).await.map_err(|error| {
        CliError::from_api(format!("create a SkillExecution in namespace {namespace}"), &error)
    })?;
    if args.detach {
        return detach(&created, args.output, console);
    }
    let style = match (args.quiet, console.is_live()) {
        (true, _) => ProgressStyle::Quiet,
        (false, true) => ProgressStyle::Live,
        (false, false) => ProgressStyle::Lines,
    };
    let mut progress = Progress::new(style, &created.name_any());
    let result = follow(&api, &created, args.wait_timeout, &mut interrupts, &mut progress).await;
    progress.clear();
    let ended = result?;
    let status = ended.status.clone().unwrap_or_default();
    if status.reason == Some(Reason::SkillNotFound) {
        return Err(no_skill(&client, &namespace, &skill).await);
    }
    if !(args.quiet && status.phase == Phase::Succeeded) {
        console::explain(&report::summary(&ended, &status, started.elapsed(), console.error_style()));
    }
    print_output(&status, args.output, console)?;
    Ok(Exit::from_execution(&status))
}

fn print_output(
    status: &SkillExecutionStatus,
    format: OutputFormat,
    console: &Console,
) -> Result<(), CliError> {
    match &status.output {
        Some(value) if status.phase == Phase::Succeeded => console.print(&report::output(value, format)?),
        Some(_) | None => Ok(()),
    }
}

/// Prints the name in the format of `kubectl get` and `kubectl wait`.
fn detach(created: &SkillExecution, format: OutputFormat, console: &Console) -> Result<Exit, CliError> {
    let text = || format!("skillexecution.skillet.dev/{}\n", created.name_any());
    console.print(&format.render(created, text)?)?;
    Ok(Exit::Done)
}

/// Requires the Skill before anything is created, so that a typo leaves no failed execution behind.
async fn must_exist(client: &Client, namespace: &str, skill: &str) -> Result<(), CliError> {
    let skills: Api<Skill> = Api::namespaced(client.clone(), namespace);
    match skills.get_metadata(skill).await {
        Ok(_) => Ok(()),
        // A user may have the right to run skills and not to read them: the operator will report a missing one.
        Err(kube::Error::Api(status)) if status.code == 403 => Ok(()),
        Err(kube::Error::Api(status)) if status.code == 404 && status.details.is_some() => {
            Err(no_skill(client, namespace, skill).await)
        }
        Err(error) => Err(CliError::from_api(format!("read Skill {namespace}/{skill}"), &error)),
    }
}

/// Returns the error for a missing skill: its namespace is missing, or its name; with similar names if they are readable.
pub(crate) async fn no_skill(client: &Client, namespace: &str, skill: &str) -> CliError {
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client.clone());
    if let Err(kube::Error::Api(status)) = namespaces.get_metadata(namespace).await
        && status.code == 404
    {
        return CliError::NoNamespace { namespace: namespace.to_owned() };
    }
    let skills: Api<Skill> = Api::namespaced(client.clone(), namespace);
    let listed = skills.list_metadata(&ListParams::default()).await;
    let names: Vec<String> =
        listed.map(|list| list.items.iter().map(ResourceExt::name_any).collect()).unwrap_or_default();
    CliError::NoSkill {
        namespace: namespace.to_owned(),
        name: skill.to_owned(),
        suggestions: suggest(skill, &names),
    }
}
