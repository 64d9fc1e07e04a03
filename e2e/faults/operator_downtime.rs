//! Runs that continued, ended or vanished while no operator was there, settled by the next operator.

use std::{env, fs, path::Path, time::Duration};

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::{batch::v1::Job, core::v1::Pod};
use kube::{
    ResourceExt as _,
    api::{DeleteParams, PostParams, PropagationPolicy},
};
use serde_json::{Map, Value, json};
use skillet_api::{
    Phase, Reason, SkillExecution, SkillExecutionStatus,
    names::LABEL_EXECUTION_UID,
    reason::{FINISHED, SUCCEEDED},
};
use skillet_e2e::{
    Ended, Journey, SkillDraft, eventually, journey_under, metrics::Metrics, observe::condition, operator,
    sandbox,
};

const ENDS_WITHIN: Duration = Duration::from_secs(60);

/// A run that is underway when the operator goes away.
pub(crate) struct Begun {
    execution: SkillExecution,
    status: SkillExecutionStatus,
}

impl Begun {
    pub(crate) fn execution(&self) -> &SkillExecution {
        &self.execution
    }
}

pub(crate) async fn begin(j: &Journey, skill: &str) -> Result<Begun> {
    let execution = j.start(skill, json!({ "of": skill })).await?;
    let status = j.running(&execution).await?;
    Ok(Begun { execution, status })
}

#[tokio::test]
async fn runs_are_settled_for_what_became_of_them_while_no_operator_was_there() -> Result<()> {
    journey_under(json!({}), async |j| {
        for name in ["steady", "raised", "unlogged"] {
            j.apply(&SkillDraft::shell(name, "sleep 12; cat")).await?;
        }
        j.apply(&SkillDraft::shell("retried", "sleep 12; cat").limit("retries", 1)).await?;
        let (steady, raised, unlogged, retried, vanished) = tokio::try_join!(
            begin(j, "steady"),
            begin(j, "raised"),
            begin(j, "unlogged"),
            begin(j, "retried"),
            begin(j, "steady"),
        )?;
        let template = job_of(j, &steady).await?;
        let (planted, is_unlogged) = operator::away(&j.client, async || {
            j.apply(&SkillDraft::shell("steady", "sleep 12; cat").spec("mode", "off")).await?;
            j.apply(&SkillDraft::shell("raised", "echo 2").version("2.0.0")).await?;
            delete_job(j, &retried).await?;
            delete_job(j, &vanished).await?;
            let waiting = j.start("raised", json!({ "of": "planted" })).await?;
            plant(j, template, &waiting, without_user_namespace).await?;
            Ok((waiting, lose_log(j, &unlogged).await?))
        })
        .await?;
        // A started run continues with its version, though the skill is off by now.
        assert_eq!(j.ended(&steady.execution).await?.output(), json!({ "of": "steady" }));
        let ended = j.ended(&raised.execution).await?;
        assert_eq!(ended.status.resolved_version.as_deref(), Some("1.0.0"));
        assert_eq!(ended.output(), json!({ "of": "raised" }));
        // What is gone is lost once, and tried again only where that was asked for.
        let ended = j.ended(&retried.execution).await?.is(Phase::Succeeded, Reason::Succeeded);
        ensure!(ended.status.attempts == 2, "{:?}", ended.status);
        let lost = j.ended(&vanished.execution).await?;
        ensure!(lost.status.attempts == 1, "{:?}", lost.status);
        failed_alike(j, lost, Reason::SandboxLost, &["no operator was there"]).await?;
        let unreadable = j.ended(&unlogged.execution).await?;
        if is_unlogged {
            failed_alike(j, unreadable, Reason::ResultLost, &["did not arrive whole"]).await?;
        }
        let unproven = j.ended(&planted).await?;
        failed_alike(j, unproven, Reason::IsolationUnavailable, &["userNamespace", "Strict"]).await
    })
    .await
}

/// One run at a time, so that others wait. The version says which content was run.
fn versioned(version: u32) -> SkillDraft {
    let script = format!("cat >/dev/null; sleep 3; echo '{{\"version\": {version}}}'");
    SkillDraft::shell("shared", &script).version(&format!("{version}.0.0")).limit("concurrency", 1)
}

