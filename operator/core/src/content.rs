//! The content of a version: the fields that decide behavior, their digest, and the sealing.

use std::fmt::Write as _;

use serde_json::{Map, Number, Value, json};
use sha2::{Digest as _, Sha256};
use skillet_api::{
    SkillSpec, SkillVersionSpec,
    instructions::{InstructionTriggers, Instructions},
    network::Network,
    skill::{File, Limits, RetryOn, Run, Tool},
};

/// The content that a Skill and a sealed version share.
#[derive(Clone, Copy, Debug)]
pub struct Content<'a> {
    pub description: &'a str,
    pub tool: Option<&'a Tool>,
    pub run: Option<&'a Run>,
    pub instructions: Option<&'a Instructions>,
    pub network: Option<&'a Network>,
    pub files: &'a [File],
    pub limits: Option<&'a Limits>,
}

impl<'a> From<&'a SkillSpec> for Content<'a> {
    fn from(spec: &'a SkillSpec) -> Self {
        Self {
            description: &spec.description,
            tool: spec.tool.as_ref(),
            run: spec.run.as_ref(),
            instructions: spec.instructions.as_ref(),
            network: spec.network.as_ref(),
            files: &spec.files,
            limits: spec.limits.as_ref(),
        }
    }
}

impl<'a> From<&'a SkillVersionSpec> for Content<'a> {
    fn from(spec: &'a SkillVersionSpec) -> Self {
        Self {
            description: &spec.description,
            tool: spec.tool.as_ref(),
            run: spec.run.as_ref(),
            instructions: spec.instructions.as_ref(),
            network: spec.network.as_ref(),
            files: &spec.files,
            limits: spec.limits.as_ref(),
        }
    }
}

/// sha256 of the content, in hex. The same content gives the same digest, however it was written down.
///
/// It is taken over JSON with sorted keys and no blanks, in which a default that is spelled out, an empty part and the
/// order of files and variables make no difference, and a number is written in one way only: the API server turns
/// `1.0` into `1`.
pub fn digest<'a>(content: impl Into<Content<'a>>) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(canonical(content.into()).as_bytes()) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// The SkillVersion that keeps the content of `spec`.
pub fn seal(skill_name: &str, spec: &SkillSpec) -> SkillVersionSpec {
    SkillVersionSpec {
        skill: skill_name.to_owned(),
        version: spec.version.clone(),
        digest: digest(spec),
        description: spec.description.clone(),
        tool: spec.tool.clone(),
        run: spec.run.clone(),
        instructions: spec.instructions.clone(),
        network: spec.network.clone(),
        files: spec.files.clone(),
        limits: spec.limits.clone(),
    }
}

fn canonical(content: Content<'_>) -> String {
    let mut run = content.run.cloned();
    if let Some(sandbox) = run.as_mut().and_then(|run| run.sandbox.as_mut()) {
        sandbox.files.sort_by(|a, b| a.path.cmp(&b.path));
        sandbox.env.sort_by(|a, b| a.name.cmp(&b.name));
        sandbox.secret_env.sort_by(|a, b| a.name.cmp(&b.name));
    }
    let limits = content.limits.cloned().map(without_defaults);
    let limits = limits.filter(|limits| *limits != Limits::default());
    let tool = content.tool.filter(|tool| **tool != Tool::default());
    let mut parts = Map::new();
    parts.insert("description".to_owned(), json!(content.description));
    parts.insert("limits".to_owned(), json!(limits));
    parts.insert("run".to_owned(), json!(run));
    parts.insert("tool".to_owned(), json!(tool));
    // Versions of programs alone were sealed before there were instructions, and keep their digest.
    if let Some(instructions) = content.instructions {
        let mut instructions = instructions.clone();
        instructions.triggers =
            instructions.triggers.filter(|triggers| *triggers != InstructionTriggers::default());
        parts.insert("instructions".to_owned(), json!(instructions));
    }
    if let Some(network) = content.network {
        let mut network = network.clone();
        network.hosts.sort_by(|a, b| a.name.cmp(&b.name));
        network.hosts.iter_mut().for_each(|host| host.ports.sort_unstable());
        parts.insert("network".to_owned(), json!(network));
    }
    if !content.files.is_empty() {
        let mut files: Vec<&File> = content.files.iter().collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        parts.insert("files".to_owned(), json!(files));
    }
    let mut text = String::new();
    write_canonical(&Value::Object(parts), &mut text);
    text
}

