//! Validation of `run.builtin`, and the hosts that it may reach.

use std::sync::Arc;

use skillet_api::{Reason, SkillPolicySpec, builtin::Builtin, network::Host, skill::Runtime};

use super::{Handler, ValidNetwork, field_error::FieldErrors};
use crate::builtin::{BuiltinProgram, FileProgram, browser_program, sandbox_program, search_host};

const FIELD: &str = "spec.run.builtin";

/// Returns `None` only if it added an error.
pub(super) fn read(builtin: Builtin, policy: &SkillPolicySpec, errors: &mut FieldErrors) -> Option<Handler> {
    if !policy.builtins.contains(&builtin) {
        let word = builtin.as_str();
        let message =
            format!("SkillPolicy default does not enable {word}; have it added to spec.builtins there");
        errors.add(Reason::BuiltinDisabled, FIELD, message);
        return None;
    }
    match builtin {
        Builtin::FileRead => Some(Handler::File(FileProgram::Read)),
        Builtin::FileWrite => Some(Handler::File(FileProgram::Write)),
        Builtin::HttpRequest => Some(Handler::Builtin(BuiltinProgram::HttpRequest)),
        Builtin::WebFetch => Some(Handler::Builtin(BuiltinProgram::WebFetch)),
        Builtin::WebSearch => search(policy, errors).map(Handler::Builtin),
        Builtin::EvalCode => Some(sandbox_program(builtin, Runtime::Node).into()),
        Builtin::ExecuteCommand => Some(sandbox_program(builtin, Runtime::Shell).into()),
        Builtin::Browser => Some(browser_program().into()),
    }
}

fn search(policy: &SkillPolicySpec, errors: &mut FieldErrors) -> Option<BuiltinProgram> {
    let provider = policy.web_search.as_ref();
    if let Some(provider) = provider.filter(|provider| search_host(provider).is_some()) {
        return Some(BuiltinProgram::WebSearch(Arc::new(provider.clone())));
    }
    let lack = if provider.is_some() { "url in spec.webSearch" } else { "spec.webSearch" };
    let message = format!("SkillPolicy default has no usable {lack}; have a search engine named there");
    errors.add(Reason::BuiltinDisabled, FIELD, message);
    None
}

/// Returns the hosts of a built-in whose Skill names `own`: without any, every public host, as far as SkillPolicy allows
/// that. A search has the host of its engine, whatever the Skill says.
pub(super) fn network(
    program: &BuiltinProgram,
    own: Option<ValidNetwork>,
    errors: &mut FieldErrors,
) -> Option<ValidNetwork> {
    match program {
        BuiltinProgram::HttpRequest | BuiltinProgram::WebFetch => own.or_else(|| Some(every_host())),
        BuiltinProgram::WebSearch(provider) => {
            if own.is_some() {
                let message = "cannot stand beside run.builtin: web_search, which reaches the search engine of SkillPolicy; remove it";
                errors.spec("spec.network", message);
            }
            let (name, port) = search_host(provider)?;
            Some(ValidNetwork { hosts: vec![Host { name, ports: vec![port] }] })
        }
    }
}

/// Returns every public host, as a built-in without hosts of its own needs it.
pub(super) fn every_host() -> ValidNetwork {
    ValidNetwork { hosts: vec![Host { name: "*".to_owned(), ports: vec![80, 443] }] }
}

/// Refuses hosts beside a built-in that reaches none.
pub(super) fn check_no_network(network: Option<&ValidNetwork>, errors: &mut FieldErrors) {
    if network.is_some() {
        let message =
            "cannot stand beside run.builtin: file_read or file_write, which reach no host; remove it";
        errors.spec("spec.network", message);
    }
}

#[cfg(test)]
mod tests {
    use skillet_api::SkillSpec;

    use super::*;
    use crate::skill::{ValidContent, check_hosts, validate_content};

    fn validate(run: &str, policy: &str) -> Result<ValidContent, String> {
        let spec: SkillSpec = serde_saphyr::from_str(&format!("{{version: 1.0.0, {run}}}")).unwrap();
        let policy: SkillPolicySpec = serde_saphyr::from_str(policy).unwrap();
        validate_content(&spec, &policy).map_err(|errors| {
            let texts: Vec<String> = errors.iter().map(|error| format!("{} {error}", error.reason)).collect();
            texts.join("; ")
        })
    }