#[tokio::test]
async fn a_sandbox_of_another_operator_is_given_the_version_that_was_chosen_for_it() -> Result<()> {
    journey_under(json!({}), async |j| {
        j.apply(&versioned(1)).await?;
        j.ready("shared").await?;
        let first = begin(j, "shared").await?;
        // Waits for its place, which it has in the eyes of the other operator.
        let second = j.start("shared", json!({})).await?;
        plant(j, job_of(j, &first).await?, &second, |_| Ok(())).await?;
        j.apply(&versioned(2)).await?;
        let ended = j.ended(&second).await?;
        assert_eq!(ended.status.resolved_version.as_deref(), Some("1.0.0"));
        assert_eq!(ended.output(), json!({ "version": 1 }));
        assert_eq!(j.run("shared", json!({})).await?.output(), json!({ "version": 2 }));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_run_that_is_larger_than_the_whole_quota_fails_at_once() -> Result<()> {
    let limits = json!({ "maximums": { "memory": "4096Gi" } });
    journey_under(limits, async |j| {
        j.apply(&SkillDraft::shell("huge", "cat").limit("memory", "2048Gi")).await?;
        j.ready("huge").await?;
        let ended = j.run("huge", json!({})).await?;
        let name = ended.uid.clone();
        assert_eq!(ended.status.job, Some(format!("run-{name}-1")));
        failed_alike(j, ended, Reason::Unschedulable, &["exceeded quota", "limits.memory"]).await?;
        eventually("its sandbox is removed", ENDS_WITHIN, async || {
            Ok(j.sandboxes(&name).await?.is_empty().then_some(()))
        })
        .await
    })
    .await
}

/// Failed for `reason`, and conditions, event and metric say the same.
async fn failed_alike(j: &Journey, ended: Ended, reason: Reason, words: &[&str]) -> Result<()> {
    let ended = ended.is(Phase::Failed, reason).says(words);
    for (type_, status) in [(FINISHED, "True"), (SUCCEEDED, "False")] {
        let said = condition(&ended.status.conditions, type_).map(|c| (c.status.as_str(), c.reason.as_str()));
        ensure!(said == Some((status, reason.as_str())), "condition {type_} says {said:?}");
    }
    let note = j.event(&ended.name, reason).await?;
    ensure!(words.iter().all(|word| note.contains(word)), "the event says {note:?}");
    eventually(&format!("{reason} is counted"), ENDS_WITHIN, async || {
        let counted = Metrics::scrape(&j.client).await?;
        let labels = [("phase", "Failed"), ("reason", reason.as_str())];
        Ok((counted.sum("skillet_executions_total", &labels) >= 1.0).then_some(()))
    })
    .await
}

pub(crate) async fn job_of(j: &Journey, begun: &Begun) -> Result<Job> {
    let name = begun.status.job.as_deref().context("no job")?;
    Ok(sandbox::jobs(&j.client).get(name).await?)
}

async fn delete_job(j: &Journey, begun: &Begun) -> Result<()> {
    let whole =
        DeleteParams { propagation_policy: Some(PropagationPolicy::Background), ..DeleteParams::default() };
    let name = begun.status.job.as_deref().context("no job")?;
    sandbox::jobs(&j.client).delete(name, &whole.grace_period(0)).await?;
    Ok(())
}

/// As under an operator that asked for less isolation.
fn without_user_namespace(pod: &mut Map<String, Value>) -> Result<()> {
    pod.remove("hostUsers").context("the sandbox had no user namespace before")?;
    Ok(())
}

/// Makes the sandbox of an execution as another operator would that chose version 1.0.0, and changes its pod.
pub(crate) async fn plant(
    j: &Journey,
    template: Job,
    execution: &SkillExecution,
    change: impl FnOnce(&mut Map<String, Value>) -> Result<()>,
) -> Result<()> {
    let uid = execution.uid().context("no uid")?;
    let mut job = serde_json::to_value(template)?;
    let mut labels = job["metadata"]["labels"].clone();
    labels[LABEL_EXECUTION_UID] = json!(uid);
    labels["skillet.dev/skill"] = json!(execution.spec.skill);
    labels["skillet.dev/version"] = json!("1.0.0");
    job["metadata"] = json!({ "name": format!("run-{uid}-1"), "labels": labels });
    job["status"] = Value::Null;
    let spec = job["spec"].as_object_mut().context("no spec")?;
    spec.remove("selector");
    spec["template"]["metadata"] = json!({ "labels": labels });
    change(spec["template"]["spec"].as_object_mut().context("no pod")?)?;
    let job: Job = serde_json::from_value(job)?;
    sandbox::jobs(&j.client)
        .create(&PostParams::default(), &job)
        .await
        .context("could not plant a sandbox")?;
    Ok(())
}

/// Waits for the end of a run's container and takes its log away from the node. False where the node is another
/// machine.
async fn lose_log(j: &Journey, begun: &Begun) -> Result<bool> {
    let Ok(logs) = env::var("SKILLET_NODE_LOGS") else {
        eprintln!("ResultLost is not looked at: SKILLET_NODE_LOGS names no folder of container logs");
        return Ok(false);
    };
    let name = begun.status.pod.as_deref().context("no pod")?;
    let pods = sandbox::pods(&j.client);
    let pod = eventually("the program has ended", ENDS_WITHIN, async || {
        let pod = pods.get(name).await?;
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        Ok(matches!(phase, Some("Succeeded" | "Failed")).then_some(pod))
    })
    .await?;
    let folder = Path::new(&logs).join(log_folder(&pod));
    let mut emptied = 0;
    for container in fs::read_dir(&folder).with_context(|| format!("could not read {}", folder.display()))? {
        for file in fs::read_dir(container?.path())? {
            fs::write(file?.path(), "")?;
            emptied += 1;
        }
    }
    if emptied == 0 {
        bail!("{} has no logs", folder.display());
    }
    Ok(true)
}

fn log_folder(pod: &Pod) -> String {
    let part = |part: Option<String>| part.unwrap_or_default();
    format!("{}_{}_{}", part(pod.namespace()), pod.name_any(), part(pod.uid()))
}
