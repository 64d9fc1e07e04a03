//! From an applied Skill to sealed versions and conditions.

use k8s_openapi::{
    api::core::v1::{ConfigMap, Secret},
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use skillet_api::{Skill, SkillStatus, SkillVersion};
use skillet_core::content;

use crate::{
    eventually::{LIMIT, eventually},
    objects::{apply_skill, condition, ended, event, execute, reason, sealed_skill, skill_status},
    operator::operator,
};

async fn versions(client: &Client, at: &str) -> Vec<SkillVersion> {
    let api: Api<SkillVersion> = Api::namespaced(client.clone(), at);
    api.list(&ListParams::default()).await.unwrap().items
}

#[tokio::test]
async fn a_new_skill_is_sealed_under_its_version_and_is_ready() {
    let Some(operator) = operator() else { return };
    let (client, at) = operator.namespace("sealing-new").await;
    let status = sealed_skill(&client, &at, "a", "description: Repeats its input").await;
    assert_eq!(condition(&status, "Ready"), ("True", "Ready", "1.0.0 runs"));
    assert_eq!(condition(&status, "Sealed"), ("True", "Sealed", ""));
    assert_eq!(
        (status.latest_version.as_deref(), &status.versions[..]),
        (Some("1.0.0"), &["1.0.0".into()][..])
    );

    let [sealed] = &versions(&client, &at).await[..] else { panic!("not one version") };
    let skill = Api::<Skill>::namespaced(client, &at).get("a").await.unwrap();
    assert_eq!(sealed.name_any(), "a-1.0.0");
    assert_eq!(sealed.labels()["skillet.dev/skill"], "a");
    assert_eq!(sealed.spec, content::seal("a", &skill.spec));
    assert_eq!(status.digest, Some(sealed.spec.digest.clone()));
    let [OwnerReference { uid, controller: Some(true), .. }] = sealed.owner_references() else {
        panic!("{:?}", sealed.owner_references())
    };
    assert_eq!(Some(uid), skill.uid().as_ref());
    operator.assert_nothing_was_forbidden();
}

#[tokio::test]
async fn other_content_under_a_sealed_version_is_refused_and_the_sealed_one_serves() {
    let Some(operator) = operator() else { return };
    let (client, at) = operator.namespace("sealing-conflict").await;
    sealed_skill(&client, &at, "a", "description: First").await;
    let before = versions(&client, &at).await;

    let api: Api<Skill> = Api::namespaced(client.clone(), &at);
    for content in [
        json!({ "description": "Second" }),
        json!({ "run": { "sandbox": { "script": "echo" } } }),
        json!({ "tool": { "inputSchema": {} } }),
        json!({ "limits": { "timeout": "1s" } }),
    ] {
        let change = json!({ "spec": content });
        let refused = api.patch("a", &PatchParams::default(), &Patch::Merge(&change)).await.unwrap_err();
        let rule = "this version is sealed; raise spec.version to change description, tool, run or limits";
        assert!(refused.to_string().contains(rule), "{change}: {refused}");
    }

    for content in [
        json!({ "instructions": { "body": "Read." } }),
        json!({ "network": { "hosts": [{ "name": "a.dev" }] } }),
        json!({ "files": [{ "path": "a", "content": "x" }] }),
    ] {
        let change = json!({ "spec": content });
        let refused = api.patch("a", &PatchParams::default(), &Patch::Merge(&change)).await.unwrap_err();
        let rule = "this version is sealed; raise spec.version to change instructions, files or network";
        assert!(refused.to_string().contains(rule), "{change}: {refused}");
    }

    // The API server does not know the content of a version that is not the present one.
    apply_skill(&client, &at, "a", "{version: 1.0.1, description: First}").await;
    apply_skill(&client, &at, "a", "description: Second").await;
    let status = skill_status(&client, &at, "a", |status| condition(status, "Sealed").0 == "False").await;
    let message = "1.0.0 is sealed with another content; raise spec.version";
    assert_eq!(condition(&status, "Sealed"), ("False", "VersionConflict", message));
    let serving = "1.0.0 runs; the present content is not sealed";
    assert_eq!(condition(&status, "Ready"), ("True", "Ready", serving));
    assert_eq!(event(&client, &at, "a", "VersionConflict").await, message);
    assert_eq!(condition(&status, "Stalled").1, "VersionConflict");
    let sealed = versions(&client, &at).await;
    assert!(before.iter().all(|version| sealed.contains(version)));

    apply_skill(&client, &at, "a", "{version: 1.1.0, description: Second}").await;
    let status = skill_status(&client, &at, "a", |status| condition(status, "Sealed").0 == "True").await;
    assert_eq!(status.versions.first().map(String::as_str), Some("1.1.0"));
    assert_eq!(status.latest_version.as_deref(), Some("1.1.0"));
    assert!(status.conditions.iter().all(|condition| condition.type_ != "Stalled"));

    // Back to the content that the older version has.
    let status = sealed_skill(&client, &at, "a", "description: First").await;
    let versions = [status.current_version.as_deref(), status.latest_version.as_deref()];
    assert_eq!(versions, [Some("1.0.0"), Some("1.1.0")]);
}

#[tokio::test]
async fn what_is_not_content_changes_without_a_new_version() {
    let Some(operator) = operator() else { return };
    let (client, at) = operator.namespace("sealing-mode").await;
    let before = sealed_skill(&client, &at, "a", "mode: auto").await;
    for change in ["mode: 'off'", "{enabled: false, tags: [x]}", "invocation: manual"] {
        let after = sealed_skill(&client, &at, "a", change).await;
        assert_eq!(
            (after.digest, after.versions),
            (before.digest.clone(), before.versions.clone()),
            "{change}"
        );
    }
    assert_eq!(versions(&client, &at).await.len(), 1);
}

#[tokio::test]
async fn a_skill_that_is_not_valid_says_why_until_it_is_mended() {
    let Some(operator) = operator() else { return };
    let (client, at) = operator.namespace("sealing-invalid").await;
    for (name, spec, reason, part) in [
        ("in", "tool: {inputSchema: {type: nonsense}}", "InputSchemaInvalid", "spec.tool.inputSchema"),
        ("out", "tool: {outputSchema: {required: 1}}", "OutputSchemaInvalid", "spec.tool.outputSchema"),
        (
            "image",
            "run: {sandbox: {image: x.example/y:1, command: [cat]}}",
            "ImageNotAllowed",
            "spec.run.sandbox.image",
        ),
        ("high", "limits: {timeout: 9h}", "LimitTooHigh", "spec.limits.timeout"),
        ("spec", "limits: {cpu: '1m'}", "SpecInvalid", "spec.limits.cpu"),
    ] {
        apply_skill(&client, &at, name, spec).await;
        let status = skill_status(&client, &at, name, |_| true).await;
        for type_ in ["Ready", "Sealed"] {
            let (verdict, said, message) = condition(&status, type_);
            assert_eq!((verdict, said), ("False", reason), "{name}");
            assert!(message.contains(part), "{name}: {message}");
        }
        assert!(event(&client, &at, name, reason).await.contains(part), "{name}");
        let counted = format!("skillet_problems_total{{kind=\"Skill\",reason=\"{reason}\"}}");
        assert!(operator.metrics().contains(&counted), "{counted}");
        sealed_skill(&client, &at, name, "{}").await;
    }
}

#[tokio::test]
async fn versions_past_the_history_limit_are_deleted_oldest_first() {
    let Some(operator) = operator() else { return };
    let (client, at) = operator.namespace("sealing-history").await;
    let skill = apply_skill(&client, &at, "a", "version: 2.0.0").await;
    // As twenty earlier versions of the Skill would have left them; the policy keeps twenty in all.
    let api: Api<SkillVersion> = Api::namespaced(client.clone(), &at);
    for minor in 0..20 {
        let mut spec = skill.spec.clone();
        spec.version = format!("1.{minor}.0");
        let mut version = SkillVersion::new(&format!("a-{}", spec.version), content::seal("a", &spec));
        version.labels_mut().insert("skillet.dev/skill".into(), "a".into());
        api.create(&PostParams::default(), &version).await.unwrap();
    }
    // Not sooner: while the versions come in, twenty may be all there are.
    let is_settled = |status: &SkillStatus| {
        let (newest, oldest) = (status.versions.first(), status.versions.last());
        status.versions.len() == 20
            && newest.is_some_and(|version| version == "2.0.0")
            && oldest.is_some_and(|version| version == "1.1.0")
    };
    skill_status(&client, &at, "a", is_settled).await;
    eventually("the oldest version is gone", LIMIT, async || {
        api.get_opt("a-1.0.0").await.unwrap().is_none().then_some(())
    })
    .await;
    assert_eq!(versions(&client, &at).await.len(), 20);
    operator.assert_nothing_was_forbidden();
}

#[tokio::test]
async fn a_deleted_version_is_sealed_again_while_the_skill_names_it() {
    let Some(operator) = operator() else { return };
    let (client, at) = operator.namespace("sealing-deleted").await;
    sealed_skill(&client, &at, "a", "{}").await;
    let api: Api<SkillVersion> = Api::namespaced(client.clone(), &at);
    let before = api.get("a-1.0.0").await.unwrap();
    api.delete("a-1.0.0", &DeleteParams::default()).await.unwrap();
    let after = eventually("the version is there again", LIMIT, async || {
        api.get_opt("a-1.0.0").await.unwrap().filter(|found| found.uid() != before.uid())
    })
    .await;
    assert_eq!(after.spec, before.spec);
}

#[tokio::test]
async fn a_yanked_version_is_labelled_and_runs_only_after_it_is_given_back() {
    let Some(operator) = operator() else { return };
    let (client, at) = operator.namespace("sealing-yanked").await;
    sealed_skill(&client, &at, "a", "{}").await;
    sealed_skill(&client, &at, "a", "version: 1.1.0").await;
    let yank = |versions: &str| format!("{{version: 1.1.0, yankedVersions: {versions}}}");
    let is_labelled = async |wanted: bool| {
        let api: Api<SkillVersion> = Api::namespaced(client.clone(), &at);
        eventually(format!("the label is there: {wanted}"), LIMIT, async || {
            let labels = api.get("a-1.1.0").await.unwrap().labels().clone();
            (labels.contains_key("skillet.dev/yanked") == wanted).then_some(())
        })
        .await;
    };

    let status = sealed_skill(&client, &at, "a", &yank("[1.1.0]")).await;
    assert_eq!((status.latest_version.as_deref(), status.versions.len()), (Some("1.0.0"), 2));
    assert_eq!(condition(&status, "Ready").2, "1.0.0 runs, because spec.yankedVersions withdraws 1.1.0");
    is_labelled(true).await;
    execute(&client, &at, "pinned", "{skill: a, version: 1.1.0}").await;
    let status = ended(&client, &at, "pinned").await;
    assert_eq!(reason(&status), "VersionYanked", "{:?}", status.message);

    let status = sealed_skill(&client, &at, "a", &yank("[1.0.0, 1.1.0]")).await;
    assert_eq!(condition(&status, "Ready").1, "VersionYanked");
    let status = sealed_skill(&client, &at, "a", &yank("[]")).await;
    assert_eq!((condition(&status, "Ready").0, status.latest_version.as_deref()), ("True", Some("1.1.0")));
    is_labelled(false).await;
    operator.assert_nothing_was_forbidden();
}

#[tokio::test]
async fn a_status_that_somebody_else_wrote_is_put_right() {
    let Some(operator) = operator() else { return };
    let (client, at) = operator.namespace("sealing-status").await;
    sealed_skill(&client, &at, "a", "{}").await;
    let api: Api<Skill> = Api::namespaced(client.clone(), &at);
    let wrong = json!({ "status": { "latestVersion": "9.9.9", "versions": ["9.9.9"] } });
    api.patch_status("a", &PatchParams::default(), &Patch::Merge(&wrong)).await.unwrap();
    skill_status(&client, &at, "a", |status| status.versions == ["1.0.0"]).await;
}

#[tokio::test]
async fn a_secret_that_does_not_exist_is_named_until_it_does() {
    let Some(operator) = operator() else { return };
    let (client, at) = operator.namespace("sealing-secret").await;
    let spec = "run: {sandbox: {runtime: shell, script: cat, secretEnv: [{name: A, secret: mine, key: k}]}}";
    let status = sealed_skill(&client, &at, "a", spec).await;
    let (verdict, reason, message) = condition(&status, "SecretsPresent");
    assert_eq!((verdict, reason), ("False", "SecretMissing"));
    assert!(message.contains("Secret mine"), "{message}");
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "mine" }, "stringData": { "k": "v" } });
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &at);
    secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
    skill_status(&client, &at, "a", |status| condition(status, "SecretsPresent").0 == "True").await;
    operator.assert_nothing_was_forbidden();
}

