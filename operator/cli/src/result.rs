//! `kubectl skill result`: prints the output of an earlier execution.

use std::time::Duration;

use kube::Api;
use skillet_api::SkillExecution;

use crate::{
    arguments::{ClusterArgs, ResultArgs},
    connection::{ClusterClient, connect},
    console::Console,
    error::CliError,
    exit::Exit,
    run::{self, Interrupts, Progress},
};

pub(crate) async fn run(
    cluster: &ClusterArgs,
    args: &ResultArgs,
    console: &Console,
) -> Result<Exit, CliError> {
    let ClusterClient { client, namespace } = connect(cluster).await?;
    let mut execution = args.name.read(&client, &namespace).await?;
    if args.wait && !has_ended(&execution) {
        let api: Api<SkillExecution> = Api::namespaced(client, &namespace);
        let mut progress = Progress::quiet(args.name.as_str());
        // Ctrl-C ends the wait, and not the execution, which another command started.
        execution =
            run::follow(&api, &execution, args.wait_timeout, &mut Interrupts::none(), &mut progress).await?;
    }
    if !has_ended(&execution) {
        return Err(CliError::NotEnded { namespace, name: args.name.to_string() });
    }
    run::print_result(&execution, elapsed(&execution), &args.output, console)
}

pub(crate) fn has_ended(execution: &SkillExecution) -> bool {
    execution.status.as_ref().is_some_and(|status| status.phase.is_terminal())
}

/// Time from the creation of an execution to its end.
fn elapsed(execution: &SkillExecution) -> Duration {
    let created = execution.metadata.creation_timestamp.as_ref().map(|at| at.0);
    let ended = execution.status.as_ref().and_then(|status| status.finished_at.as_ref()).map(|at| at.0);
    match (created, ended) {
        (Some(created), Some(ended)) => ended.duration_since(created).try_into().unwrap_or_default(),
        (Some(_) | None, _) => Duration::ZERO,
    }
}
