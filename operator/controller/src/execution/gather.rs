//! Reads that one execution needs: its skill and versions, live where the watch has not shown them, and secrets.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures::future::join_all;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, ResourceExt as _, api::ListParams};
use skillet_api::{Reason, Skill, SkillExecution, SkillVersion, names, skill::SecretEnvVar};
use skillet_core::{
    admission::{ChosenVersion, Refusal},
    http::{check_grant, granted_hosts},
};
use skillet_kube::{Backoff, RawObject, list_pages};
use thiserror::Error;
use tokio::time::Instant;
use tracing::warn;

use super::{reference::ExecutionRef, stored};
use crate::{catalog::Catalogued as _, context::Context, retention::UNFINISHED, version_head::VersionHead};

/// Pauses between two tries of a read that failed.
const READS: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(15));

/// A read that cannot succeed: the API server refuses the request, or does not process it in time.
#[derive(Debug, Error)]
#[error("could not read {kind}: {message}")]
pub(crate) struct ReadError {
    kind: &'static str,
    pub(crate) message: String,
}

impl From<ReadError> for Refusal {
    fn from(error: ReadError) -> Self {
        Refusal::new(Reason::ApiError, error.to_string())
    }
}

/// Reads until the API server answers, for a decision that needs the answer. Waits for an API server that cannot be
/// reached. Retries an error of the API server for at most `limit`.
pub(crate) async fn until_read<T, F>(
    kind: &'static str,
    limit: Duration,
    read: impl Fn() -> F,
) -> Result<T, ReadError>
where
    F: Future<Output = kube::Result<T>>,
{
    let (since, mut backoff) = (Instant::now(), READS);
    loop {
        let error = match read().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        if is_permanent(&error) || (matches!(error, kube::Error::Api(_)) && since.elapsed() >= limit) {
            let message = match error {
                kube::Error::Api(answer) => answer.message,
                error => error.to_string(),
            };
            return Err(ReadError { kind, message });
        }
        warn!(kind, %error, "Could not be read yet");
        backoff.pause().await;
    }
}

