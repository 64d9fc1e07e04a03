//! Applies every example into a cluster with Skillet, runs each with its sample input, and shows what came of it.
//! Fails where anything is not as the example's files say.

use std::{
    env,
    io::{IsTerminal as _, stdout},
    process::ExitCode,
    time::Instant,
};

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use skillet_api::{Phase, SkillExecutionStatus, execution::IsolationStatus, reason::SEALED};
use skillet_e2e::{
    Journey, cluster, examples, examples::Example, manifest::FIELD_MANAGER, observe::condition,
};

const NAMESPACE: &str = "skillet-demo";
const WIDTH: usize = 98;
/// Room for the words at the left: `input`, `output`, `sandbox`.
const INDENT: usize = 10;
/// A value longer than this many lines is cut.
const LINES: usize = 6;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match demo().await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("skillet-demo: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn demo() -> Result<bool> {
    let client = cluster::connect().await?;
    let version = client.apiserver_version().await?.git_version;
    make_namespace(&client).await?;
    let journey = Journey { client, namespace: NAMESPACE.into(), name: "demo".into() };
    let all = examples::all()?;
    let paint = Paint::new();
    println!(
        "\n{}",
        paint.bold(&format!("{} skills on Kubernetes {version}, namespace {NAMESPACE}", all.len()))
    );
    let (began, mut wrong) = (Instant::now(), 0);
    for example in &all {
        wrong += usize::from(!show(&journey, example, &paint).await?);
    }
    println!();
    let right = all.len() - wrong;
    let sum =
        format!("{right} of {} as they should be, in {:.1} s", all.len(), began.elapsed().as_secs_f64());
    println!("{}", if wrong == 0 { paint.green(&sum) } else { paint.red(&sum) });
    println!("  kubectl get skills,skillexecutions -n {NAMESPACE}");
    println!("  kubectl skill run calculate -n {NAMESPACE} --input '{{\"expression\": \"6 * 7\"}}'\n");
    Ok(wrong == 0)
}

async fn make_namespace(client: &kube::Client) -> Result<()> {
    let api: Api<Namespace> = Api::all(client.clone());
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } });
    api.patch(NAMESPACE, &PatchParams::apply(FIELD_MANAGER), &Patch::Apply(namespace))
        .await
        .with_context(|| format!("could not make namespace {NAMESPACE}"))?;
    Ok(())
}

/// Runs one example and prints it; whether all is as it should be.
async fn show(journey: &Journey, example: &Example, paint: &Paint) -> Result<bool> {
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
    let gap = WIDTH.saturating_sub(title.len() + end.len() + 2).max(1);
    let mark = if is_right { paint.green("✓") } else { paint.red("✗") };
    let end = if status.phase == Phase::Succeeded { end } else { paint.yellow(&end) };
    println!("\n{mark} {}{}{end}", paint.bold(&title), " ".repeat(gap));
    let purpose = example.skill.spec.description.split(['.', ':']).next().unwrap_or_default();
    println!("{}", paint.dim(&lines("", purpose, 0)));
    println!("{}", lines("input", &compact(&example.input), INDENT));
    println!("{}", result(&status));
    println!("{}", paint.dim(&lines("sandbox", &place(&status), INDENT)));
    for difference in differences {
        println!("{}", paint.red(&lines("wrong", &difference, INDENT)));
    }
    Ok(is_right)
}

fn result(status: &SkillExecutionStatus) -> String {
    if let Some(output) = &status.output {
        return lines("output", &compact(output), INDENT);
    }
    let reason = status.reason.map(|reason| reason.to_string()).unwrap_or_default();
    let message = status.message.as_deref().unwrap_or_default();
    lines("failure", &format!("{reason}: {message}"), INDENT)
}

fn place(status: &SkillExecutionStatus) -> String {
    let Some(pod) = &status.pod else { return "none was made".into() };
    // The pod's name is its Job's and with it the execution's uid: its two ends tell it from others.
    let short = pod.get(..12).zip(pod.get(pod.len().saturating_sub(6)..));
    let pod = short.map_or(pod.clone(), |(head, tail)| format!("{head}…{tail}"));
    let node = status.node.as_deref().unwrap_or("?");
    let proof = status.isolation.as_ref().map(proven).unwrap_or_default();
    format!("{pod} on {node}{proof}")
}

fn proven(proof: &IsolationStatus) -> String {
    let claims = [
        (proof.no_network, "no network"),
        (proof.noexec_scratch, "noexec scratch"),
        (!proof.noexec_scratch && proof.no_direct_exec, "no direct exec"),
        (proof.user_namespace, "own users"),
    ];
    claims.iter().filter(|(holds, _)| *holds).flat_map(|(_, words)| [" · ", words]).collect()
}

fn compact(value: &Value) -> String {
    value.to_string()
}

/// `text` in lines that fit, after `word` and below each other.
fn lines(word: &str, text: &str, indent: usize) -> String {
    let room = WIDTH - indent - 2;
    let mut rows: Vec<String> = Vec::new();
    for paragraph in text.lines() {
        let mut rest: Vec<char> = paragraph.chars().collect();
        while rest.len() > room {
            let is_gap = |c: &char| *c == ' ' || *c == ',';
            let end = rest[..room].iter().rposition(is_gap).map_or(room, |at| at + 1);
            rows.push(rest.drain(..end).collect::<String>().trim_end().to_owned());
        }
        rows.push(rest.into_iter().collect());
    }
    if rows.len() > LINES {
        rows.truncate(LINES);
        rows.push("…".into());
    }
    let first = format!("  {word:indent$}");
    let margin = " ".repeat(indent + 2);
    let joined = rows.join(&format!("\n{margin}"));
    format!("{first}{joined}")
}

/// Colours, where somebody looks.
struct Paint {
    is_on: bool,
}

impl Paint {
    fn new() -> Self {
        Self { is_on: stdout().is_terminal() && env::var_os("NO_COLOR").is_none() }
    }

    fn with(&self, code: &str, text: &str) -> String {
        if self.is_on { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn bold(&self, text: &str) -> String {
        self.with("1", text)
    }

    fn dim(&self, text: &str) -> String {
        self.with("2", text)
    }

    fn green(&self, text: &str) -> String {
        self.with("32", text)
    }

    fn red(&self, text: &str) -> String {
        self.with("31", text)
    }

    fn yellow(&self, text: &str) -> String {
        self.with("33", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_laid_in_lines_that_fit() {
        let text = lines("input", &format!("{{\"a\":\"{}\"}}", "word, ".repeat(60)), INDENT);
        assert!(text.lines().count() > 3 && text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.starts_with("  input     {\"a\""), "{text}");
        assert!(lines("output", &"x".repeat(5000), INDENT).ends_with('…'));
    }
}
