//! A script of a bundle against a plain skill of the same program, in turn, on the same cluster.

use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use skillet_api::{Skill, SkillExecution};

use crate::{
    cluster::{USER_AGENT, client, is_ready, ready_skill, rest, until, within},
    figure::Figure,
    racer::{Racer, execution_end},
    samples::Samples,
};

const NAMESPACE: &str = "skillet-bench-scripts";
const PROGRAM: &str = "echo '{\"ok\":true}'";
const PLAIN: &str = "plain";
const BUNDLE: &str = "bundle";

pub(crate) async fn measure(runs: usize) -> anyhow::Result<Vec<Figure>> {
    let client = client().await?;
    within(&client, NAMESPACE, async |client| in_namespace(client, runs).await).await
}

async fn in_namespace(client: &Client, runs: usize) -> anyhow::Result<Vec<Figure>> {
    ready_skill(client, NAMESPACE, PLAIN, &json!({ "runtime": "shell", "script": PROGRAM })).await?;
    ready_bundle(client).await?;
    let mut executions = Racer::<SkillExecution>::new(client, NAMESPACE, execution_end);
    let specs =
        [json!({ "skill": PLAIN }), json!({ "skill": BUNDLE, "script": { "path": "scripts/answer.sh" } })];
    // Once without counting: the image is unpacked.
    for (which, spec) in specs.iter().enumerate() {
        executions.run(&format!("first-{which}"), spec.clone()).await?;
    }
    let mut times = [Samples::default(), Samples::default()];
    for run in 0..runs {
        // Each comes first as often as the other.
        for place in 0..2 {
            rest(client, NAMESPACE).await?;
            let which = (run + place) % 2;
            let name = format!("run-{run}-{which}");
            times[which].add(executions.run(&name, specs[which].clone()).await?);
            executions.remove(&name).await?;
        }
    }
    let [plain, script] = &times;
    println!("plain skill created -> terminal status seen:      {plain}");
    println!("script of a bundle created -> terminal status seen: {script}");
    let added = (script.median().as_secs_f64() - plain.median().as_secs_f64()) * 1_000.0;
    Ok(vec![Figure::lower("script_added_ms", added, 2.0, "ms", runs)])
}

/// A skill of instructions, whose script is the other's program.
async fn ready_bundle(client: &Client) -> anyhow::Result<()> {
    let api: Api<Skill> = Api::namespaced(client.clone(), NAMESPACE);
    let files: Value = json!([{ "path": "scripts/answer.sh", "content": PROGRAM }]);
    let skill = json!({
        "apiVersion": "skillet.dev/v1alpha1",
        "kind": "Skill",
        "metadata": { "name": BUNDLE },
        "spec": { "version": "1.0.0", "description": "Measures", "instructions": { "body": "Run it." }, "files": files },
    });
    api.patch(BUNDLE, &PatchParams::apply(USER_AGENT), &Patch::Apply(&skill)).await?;
    until("the skill of instructions is Ready", 60, async || {
        Ok(api.get(BUNDLE).await.is_ok_and(|skill| is_ready(&skill)))
    })
    .await
}
