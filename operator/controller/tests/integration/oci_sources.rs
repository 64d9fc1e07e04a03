//! SkillSources of artifacts in a real registry.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};
use skillet_sources::testing::registry::{Blob, PASSWORD, manifest};

use crate::{
    eventually::eventually,
    sources::{Place, ready, skill},
};

/// A layer of SKILL.md files by the names of their skills.
fn layer(skills: &[(&str, &str)]) -> Blob {
    let files: Vec<(String, String)> =
        skills.iter().map(|(name, text)| (format!("{name}/SKILL.md"), skill(text))).collect();
    let files: Vec<(&str, &[u8])> =
        files.iter().map(|(path, text)| (path.as_str(), text.as_bytes())).collect();
    Blob::layer(&files)
}

/// The source of a repository at a registry without TLS.
fn oci(host: &str, repository: &str, reference: &Value) -> Value {
    let mut oci = json!({ "url": format!("oci://{host}/{repository}"), "insecure": true });
    if !reference.is_null() {
        oci["ref"] = reference.clone();
    }
    json!({ "oci": oci })
}

#[tokio::test]
async fn skills_follow_a_tag_and_stay_when_it_is_deleted() {
    let Some((place, world)) = Place::new("oci-follow").await else { return };
    let registry = &world.registry;
    let bad = Blob::file("c/SKILL.md", b"---\ndescription: 42\n---\n");
    let layers = [layer(&[("a", "a"), ("b", "b")]), bad];
    let first = registry.push("team/follow", "v1", &layers).await;
    place.apply("team", oci(&registry.host, "team/follow", &json!({ "tag": "v1" }))).await;
    let status = place.status("team", |status| status.revision.is_some()).await;
    assert_eq!(status.revision, Some(format!("v1@{first}")));
    assert_eq!(ready(&status), ("True", "Synced", &*format!("2 Skills of v1@{first}")));
    assert_eq!((status.skills, status.refused[0].path.as_str()), (2, "c/SKILL.md"));
    place.sealed(&[("a", "1.0.0"), ("b", "1.0.0")]).await;

    let second = registry.push("team/follow", "v1", &[layer(&[("a", "a two"), ("d", "d")])]).await;
    let status = place.look("team", "moved").await;
    assert_eq!((status.revision, status.refused.len()), (Some(format!("v1@{second}")), 0));
    place.sealed(&[("a", "1.0.1"), ("d", "1.0.0")]).await;

    registry.delete("team/follow", &second).await;
    let status = place.look("team", "deleted").await;
    let message = "the repository has no tag v1; see spec.oci.ref";
    assert_eq!(ready(&status), ("False", "RevisionNotFound", message));
    place.sealed(&[("a", "1.0.1"), ("d", "1.0.0")]).await;
}

#[tokio::test]
async fn a_digest_pins_a_manifest_and_a_range_follows_the_highest_tag() {
    let Some((place, world)) = Place::new("oci-pinned").await else { return };
    let registry = &world.registry;
    let first = registry.push("pinned", "1.0.0", &[layer(&[("a", "one")])]).await;
    let second = registry.push("pinned", "v1.10.0", &[layer(&[("a", "ten")])]).await;
    registry.push("pinned", "2.0.0", &[layer(&[("a", "two")])]).await;
    let skills =
        async |request: &str| (place.look("team", request).await.revision, place.skills().get("a").await);
    place.apply("team", oci(&registry.host, "pinned", &json!({ "digest": first }))).await;
    let (revision, skill) = skills("pinned").await;
    assert_eq!((revision, skill.unwrap().spec.description), (Some(first), "one".to_owned()));
    place.apply("team", oci(&registry.host, "pinned", &json!({ "semver": "^1.0.0" }))).await;
    let (revision, skill) = skills("range").await;
    assert_eq!(
        (revision, skill.unwrap().spec.description),
        (Some(format!("v1.10.0@{second}")), "ten".to_owned())
    );
    let third = registry.push("pinned", "v1.11.0", &[layer(&[("a", "eleven")])]).await;
    assert_eq!(skills("newer").await.0, Some(format!("v1.11.0@{third}")));
    place.apply("team", oci(&registry.host, "pinned", &json!({ "tag": "none" }))).await;
    assert_eq!(ready(&place.look("team", "none").await).1, "RevisionNotFound");
    place.apply("team", oci(&registry.host, "nothing", &Value::Null)).await;
    let status = place.look("team", "nothing").await;
    assert_eq!(ready(&status).0, "False");
    assert!(["AccessDenied", "RevisionNotFound"].contains(&ready(&status).1), "{status:?}");
}