#[tokio::test]
async fn a_text_of_a_config_map_is_sealed_and_stays_when_the_config_map_changes() {
    let Some(operator) = operator() else { return };
    let (client, at) = operator.namespace("sealing-text").await;
    let spec = |version: &str| {
        format!(
            "{{version: {version}, description: d, run: null, instructions: {{bodyFrom: {{configMapKeyRef: {{name: notes, key: k}}}}}}}}"
        )
    };
    apply_skill(&client, &at, "a", &spec("1.0.0")).await;
    let missing = |status: &SkillStatus| condition(status, "Sealed").1 == "ConfigMapMissing";
    let status = skill_status(&client, &at, "a", missing).await;
    let field = "spec.instructions.bodyFrom.configMapKeyRef";
    assert_eq!(
        condition(&status, "Sealed").2,
        format!("{field}: this namespace has no ConfigMap notes; create it")
    );
    assert!(status.conditions.iter().all(|condition| condition.type_ != "Stalled"));
    event(&client, &at, "a", "ConfigMapMissing").await;

    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &at);
    let write = async |data: serde_json::Value| {
        let map =
            json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "notes" }, "data": data });
        maps.patch("notes", &PatchParams::apply("tests").force(), &Patch::Apply(&map)).await.unwrap();
    };
    write(json!({ "k": "First." })).await;
    let is_sealed = |status: &SkillStatus| condition(status, "Sealed").0 == "True";
    skill_status(&client, &at, "a", is_sealed).await;
    let sealed = versions(&client, &at).await;
    let instructions = sealed[0].spec.instructions.clone().unwrap();
    assert_eq!((instructions.body.as_str(), instructions.body_from), ("First.", None));
    assert_eq!(content::digest(&sealed[0].spec), sealed[0].spec.digest);

    // Every change of the Skill lets the operator look again.
    write(json!({ "k": "Second." })).await;
    apply_skill(&client, &at, "a", &spec("1.0.0").replace("description", "mode: 'on', description")).await;
    let changed =
        |status: &SkillStatus| condition(status, "Sealed").2.contains("1.0.0 keeps its sealed text");
    let status = skill_status(&client, &at, "a", changed).await;
    assert_eq!((condition(&status, "Sealed").0, condition(&status, "Ready").0), ("True", "True"));
    write(json!({})).await;
    apply_skill(&client, &at, "a", &spec("1.0.0")).await;
    let gone = |status: &SkillStatus| condition(status, "Sealed").2.contains("ConfigMap notes has no key k");
    assert_eq!(condition(&skill_status(&client, &at, "a", gone).await, "Sealed").0, "True");
    assert_eq!(versions(&client, &at).await, sealed);

    // A new version without a text leaves the sealed one in use, and gets the present text as soon as there is one.
    apply_skill(&client, &at, "a", &spec("1.1.0")).await;
    let status = skill_status(&client, &at, "a", missing).await;
    assert_eq!(condition(&status, "Ready").0, "True");
    write(json!({ "k": "Second." })).await;
    skill_status(&client, &at, "a", |status| status.versions.len() == 2).await;
    let bodies = versions(&client, &at).await;
    let bodies = bodies.iter().map(|version| version.spec.instructions.as_ref().unwrap().body.as_str());
    assert_eq!(bodies.collect::<Vec<_>>(), ["First.", "Second."]);
    operator.assert_nothing_was_forbidden();
}

