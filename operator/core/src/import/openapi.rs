//! HTTP skills of an OpenAPI 3 document: one for each operation, or the reason why there is none. One odd operation never stops
//! the others.
//!
//! References are resolved inside of the document; nothing is fetched. What a request cannot say is left out with a note, and
//! an operation that needs it is refused.

mod body;
mod document;
mod inputs;
mod names;
mod parameters;
mod schema;
mod security;
mod server;

use serde_json::{Map, Value, json};
use skillet_api::{Reason, Skill, SkillPolicySpec};

use super::{Outcome, Verdict, findings, manifest::FILE_ANNOTATION, manifest::FINDINGS_ANNOTATION};
use crate::{
    skill::{FieldError, validate_skill},
    text::truncate,
    version::SkillSemver,
};
use document::Document;
use inputs::Inputs;
use names::Names;
use schema::{Direction, Inliner};

/// Longest description of a skill, in characters.
const MAX_DESCRIPTION: usize = 1024;
/// Most schemas in an output schema. A larger one is rarely true to what a host sends.
const MAX_OUTPUT_SCHEMAS: usize = 64;
/// The methods of a path.
const METHODS: [&str; 8] = ["get", "head", "post", "put", "patch", "delete", "options", "trace"];

/// A document, and how its user wants it read.
#[derive(Clone, Copy, Debug)]
pub struct OpenApi<'a> {
    pub document: &'a Value,
    /// Name of the file, for verdicts and annotations.
    pub file: &'a str,
    /// Text before the name of each Skill.
    pub prefix: &'a str,
    /// URL in the place of the document's servers.
    pub server: Option<&'a str>,
}

/// The request of an operation as it grows, with what was left out.
#[derive(Debug, Default)]
struct Request {
    headers: Map<String, Value>,
    query: Map<String, Value>,
    secrets: Vec<Value>,
    inputs: Inputs,
    notes: Vec<String>,
}

/// Reads all operations, in the order of their paths.
pub fn read(source: OpenApi<'_>) -> Vec<Verdict> {
    let refuse = |reason: String| {
        vec![Verdict { path: source.file.to_owned(), outcome: Outcome::Refused, notes: vec![reason] }]
    };
    let document = Document::new(source.document);
    match source.document["openapi"].as_str() {
        Some(version) if version.starts_with("3.0") || version.starts_with("3.1") => {}
        Some(version) => return refuse(format!("OpenAPI {version} is not read; 3.0 and 3.1 are")),
        None if source.document.get("swagger").is_some() => {
            return refuse("Swagger 2 is not read; convert the document to OpenAPI 3".to_owned());
        }
        None => return refuse("the document has no field openapi: it is no OpenAPI 3 document".to_owned()),
    }
    let Some(paths) = source.document["paths"].as_object() else {
        return refuse("the document has no paths".to_owned());
    };
    let (mut names, mut verdicts) = (Names::new(source.prefix), Vec::new());
    for (path, item) in paths {
        if path.starts_with("x-") {
            continue;
        }
        let item = document.resolve(item).unwrap_or(&Value::Null);
        for method in METHODS {
            let Some(own) = item.get(method) else { continue };
            let place = format!("{}#{} {path}", source.file, method.to_uppercase());
            let operation = Operation { path, method, item, own, source };
            verdicts.push(operation.verdict(document, &mut names, place));
        }
    }
    if verdicts.is_empty() { refuse("the document has no operations".to_owned()) } else { verdicts }
}

/// An operation in its path.
#[derive(Clone, Copy, Debug)]
struct Operation<'a> {
    path: &'a str,
    method: &'a str,
    item: &'a Value,
    own: &'a Value,
    source: OpenApi<'a>,
}

impl<'a> Operation<'a> {
    fn verdict(self, document: Document<'a>, names: &mut Names, place: String) -> Verdict {
        match self.skill(document, names, &place) {
            Ok((object, notes)) => {
                Verdict { path: place, outcome: Outcome::Taken { object, is_repaired: false }, notes }
            }
            Err(notes) => Verdict { path: place, outcome: Outcome::Refused, notes },
        }
    }

