//! Reads `run.http`: every template and path is parsed here, once, and every mistake is found with its field.

use std::collections::BTreeSet;

use skillet_api::{
    http::{Http, HttpMethod, ResponseFormat},
    network::Network,
};

use super::{
    HttpProgram, JsonPath, Template, UrlTemplate,
    body::BodyTemplate,
    template::{Piece, Placeholder},
    url::dot_segment,
};
use crate::skill::HostPattern;

const FIELD: &str = "spec.run.http";

/// A field of `run.http` that cannot be used, and the fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpProblem {
    pub field: String,
    pub message: String,
}

/// Headers that belong to the client which sends the request.
const CLIENT_HEADERS: [&str; 14] = [
    "accept-encoding",
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];

/// Problems so far.
#[derive(Default)]
struct Problems(Vec<HttpProblem>);

impl Problems {
    fn add(&mut self, field: &str, message: impl Into<String>) {
        self.0.push(HttpProblem { field: format!("{FIELD}.{field}"), message: message.into() });
    }

    fn template(&mut self, field: &str, text: &str) -> Template {
        Template::parse(text).unwrap_or_else(|problem| {
            self.add(field, problem);
            Template::default()
        })
    }

    fn at_most(&mut self, field: &str, count: usize, limit: usize) {
        if count > limit {
            self.add(field, format!("has {count} entries, at most {limit} are allowed"));
        }
    }
}

impl HttpProgram {
    /// Reads a request, and checks its host against the hosts of the skill. Unset, those are the host of the URL alone.
    pub fn read(http: &Http, network: Option<&Network>) -> Result<Self, Vec<HttpProblem>> {
        let mut problems = Problems::default();
        let url = match UrlTemplate::parse(&http.url) {
            Ok(url) => {
                check_url(&url, network, &mut problems);
                Some(url)
            }
            Err(problem) => {
                problems.add("url", problem);
                None
            }
        };
        let headers = read_headers(http, &mut problems);
        problems.at_most("query", http.query.len(), 64);
        let read = |(name, text): (&String, &String)| {
            (name.clone(), problems.template(&format!("query[{name:?}]"), text))
        };
        let query: Vec<_> = http.query.iter().map(read).collect();
        let body = read_body(http, &mut problems);
        let mapping = read_mapping(http, &mut problems);
        check_limits(http, &mut problems);
        let mut program = url.map(|url| Self {
            method: http.method,
            url,
            headers,
            query,
            body,
            append_inputs: false,
            missing_inputs: http.missing_inputs,
            secrets: http.secrets.clone(),
            mapping,
            format: http.response_format,
            redirects: http.redirects.unwrap_or(0),
        });
        if let Some(program) = &mut program {
            let is_plain = program.placeholders().next().is_none() && program.body.is_none();
            program.append_inputs = http.append_inputs.unwrap_or(is_plain);
            check_secrets(program, &mut problems);
        }
        match program {
            Some(program) if problems.0.is_empty() => Ok(program),
            _ => Err(problems.0),
        }
    }

    /// Returns every placeholder with the field that has it.
    pub(super) fn placeholders(&self) -> impl Iterator<Item = (String, &Placeholder)> {
        let url = self.url.rest.placeholders().map(|found| ("url".to_owned(), found));
        let in_headers = self.headers.iter().flat_map(|(name, text)| {
            text.placeholders().map(move |found| (format!("headers[{name:?}]"), found))
        });
        let in_query = self.query.iter().flat_map(|(name, text)| {
            text.placeholders().map(move |found| (format!("query[{name:?}]"), found))
        });
        let in_body = self.body.iter().flat_map(BodyTemplate::placeholders);
        url.chain(in_headers).chain(in_query).chain(in_body.map(|found| ("body".to_owned(), found)))
    }
}

fn check_url(url: &UrlTemplate, network: Option<&Network>, problems: &mut Problems) {
    let texts: String = url
        .rest
        .pieces
        .iter()
        .map(|piece| match piece {
            Piece::Text(text) => text.as_str(),
            Piece::Placeholder(_) => "x",
        })
        .collect();
    if let Some(segment) = dot_segment(&texts) {
        problems.add("url", format!("has the segment {segment:?}; write the path without it"));
    }
    let UrlTemplate { is_tls, host, port, .. } = url;
    let covers = |name: &str| HostPattern::of(name).covers(HostPattern::Exact(host));
    let named = network.and_then(|network| {
        network.hosts.iter().filter(|host| covers(&host.name)).max_by_key(|host| host.ports.contains(port))
    });
    match (named, network) {
        (Some(named), _) if named.ports.contains(port) => {}
        (Some(_), _) => problems.add(
            "url",
            format!("asks for port {port} of {host}; add the port to spec.network.hosts, as in {{name: {host}, ports: [{port}]}}"),
        ),
        (None, Some(_)) => problems.add(
            "url",
            format!("names the host {host}, which spec.network.hosts does not; add it there, or remove spec.network"),
        ),
        (None, None) if !is_tls => problems.add(
            "url",
            format!("has no TLS; write https://, or name the port in spec.network.hosts: [{{name: {host}, ports: [{port}]}}]"),
        ),
        (None, None) => {}
    }
}

