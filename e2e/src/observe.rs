//! The cluster's view of an object: conditions, events, and for an execution that was refused that nothing was made.

use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::{api::core::v1::Event, apimachinery::pkg::apis::meta::v1::Condition};
use kube::{Api, Client, api::ListParams};
use skillet_api::{
    Phase, Reason, Skill, SkillExecutionSpec, SkillStatus,
    reason::{FINISHED, READY, SUCCEEDED},
};

use crate::{execute::Ended, journey::Journey, wait::eventually};

/// The operator looks at a Skill within milliseconds; a busy machine may take seconds.
const SEEN_WITHIN: Duration = Duration::from_secs(30);

impl Journey {
    /// Waits until the operator has looked at the skill as it now is.
    pub async fn observed(&self, skill: &str) -> Result<SkillStatus> {
        let api = self.api::<Skill>();
        eventually(&format!("Skill {skill} is observed"), SEEN_WITHIN, async || {
            let skill = api.get(skill).await?;
            let generation = skill.metadata.generation;
            Ok(skill.status.filter(|status| status.observed_generation == generation))
        })
        .await
    }

    /// Waits until the skill can run as it now is.
    pub async fn ready(&self, skill: &str) -> Result<SkillStatus> {
        eventually(&format!("Skill {skill} is ready"), SEEN_WITHIN, async || {
            let status = self.observed(skill).await?;
            Ok(is_ready(&status.conditions).then_some(status))
        })
        .await
    }

    /// Waits until a Skill says that it is not ready, and returns the condition that says so.
    pub async fn not_ready(&self, skill: &str) -> Result<Condition> {
        eventually(&format!("Skill {skill} is not ready"), SEEN_WITHIN, async || {
            let status = self.observed(skill).await?;
            Ok(condition(&status.conditions, READY).filter(|ready| ready.status == "False").cloned())
        })
        .await
    }

    /// Runs what must be refused before anything is made for it, and checks all that a refusal promises.
    pub async fn refused(&self, spec: SkillExecutionSpec, reason: Reason, words: &[&str]) -> Result<Ended> {
        let execution = self.start_with(spec).await?;
        let ended = self.ended(&execution).await?.is(Phase::Failed, reason).says(words);
        for (type_, status) in [(FINISHED, "True"), (SUCCEEDED, "False")] {
            let condition = condition(&ended.status.conditions, type_);
            let said = condition.map(|c| (c.status.as_str(), c.reason.as_str()));
            assert_eq!(said, Some((status, reason.as_str())), "condition {type_} of {}", ended.name);
        }
        assert_eq!((ended.status.attempts, &ended.status.job), (0, &None), "{} was not started", ended.name);
        let sandboxes = self.sandboxes(&ended.uid).await?;
        assert!(sandboxes.is_empty(), "{} has sandboxes: {sandboxes:?}", ended.name);
        let note = self.event(&ended.name, reason).await?;
        for word in words {
            assert!(note.contains(word), "the event of {} does not say {word:?}: {note:?}", ended.name);
        }
        Ok(ended)
    }

    /// Waits for an event about an object of the namespace; its note.
    pub async fn event(&self, name: &str, reason: Reason) -> Result<String> {
        event(&self.client, Some(&self.namespace), name, reason).await
    }
}

/// Waits for an event about an object, in any namespace where none is given; its note.
pub async fn event(client: &Client, namespace: Option<&str>, name: &str, reason: Reason) -> Result<String> {
    let api: Api<Event> = match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    };
    let about = ListParams::default().fields(&format!("involvedObject.name={name},reason={reason}"));
    let what = format!("an event {reason} about {name}");
    let events =
        eventually(&what, SEEN_WITHIN, async || Ok(api.list(&about).await?.items.into_iter().next_back()));
    events.await?.message.with_context(|| format!("{what} has no note"))
}

/// Returns true if the condition Ready is true.
pub fn is_ready(conditions: &[Condition]) -> bool {
    condition(conditions, READY).is_some_and(|condition| condition.status == "True")
}

/// One condition of several.
pub fn condition<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}