    /// Returns the Skill and the notes on it, or the reasons why there is none.
    fn skill(
        self,
        document: Document<'a>,
        names: &mut Names,
        place: &str,
    ) -> Result<(Value, Vec<String>), Vec<String>> {
        if matches!(self.method, "options" | "trace") {
            return Err(vec![format!("no skill sends {}", self.method.to_uppercase())]);
        }
        let one = |reason: String| vec![reason];
        let mut request = Request::default();
        let server = server::of(self).map_err(one)?;
        let path = parameters::read(document, self, &mut request).map_err(one)?;
        let body = body::read(document, self, &mut request).map_err(one)?;
        let needs = security::read(document, self, &mut request).map_err(one)?;
        let mut http =
            json!({ "method": self.method.to_uppercase(), "url": format!("{}{path}", server.url) });
        let Request { headers, query, secrets, inputs, mut notes } = request;
        for (field, value) in [("headers", headers), ("query", query)] {
            if !value.is_empty() {
                http[field] = value.into();
            }
        }
        if let Some(body) = body {
            http["body"] = body;
        }
        if !secrets.is_empty() {
            http["secrets"] = secrets.into();
        }
        if self.own.get("callbacks").is_some() {
            notes.push("its callbacks are left out".to_owned());
        }
        if self.own["deprecated"] == true {
            notes.push("the operation is deprecated".to_owned());
        }
        let name = names.of(self.own["operationId"].as_str(), self.method, self.path);
        let mut annotations = json!({ FILE_ANNOTATION: place });
        if let Some(findings) = findings::annotation(&notes) {
            annotations[FINDINGS_ANNOTATION] = findings.into();
        }
        let mut object = json!({
            "apiVersion": "skillet.dev/v1alpha1",
            "kind": "Skill",
            "metadata": { "name": name, "annotations": annotations },
            "spec": {
                "version": version(&self.source.document["info"]["version"]),
                "description": self.description(),
                "tool": { "inputSchema": inputs.schema() },
                "network": { "hosts": [server.host] },
                "run": { "http": http },
            },
        });
        if let Some(schema) = self.output_schema(document) {
            object["spec"]["tool"]["outputSchema"] = schema;
        }
        notes.extend(needs);
        let notes = checked(&mut object, notes)?;
        Ok((object, notes))
    }

    /// Summary and description, on one line each.
    fn description(self) -> String {
        let line = |field: &str| {
            let text = self.own[field].as_str().unwrap_or_default();
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let (summary, details) = (line("summary"), line("description"));
        let text = match (summary.is_empty(), details.is_empty()) {
            (true, true) => format!("{} {}", self.method.to_uppercase(), self.path),
            (false, true) => summary,
            (true, false) => details,
            (false, false) if details.starts_with(&summary) => details,
            (false, false) => format!("{}. {details}", summary.trim_end_matches('.')),
        };
        truncate(&text, MAX_DESCRIPTION).0.to_owned()
    }

    /// The schema of the one response that is a success, if it is JSON and small.
    fn output_schema(self, document: Document<'a>) -> Option<Value> {
        let responses = self.own["responses"].as_object()?;
        let mut successes = responses.iter().filter(|(status, _)| status.starts_with('2'));
        let (_, response) = successes.next()?;
        if successes.next().is_some() {
            return None;
        }
        let content = document.resolve(response).ok()?["content"].as_object()?;
        let [(_, media)] = content.iter().filter(|(kind, _)| body::is_json(kind)).collect::<Vec<_>>()[..]
        else {
            return None;
        };
        let mut inliner = Inliner::new(document, Direction::Response);
        let schema = inliner.schema(media.get("schema")?);
        let is_whole = inliner.cuts.is_empty() && inliner.nodes <= MAX_OUTPUT_SCHEMAS;
        let is_structure = matches!(schema["type"].as_str(), Some("object" | "array"));
        (is_whole && is_structure).then_some(schema)
    }
}

/// Validates a Skill as the operator does. A schema that it cannot use is replaced by a simpler one.
fn checked(object: &mut Value, mut notes: Vec<String>) -> Result<Vec<String>, Vec<String>> {
    for _ in 0..3 {
        let skill: Skill = serde_json::from_value(object.clone()).map_err(|error| vec![error.to_string()])?;
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let Err(errors) = validate_skill(name, &skill.spec, &SkillPolicySpec::default()) else {
            return Ok(notes);
        };
        let has = |reason: Reason| errors.iter().any(|error: &FieldError| error.reason == reason);
        if has(Reason::OutputSchemaInvalid) {
            let tool = object["spec"]["tool"].as_object_mut();
            drop(tool.and_then(|tool| tool.remove("outputSchema")));
            notes.push("the schema of the response cannot be used and is left out".to_owned());
        } else if has(Reason::InputSchemaInvalid) {
            let schema = &mut object["spec"]["tool"]["inputSchema"];
            *schema = inputs::simplified(schema);
            notes.push("schemas of inputs cannot be used as written; only their types are kept".to_owned());
        } else {
            return Err(errors.iter().map(ToString::to_string).collect());
        }
    }
    Err(vec!["its schemas cannot be used".to_owned()])
}

/// The version of the document, if it is three numbers; else the first one.
fn version(version: &Value) -> String {
    let text = version.as_str().unwrap_or_default().trim_start_matches('v');
    if text.parse::<SkillSemver>().is_ok() { text.to_owned() } else { "1.0.0".to_owned() }
}

#[cfg(test)]
mod tests;