#[tokio::test]
async fn findings_of_an_import_and_missing_packages_are_in_the_status() {
    let Some(operator) = operator() else { return };
    let (client, at) = operator.namespace("sealing-imported").await;
    let skill = json!({
        "apiVersion": "skillet.dev/v1alpha1",
        "kind": "Skill",
        "metadata": { "name": "a", "annotations": {
            "skillet.dev/imported-file": "a/SKILL.md",
            "skillet.dev/import-findings": "2:3: warning: read in quotes (repaired)",
        } },
        "spec": {
            "version": "1.0.0",
            "description": "d",
            "instructions": { "body": "Read." },
            "files": [
                { "path": "a.py", "content": "import yaml" },
                { "path": "requirements.txt", "content": "pyyaml" },
            ],
        },
    });
    let api: Api<Skill> = Api::namespaced(client.clone(), &at);
    api.patch("a", &PatchParams::apply("tests"), &Patch::Apply(&skill)).await.unwrap();
    let status = skill_status(&client, &at, "a", |status| condition(status, "Sealed").0 == "True").await;
    let finding = "a/SKILL.md:2:3: warning: read in quotes (repaired)";
    assert_eq!(condition(&status, "Sealed").2, finding);
    assert_eq!(event(&client, &at, "a", "ImportWarnings").await, finding);
    let (verdict, reason, message) = condition(&status, "DependenciesMet");
    assert_eq!((verdict, reason), ("False", "DependencyMissing"));
    assert!(message.contains("pyyaml (requirements.txt)"), "{message}");
    assert_eq!(condition(&status, "Ready").0, "True");
    operator.assert_nothing_was_forbidden();
}
