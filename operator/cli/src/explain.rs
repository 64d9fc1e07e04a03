//! `kubectl skill explain`: asks the gateway if a model would be offered each skill for a request.

use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::{
    arguments::{ClusterArgs, ExplainArgs},
    connection::connect,
    console::{self, Console},
    error::CliError,
    exit::Exit,
    gateway::{self, Gateway},
    output_format::{ListFormat, ListedObject},
    table::Table,
};

/// The decision about one skill, as the gateway returns it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct ExplainedSkill {
    #[serde(default)]
    namespace: String,
    name: String,
    #[serde(default)]
    version: Option<String>,
    #[serde(default)]
    score: i64,
    #[serde(default)]
    threshold: Option<i64>,
    #[serde(default)]
    signals: Vec<Signal>,
    offered: bool,
    reason: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Signal {
    kind: String,
    points: i64,
    #[serde(default)]
    text: String,
}

#[derive(Debug, Deserialize)]
struct Explanation {
    skills: Vec<ExplainedSkill>,
    /// The terms that the text was searched for, the heaviest first.
    #[serde(default)]
    terms: Vec<SearchedTerm>,
    #[serde(default)]
    embeddings: Embeddings,
}

#[derive(Debug, Deserialize)]
struct SearchedTerm {
    word: String,
    term: String,
    points: i64,
}

/// The state of the gateway's embedding model.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Embeddings {
    /// The reason why the model could not be loaded.
    message: Option<String>,
}

/// Signals whose points are no words of the skill's texts.
const LEARNED_SIGNALS: [&str; 2] = ["Learned", "Unused"];
const VECTOR_SIGNAL: &str = "Vector";

impl ExplainedSkill {
    /// Returns the points of words, of learning, and of the vector.
    fn shares(&self) -> [i64; 3] {
        let mut shares = [0; 3];
        for signal in &self.signals {
            let [words, learned, vector] = &mut shares;
            match signal.kind.as_str() {
                VECTOR_SIGNAL => *vector += signal.points,
                kind if LEARNED_SIGNALS.contains(&kind) => *learned += signal.points,
                _ => *words += signal.points,
            }
        }
        shares
    }
}

impl ListedObject for ExplainedSkill {
    const RESOURCE: &'static str = "skill.skillet.dev";

    fn name(&self) -> &str {
        &self.name
    }
}

pub(crate) async fn run(
    cluster: &ClusterArgs,
    args: &ExplainArgs,
    console: &Console,
) -> Result<Exit, CliError> {
    let connection = connect(cluster).await?;
    let gateway = Gateway::find(&connection, &args.gateway).await?;
    let explanation = ask(&gateway, args).await?;
    let Explanation { skills, embeddings, .. } = &explanation;
    if let Some(message) = &embeddings.message {
        console::explain(&format!("Skills are ranked by words alone: {message}\n"));
    }
    if skills.is_empty() && args.output.is_for_people() {
        let account = &args.gateway.service_account;
        console::explain(&format!(
            "No skill can be offered: the caller may get and execute none.\n\
             kubectl auth can-i execute skills.skillet.dev -n {0} --as system:serviceaccount:{0}:{account} shows its right\n",
            connection.namespace
        ));
        return Ok(Exit::Done);
    }
    let is_wide = args.output == ListFormat::Wide;
    console.print(&args.output.render(skills, || text(&explanation, is_wide))?)?;
    Ok(Exit::Done)
}

async fn ask(gateway: &Gateway, args: &ExplainArgs) -> Result<Explanation, CliError> {
    let message = json!({ "role": "user", "content": args.text });
    let model = args.model.as_deref().unwrap_or_default();
    let body = json!({ "dialect": "openai-chat", "request": { "model": model, "messages": [message] } });
    let body = body.to_string().into_bytes();
    let response = gateway.send(Method::POST, "/v1/explain", "application/json", body).await?;
    Ok(gateway::read(&response)?)
}

/// Returns the table of the skills, and below it the table of the terms.
fn text(explanation: &Explanation, is_wide: bool) -> String {
    let Explanation { skills, terms, embeddings: _ } = explanation;
    let skills = table(skills, is_wide);
    if terms.is_empty() {
        return skills;
    }
    let mut table = Table::new(&["WORD", "TERM", "POINTS"]);
    for SearchedTerm { word, term, points } in terms {
        table.push(vec![word.clone(), term.clone(), points.to_string()]);
    }
    format!("{skills}\n{}", table.render())
}

fn table(skills: &[ExplainedSkill], is_wide: bool) -> String {
    const HEADER: [&str; 11] = [
        "SKILL",
        "NAMESPACE",
        "OFFERED",
        "SCORE",
        "THRESHOLD",
        "DISTANCE",
        "WORDS",
        "LEARNED",
        "VECTOR",
        "WHY",
        "SIGNALS",
    ];
    let columns = HEADER.len() - usize::from(!is_wide);
    let mut table = Table::new(&HEADER[..columns]);
    let mut sorted: Vec<&ExplainedSkill> = skills.iter().collect();
    sorted.sort_by_key(|skill| (!skill.offered, std::cmp::Reverse(skill.score)));
    for skill in sorted {
        let signals: Vec<String> = skill
            .signals
            .iter()
            .map(|signal| format!("{} {} {:+}", signal.kind, signal.text, signal.points))
            .collect();
        let [words, learned, vector] = skill.shares().map(|points| points.to_string());
        let distance = skill.threshold.map(|threshold| format!("{:+}", skill.score - threshold));
        let cells = [
            skill.name.clone(),
            skill.namespace.clone(),
            if skill.offered { "yes" } else { "no" }.to_owned(),
            skill.score.to_string(),
            skill.threshold.map(|threshold| threshold.to_string()).unwrap_or_default(),
            distance.unwrap_or_default(),
            words,
            learned,
            vector,
            skill.reason.clone(),
            signals.join(", "),
        ];
        table.push(cells[..columns].to_vec());
    }
    table.render()
}

#[cfg(test)]
mod tests;
