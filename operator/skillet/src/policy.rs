//! The SkillPolicy of the installation: fields that the chart's values set, applied when an operator starts.
//!
//! The fields are owned by the installation, so that an edit of them lasts until the next start only. Every other field is
//! free for an administrator.

use std::{str::FromStr, time::Duration};

use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};
use skillet_api::{SkillPolicy, SkillPolicySpec, names};
use tokio::time::sleep;
use tracing::{error, info, warn};

const FIELD_MANAGER: &str = "skillet-installation";
/// Pause after an answer that may be another one later, such as that the definitions are not served yet.
const RETRY: Duration = Duration::from_secs(2);

/// Fields of a SkillPolicy's spec, as JSON. Empty, it sets none.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct InstalledPolicy(Value);

impl FromStr for InstalledPolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let spec: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if !spec.is_object() {
            return Err("must be a JSON object with fields of a SkillPolicy's spec".to_owned());
        }
        // The API server checks values; here only their types count, before anything is started.
        serde_json::from_value::<SkillPolicySpec>(spec.clone()).map_err(|error| error.to_string())?;
        Ok(Self(spec))
    }
}

impl InstalledPolicy {
    /// Applies the fields until the API server has accepted or refused them.
    pub(crate) async fn apply(self, client: Client) {
        let Self(spec) = self;
        if spec.as_object().is_none_or(serde_json::Map::is_empty) {
            return;
        }
        let kind = ApiResource::erase::<SkillPolicy>(&());
        let api: Api<DynamicObject> = Api::all_with(client, &kind);
        let object = json!({ "apiVersion": kind.api_version, "kind": kind.kind,
            "metadata": { "name": names::POLICY_NAME }, "spec": spec });
        let params = PatchParams::apply(FIELD_MANAGER).force();
        loop {
            match api.patch(names::POLICY_NAME, &params, &Patch::Apply(&object)).await {
                Ok(_) => return info!("SkillPolicy of the installation applied"),
                Err(kube::Error::Api(status)) if is_refusal(status.code) => {
                    let message = &status.message;
                    return error!(message, "SkillPolicy of the installation was refused");
                }
                Err(error) => warn!(%error, "SkillPolicy of the installation could not be applied yet"),
            }
            sleep(RETRY).await;
        }
    }
}

/// Returns true for an answer that another try would get again.
fn is_refusal(code: u16) -> bool {
    matches!(code, 400 | 403 | 422)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_policy_are_read_and_wrong_types_are_refused() {
        for text in ["{}", r#"{"isolation": "Compatible", "allowedImages": ["registry.example.com/"]}"#] {
            assert!(text.parse::<InstalledPolicy>().is_ok(), "{text}");
        }
        for text in ["", "[]", r#"{"executionEnabled": "no"}"#, r#"{"isolation": "None"}"#] {
            assert!(text.parse::<InstalledPolicy>().is_err(), "{text}");
        }
    }

    #[test]
    fn only_an_answer_that_stays_the_same_ends_the_tries() {
        assert!(is_refusal(422) && is_refusal(403));
        assert!(!is_refusal(404) && !is_refusal(409) && !is_refusal(503));
    }
}