/// Returns true if a repeated request gets the same error. 401 is about the operator's token, which is renewed.
pub(crate) fn is_permanent(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(answer) => {
            (400..500).contains(&answer.code) && !matches!(answer.code, 401 | 408 | 409 | 429)
        }
        kube::Error::BuildRequest(_) | kube::Error::HttpError(_) => true,
        _ => false,
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
/// the skill that was created just before it. Refuses a skill that exists and does not parse, and one that cannot be read.
pub(crate) async fn refresh(
    ctx: &Context,
    namespace: &str,
    name: &str,
    with_versions: bool,
) -> Result<(), Refusal> {
    let limit = ctx.catalog.policy().start_timeout.0;
    let skills: Api<RawObject<Skill>> = Api::namespaced(ctx.client.clone(), namespace);
    let found = until_read("Skill", limit, || async {
        let _turn = ctx.pace.arrivals.take().await;
        skills.get_opt(name).await
    });
    let found = found.await?;
    let size = found.as_ref().map_or(0, RawObject::parsed_size);
    let large = ctx.checks.large_object(size).await;
    let parsed = match found.map(|skill| skill.parse()) {
        Some(Ok(skill)) => {
            ctx.catalog.learn_skill(skill);
            Ok(())
        }
        Some(Err(error)) => Err(Refusal::new(Reason::SkillNotReady, error.to_string())),
        None => {
            // The watch may not have shown its deletion yet.
            Skill::remove(&ctx.catalog, &(namespace.to_owned(), name.to_owned()));
            Ok(())
        }
    };
    drop(large);
    if !with_versions {
        return parsed;
    }
    let versions: Api<RawObject<SkillVersion>> = Api::namespaced(ctx.client.clone(), namespace);
    let of_skill = ListParams::default().labels(&format!("{}={name}", names::LABEL_SKILL));
    let listed = until_read("SkillVersion", limit, || async {
        let _turn = ctx.pace.arrivals.take().await;
        list_pages(&versions, &of_skill, |version| VersionHead::read(&version)).await
    });
    listed.await?.iter().for_each(|version| ctx.catalog.learn_version(version));
    parsed
}

/// Returns true if an execution has ended or is gone, as the API server knows it now. A list, for which the operator
/// has the right, is as consistent a read as a get.
pub(crate) async fn is_over(ctx: &Context, execution: &ExecutionRef) -> Result<bool, ReadError> {
    let api: Api<SkillExecution> = Api::namespaced(ctx.client.clone(), execution.namespace());
    let unfinished = format!("metadata.name={},{UNFINISHED}", execution.name);
    let unfinished = ListParams::default().fields(&unfinished);
    let listed = until_read("SkillExecution", Duration::MAX, || api.list_metadata(&unfinished)).await?;
    Ok(!listed.items.into_iter().any(|now| now.metadata.uid.as_ref() == Some(&execution.uid)))
}

/// Reads a sealed version with its content.
pub(crate) async fn version(
    ctx: &Context,
    namespace: &str,
    chosen: &ChosenVersion,
) -> Result<RawObject<SkillVersion>, Refusal> {
    let api: Api<RawObject<SkillVersion>> = Api::namespaced(ctx.client.clone(), namespace);
    let this = ListParams::default().fields(&format!("metadata.name={}", chosen.object.name_any()));
    let limit = ctx.catalog.policy().start_timeout.0;
    let listed = until_read("SkillVersion", limit, || api.list(&this)).await?;
    let found = listed.items.into_iter().find(|version| version.uid() == chosen.object.uid());
    found.ok_or_else(|| {
        let message = format!("version {} of Skill {} was deleted", chosen.number, chosen.object.spec.skill);
        Refusal::new(Reason::VersionNotFound, message)
    })
}

/// Reads the input of an execution. A deleted execution has none.
pub(crate) async fn input(ctx: &Context, execution: &ExecutionRef) -> Result<Arc<str>, Refusal> {
    let api: Api<RawObject<SkillExecution>> = Api::namespaced(ctx.client.clone(), execution.namespace());
    let this = ListParams::default().fields(&format!("metadata.name={}", execution.name));
    let limit = ctx.catalog.policy().start_timeout.0;
    let listed = until_read("SkillExecution", limit, || api.list(&this)).await?;
    let found = listed.items.iter().find(|found| found.uid().as_ref() == Some(&execution.uid));
    let input = found.map_or_else(|| Ok("{}".into()), stored::input);
    input.map_err(|error| Refusal::new(Reason::ParseFailed, error.to_string()))
}

/// A value of a Secret, with the hosts that the owner of the Secret lets it go to.
pub(crate) struct GrantedSecret {
    pub(crate) value: String,
    pub(crate) hosts: Vec<String>,
}

/// Values of a skill's Secrets, read when they are needed and kept nowhere. For a skill that reaches hosts, the owner of
/// each Secret must have given it to this skill for each of these hosts.
pub(crate) async fn secrets(
    ctx: &Context,
    namespace: &str,
    wanted: &[SecretEnvVar],
    (skill, hosts): (&str, &[&str]),
) -> Result<BTreeMap<String, GrantedSecret>, Refusal> {
    let secrets = fetch_secrets(ctx, namespace, wanted).await;
    let granted = |variable: &SecretEnvVar| {
        let value = value(&secrets, variable)?;
        let annotations = match secrets.get(variable.secret.as_str()) {
            Some(Fetched::Found(secret)) => secret.annotations(),
            Some(Fetched::Missing | Fetched::Unreadable(_)) | None => &BTreeMap::new(),
        };
        for host in hosts {
            check_grant(&variable.secret, annotations, skill, host)?;
        }
        let hosts = granted_hosts(annotations).into_iter().map(str::to_owned).collect();
        Ok((variable.name.clone(), GrantedSecret { value, hosts }))
    };
    wanted.iter().map(granted).collect()
}

async fn fetch_secrets<'a>(
    ctx: &Context,
    namespace: &str,
    wanted: &'a [SecretEnvVar],
) -> BTreeMap<&'a str, Fetched> {
    let api: Api<Secret> = Api::namespaced(ctx.client.clone(), namespace);
    let names: BTreeSet<&str> = wanted.iter().map(|variable| variable.secret.as_str()).collect();
    let limit = ctx.catalog.policy().start_timeout.0;
    let read = names.into_iter().map(async |name| {
        let fetched = match until_read("Secret", limit, || api.get_opt(name)).await {
            Ok(Some(secret)) => Fetched::Found(Box::new(secret)),
            Ok(None) => Fetched::Missing,
            Err(error) => Fetched::Unreadable(error.message),
        };
        (name, fetched)
    });
    join_all(read).await.into_iter().collect()
}

