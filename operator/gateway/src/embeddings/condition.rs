//! The condition `EmbeddingsReady` of the SkillPolicy: the gateway's only part of its status.

use jiff::Timestamp;
use kube::{
    Api, Client, Resource as _,
    api::{Patch, PatchParams},
};
use serde_json::json;
use skillet_api::{
    Reason, SkillPolicy, names,
    reason::{EMBEDDINGS_READY, READY},
};
use skillet_kube::{Conditions, find_condition, replace_unprintable};
use tracing::warn;

/// Most characters of a message.
const MAX_MESSAGE: usize = 1000;

/// The state of a provider of embeddings, as the condition says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// No provider is set, so there is no condition.
    Off,
    Ready,
    Unavailable(String),
}

/// Writes the condition if it has changed.
pub(super) struct EmbeddingsCondition {
    policies: Api<SkillPolicy>,
    /// The last state that the cluster has from here, or from an earlier process.
    written: Option<Verdict>,
}

impl EmbeddingsCondition {
    pub(super) fn new(client: Client) -> Self {
        Self { policies: Api::all(client), written: None }
    }

    /// Writes a state unless it was the last one. A write that fails is tried again with the next state.
    pub(super) async fn write(&mut self, verdict: Verdict) {
        if self.written.as_ref() == Some(&verdict) {
            return;
        }
        match self.apply(&verdict).await {
            Ok(()) => self.written = Some(verdict),
            Err(error) => warn!(error = ?error, "Condition EmbeddingsReady could not be written"),
        }
    }

    async fn apply(&self, verdict: &Verdict) -> Result<(), kube::Error> {
        // Without a policy the defaults count, which name no provider.
        let Some(policy) = self.policies.get_opt(names::POLICY_NAME).await? else { return Ok(()) };
        let old = policy.status.map(|status| status.conditions).unwrap_or_default();
        let known = find_condition(&old, EMBEDDINGS_READY);
        let conditions =
            Conditions { old: &old, generation: policy.metadata.generation, now: Timestamp::now() };
        let wanted = match verdict {
            Verdict::Off => None,
            Verdict::Ready => {
                let message = "the provider of embeddings gives vectors";
                Some(conditions.build(EMBEDDINGS_READY, "True", READY, message))
            }
            Verdict::Unavailable(message) => {
                let message: String = replace_unprintable(message).chars().take(MAX_MESSAGE).collect();
                let reason = Reason::EmbeddingsUnavailable.as_str();
                Some(conditions.build(EMBEDDINGS_READY, "False", reason, &message))
            }
        };
        if wanted.as_ref() == known {
            return Ok(());
        }
        let patch = json!({
            "apiVersion": SkillPolicy::api_version(&()),
            "kind": SkillPolicy::kind(&()),
            "metadata": { "name": names::POLICY_NAME, "uid": policy.metadata.uid },
            "status": { "conditions": wanted.into_iter().collect::<Vec<_>>() },
        });
        let params = PatchParams::apply(names::GATEWAY_FIELD_MANAGER).force();
        self.policies.patch_status(names::POLICY_NAME, &params, &Patch::Apply(&patch)).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use skillet_api::SkillPolicySpec;
    use skillet_kube::testing::FakeApiServer;

    use super::*;

    const AT: &str = "/apis/skillet.dev/v1alpha1/skillpolicies/default";

    fn condition(server: &FakeApiServer) -> Value {
        let conditions = server.object(AT).unwrap()["status"]["conditions"].clone();
        let said = |of: &Value| json!([of["type"], of["status"], of["reason"], of["message"]]);
        conditions.as_array().map_or(Value::Null, |list| list.iter().map(said).collect())
    }

    #[tokio::test]
    async fn the_condition_is_written_when_it_changes_and_removed_with_the_provider() {
        let server = FakeApiServer::default();
        let mut written = EmbeddingsCondition::new(server.client());
        written.write(Verdict::Off).await;
        assert_eq!(server.count("PATCH"), 0, "there is no policy");
        let policy = SkillPolicy::new("default", SkillPolicySpec::default());
        Api::all(server.client()).create(&kube::api::PostParams::default(), &policy).await.unwrap();
        let mut written = EmbeddingsCondition::new(server.client());
        written.write(Verdict::Off).await;
        assert_eq!((server.count("PATCH"), condition(&server)), (0, Value::Null));
        let failed = Verdict::Unavailable("down\u{7f}".to_owned());
        server.fail_next(&format!("PATCH {AT}/status"), 500, "no");
        for _ in 0..3 {
            written.write(failed.clone()).await;
        }
        assert_eq!(
            (server.count("PATCH"), condition(&server)),
            (2, json!([["EmbeddingsReady", "False", "EmbeddingsUnavailable", "down\u{fffd}"]]))
        );
        let mut restarted = EmbeddingsCondition::new(server.client());
        restarted.write(failed).await;
        assert_eq!(server.count("PATCH"), 2, "another process has written it");
        restarted.write(Verdict::Ready).await;
        assert_eq!(condition(&server)[0][1], "True");
        restarted.write(Verdict::Off).await;
        assert_eq!(condition(&server), json!([]));
    }
}
