//! Validation of `run.http`.

use skillet_api::http::Http;

use super::{
    Handler, ValidContent,
    field_error::FieldErrors,
    limits::HTTP_TIMEOUT,
    sandbox_spec::{check_object_key, check_object_name},
};
use crate::{content::Content, http::HttpProgram};

/// Returns `None` only if it added an error.
pub(super) fn read(http: &Http, content: Content<'_>, errors: &mut FieldErrors) -> Option<HttpProgram> {
    if http.url.is_empty() {
        errors.not_empty("spec.run.http.url", &http.url);
        return None;
    }
    errors.at_most("spec.run.http.url", &http.url, 4096);
    check_bounds(http, errors);
    match HttpProgram::read(http, content.network) {
        Ok(program) => Some(program),
        Err(problems) => {
            for problem in problems {
                errors.spec(problem.field, problem.message);
            }
            None
        }
    }
}

/// Checks what the CRD bounds beside the URL.
fn check_bounds(http: &Http, errors: &mut FieldErrors) {
    let texts = [
        ("headers", &http.headers, 8192),
        ("query", &http.query, 4096),
        ("responseMapping", &http.response_mapping, 512),
    ];
    for (list, texts, limit) in texts {
        for (name, text) in texts {
            errors.at_most(format_args!("spec.run.http.{list}[{name:?}]"), text, limit);
        }
    }
    for (place, secret) in http.secrets.iter().enumerate() {
        let field = format!("spec.run.http.secrets[{place}]");
        check_object_name("Secret", &format!("{field}.secret"), &secret.secret, errors);
        check_object_key("Secret", &format!("{field}.key"), &secret.key, errors);
    }
}

/// Gives an HTTP skill the host of its URL and the shorter time limit, where its author says nothing.
pub(super) fn fill_defaults(content: Content<'_>, valid: &mut ValidContent) {
    let Handler::Http(program) = &valid.handler else { return };
    valid.network.get_or_insert_with(|| program.hosts());
    if content.limits.is_none_or(|limits| limits.timeout.is_none()) {
        valid.limits.timeout = valid.limits.timeout.min(HTTP_TIMEOUT);
    }
}

#[cfg(test)]
mod tests {
    use skillet_api::{SkillPolicySpec, SkillSpec};

    use super::super::{ValidContent, effective_limits, validate_content, validate_skill};

    fn spec(fields: &str) -> SkillSpec {
        serde_saphyr::from_str(&format!("{{version: 1.0.0, {fields}}}")).unwrap()
    }

    /// Checks the time limit of a run, in milliseconds, and that the status shows the same.
    fn check_timeout(fields: &str, policy: &str, expected: u128) {
        let (spec, policy) = (spec(fields), serde_saphyr::from_str::<SkillPolicySpec>(policy).unwrap());
        let content: ValidContent = validate_content(&spec, &policy).unwrap();
        assert_eq!(content.limits.timeout.as_millis(), expected, "{fields}");
        let shown = effective_limits(spec.run.as_ref(), spec.limits.as_ref(), &policy).timeout;
        assert_eq!(shown.0.as_millis(), expected, "{fields} in the status");
    }

    #[test]
    fn a_request_has_ten_seconds_unless_the_skill_says_otherwise() {
        let http = "run: {http: {url: 'https://a.b/'}}";
        check_timeout(http, "{}", 10_000);
        check_timeout(&format!("{http}, limits: {{cpu: 1}}"), "{}", 10_000);
        check_timeout(&format!("{http}, limits: {{timeout: 20s}}"), "{}", 20_000);
        check_timeout(http, "{defaults: {timeout: 5s}}", 5_000);
        check_timeout(http, "{defaults: {timeout: 30s}, maximums: {timeout: 4s}}", 4_000);
        check_timeout("run: {sandbox: {runtime: shell, script: x}}", "{defaults: {timeout: 30s}}", 30_000);
    }

    #[test]
    fn the_hosts_of_a_request_are_its_own_or_those_that_the_skill_names() {
        let hosts = |fields: &str| {
            let content = validate_content(&spec(fields), &SkillPolicySpec::default()).unwrap();
            let hosts = content.network.unwrap().hosts;
            hosts.iter().map(|host| format!("{}:{:?}", host.name, host.ports)).collect::<Vec<_>>().join(" ")
        };
        let http = "run: {http: {url: 'https://a.b:8443/'}}";
        assert_eq!(hosts(http), "a.b:[8443]");
        let named = format!("{http}, network: {{hosts: [{{name: '*.b', ports: [8443]}}, {{name: c.d}}]}}");
        assert_eq!(hosts(&named), "*.b:[8443] c.d:[443]");
    }

    #[test]
    fn every_mistake_of_a_request_is_an_error_of_the_skill() {
        let spec = spec(
            "run: {http: {url: 'https://a.b/{{ x }}', headers: {Host: x}, responseMapping: {o: '$..a'}}}",
        );
        let errors = validate_skill("demo", &spec, &SkillPolicySpec::default()).unwrap_err();
        let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
        let expected = [
            "spec.run.http.url",
            r#"spec.run.http.headers["Host"]"#,
            r#"spec.run.http.responseMapping["o"]"#,
        ];
        assert_eq!(fields, expected);
    }

    #[test]
    fn texts_and_secrets_are_bounded_as_in_the_definition() {
        let long = "x".repeat(9000);
        for (field, http) in [
            ("headers[\"a\"]", format!("headers: {{a: {long}}}")),
            ("query[\"a\"]", format!("query: {{a: {long}}}")),
            ("responseMapping[\"a\"]", format!("responseMapping: {{a: {long}}}")),
            ("secrets[0].secret", "secrets: [{name: a, secret: 'A B', key: k}]".to_owned()),
            ("secrets[0].key", "secrets: [{name: a, secret: s, key: 'a/b'}]".to_owned()),
            ("secrets[0].name", "secrets: [{name: 1a, secret: s, key: k}]".to_owned()),
        ] {
            let spec = spec(&format!("run: {{http: {{url: 'https://a.b/', {http}}}}}"));
            let errors = validate_content(&spec, &SkillPolicySpec::default()).unwrap_err();
            let fields: Vec<String> = errors.iter().map(ToString::to_string).collect();
            let expected = format!("spec.run.http.{field}: ");
            assert!(fields.iter().any(|error| error.starts_with(&expected)), "{field}: {fields:?}");
        }
    }
}