fn read_headers(http: &Http, problems: &mut Problems) -> Vec<(String, Template)> {
    problems.at_most("headers", http.headers.len(), 32);
    let (mut headers, mut names) = (Vec::new(), BTreeSet::new());
    for (name, text) in &http.headers {
        let field = format!("headers[{name:?}]");
        let lower = name.to_ascii_lowercase();
        let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        if name.is_empty() || !name.bytes().all(is_token) {
            problems.add(&field, "is no name of a header; use letters, digits and -");
        } else if CLIENT_HEADERS.contains(&lower.as_str()) {
            problems.add(&field, "is set by the client that sends the request; remove it");
        } else if !names.insert(lower) {
            problems.add(&field, "is named twice, in other letters; keep one of them");
        }
        if text.chars().any(is_header_break) {
            problems.add(&field, "has a control character, such as a line break; remove it");
        }
        headers.push((name.clone(), problems.template(&field, text)));
    }
    headers
}

/// True for a character that no header has.
pub(super) fn is_header_break(c: char) -> bool {
    c != '\t' && c.is_ascii_control()
}

fn read_body(http: &Http, problems: &mut Problems) -> Option<BodyTemplate> {
    let body = http.body.as_ref()?;
    if http.method.is_safe() {
        let method = http.method.as_str();
        problems
            .add("body", format!("is set, and a {method} request has none; use query, or another method"));
    }
    let mut found = Vec::new();
    let template = BodyTemplate::read("body", body, &mut found);
    for (field, problem) in found {
        problems.add(&field, problem);
    }
    if http.append_inputs == Some(true) && !matches!(template, BodyTemplate::Object(_)) {
        problems.add("appendInputs", "needs a body that is an object; make it one, or remove appendInputs");
    }
    Some(template)
}

fn read_mapping(http: &Http, problems: &mut Problems) -> Vec<(String, JsonPath)> {
    problems.at_most("responseMapping", http.response_mapping.len(), 64);
    if http.response_format == ResponseFormat::Text && !http.response_mapping.is_empty() {
        problems.add("responseFormat", "is Text, which has no fields to map; remove it or responseMapping");
    }
    if http.method == HttpMethod::Head && !http.response_mapping.is_empty() {
        problems.add("responseMapping", "is set, and the response to a HEAD request has no body; remove it");
    }
    let mut mapping = Vec::new();
    for (name, path) in &http.response_mapping {
        match JsonPath::parse(path) {
            Ok(path) => mapping.push((name.clone(), path)),
            Err(problem) => problems.add(&format!("responseMapping[{name:?}]"), problem),
        }
    }
    mapping
}

fn check_limits(http: &Http, problems: &mut Problems) {
    if http.redirects.is_some_and(|redirects| redirects > 5) {
        problems.add("redirects", "must be at most 5");
    }
    problems.at_most("secrets", http.secrets.len(), 16);
    let mut names = BTreeSet::new();
    for (place, secret) in http.secrets.iter().enumerate() {
        let is_legal = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-');
        let name = &secret.name;
        let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if !starts_well || name.len() > 128 || !name.bytes().all(is_legal) {
            problems.add(
                &format!("secrets[{place}].name"),
                "must be letters, digits, _, . and -, with a letter or _ first, as in {{SECRETS.NAME}}",
            );
        }
        if !names.insert(name) {
            problems
                .add(&format!("secrets[{place}].name"), format!("{name} is named twice; keep one of them"));
        }
    }
}

/// Refuses placeholders of Secrets that the skill does not list.
fn check_secrets(program: &HttpProgram, problems: &mut Problems) {
    for (field, placeholder) in program.placeholders() {
        if let Placeholder::Secret { name } = placeholder
            && !program.secrets.iter().any(|secret| secret.name == *name)
        {
            let message = format!(
                "has {{{{SECRETS.{name}}}}}, and spec.run.http.secrets has no {name}; add {{name: {name}, secret: A-SECRET, key: ITS-KEY}}"
            );
            problems.add(&field, message);
        }
    }
}

#[cfg(test)]
mod tests;
