//! One example: applied, run with its sample input, and shown.

use std::time::Instant;

use anyhow::Result;
use skillet_api::{Isolation, Phase, SkillExecutionStatus, reason::SEALED};
use skillet_e2e::{Journey, examples::Example, observe::condition};

use crate::page::{INDENT, Paint, lines};

/// Runs one example and prints it; whether all is as it should be.
pub(crate) async fn show(journey: &Journey, example: &Example, paint: &Paint) -> Result<bool> {
    journey.apply(example.yaml.as_str()).await?;
    let skill = journey.observed(&example.name).await?;
    let asked = Instant::now();
    let status = journey.run(&example.name, example.input.clone()).await?.status;
    let took = asked.elapsed().as_millis();
    let mut differences = example.expected.differences(&status);
    // Else an older content of the same version ran, from an earlier demo.
    let sealed = condition(&skill.conditions, SEALED);
    differences.extend(sealed.filter(|sealed| sealed.status != "True").map(|sealed| sealed.message.clone()));
    let is_right = differences.is_empty();

    let title = format!("{} {}", example.name, status.resolved_version.as_deref().unwrap_or_default());
    let ran = status.duration_ms.map_or(" ms".into(), |ms| format!(" ms, the program {ms} ms"));
    let end = format!("{:?} in {took}{ran}", status.phase);
    let end = (status.phase == Phase::Succeeded, end.as_str());
    println!("\n{}", paint.heading(is_right, &title, end));
    let purpose = example.skill.spec.description.split(['.', ':']).next().unwrap_or_default();
    println!("{}", paint.dim(&lines("", purpose, 0)));
    println!("{}", lines("input", &example.input.to_string(), INDENT));
    println!("{}", result(&status));
    println!("{}", paint.dim(&lines("sandbox", &place(&status), INDENT)));
    for difference in differences {
        println!("{}", paint.red(&lines("wrong", &difference, INDENT)));
    }
    Ok(is_right)
}

fn result(status: &SkillExecutionStatus) -> String {
    if let Some(output) = &status.output {
        return lines("output", &output.to_string(), INDENT);
    }
    let reason = status.reason.map(|reason| reason.to_string()).unwrap_or_default();
    let message = status.message.as_deref().unwrap_or_default();
    lines("failure", &format!("{reason}: {message}"), INDENT)
}

/// The place of a run, and the proofs of its isolation.
pub(crate) fn place(status: &SkillExecutionStatus) -> String {
    let Some(pod) = &status.pod else { return "none was made".into() };
    // The pod's name is its Job's and with it the execution's uid: its two ends tell it from others.
    let short = pod.get(..12).zip(pod.get(pod.len().saturating_sub(6)..));
    let pod = short.map_or(pod.clone(), |(head, tail)| format!("{head}…{tail}"));
    let node = status.node.as_deref().unwrap_or("?");
    let proof = status.isolation.as_ref().map(proven).unwrap_or_default();
    format!("{pod} on {node}{proof}")
}

fn proven(proof: &Isolation) -> String {
    let claims = [
        (proof.network_blocked, "no network"),
        (proof.noexec_scratch, "noexec scratch"),
        (!proof.noexec_scratch && proof.direct_exec_refused, "no direct exec"),
        (proof.user_namespace, "own users"),
    ];
    claims.iter().filter(|(holds, _)| *holds).flat_map(|(_, words)| [" · ", words]).collect()
}
