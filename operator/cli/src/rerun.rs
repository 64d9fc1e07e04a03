//! `kubectl skill rerun`: runs the skill of an execution again, with the same version constraint and input.

use skillet_api::{SkillExecution, SkillExecutionSpec};

use crate::{
    arguments::{ClusterArgs, RerunArgs},
    connection::connect,
    console::Console,
    error::CliError,
    exit::Exit,
    run::{self, execution_of},
};

pub(crate) async fn run(
    cluster: &ClusterArgs,
    args: &RerunArgs,
    console: &Console,
) -> Result<Exit, CliError> {
    let connection = connect(cluster).await?;
    let earlier = args.name.read(&connection.client, &connection.namespace).await?;
    run::execute(&connection, &again(&earlier), &args.follow, console).await
}

/// The caller is not repeated: it was the gateway's word, and this run is the user's.
fn again(earlier: &SkillExecution) -> SkillExecution {
    execution_of(SkillExecutionSpec { caller: None, cancel: false, ..earlier.spec.clone() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_rerun_repeats_the_request_and_neither_caller_nor_cancel() {
        let earlier: SkillExecution = serde_json::from_value(json!({
            "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillExecution",
            "metadata": { "name": "count-x7", "namespace": "team-a", "uid": "1" },
            "spec": { "skill": "count", "version": "^1.0.0", "input": { "text": "a" }, "timeout": "5s",
                "script": { "path": "a.sh", "args": ["-l"] }, "caller": "system:serviceaccount:team-a:agent", "cancel": true },
            "status": { "phase": "Failed" },
        }))
        .unwrap();
        assert_eq!(
            serde_json::to_value(again(&earlier)).unwrap(),
            json!({
                "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillExecution",
                "metadata": { "generateName": "count-" },
                "spec": { "skill": "count", "version": "^1.0.0", "input": { "text": "a" }, "script": { "path": "a.sh", "args": ["-l"] },
                    "timeout": "5s", "cancel": false },
            })
        );
    }
}
