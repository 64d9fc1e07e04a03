//! Invalid hosts, HTTP requests and built-ins of a skill's content, in a Skill and in the SkillVersion that seals it.

use crate::cases::{Case, breaks, long, many};

/// Cases over a shortest spec whose sandbox has a runtime and a script.
pub fn network_cases() -> Vec<Case> {
    let mut cases = host_cases();
    cases.extend(handler_cases());
    cases.extend(request_cases());
    cases.extend(secret_cases());
    cases
}

fn host_cases() -> Vec<Case> {
    let hosts = |list: &str| format!("network: {{hosts: {list}}}");
    let host = |fields: &str| hosts(&format!("[{{{fields}}}]"));
    let name_rule = "spec.network.hosts[].name rule: write a host in lower case, such as api.example.com, or *.example.com for all below it";
    let mut cases = vec![
        breaks("spec.network.hosts required", "network: {}"),
        breaks("spec.network.hosts minItems", hosts("[]")),
        breaks("spec.network.hosts maxItems", hosts(&many(33, |n| format!("{{name: h{n}.example.com}}")))),
        breaks("spec.network.hosts[] unique", hosts("[{name: a.example.com}, {name: a.example.com}]")),
        breaks("spec.network.hosts[].name required", host("ports: [443]")),
        breaks("spec.network.hosts[].name minLength", host("name: ''")),
        breaks("spec.network.hosts[].name maxLength", host(&format!("name: {}", long(254)))),
        breaks(
            "spec.network.hosts[].ports maxItems",
            host(&format!("name: a.example.com, ports: {}", many(17, |n| format!("{}", 8000 + n)))),
        ),
        breaks("spec.network.hosts[].ports[] minimum", host("name: a.example.com, ports: [0]")),
        breaks("spec.network.hosts[].ports[] maximum", host("name: a.example.com, ports: [65536]")),
    ];
    for name in ["API.example.com", "*", "a.*.example.com", "https://a.example.com", "a.example.com:443"] {
        cases.push(breaks(name_rule, host(&format!("name: '{name}'"))));
    }
    cases
}

fn handler_cases() -> Vec<Case> {
    let rule = "spec.run rule: run needs exactly one handler: sandbox, http or builtin";
    vec![
        breaks(rule, "run: {sandbox: null}"),
        breaks(rule, "run: {builtin: web_fetch}"),
        breaks(rule, "run: {http: {url: 'https://a.example.com/'}}"),
        breaks(rule, "run: {sandbox: null, builtin: web_fetch, http: {url: 'https://a.example.com/'}}"),
        breaks("spec.run.builtin enum", "run: {sandbox: null, builtin: send_mail}"),
    ]
}

/// A change that makes the program a request with these fields.
fn http(fields: &str) -> String {
    format!("run: {{sandbox: null, http: {{{fields}}}}}")
}

/// The same with a valid URL.
fn request(fields: &str) -> String {
    http(&format!("url: 'https://a.example.com/', {fields}"))
}

/// A YAML object of `length` fields.
fn fields(length: usize, value: &str) -> String {
    format!("{{{}}}", (0..length).map(|n| format!("f{n}: {value}")).collect::<Vec<_>>().join(", "))
}

fn request_cases() -> Vec<Case> {
    vec![
        breaks("spec.run.http.url required", http("")),
        breaks("spec.run.http.url minLength", http("url: ''")),
        breaks(
            "spec.run.http.url maxLength",
            http(&format!("url: 'https://a.example.com/{}'", long(4_097 - "https://a.example.com/".len()))),
        ),
        breaks("spec.run.http.url pattern", http("url: 'ftp://a.example.com/'")),
        breaks("spec.run.http.url pattern", http("url: a.example.com")),
        breaks("spec.run.http.method enum", request("method: TRACE")),
        breaks("spec.run.http.missingInputs enum", request("missingInputs: Refuse")),
        breaks("spec.run.http.responseFormat enum", request("responseFormat: Xml")),
        breaks("spec.run.http.redirects minimum", request("redirects: -1")),
        breaks("spec.run.http.redirects maximum", request("redirects: 6")),
        breaks("spec.run.http.headers maxProperties", request(&format!("headers: {}", fields(33, "x")))),
        breaks("spec.run.http.headers maxLength", request(&format!("headers: {{x: {}}}", long(8_193)))),
        breaks("spec.run.http.query maxProperties", request(&format!("query: {}", fields(65, "x")))),
        breaks("spec.run.http.query maxLength", request(&format!("query: {{x: {}}}", long(4_097)))),
        breaks(
            "spec.run.http.responseMapping maxProperties",
            request(&format!("responseMapping: {}", fields(65, "$.a"))),
        ),
        breaks(
            "spec.run.http.responseMapping maxLength",
            request(&format!("responseMapping: {{x: $.{}}}", long(511))),
        ),
    ]
}

fn secret_cases() -> Vec<Case> {
    let secrets = |list: &str| request(&format!("secrets: {list}"));
    let secret = |fields: &str| secrets(&format!("[{{{fields}}}]"));
    vec![
        breaks(
            "spec.run.http.secrets maxItems",
            secrets(&many(17, |n| format!("{{name: S{n}, secret: s, key: k}}"))),
        ),
        breaks(
            "spec.run.http.secrets[] unique",
            secrets("[{name: S, secret: s, key: k}, {name: S, secret: t, key: k}]"),
        ),
        breaks("spec.run.http.secrets[].name required", secret("secret: s, key: k")),
        breaks("spec.run.http.secrets[].name pattern", secret("name: 1S, secret: s, key: k")),
        breaks(
            "spec.run.http.secrets[].name maxLength",
            secret(&format!("name: {}, secret: s, key: k", long(129))),
        ),
        breaks("spec.run.http.secrets[].secret required", secret("name: S, key: k")),
        breaks("spec.run.http.secrets[].secret minLength", secret("name: S, secret: '', key: k")),
        breaks("spec.run.http.secrets[].secret pattern", secret("name: S, secret: ../s, key: k")),
        breaks(
            "spec.run.http.secrets[].secret maxLength",
            secret(&format!("name: S, secret: {}, key: k", long(254))),
        ),
        breaks("spec.run.http.secrets[].key required", secret("name: S, secret: s")),
        breaks("spec.run.http.secrets[].key minLength", secret("name: S, secret: s, key: ''")),
        breaks("spec.run.http.secrets[].key pattern", secret("name: S, secret: s, key: a/b")),
        breaks(
            "spec.run.http.secrets[].key maxLength",
            secret(&format!("name: S, secret: s, key: {}", long(254))),
        ),
    ]
}
