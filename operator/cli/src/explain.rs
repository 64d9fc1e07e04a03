//! `kubectl skill explain`: asks the gateway if a model would be offered each skill for a request.

mod gateway;

use std::borrow::Cow;

use http::{Method, Request};
use kube::client::Body;
use serde::{Deserialize, Serialize};
use serde_json::json;

use self::gateway::Gateway;
use crate::{
    arguments::{ClusterArgs, ExplainArgs},
    connection::connect,
    console::{self, Console},
    error::CliError,
    exit::Exit,
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
    let gateway = Gateway::find(&connection, args).await?;
    let token = match &args.api_key {
        Some(key) => Cow::from(key),
        None => gateway::token(&connection, &args.service_account).await?.into(),
    };
    let Explanation { skills } = gateway.send(request(&gateway, &token, args)).await?;
    if skills.is_empty() && args.output.is_for_people() {
        let account = &args.service_account;
        console::explain(&format!(
            "No skill can be offered: the caller may get and execute none.\n\
             kubectl auth can-i execute skills.skillet.dev -n {0} --as system:serviceaccount:{0}:{account} shows its right\n",
            connection.namespace
        ));
        return Ok(Exit::Done);
    }
    let is_wide = args.output == ListFormat::Wide;
    console.print(&args.output.render(&skills, || table(&skills, is_wide))?)?;
    Ok(Exit::Done)
}

/// The token stands in a header of the gateway's own: the API server's proxy removes `Authorization`.
fn request(gateway: &Gateway, token: &str, args: &ExplainArgs) -> Request<Body> {
    let message = json!({ "role": "user", "content": args.text });
    let model = args.model.as_deref().unwrap_or_default();
    let body = json!({ "dialect": "openai-chat", "request": { "model": model, "messages": [message] } });
    let mut request = Request::new(Body::from(body.to_string().into_bytes()));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = gateway.explain_uri();
    let headers = request.headers_mut();
    headers.insert("content-type", http::HeaderValue::from_static("application/json"));
    if let Ok(token) = http::HeaderValue::from_str(token) {
        headers.insert("x-skillet-token", token);
    }
    request
}

fn table(skills: &[ExplainedSkill], is_wide: bool) -> String {
    const HEADER: [&str; 7] = ["SKILL", "NAMESPACE", "OFFERED", "SCORE", "THRESHOLD", "WHY", "SIGNALS"];
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
        let cells = [
            skill.name.clone(),
            skill.namespace.clone(),
            if skill.offered { "yes" } else { "no" }.to_owned(),
            skill.score.to_string(),
            skill.threshold.map(|threshold| threshold.to_string()).unwrap_or_default(),
            skill.reason.clone(),
            signals.join(", "),
        ];
        table.push(cells[..columns].to_vec());
    }
    table.render()
}

#[cfg(test)]
mod tests;