/// Defaults that no policy can change are the same as nothing.
fn without_defaults(mut limits: Limits) -> Limits {
    limits.retries = limits.retries.filter(|retries| *retries > 0);
    limits.retry_on = limits.retry_on.filter(|retry_on| *retry_on != RetryOn::default());
    limits
}

/// Writes the value as JSON with sorted keys and no spaces: the same value is the same text.
pub fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(true) => text.push_str("true"),
        Value::Bool(false) => text.push_str("false"),
        Value::Number(number) => text.push_str(&canonical_number(number)),
        Value::String(string) => write_string(string, text),
        Value::Array(items) => {
            text.push('[');
            for (place, item) in items.iter().enumerate() {
                text.push_str(if place > 0 { "," } else { "" });
                write_canonical(item, text);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            let mut sorted: Vec<(&String, &Value)> = fields.iter().collect();
            sorted.sort_unstable_by_key(|(name, _)| *name);
            text.push('{');
            for (place, (name, field)) in sorted.into_iter().enumerate() {
                text.push_str(if place > 0 { "," } else { "" });
                write_string(name, text);
                text.push(':');
                write_canonical(field, text);
            }
            text.push('}');
        }
    }
}

fn write_string(string: &str, text: &mut String) {
    text.push('"');
    for c in string.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            c if c < ' ' => {
                let _ = write!(text, "\\u{:04x}", u32::from(c));
            }
            c => text.push(c),
        }
    }
    text.push('"');
}

