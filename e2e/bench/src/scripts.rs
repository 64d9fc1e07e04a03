//! A script of a bundle against a plain skill of the same program, in turn, on the same cluster.

use kube::Client;
use serde_json::json;
use skillet_api::SkillExecution;

use crate::{
    cluster::{client, ready_bundle, ready_skill, rest, within},
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
    let files = json!([{ "path": "scripts/answer.sh", "content": PROGRAM }]);
    ready_bundle(client, NAMESPACE, BUNDLE, &files).await?;
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