#[tokio::test]
async fn a_large_bundle_stays_in_an_image_and_is_refused_in_an_artifact() {
    let Some((place, world)) = Place::new("oci-large").await else { return };
    let registry = &world.registry;
    let (text, large) = (skill("pdf"), vec![b'x'; 1_500_000]);
    let files: [(&str, &[u8]); 3] =
        [("all/pdf/SKILL.md", text.as_bytes()), ("all/pdf/a.txt", b"short"), ("all/pdf/model.bin", &large)];
    let layer = Blob::layer(&files);
    registry.push("large", "artifact", std::slice::from_ref(&layer)).await;
    let mut source = oci(&registry.host, "large", &json!({ "tag": "artifact" }));
    source["path"] = "all".into();
    place.apply("team", source.clone()).await;
    let refused = place.status("team", |status| !status.refused.is_empty()).await.refused;
    assert!(refused[0].message.contains("model.bin is larger"), "{refused:?}");

    let config = Blob::new("application/vnd.oci.image.config.v1+json", br#"{"os":"linux"}"#.to_vec());
    registry.push_blob("large", &config.bytes).await;
    let mut image = manifest(std::slice::from_ref(&layer));
    image["config"] = config.descriptor;
    let digest = registry.push_manifest("large", "image", &image).await;
    source["oci"]["ref"] = json!({ "tag": "image" });
    place.apply("team", source).await;
    let status = place.status("team", |status| status.skills == 1).await;
    assert!(status.refused.is_empty(), "{:?}", status.refused);
    let made = place.skills().get("pdf").await.unwrap().spec;
    let source = made.instructions.unwrap().files_from.unwrap().image;
    assert_eq!(
        (source.reference, source.path.as_str()),
        (format!("{}/large@{digest}", registry.host), "all/pdf")
    );
    assert_eq!((source.files, made.files.len()), (vec!["a.txt".to_owned(), "model.bin".to_owned()], 1));
    eventually("the Skill names its image as not allowed", Duration::from_secs(30), async || {
        let conditions = place.skills().get("pdf").await.unwrap().status?.conditions;
        conditions.iter().any(|one| one.type_ == "Ready" && one.reason == "ImageNotAllowed").then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_registry_that_is_down_leaves_the_skills() {
    let Some((place, world)) = Place::new("oci-down").await else { return };
    let mut registry = world.failing_registry.lock().await;
    registry.push("down", "latest", &[layer(&[("a", "a")])]).await;
    place.apply("team", oci(&registry.host, "down", &Value::Null)).await;
    place.sealed(&[("a", "1.0.0")]).await;
    registry.stop();
    let status = place.look("team", "down").await;
    assert_eq!((ready(&status).0, ready(&status).1), ("False", "SourceUnavailable"));
    assert!(ready(&status).2.starts_with("could not connect: "), "{status:?}");
    place.sealed(&[("a", "1.0.0")]).await;
    registry.resume().await;
    assert_eq!(ready(&place.look("team", "up").await).1, "Synced");
}

#[tokio::test]
async fn a_registry_takes_credentials_of_each_form_until_they_are_revoked() {
    let Some((place, world)) = Place::new("oci-private").await else { return };
    let registry = &world.private_registry;
    registry.push("private", "latest", &[layer(&[("a", "a")])]).await;
    let secrets: Api<Secret> = Api::namespaced(place.client.clone(), &place.at);
    let write = async |data: Value| {
        let mut data = data;
        data["ca.crt"] = json!(registry.certificate);
        let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "registry" }, "stringData": data });
        let params = PatchParams::apply("tests").force();
        secrets.patch("registry", &params, &Patch::Apply(&secret)).await.unwrap();
    };
    let url = format!("oci://{}/private", registry.host);
    place.apply("team", json!({ "oci": { "url": url, "secretRef": { "name": "registry" } } })).await;
    let status = place.status("team", |status| !status.conditions.is_empty()).await;
    assert_eq!(ready(&status), ("False", "SecretMissing", "spec.oci.secretRef: there is no Secret registry"));
    write(json!({ "username": "me", "password": "wrong" })).await;
    let message = "127.0.0.1 answered 401 Unauthorized; check the Secret of spec.oci.secretRef";
    assert_eq!(ready(&place.look("team", "wrong").await), ("False", "AccessDenied", message));
    write(json!({ "username": "me", "password": PASSWORD })).await;
    assert_eq!(ready(&place.look("team", "right").await).1, "Synced");
    let account = json!({ "username": "me", "password": PASSWORD });
    let docker = json!({ "auths": { registry.host.clone(): account } }).to_string();
    write(json!({ ".dockerconfigjson": docker })).await;
    assert_eq!(ready(&place.look("team", "docker").await).1, "Synced");
    registry.set_users(false);
    assert_eq!(ready(&place.look("team", "revoked").await), ("False", "AccessDenied", message));
    place.sealed(&[("a", "1.0.0")]).await;
    registry.set_users(true);
}

#[tokio::test]
async fn bad_paths_cost_themselves_and_what_is_no_artifact_is_refused() {
    let Some((place, world)) = Place::new("oci-bad").await else { return };
    let registry = &world.registry;
    let good = skill("a");
    let files: [(&str, &[u8]); 3] =
        [("a/SKILL.md", good.as_bytes()), ("../../etc/passwd", b"x"), ("/etc/shadow", b"x")];
    registry.push("bad", "latest", &[Blob::layer(&files)]).await;
    place.apply("team", oci(&registry.host, "bad", &Value::Null)).await;
    let status = place.status("team", |status| status.revision.is_some()).await;
    let refused: Vec<&str> = status.refused.iter().map(|file| file.path.as_str()).collect();
    assert_eq!((status.skills, refused), (1, vec!["../../etc/passwd", "/etc/shadow"]));
    let mut other = manifest(&[]);
    other["layers"] =
        json!([{ "mediaType": "application/vnd.example", "size": 2, "digest": other["config"]["digest"] }]);
    registry.push_manifest("bad", "latest", &other).await;
    let status = place.look("team", "other").await;
    assert_eq!(ready(&status).1, "SourceInvalid");
    assert!(ready(&status).2.contains("push tar, tar+gzip or files"), "{status:?}");
    place.sealed(&[("a", "1.0.0")]).await;
}

#[tokio::test]
async fn a_suspended_source_of_an_artifact_waits_and_prunes_when_it_is_resumed() {
    let Some((place, world)) = Place::new("oci-suspend").await else { return };
    let registry = &world.registry;
    registry.push("suspend", "latest", &[layer(&[("a", "a"), ("b", "b")])]).await;
    let spec = |suspend: bool| {
        let mut spec = oci(&registry.host, "suspend", &Value::Null);
        spec["suspend"] = json!(suspend);
        spec["exclude"] = json!(["b/"]);
        spec
    };
    place.apply("team", spec(false)).await;
    place.sealed(&[("a", "1.0.0")]).await;
    place.apply("team", spec(true)).await;
    place.status("team", |status| ready(status).1 == "Suspended").await;
    registry.push("suspend", "latest", &[layer(&[("c", "c")])]).await;
    place.look("team", "now").await;
    place.sealed(&[("a", "1.0.0")]).await;
    place.apply("team", spec(false)).await;
    place.sealed(&[("c", "1.0.0")]).await;
}

#[tokio::test]
async fn a_thousand_skills_of_an_artifact_are_synced_and_pruned() {
    let Some((place, world)) = Place::new("oci-many").await else { return };
    let _alone = world.many.lock().await;
    let registry = &world.registry;
    let skills: Vec<(String, String)> = (0..1000).map(|n| (format!("s{n}"), format!("number {n}"))).collect();
    let skills: Vec<(&str, &str)> =
        skills.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    registry.push("many", "latest", &[layer(&skills)]).await;
    place.apply("team", oci(&registry.host, "many", &Value::Null)).await;
    let limit = Duration::from_secs(240);
    eventually("a thousand Skills", limit, async || {
        let status = place.sources().get("team").await.unwrap().status?;
        (status.skills == 1000).then_some(())
    })
    .await;
    registry.push("many", "latest", &[layer(&skills[..1])]).await;
    place.ask("team", "pruned").await;
    eventually("the pruned Skills", limit, async || {
        let left = place.skills().list_metadata(&ListParams::default()).await.unwrap().items;
        (left.len() == 1).then_some(())
    })
    .await;
}