/// A whole number that fits 64 bits with sign by its digits, every other by the shortest digits of its double.
fn canonical_number(number: &Number) -> String {
    match (number.as_i64(), number.as_f64()) {
        (Some(whole), _) => whole.to_string(),
        // The API server reads -0.0, writes -0, and reads that as the whole number 0.
        (None, Some(0.0)) => "0".to_owned(),
        (None, Some(double)) => double.to_string(),
        (None, None) => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(yaml: &str) -> SkillSpec {
        serde_saphyr::from_str(yaml).unwrap()
    }

    const SHORTEST: &str = "{version: 1.0.0, run: {sandbox: {runtime: shell, script: cat}}}";

    fn check_same(one: &str, other: &str) {
        assert_eq!(canonical((&spec(one)).into()), canonical((&spec(other)).into()));
        assert_eq!(digest(&spec(one)), digest(&spec(other)));
    }

    fn check_differs(other: &str) {
        assert_ne!(digest(&spec(SHORTEST)), digest(&spec(other)), "{other}");
    }

    #[test]
    fn the_canonical_form_and_its_digest_never_change() {
        let shortest = spec(SHORTEST);
        let text = r#"{"description":"","limits":null,"run":{"sandbox":{"runtime":"shell","script":"cat"}},"tool":null}"#;
        assert_eq!(canonical((&shortest).into()), text);
        assert_eq!(digest(&shortest), "ca23c553fca58c35c46bfcfcd5dc699f0b9661d0ee0166f236e154ea023da023");
    }

    #[test]
    fn spelled_out_defaults_make_no_difference() {
        check_same(
            SHORTEST,
            "{version: 1.0.0, description: '', tool: {}, limits: {}, run: {sandbox: {runtime: shell, script: cat, args: [], files: []}}}",
        );
        check_same(
            SHORTEST,
            "{version: 1.0.0, limits: {retries: 0, retryOn: Lost}, run: {sandbox: {runtime: shell, script: cat}}}",
        );
        check_same(
            "{version: 1.0.0, limits: {timeout: 60s}, run: {sandbox: {runtime: shell, script: cat}}}",
            "{version: 1.0.0, limits: {timeout: 1m}, run: {sandbox: {runtime: shell, script: cat}}}",
        );
    }

    #[test]
    fn what_is_no_content_makes_no_difference() {
        check_same(
            SHORTEST,
            "{version: 2.0.0, mode: on, enabled: false, invocation: manual, tags: [a], run: {sandbox: {runtime: shell, script: cat}}}",
        );
    }

    #[test]
    fn the_order_of_keys_files_and_variables_makes_no_difference() {
        check_same(
            "{version: 1.0.0, tool: {inputSchema: {type: object, required: [a]}}, run: {sandbox: {image: i, command: [c], env: [{name: A, value: '1'}, {name: B}], files: [{path: a, content: x}, {path: b, content: y}], secretEnv: [{name: S, secret: s, key: k}, {name: T, secret: s, key: k}]}}}",
            "{version: 1.0.0, tool: {inputSchema: {required: [a], type: object}}, run: {sandbox: {command: [c], image: i, secretEnv: [{name: T, key: k, secret: s}, {name: S, secret: s, key: k}], env: [{name: B, value: ''}, {value: '1', name: A}], files: [{path: b, content: y}, {content: x, path: a}]}}}",
        );
    }

    #[test]
    fn every_part_of_the_content_counts() {
        check_differs("{version: 1.0.0, description: d, run: {sandbox: {runtime: shell, script: cat}}}");
        check_differs("{version: 1.0.0, run: {sandbox: {runtime: shell, script: cat , args: [a]}}}");
        check_differs("{version: 1.0.0, run: {sandbox: {runtime: python, script: cat}}}");
        check_differs(
            "{version: 1.0.0, limits: {retries: 1}, run: {sandbox: {runtime: shell, script: cat}}}",
        );
        check_differs(
            "{version: 1.0.0, limits: {retryOn: Failure}, run: {sandbox: {runtime: shell, script: cat}}}",
        );
        check_differs(
            "{version: 1.0.0, tool: {inputSchema: {}}, run: {sandbox: {runtime: shell, script: cat}}}",
        );
    }

    #[test]
    fn instructions_and_files_count_and_the_order_of_files_does_not() {
        let guide = |fields: &str| format!("{{version: 1.0.0, instructions: {{body: Read.}}{fields}}}");
        let two = guide(", files: [{path: a, content: x}, {path: b, content: y}]");
        check_same(&two, &guide(", files: [{path: b, content: y}, {path: a, content: x}]"));
        check_same(
            &guide(""),
            "{version: 1.0.0, instructions: {body: Read., activation: Listed, userInvocable: true, dynamic: Never}}",
        );
        let other = [
            guide(""),
            guide(", files: [{path: a, content: x}]"),
            guide(", run: {sandbox: {runtime: shell, script: cat}}"),
            "{version: 1.0.0, instructions: {body: Read., allowedTools: [Read]}}".to_owned(),
            "{version: 1.0.0, instructions: {body: Read., dynamic: Run}}".to_owned(),
            two,
        ];
        let digests: std::collections::BTreeSet<String> =
            other.iter().map(|yaml| digest(&spec(yaml))).collect();
        assert_eq!(digests.len(), other.len());
    }

    #[test]
    fn a_number_is_written_in_one_way() {
        for (one, other, expected) in [
            ("1.0", "1", "1"),
            ("-0.0", "0", "0"),
            ("1e3", "1000", "1000"),
            ("0.10", "0.1", "0.1"),
            ("9223372036854775808", "9.223372036854775808e18", "9223372036854776000"),
            ("-1.5e-7", "-0.00000015", "-0.00000015"),
        ] {
            let [one, other] = [one, other].map(|text| serde_json::from_str::<Number>(text).unwrap());
            assert_eq!(canonical_number(&one), expected);
            assert_eq!(canonical_number(&other), expected);
        }
    }

    #[test]
    fn text_is_escaped_no_more_than_json_asks() {
        let mut text = String::new();
        write_canonical(&json!({"é\n": ["\"\\\u{1}", null, true, false]}), &mut text);
        assert_eq!(text, "{\"é\\u000a\":[\"\\\"\\\\\\u0001\",null,true,false]}");
    }

    #[test]
    fn a_round_trip_through_json_keeps_the_digest() {
        let first = spec(
            "{version: 1.0.0, tool: {inputSchema: {properties: {n: {minimum: 1.0, maximum: 1.5e3, multipleOf: 0.1}}}}, run: {sandbox: {runtime: shell, script: cat}}}",
        );
        let text = serde_json::to_string(&first).unwrap().replace("1.0,", "1,").replace("1500.0", "1500");
        assert_eq!(digest(&first), digest(&serde_json::from_str::<SkillSpec>(&text).unwrap()));
    }

    #[test]
    fn a_sealed_version_has_the_content_and_its_digest() {
        let skill = spec(
            "{version: 1.2.3, description: d, mode: off, limits: {retries: 1}, run: {sandbox: {runtime: shell, script: cat}}}",
        );
        let sealed = seal("demo", &skill);
        assert_eq!((sealed.skill.as_str(), sealed.version.as_str()), ("demo", "1.2.3"));
        assert_eq!(sealed.digest, digest(&skill));
        assert_eq!(digest(&sealed), sealed.digest);
    }
}
