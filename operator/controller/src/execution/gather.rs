//! Reads that one execution needs: its skill and versions, live where the watch has not shown them, and secrets.

use std::{collections::BTreeMap, fmt::Display, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, ResourceExt, api::ListParams};
use skillet_api::parse::{Guarded, ParseError};
use skillet_api::{Reason, Skill, SkillExecution, SkillVersion, names, skill::SecretEnvVar};
use skillet_core::admission::Refusal;
use thiserror::Error;
use tokio::time::sleep;
use tracing::warn;

use crate::{catalog::Catalogued as _, context::Context};

/// Between two tries to read what the API server did not give.
const READ_PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug, Error)]
pub enum GatherError {
    #[error("could not read {kind} {namespace}/{name}")]
    Read { kind: &'static str, namespace: String, name: String, source: Box<kube::Error> },
}

/// Reads until there is an answer: what is decided by it cannot be decided without it.
pub async fn until_read<T, E, F>(what: &'static str, read: impl Fn() -> F) -> T
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

/// What a decision about an execution looks at.
pub struct Observed {
    pub skill: Option<Arc<Skill>>,
    pub versions: Vec<Arc<SkillVersion>>,
}

/// From the catalogue: no I/O.
pub fn observe(ctx: &Context, execution: &SkillExecution) -> Observed {
    let namespace = execution.namespace().unwrap_or_default();
    Observed {
        skill: ctx.catalog.skill(&namespace, &execution.spec.skill),
        versions: ctx.catalog.versions(&namespace, &execution.spec.skill),
    }
}

/// From the API server, into the catalogue. Watches of different kinds run apart: an execution may be seen before
/// the skill that was made just before it. Gives back why the skill cannot be read, where it is there and cannot.
pub async fn refresh(
    ctx: &Context,
    execution: &SkillExecution,
    with_versions: bool,
) -> Result<Option<ParseError>, GatherError> {
    let namespace = execution.namespace().unwrap_or_default();
    let name = execution.spec.skill.clone();
    let read = |kind, source| GatherError::Read {
        kind,
        namespace: namespace.clone(),
        name: name.clone(),
        source: Box::new(source),
    };
    let skills: Api<Guarded<Skill>> = Api::namespaced(ctx.client.clone(), &namespace);
    let unreadable = match skills.get_opt(&name).await.map_err(|e| read("Skill", e))? {
        Some(Guarded(Ok(skill))) => {
            ctx.catalog.learn_skill(skill);
            None
        }
        Some(Guarded(Err(error))) => Some(error),
        None => {
            // The watch may not have told of its deletion yet.
            Skill::remove(&ctx.catalog, &(namespace.clone(), name.clone()));
            None
        }
    };
    if !with_versions {
        return Ok(unreadable);
    }
    let versions: Api<Guarded<SkillVersion>> = Api::namespaced(ctx.client.clone(), &namespace);
    let of_skill = ListParams::default().labels(&format!("{}={name}", names::LABEL_SKILL));
    let listed = versions.list(&of_skill).await.map_err(|e| read("SkillVersion", e))?;
    listed
        .into_iter()
        .filter_map(|version| version.0.ok())
        .for_each(|version| ctx.catalog.learn_version(version));
    Ok(unreadable)
}

/// Whether an execution has ended or is gone, as the API server knows it now. A list, for which the operator has the
/// right, is as consistent a read as a get.
pub async fn is_over(ctx: &Context, execution: &SkillExecution) -> bool {
    let api: Api<Guarded<SkillExecution>> =
        Api::namespaced(ctx.client.clone(), &execution.namespace().unwrap_or_default());
    let this = ListParams::default().fields(&format!("metadata.name={}", execution.name_any()));
    let found = until_read("SkillExecution", || api.list(&this)).await;
    let is_going_on = |found: Guarded<SkillExecution>| match found.0 {
        Ok(now) => {
            now.uid() == execution.uid() && !now.status.is_some_and(|status| status.phase.is_terminal())
        }
        Err(_) => true,
    };
    !found.items.into_iter().any(is_going_on)
}

/// Values of a skill's `secretEnv`, read when they are needed and kept nowhere.
pub async fn secrets(
    ctx: &Context,
    namespace: &str,
    wanted: &[SecretEnvVar],
) -> Result<Result<BTreeMap<String, String>, Refusal>, GatherError> {
    let api: Api<Secret> = Api::namespaced(ctx.client.clone(), namespace);
    let mut read: BTreeMap<&str, Option<Secret>> = BTreeMap::new();
    let mut values = BTreeMap::new();
    for variable in wanted {
        if !read.contains_key(variable.secret.as_str()) {
            let secret = match api.get_opt(&variable.secret).await {
                Ok(secret) => secret,
                Err(kube::Error::Api(answer)) if answer.code == 403 => {
                    return Ok(Err(refuse(
                        variable,
                        &format!("the operator may not read it: {}", answer.message),
                    )));
                }
                Err(source) => {
                    return Err(GatherError::Read {
                        kind: "Secret",
                        namespace: namespace.to_owned(),
                        name: variable.secret.clone(),
                        source: Box::new(source),
                    });
                }
            };
            read.insert(&variable.secret, secret);
        }
        match value(read.get(variable.secret.as_str()).and_then(Option::as_ref), variable) {
            Ok(value) => values.insert(variable.name.clone(), value),
            Err(refusal) => return Ok(Err(refusal)),
        };
    }
    Ok(Ok(values))
}

fn value(secret: Option<&Secret>, variable: &SecretEnvVar) -> Result<String, Refusal> {
    let SecretEnvVar { name: _, secret: secret_name, key } = variable;
    let secret =
        secret.ok_or_else(|| refuse(variable, &format!("this namespace has no Secret {secret_name}")))?;
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
        may_pass_soon: false,
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
        let secret: Option<Secret> = yaml.map(|text| serde_saphyr::from_str(text).unwrap());
        let got = value(secret.as_ref(), &variable());
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
    async fn what_must_be_known_is_read_until_it_is() {
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
        check(Some("data: {other: aGVsbG8=}"), Err("Secret api has no key token"));
        check(Some("metadata: {name: api}"), Err("Secret api has no key token"));
        check(
            Some("data: {token: /w==}"),
            Err("key token of Secret api is not text, which a variable must be"),
        );
    }
}
