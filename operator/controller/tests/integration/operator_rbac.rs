//! The chart's rules for the operator allow everything that it does, and not one verb more.

use std::collections::BTreeSet;

use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{
    Api, Client, ResourceExt as _,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use skillet_api::{Phase, SkillExecution};

use crate::{
    audit::Request,
    chart::{self, SANDBOXES},
    eventually::{LIMIT, eventually},
    objects::{
        apply_skill, cancel, condition, ended, event, execute, reason, sealed_skill, set_status, skill_status,
    },
    operator::Operator,
    server::is_wanted,
};

type Right = (String, String);

/// Asked for by API servers from 1.35 on beside `get`, which alone is in the audit log.
const ASKED_INSIDE: [(&str, &str); 1] = [("create", "pods/attach")];

/// The rights that the chart grants: verb and resource.
fn granted() -> BTreeSet<Right> {
    let words = |rule: &Value, field: &str| -> Vec<String> {
        rule[field].as_array().unwrap().iter().map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    let mut rights = BTreeSet::new();
    for object in chart::render("templates/rbac-operator.yaml", &[]) {
        for rule in object["rules"].as_array().into_iter().flatten() {
            for group in words(rule, "apiGroups") {
                for resource in words(rule, "resources") {
                    let resource = if group.is_empty() { resource } else { format!("{group}/{resource}") };
                    rights.extend(words(rule, "verbs").into_iter().map(|verb| (verb, resource.clone())));
                }
            }
        }
    }
    rights
}

#[tokio::test]
async fn the_operator_uses_every_verb_that_the_chart_grants_and_needs_no_other() {
    if !is_wanted() {
        return;
    }
    let operator = tokio::task::spawn_blocking(|| Operator::start(impatient_policy)).await.unwrap();
    let (client, at) = operator.namespace("rights").await;
    seal_and_refuse(&client, &at).await;
    run_and_cancel(&operator, &client, &at).await;
    wait_for_an_image(&client, &at).await;
    settle_what_was_left(&client, &at).await;
    delete_what_is_old(&operator, &client, &at).await;

    operator.assert_nothing_was_forbidden();
    let used: BTreeSet<Right> = operator.requests().iter().map(Request::right).collect();
    let unused: Vec<Right> = granted().difference(&used).cloned().collect();
    let inside = ASKED_INSIDE.map(|(verb, resource)| (verb.to_owned(), resource.to_owned()));
    assert_eq!(unused, inside, "granted and never used");
}

/// Without a kubelet no sandbox becomes usable: this is how long that is waited for.
async fn impatient_policy(client: Client) {
    let spec = json!({ "startTimeout": "10s" });
    let policy = json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillPolicy", "metadata": { "name": "default" }, "spec": spec });
    chart::apply_object(&client, policy).await;
}

/// Versions sealed and deleted, statuses, events, and reads that decide about an execution.
async fn seal_and_refuse(client: &Client, at: &str) {
    sealed_skill(client, at, "a", "description: first").await;
    sealed_skill(client, at, "a", "{version: 1.1.0, description: first}").await;
    // The same problem a second time is another count of the same event.
    for _ in 0..2 {
        apply_skill(client, at, "a", "description: second").await;
        skill_status(client, at, "a", |status| condition(status, "Sealed").0 == "False").await;
        sealed_skill(client, at, "a", "{version: 1.1.0, description: first}").await;
    }
    event(client, at, "a", "VersionConflict").await;
    execute(client, at, "refused", "skill: nothing").await;
    ended(client, at, "refused").await;
    let secret =
        "run: {sandbox: {runtime: shell, script: cat, secretEnv: [{name: A, secret: none, key: k}]}}";
    sealed_skill(client, at, "secret", secret).await;
    execute(client, at, "secret", "skill: secret").await;
    ended(client, at, "secret").await;
    for patch in 0..21 {
        sealed_skill(client, at, "many", &format!("version: 1.0.{patch}")).await;
    }
    sealed_skill(client, at, "many", "{version: 1.0.20, yankedVersions: [1.0.19]}").await;
}

/// A sandbox is made, its pod is attached to, and it is removed.
async fn run_and_cancel(operator: &Operator, client: &Client, at: &str) {
    let uid = execute(client, at, "run", "skill: a").await.uid().unwrap();
    let job = made(client, &format!("run-{uid}-1")).await;
    pod_of(client, &job).await;
    eventually("the pod was attached to", LIMIT, async || {
        let tried = |request: &Request| request.resource == "pods/attach" && request.name == job.name_any();
        operator.requests().iter().any(tried).then_some(())
    })
    .await;
    cancel(client, at, "run").await;
    assert_eq!(ended(client, at, "run").await.phase, Phase::Cancelled);
    let jobs: Api<Job> = Api::namespaced(client.clone(), SANDBOXES);
    eventually("the sandbox was removed", LIMIT, async || {
        jobs.get_opt(&job.name_any()).await.unwrap().is_none().then_some(())
    })
    .await;
}

/// A container that does not start, because the kubelet is still pulling its image: only an event tells.
async fn wait_for_an_image(client: &Client, at: &str) {
    let uid = execute(client, at, "pulling", "skill: a").await.uid().unwrap();
    let job = made(client, &format!("run-{uid}-1")).await;
    let pod = pod_of(client, &job).await;
    let event = json!({
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": { "name": "pulling", "namespace": SANDBOXES },
        "involvedObject": { "kind": "Pod", "name": pod, "namespace": SANDBOXES },
        "reason": "Pulling",
        "message": "Pulling image \"test/shell:1\"",
    });
    chart::apply_object(client, event).await;
    let status = ended(client, at, "pulling").await;
    assert_eq!(reason(&status), "ImageUnavailable", "{:?}", status.message);
    assert_eq!(status.message.as_deref(), Some("the image test/shell:1 was not pulled within 10s"));
}

/// A sandbox that an earlier operator made, and that has ended: its log is read, and nothing is run again.
async fn settle_what_was_left(client: &Client, at: &str) {
    sealed_skill(client, at, "one", "limits: {concurrency: 1}").await;
    let first = execute(client, at, "first", "skill: one").await.uid().unwrap();
    let job = made(client, &format!("run-{first}-1")).await;
    let second = execute(client, at, "second", "skill: one").await.uid().unwrap();
    let earlier = Job {
        metadata: serde_json::from_value(
            json!({ "name": format!("run-{second}-1"), "labels": job.labels() }),
        )
        .unwrap(),
        spec: job.spec.clone().map(|spec| k8s_openapi::api::batch::v1::JobSpec { selector: None, ..spec }),
        status: None,
    };
    let mut earlier = serde_json::to_value(earlier).unwrap();
    earlier["metadata"]["labels"]["skillet.dev/execution-uid"] = json!(second);
    // What the API server has put in for the first is the first's alone.
    earlier["spec"]["template"]["metadata"]["labels"] = earlier["metadata"]["labels"].clone();
    let jobs: Api<Job> = Api::namespaced(client.clone(), SANDBOXES);
    let earlier =
        jobs.create(&PostParams::default(), &serde_json::from_value(earlier).unwrap()).await.unwrap();
    let pod = pod_of(client, &earlier).await;
    let state = json!({ "terminated": { "exitCode": 1, "reason": "Error" } });
    let status = json!({ "status": { "phase": "Failed", "containerStatuses": [{ "name": "sandbox", "image": "i", "imageID": "", "ready": false, "restartCount": 0, "state": state }] } });
    let pods: Api<Pod> = Api::namespaced(client.clone(), SANDBOXES);
    pods.patch_status(&pod, &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();

    cancel(client, at, "first").await;
    let status = ended(client, at, "second").await;
    assert_eq!(reason(&status), "SandboxLost", "{:?}", status.message);
    assert_eq!(status.attempts, 1);
}

/// An execution that ended two days ago; the policy keeps them for one.
async fn delete_what_is_old(operator: &Operator, client: &Client, at: &str) {
    execute(client, at, "old", "skill: nothing").await;
    ended(client, at, "old").await;
    set_status(client, at, "old", json!({ "finishedAt": "2001-01-01T00:00:00.000000Z" })).await;
    let api: Api<SkillExecution> = Api::namespaced(client.clone(), at);
    eventually("the old execution is deleted", LIMIT, async || {
        api.get_opt("old").await.unwrap().is_none().then_some(())
    })
    .await;
    let kept = api.get_opt("refused").await.unwrap();
    assert!(kept.is_some(), "one that has just ended is kept");
    let deleted: Vec<String> = operator
        .writes(at)
        .into_iter()
        .filter(|write| write.right() == ("delete".into(), "skillet.dev/skillexecutions".into()))
        .map(|write| write.name)
        .collect();
    assert_eq!(deleted, ["old"]);
}

async fn made(client: &Client, name: &str) -> Job {
    let jobs: Api<Job> = Api::namespaced(client.clone(), SANDBOXES);
    eventually(format!("Job {name} is made"), LIMIT, async || jobs.get_opt(name).await.unwrap()).await
}

/// The pod that the Job controller would make, bound to a node that does not exist: it passes Pod Security at the level
/// `restricted` and the chart's admission policy, or it is not made.
async fn pod_of(client: &Client, job: &Job) -> String {
    let mut pod = serde_json::to_value(&job.spec.as_ref().unwrap().template).unwrap();
    pod["metadata"]["name"] = json!(job.name_any());
    pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] = json!(job.name_any());
    pod["spec"]["nodeName"] = json!("no-such-node");
    let pods: Api<Pod> = Api::namespaced(client.clone(), SANDBOXES);
    pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap().name_any()
}
