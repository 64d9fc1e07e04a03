//! `kubectl skill cancel`: cancels executions.

use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::json;
use skillet_api::SkillExecution;

use crate::{
    arguments::{CancelArgs, ClusterArgs},
    connection::{ClusterClient, connect},
    console::{self, Console},
    error::CliError,
    execution_name::ExecutionName,
    exit::Exit,
};

pub(crate) async fn run(
    cluster: &ClusterArgs,
    args: &CancelArgs,
    console: &Console,
) -> Result<Exit, CliError> {
    let connection = connect(cluster).await?;
    for name in &args.names {
        let cancelled = cancel(&connection, name).await?;
        match cancelled.status.filter(|status| status.phase.is_terminal()) {
            None => console.print(&format!("skillexecution.skillet.dev/{name} cancelled\n"))?,
            Some(status) => {
                let phase = status.phase.as_str();
                console::explain(&format!("skillexecution.skillet.dev/{name} has ended already: {phase}\n"));
            }
        }
    }
    Ok(Exit::Done)
}

async fn cancel(connection: &ClusterClient, name: &ExecutionName) -> Result<SkillExecution, CliError> {
    let ClusterClient { client, namespace } = connection;
    let api: Api<SkillExecution> = Api::namespaced(client.clone(), namespace);
    let patch = Patch::Merge(json!({ "spec": { "cancel": true } }));
    match api.patch(name.as_str(), &PatchParams::default(), &patch).await {
        Ok(execution) => Ok(execution),
        Err(error) => Err(name.explain(client, namespace, "cancel", &error).await),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{not_found, server};

    const EXECUTIONS: &str = "/apis/skillet.dev/v1alpha1/namespaces/team-a/skillexecutions";

    fn execution(name: &str) -> serde_json::Value {
        json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillExecution", "metadata": { "name": name },
            "spec": { "skill": "count" } })
    }

    #[tokio::test]
    async fn cancel_patches_only_the_cancel_field() {
        let (connection, requests) =
            server(json!({ format!("PATCH {EXECUTIONS}/count-x7"): execution("count-x7") }));
        cancel(&connection, &"ske/count-x7".parse().unwrap()).await.unwrap();
        assert_eq!(requests.lock().unwrap().pop().unwrap().body, json!({ "spec": { "cancel": true } }));
    }

    #[tokio::test]
    async fn a_missing_execution_is_refused_with_similar_names() {
        let listed = json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillExecutionList", "metadata": {},
            "items": [execution("count-x7"), execution("other")] });
        let (connection, _) = server(json!({
            format!("PATCH {EXECUTIONS}/count-x8"): not_found("skillexecutions", "count-x8"),
            format!("GET {EXECUTIONS}"): listed,
            "GET /api/v1/namespaces/team-a": { "apiVersion": "v1", "kind": "Namespace", "metadata": {} },
        }));
        let error = cancel(&connection, &"count-x8".parse().unwrap()).await.unwrap_err();
        assert!(
            matches!(&error, CliError::NoExecution { suggestions, .. } if suggestions == &["count-x7"]),
            "{error:?}"
        );
        assert_eq!(error.exit(), Exit::Refused);
    }
}
