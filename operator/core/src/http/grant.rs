//! Grants: the owner of a Secret names the skills and the hosts that it is for, in annotations of the Secret.

use std::collections::BTreeMap;

use skillet_api::Reason;

use crate::{admission::Refusal, skill::HostPattern};

/// Annotation of a Secret with the HTTP skills that may use it: names with commas between them, or `*`.
pub const SKILLS_ANNOTATION: &str = "skillet.dev/skills";
/// Annotation of a Secret with the hosts that it may be sent to: names or `*.example.com`, with commas between them.
pub const HOSTS_ANNOTATION: &str = "skillet.dev/hosts";

/// Refuses a Secret whose annotations do not name the skill and the host that the request goes to.
pub fn check_grant(
    secret: &str,
    annotations: &BTreeMap<String, String>,
    skill: &str,
    host: &str,
) -> Result<(), Refusal> {
    let refuse = |message: String| Err(Refusal::new(Reason::SecretNotGranted, message));
    if !words(annotations, SKILLS_ANNOTATION).any(|name| name == "*" || name == skill) {
        return refuse(format!(
            "Secret {secret} is not given to skill {skill}: its annotation {SKILLS_ANNOTATION} does not name the skill; its owner may add it: kubectl annotate --overwrite secret {secret} {SKILLS_ANNOTATION}={}",
            with_word(annotations, SKILLS_ANNOTATION, skill)
        ));
    }
    if is_granted_host(annotations, host) {
        return Ok(());
    }
    let every = words(annotations, HOSTS_ANNOTATION).any(|pattern| pattern == "*");
    let why = if every { "has *, which is no host" } else { "does not name the host" };
    refuse(format!(
        "Secret {secret} is not given to host {host}: its annotation {HOSTS_ANNOTATION} {why}; its owner may add it: kubectl annotate --overwrite secret {secret} {HOSTS_ANNOTATION}={}",
        with_word(annotations, HOSTS_ANNOTATION, host)
    ))
}

/// Returns the patterns of the hosts that a Secret may be sent to. A redirect goes only to hosts that each used Secret allows.
pub fn granted_hosts(annotations: &BTreeMap<String, String>) -> Vec<&str> {
    words(annotations, HOSTS_ANNOTATION).filter(|pattern| is_host_pattern(pattern)).collect()
}

/// True if a Secret may be sent to the host.
fn is_granted_host(annotations: &BTreeMap<String, String>, host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    let wanted = HostPattern::Exact(&host);
    granted_hosts(annotations).into_iter().any(|pattern| {
        let pattern = pattern.to_ascii_lowercase();
        HostPattern::of(&pattern).covers(wanted)
    })
}

/// True for a name or for all names below one. A lone star, or one in another place, is no host.
fn is_host_pattern(text: &str) -> bool {
    let name = text.strip_prefix("*.").unwrap_or(text);
    !name.is_empty() && !name.contains('*')
}

fn words<'a>(annotations: &'a BTreeMap<String, String>, name: &str) -> impl Iterator<Item = &'a str> {
    let list = annotations.get(name).map_or("", String::as_str);
    list.split(',').map(str::trim).filter(|word| !word.is_empty())
}

/// Returns the words of an annotation, without a lone star, and one more.
fn with_word(annotations: &BTreeMap<String, String>, name: &str, word: &str) -> String {
    words(annotations, name).filter(|word| *word != "*").chain([word]).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotations(skills: Option<&str>, hosts: Option<&str>) -> BTreeMap<String, String> {
        let pairs = [(SKILLS_ANNOTATION, skills), (HOSTS_ANNOTATION, hosts)];
        pairs.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned()))).collect()
    }

    fn check(skills: Option<&str>, hosts: Option<&str>, host: &str, expected: Option<&str>) {
        let checked = check_grant("keys", &annotations(skills, hosts), "weather", host);
        match (checked, expected) {
            (Ok(()), None) => {}
            (Err(refusal), Some(expected)) => {
                assert_eq!(refusal.reason, Reason::SecretNotGranted);
                assert!(refusal.message.contains(expected), "{}", refusal.message);
                assert!(refusal.message.starts_with("Secret keys is not given to "), "{}", refusal.message);
            }
            (checked, expected) => panic!("{skills:?} {hosts:?} {host}: {checked:?}, not {expected:?}"),
        }
    }

    #[test]
    fn a_secret_is_given_to_the_skills_and_hosts_that_its_owner_names() {
        check(Some("weather"), Some("api.a.b"), "api.a.b", None);
        check(Some("other, weather"), Some("c.d , *.a.b"), "api.a.b", None);
        check(Some("*"), Some("API.a.b"), "Api.A.B", None);
    }

    #[test]
    fn what_the_owner_does_not_name_is_refused_with_the_command_that_names_it() {
        let (skills, hosts) = ("skillet.dev/skills does not name", "skillet.dev/hosts does not name");
        check(None, None, "api.a.b", Some(skills));
        check(Some(""), Some("api.a.b"), "api.a.b", Some(skills));
        check(
            Some("weather2"),
            Some("api.a.b"),
            "api.a.b",
            Some("secret keys skillet.dev/skills=weather2,weather"),
        );
        check(Some("Weather"), Some("api.a.b"), "api.a.b", Some(skills));
        check(Some("weather"), None, "api.a.b", Some("secret keys skillet.dev/hosts=api.a.b"));
        check(Some("weather"), Some("*.a.b"), "a.b", Some(hosts));
        check(Some("weather"), Some("a.b"), "api.a.b", Some(hosts));
        check(Some("weather"), Some("*.a.b"), "api.a.b.evil", Some(hosts));
        check(Some("weather"), Some("*"), "api.a.b", Some("has *, which is no host"));
        check(Some("weather"), Some("*.*, a.*"), "a.b", Some(hosts));
    }

    #[test]
    fn a_lone_star_grants_no_host() {
        let all = annotations(None, Some("*, a.b,*.c.d,,"));
        assert_eq!(granted_hosts(&all), ["a.b", "*.c.d"]);
        assert!(is_granted_host(&all, "x.c.d") && !is_granted_host(&all, "c.d"));
    }
}
