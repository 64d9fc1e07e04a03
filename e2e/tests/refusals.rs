//! Executions that are refused before anything is made for them. `Journey::refused` checks what every refusal promises:
//! phase, reason, conditions, event, and that there was neither Job nor pod.

use anyhow::Result;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use skillet_api::{Reason, Skill, SkillExecutionSpec};
use skillet_e2e::{SkillDraft, execute::spec, journey, observe::condition};

#[tokio::test]
async fn a_skill_that_does_not_exist_is_named() -> Result<()> {
    journey(async |j| {
        j.refused(spec("word-count"), Reason::SkillNotFound, &["word-count"]).await?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_version_that_does_not_exist_or_cannot_be_read_is_refused() -> Result<()> {
    journey(async |j| {
        j.apply(&SkillDraft::shell("echo", "cat").version("1.2.0")).await?;
        j.ready("echo").await?;
        let version = |text: &str| SkillExecutionSpec { version: Some(text.into()), ..spec("echo") };
        let (newer, wanting) = (version("^2.0.0"), version("1.2.1"));
        let nonsense = version("about 1.2");
        tokio::try_join!(
            // What there is instead helps to mend the request.
            j.refused(newer, Reason::VersionNotFound, &["^2.0.0", "1.2.0"]),
            j.refused(wanting, Reason::VersionNotFound, &["1.2.1", "1.2.0"]),
            j.refused(nonsense, Reason::ConstraintInvalid, &["about 1.2"]),
        )?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_skill_that_is_off_or_disabled_is_not_run() -> Result<()> {
    journey(async |j| {
        j.apply(&SkillDraft::shell("silent", "cat").spec("mode", "off")).await?;
        j.apply(&SkillDraft::shell("closed", "cat").spec("enabled", false)).await?;
        tokio::try_join!(
            j.refused(spec("silent"), Reason::SkillOff, &["mode"]),
            j.refused(spec("closed"), Reason::SkillDisabled, &["enabled"]),
        )?;
        let on = Patch::Merge(json!({ "spec": { "enabled": true } }));
        j.api::<Skill>().patch("closed", &PatchParams::default(), &on).await?;
        assert_eq!(j.run("closed", json!({"n": 1})).await?.output(), json!({"n": 1}));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn an_input_that_breaks_the_schema_is_refused_with_path_and_expectation() -> Result<()> {
    journey(async |j| {
        let schema = json!({
            "type": "object",
            "required": ["text"],
            "properties": {
                "text": { "type": "string" },
                "options": { "type": "object", "properties": { "width": { "type": "integer", "minimum": 1 } } },
            },
        });
        j.apply(&SkillDraft::shell("wrap", "cat").input_schema(schema)).await?;
        let with = |input| SkillExecutionSpec { input: Some(input), ..spec("wrap") };
        let wrong_type = with(json!({ "text": "a", "options": { "width": "wide" } }));
        let too_small = with(json!({ "text": "a", "options": { "width": 0 } }));
        tokio::try_join!(
            j.refused(wrong_type, Reason::InputInvalid, &["/options/width", "integer", "wide"]),
            j.refused(too_small, Reason::InputInvalid, &["/options/width", "at least 1"]),
            // No input is an empty object.
            j.refused(spec("wrap"), Reason::InputInvalid, &["text", "missing"]),
        )?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_schema_that_is_none_makes_the_skill_not_ready() -> Result<()> {
    journey(async |j| {
        j.apply(&SkillDraft::shell("odd", "cat").input_schema(json!({ "type": "strnig" }))).await?;
        j.apply(&SkillDraft::shell("odder", "cat").output_schema(json!({ "type": 7 }))).await?;
        for (name, reason, field) in [
            ("odd", Reason::InputSchemaInvalid, "spec.tool.inputSchema"),
            ("odder", Reason::OutputSchemaInvalid, "spec.tool.outputSchema"),
        ] {
            let status = j.observed(name).await?;
            for type_ in ["Ready", "Sealed"] {
                let said =
                    condition(&status.conditions, type_).map(|c| (c.status.as_str(), c.reason.as_str()));
                assert_eq!(said, Some(("False", reason.as_str())), "condition {type_} of {name}");
            }
            assert!(j.event(name, reason).await?.contains(field));
            assert_eq!(status.versions, Vec::<String>::new(), "nothing of {name} is sealed");
            j.refused(spec(name), Reason::SkillNotReady, &[name]).await?;
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn an_image_that_the_policy_does_not_allow_is_refused() -> Result<()> {
    journey(async |j| {
        let image = "registry.example/tools/sed:1";
        let sandbox = json!({ "image": image, "command": ["sed", "s/a/b/"] });
        j.apply(&SkillDraft::new("foreign", sandbox)).await?;
        let status = j.observed("foreign").await?;
        let ready = condition(&status.conditions, "Ready").map(|c| (c.status.as_str(), c.reason.as_str()));
        assert_eq!(ready, Some(("False", Reason::ImageNotAllowed.as_str())));
        j.refused(spec("foreign"), Reason::ImageNotAllowed, &[image, "allowedImages"]).await?;
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_secret_or_key_that_is_missing_is_named() -> Result<()> {
    journey(async |j| {
        let from_key = |name: &str, key: &str| {
            SkillDraft::shell(name, "echo $TOKEN")
                .sandbox("secretEnv", json!([{ "name": "TOKEN", "secret": "api-access", "key": key }]))
        };
        j.apply(&from_key("caller", "token")).await?;
        j.refused(spec("caller"), Reason::SecretMissing, &["TOKEN", "api-access"]).await?;
        j.apply("{apiVersion: v1, kind: Secret, metadata: {name: api-access}, stringData: {user: ada}}")
            .await?;
        j.refused(spec("caller"), Reason::SecretMissing, &["TOKEN", "api-access", "token"]).await?;
        Ok(())
    })
    .await
}
