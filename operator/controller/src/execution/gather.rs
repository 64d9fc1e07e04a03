//! Reads that one execution needs: its skill and versions, live where the watch has not shown them, and secrets.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    sync::Arc,
    time::Duration,
};

use futures::future::join_all;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, ResourceExt, api::ListParams};
use skillet_api::{Reason, Skill, SkillExecution, SkillVersion, names, skill::SecretEnvVar};
use skillet_core::admission::Refusal;
use skillet_kube::{ParseError, RawObject};
use thiserror::Error;
use tokio::time::sleep;
use tracing::warn;

use super::reference::ExecutionRef;
use crate::{catalog::Catalogued as _, context::Context};

/// Between two tries of a read that failed.
const READ_PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, Error)]
pub(crate) enum GatherError {
    #[error("could not read {kind} {namespace}/{name}")]
    Read { kind: &'static str, namespace: String, name: String, source: Box<kube::Error> },
}

/// Reads until the API server answers, for a decision that needs the answer.
pub(crate) async fn until_read<T, E, F>(what: &'static str, read: impl Fn() -> F) -> T
where
    E: Display,
    F: Future<Output = Result<T, E>>,
{
    loop {
        match read().await {
            Ok(answer) => return answer,
            Err(error) => warn!(what, %error, "Could not be read yet"),
        }
        sleep(READ_PAUSE).await;
    }
}

/// The facts of a decision about an execution.
pub(crate) struct Observed {
    pub(crate) skill: Option<Arc<Skill>>,
    pub(crate) versions: Vec<Arc<SkillVersion>>,
}

/// From the catalog: no I/O.
pub(crate) fn observe(ctx: &Context, namespace: &str, skill: &str) -> Observed {
    Observed { skill: ctx.catalog.skill(namespace, skill), versions: ctx.catalog.versions(namespace, skill) }
}

/// From the API server, into the catalog. Watches of different kinds run apart: an execution may be seen before
/// the skill that was created just before it. Returns the error of a skill that exists and does not parse.
pub(crate) async fn refresh(
    ctx: &Context,
    namespace: &str,
    name: &str,
    with_versions: bool,
) -> Result<Option<ParseError>, GatherError> {
    let read = |kind, source| GatherError::Read {
        kind,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        source: Box::new(source),
    };
    let skills: Api<RawObject<Skill>> = Api::namespaced(ctx.client.clone(), namespace);
    let found = skills.get_opt(name).await.map_err(|e| read("Skill", e))?;
    let unreadable = match found.map(|skill| skill.parse()) {
        Some(Ok(skill)) => {
            ctx.catalog.learn_skill(skill);
            None
        }
        Some(Err(error)) => Some(error),
        None => {
            // The watch may not have shown its deletion yet.
            Skill::remove(&ctx.catalog, &(namespace.to_owned(), name.to_owned()));
            None
        }
    };
    if !with_versions {
        return Ok(unreadable);
    }
    let versions: Api<RawObject<SkillVersion>> = Api::namespaced(ctx.client.clone(), namespace);
    let of_skill = ListParams::default().labels(&format!("{}={name}", names::LABEL_SKILL));
    let listed = versions.list(&of_skill).await.map_err(|e| read("SkillVersion", e))?;
    listed
        .into_iter()
        .filter_map(|version| version.parse().ok())
        .for_each(|version| ctx.catalog.learn_version(version));
    Ok(unreadable)
}

/// Returns true if an execution has ended or is gone, as the API server knows it now. A list, for which the operator
/// has the right, is as consistent a read as a get.
pub(crate) async fn is_over(ctx: &Context, execution: &ExecutionRef) -> bool {
    let api: Api<RawObject<SkillExecution>> = Api::namespaced(ctx.client.clone(), &execution.namespace);
    let this = ListParams::default().fields(&format!("metadata.name={}", execution.name));
    let listed = until_read("SkillExecution", || api.list(&this)).await;
    let is_live = |listed: RawObject<SkillExecution>| match listed.parse() {
        Ok(now) => {
            now.uid().as_ref() == Some(&execution.uid)
                && !now.status.is_some_and(|status| status.phase.is_terminal())
        }
        Err(_) => true,
    };
    !listed.items.into_iter().any(is_live)
}

/// Values of a skill's `secretEnv`, read when they are needed and kept nowhere.
pub(crate) async fn secrets(
    ctx: &Context,
    namespace: &str,
    wanted: &[SecretEnvVar],
) -> Result<BTreeMap<String, String>, Refusal> {
    let api: Api<Secret> = Api::namespaced(ctx.client.clone(), namespace);
    let names: BTreeSet<&str> = wanted.iter().map(|variable| variable.secret.as_str()).collect();
    let read = names.into_iter().map(async |name| (name, until_read("Secret", || fetch(&api, name)).await));
    let secrets: BTreeMap<&str, Fetched> = join_all(read).await.into_iter().collect();
    wanted.iter().map(|variable| Ok((variable.name.clone(), value(&secrets, variable)?))).collect()
}

/// A Secret as the operator may see it.
enum Fetched {
    Found(Box<Secret>),
    Missing,
    Forbidden(String),
}

async fn fetch(api: &Api<Secret>, name: &str) -> Result<Fetched, kube::Error> {
    match api.get_opt(name).await {
        Ok(secret) => Ok(secret.map_or(Fetched::Missing, |secret| Fetched::Found(Box::new(secret)))),
        Err(kube::Error::Api(answer)) if answer.code == 403 => Ok(Fetched::Forbidden(answer.message.clone())),
        Err(error) => Err(error),
    }
}

fn value(secrets: &BTreeMap<&str, Fetched>, variable: &SecretEnvVar) -> Result<String, Refusal> {
    let SecretEnvVar { name: _, secret: secret_name, key } = variable;
    let secret = match secrets.get(secret_name.as_str()) {
        Some(Fetched::Found(secret)) => secret,
        Some(Fetched::Forbidden(message)) => {
            return Err(refuse(variable, &format!("the operator may not read it: {message}")));
        }
        Some(Fetched::Missing) | None => {
            return Err(refuse(variable, &format!("this namespace has no Secret {secret_name}")));
        }
    };
    let bytes = secret.data.as_ref().and_then(|data| data.get(key));
    let bytes = bytes.ok_or_else(|| refuse(variable, &format!("Secret {secret_name} has no key {key}")))?;
    String::from_utf8(bytes.0.clone()).map_err(|_| {
        refuse(variable, &format!("key {key} of Secret {secret_name} is not text, which a variable must be"))
    })
}

fn refuse(variable: &SecretEnvVar, what: &str) -> Refusal {
    Refusal {
        reason: Reason::SecretMissing,
        message: format!("spec.run.sandbox.secretEnv {}: {what}", variable.name),
        is_transient: false,
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, future::ready};

    use super::*;

    fn variable() -> SecretEnvVar {
        SecretEnvVar { name: "TOKEN".into(), secret: "api".into(), key: "token".into() }
    }

    fn check(yaml: Option<&str>, expected: Result<&str, &str>) {
        let found = |text| Fetched::Found(Box::new(serde_saphyr::from_str(text).unwrap()));
        check_fetched(yaml.map_or(Fetched::Missing, found), expected);
    }

    fn check_fetched(secret: Fetched, expected: Result<&str, &str>) {
        let got = value(&BTreeMap::from([("api", secret)]), &variable());
        match (&got, expected) {
            (Ok(text), Ok(wanted)) => assert_eq!(text, wanted),
            (Err(refusal), Err(wanted)) => {
                assert_eq!(refusal.reason, Reason::SecretMissing);
                assert_eq!(refusal.message, format!("spec.run.sandbox.secretEnv TOKEN: {wanted}"));
            }
            _ => panic!("{got:?} is not {expected:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_is_retried_until_the_api_server_answers() {
        let tried = Cell::new(0);
        let read = || {
            tried.set(tried.get() + 1);
            ready(if tried.get() < 4 { Err("not yet") } else { Ok("there") })
        };
        assert_eq!(until_read("Job", read).await, "there");
        assert_eq!(tried.get(), 4);
    }

    #[test]
    fn a_missing_secret_or_key_is_named() {
        check(Some("data: {token: aGVsbG8=}"), Ok("hello"));
        check(None, Err("this namespace has no Secret api"));
        let forbidden = Fetched::Forbidden("no RBAC rule".into());
        check_fetched(forbidden, Err("the operator may not read it: no RBAC rule"));
        check(Some("data: {other: aGVsbG8=}"), Err("Secret api has no key token"));
        check(Some("metadata: {name: api}"), Err("Secret api has no key token"));
        check(
            Some("data: {token: /w==}"),
            Err("key token of Secret api is not text, which a variable must be"),
        );
    }
}