    fn hosts(content: &ValidContent) -> Vec<(&str, &[u16])> {
        let hosts = content.network.iter().flat_map(|network| &network.hosts);
        hosts.map(|host| (host.name.as_str(), host.ports.as_slice())).collect()
    }

    #[test]
    fn a_built_in_runs_only_where_the_policy_enables_it() {
        let run = "run: {builtin: http_request}";
        let refused = "BuiltinDisabled spec.run.builtin: SkillPolicy default does not enable http_request; have it added to spec.builtins there";
        assert_eq!(validate(run, "{builtins: [web_fetch]}").unwrap_err(), refused);
        let content = validate(run, "{builtins: [http_request]}").unwrap();
        assert!(matches!(content.handler, Handler::Builtin(BuiltinProgram::HttpRequest)));
        assert!(content.input_schema.is_some());
        assert!(content.sandbox().is_none());
    }

    #[test]
    fn a_file_of_the_workspace_needs_no_host() {
        let policy = "{builtins: [file_read, file_write]}";
        for (word, program) in [("file_read", FileProgram::Read), ("file_write", FileProgram::Write)] {
            let content = validate(&format!("run: {{builtin: {word}}}"), policy).unwrap();
            assert!(matches!(content.handler, Handler::File(found) if found == program), "{word}");
            assert!(content.network.is_none() && content.sandbox().is_none() && content.secrets().is_empty());
            let run = format!("run: {{builtin: {word}}}, network: {{hosts: [{{name: a.example}}]}}");
            let refused = "SpecInvalid spec.network: cannot stand beside run.builtin: file_read or file_write, which reach no host; remove it";
            assert_eq!(validate(&run, policy).unwrap_err(), refused);
        }
    }

    #[test]
    fn a_built_in_stands_alone() {
        let run = "run: {builtin: web_fetch, sandbox: {runtime: shell, script: x}}";
        let refused = "SpecInvalid spec.run: needs exactly one handler: sandbox, http or builtin";
        assert_eq!(validate(run, "{builtins: [web_fetch]}").unwrap_err(), refused);
    }

    #[test]
    fn without_hosts_of_its_own_it_needs_every_public_host() {
        let policy = "{builtins: [web_fetch]}";
        let every = validate("run: {builtin: web_fetch}", policy).unwrap();
        assert_eq!(hosts(&every), [("*", [80, 443].as_slice())]);
        let own =
            validate("run: {builtin: web_fetch}, network: {hosts: [{name: a.example}]}", policy).unwrap();
        assert_eq!(hosts(&own), [("a.example", [443].as_slice())]);
        let check = |allowed: &str| {
            let policy = format!("{{networkEnabled: true, network: {{allowedHosts: [{allowed}]}}}}");
            let policy: SkillPolicySpec = serde_saphyr::from_str(&policy).unwrap();
            check_hosts(&every.network.clone().unwrap(), "a", &policy).err().map(|error| error.reason)
        };
        assert_eq!(check("'*'"), None);
        assert_eq!(check("'*.example'"), Some(Reason::HostNotAllowed));
    }

    #[test]
    fn a_search_reaches_the_engine_of_the_policy_alone() {
        let policy =
            "{builtins: [web_search], webSearch: {provider: SearXNG, url: 'http://searxng.tools.svc:8080'}}";
        let search = validate("run: {builtin: web_search}", policy).unwrap();
        assert_eq!(hosts(&search), [("searxng.tools.svc", [8080].as_slice())]);
        let own = validate("run: {builtin: web_search}, network: {hosts: [{name: a.example}]}", policy);
        assert!(own.unwrap_err().starts_with("SpecInvalid spec.network: cannot stand beside"));
        for (policy, lack) in [
            ("{builtins: [web_search]}", "spec.webSearch"),
            ("{builtins: [web_search], webSearch: {provider: SearXNG}}", "url in spec.webSearch"),
        ] {
            let expected = format!(
                "BuiltinDisabled spec.run.builtin: SkillPolicy default has no usable {lack}; have a search engine named there"
            );
            assert_eq!(validate("run: {builtin: web_search}", policy).unwrap_err(), expected);
        }
    }
}
