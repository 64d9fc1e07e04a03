//! A sandbox for which the cluster has no room: the run waits and gets another one, unless no node can ever take it.

use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{Node, Pod},
};
use kube::{
    Api, Client, ResourceExt as _,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use skillet_api::{Phase, SkillExecution};

use crate::{
    chart::{self, SANDBOXES},
    eventually::{LIMIT, eventually},
    objects::{cancel, ended, event, execute, reason, sealed_skill},
    operator::operator,
};

#[tokio::test]
async fn a_run_without_room_waits_and_one_that_no_node_can_take_fails() {
    let Some(operator) = operator() else { return };
    let (client, at) = operator.namespace("room").await;
    sealed_skill(&client, &at, "a", "description: first").await;
    // Not ready, so that nobody probes it.
    let nodes: Api<Node> = Api::all(client.clone());
    let node: Node = serde_json::from_value(json!({ "metadata": { "name": "only" } })).unwrap();
    nodes.create(&PostParams::default(), &node).await.unwrap();

    set_allocatable(&nodes, "10m").await;
    let large = execute(&client, &at, "large", "skill: a").await;
    leave_without_room(&client, &large, 1).await;
    let status = ended(&client, &at, "large").await;
    assert_eq!(reason(&status), "Unschedulable", "{:?}", status.message);
    assert!(status.message.unwrap().contains("20m cpu"));

    set_allocatable(&nodes, "1").await;
    let waiting = execute(&client, &at, "waiting", "skill: a").await;
    leave_without_room(&client, &waiting, 1).await;
    let message = event(&client, &at, "waiting", "Queued").await;
    assert!(message.contains("waits for room in the cluster: 0/1 nodes are available"), "{message}");
    let api: Api<SkillExecution> = Api::namespaced(client.clone(), &at);
    let status = api.get("waiting").await.unwrap().status.unwrap();
    assert_eq!((status.phase, status.attempts, reason(&status)), (Phase::Pending, 0, "Queued"));
    assert!(status.started_at.is_none());
    created(&client, &waiting, 2).await;
    let jobs: Api<Job> = Api::namespaced(client.clone(), SANDBOXES);
    assert!(jobs.get_opt(&job_name(&waiting, 1)).await.unwrap().is_none(), "the first sandbox is removed");
    cancel(&client, &at, "waiting").await;
    assert_eq!(ended(&client, &at, "waiting").await.phase, Phase::Cancelled);
}

#[tokio::test]
async fn a_run_whose_sandbox_a_quota_refuses_waits_and_gets_another_one() {
    let Some(operator) = operator() else { return };
    let (client, at) = operator.namespace("quota").await;
    sealed_skill(&client, &at, "a", "description: first").await;
    let execution = execute(&client, &at, "refused", "skill: a").await;
    refuse_pod(&client, &execution, "exceeded quota: q, requested: pods=1, used: pods=9, limited: pods=9")
        .await;
    let message = event(&client, &at, "refused", "Queued").await;
    assert!(message.starts_with("waits for room in the cluster: exceeded quota: q, "), "{message}");
    created(&client, &execution, 2).await;
    cancel(&client, &at, "refused").await;
    assert_eq!(ended(&client, &at, "refused").await.phase, Phase::Cancelled);
}

fn job_name(execution: &SkillExecution, ordinal: u32) -> String {
    format!("run-{}-{ordinal}", execution.uid().unwrap())
}

async fn set_allocatable(nodes: &Api<Node>, cpu: &str) {
    let amounts = json!({ "cpu": cpu, "memory": "1Gi", "ephemeral-storage": "1Gi" });
    let status = json!({ "status": { "capacity": amounts, "allocatable": amounts } });
    nodes.patch_status("only", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
}

async fn created(client: &Client, execution: &SkillExecution, ordinal: u32) -> Job {
    let (jobs, name) = (Api::<Job>::namespaced(client.clone(), SANDBOXES), job_name(execution, ordinal));
    eventually(format!("Job {name} is created"), LIMIT, async || jobs.get_opt(&name).await.unwrap()).await
}

/// Creates the pod of a sandbox as the Job controller would, and refuses it as the scheduler would.
async fn leave_without_room(client: &Client, execution: &SkillExecution, ordinal: u32) {
    let job = created(client, execution, ordinal).await;
    let mut pod: Value = serde_json::to_value(&job.spec.as_ref().unwrap().template).unwrap();
    pod["metadata"]["name"] = json!(job.name_any());
    pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] = json!(job.name_any());
    let pods: Api<Pod> = Api::namespaced(client.clone(), SANDBOXES);
    pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    let condition = json!({
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/1 nodes are available: 1 Insufficient cpu.",
    });
    let status = json!({ "status": { "conditions": [condition] } });
    pods.patch_status(&job.name_any(), &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
}

/// Reports the first sandbox's pod as the Job controller does if the API server refuses it.
async fn refuse_pod(client: &Client, execution: &SkillExecution, why: &str) {
    let job = created(client, execution, 1).await.name_any();
    let event = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "name": job, "namespace": SANDBOXES },
        "involvedObject": { "kind": "Job", "name": job, "namespace": SANDBOXES },
        "reason": "FailedCreate",
        "message": format!("Error creating: pods \"{job}-x7k2p\" is forbidden: {why}"),
        "lastTimestamp": "2026-01-02T00:00:00Z",
    });
    chart::apply_object(client, event).await;
}