/// A Secret as the operator may see it.
enum Fetched {
    Found(Box<Secret>),
    Missing,
    Unreadable(String),
}

fn value(secrets: &BTreeMap<&str, Fetched>, variable: &SecretEnvVar) -> Result<String, Refusal> {
    let SecretEnvVar { name: _, secret: secret_name, key } = variable;
    let secret = match secrets.get(secret_name.as_str()) {
        Some(Fetched::Found(secret)) => secret,
        Some(Fetched::Unreadable(message)) => {
            return Err(refuse(variable, &format!("the operator cannot read it: {message}")));
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
    let message = format!("spec.run.sandbox.secretEnv {}: {what}", variable.name);
    Refusal::new(Reason::SecretMissing, message)
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

    const LIMIT: Duration = Duration::from_secs(60);

    /// The tries and the answer if each try but the last has this status; `None` is a lost connection.
    async fn check_tries(failures: &[Option<u16>], expected: Result<(), &str>, tries: usize) {
        let asked = Cell::new(0);
        let read = || {
            let failure = failures.get(asked.get());
            asked.set(asked.get() + 1);
            ready(match failure {
                None => Ok(()),
                Some(None) => Err(kube::Error::ReadEvents(std::io::Error::other("lost"))),
                Some(Some(code)) => {
                    let status = kube::core::Status::failure("no", "").with_code(*code);
                    Err(kube::Error::Api(status.boxed()))
                }
            })
        };
        let answer = until_read("Job", LIMIT, read).await.map_err(|error| error.to_string());
        assert_eq!((answer, asked.get()), (expected.map_err(ToOwned::to_owned), tries), "{failures:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_is_retried_until_the_api_server_answers() {
        check_tries(&[None, Some(500), Some(429), Some(409), Some(408), Some(401)], Ok(()), 7).await;
        check_tries(&[None; 600], Ok(()), 601).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_read_is_not_retried_and_a_failing_one_has_a_limit() {
        for code in [400, 403, 404, 422] {
            check_tries(&[None, Some(code), None], Err("could not read Job: no"), 2).await;
        }
        check_tries(&[Some(500); 600], Err("could not read Job: no"), 8).await;
    }

    #[test]
    fn a_missing_secret_or_key_is_named() {
        check(Some("data: {token: aGVsbG8=}"), Ok("hello"));
        check(None, Err("this namespace has no Secret api"));
        let unreadable = Fetched::Unreadable("no RBAC rule".into());
        check_fetched(unreadable, Err("the operator cannot read it: no RBAC rule"));
        check(Some("data: {other: aGVsbG8=}"), Err("Secret api has no key token"));
        check(Some("metadata: {name: api}"), Err("Secret api has no key token"));
        check(
            Some("data: {token: /w==}"),
            Err("key token of Secret api is not text, which a variable must be"),
        );
    }
}
