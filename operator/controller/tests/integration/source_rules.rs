//! The API server's rules for a SkillSource.

use kube::CustomResourceExt as _;
use serde_json::{Value, json};
use skillet_api::SkillSource;

use crate::{
    cases::{Case, assert_complete, breaks, long, many, with},
    requests::{create, keep},
    server::{namespace, rules_admin},
};

const SHORTEST: &str = "git: {url: 'https://git.example.com/a.git'}";

fn cases() -> Vec<Case> {
    vec![
        breaks("spec rule: write one of spec.git and spec.oci", "git: null"),
        breaks("spec.git.url required", "git: {url: null}"),
        breaks("spec.git.url maxLength", format!("git: {{url: 'https://{}'}}", long(1020))),
        breaks("spec.git.url pattern", "git: {url: 'https://me:secret@git.example.com/a.git'}"),
        breaks("spec.git.ref rule: write one of branch, tag and commit", "git: {ref: {branch: a, tag: b}}"),
        breaks("spec.git.ref.branch minLength", "git: {ref: {branch: ''}}"),
        breaks("spec.git.ref.branch maxLength", format!("git: {{ref: {{branch: {}}}}}", long(257))),
        breaks("spec.git.ref.branch pattern", "git: {ref: {branch: 'a b'}}"),
        breaks("spec.git.ref.tag minLength", "git: {ref: {tag: ''}}"),
        breaks("spec.git.ref.tag maxLength", format!("git: {{ref: {{tag: {}}}}}", long(257))),
        breaks("spec.git.ref.tag pattern", "git: {ref: {tag: 'a:b'}}"),
        breaks("spec.git.ref.commit maxLength", format!("git: {{ref: {{commit: '{}'}}}}", "a".repeat(41))),
        breaks("spec.git.ref.commit pattern", "git: {ref: {commit: abc}}"),
        breaks("spec.git.secretRef.name required", "git: {secretRef: {}}"),
        breaks("spec.git.secretRef.name maxLength", format!("git: {{secretRef: {{name: {}}}}}", long(254))),
        breaks("spec.git.secretRef.name pattern", "git: {secretRef: {name: 'a/b'}}"),
        breaks("spec.oci.url required", oci("url: null")),
        breaks("spec.oci.url maxLength", oci(&format!("url: 'oci://a/{}'", long(1020)))),
        breaks("spec.oci.url pattern", oci("url: 'https://registry.example.com/a'")),
        breaks("spec.oci.ref rule: write one of tag, digest and semver", oci("ref: {tag: a, semver: '*'}")),
        breaks("spec.oci.ref.tag maxLength", oci(&format!("ref: {{tag: {}}}", long(129)))),
        breaks("spec.oci.ref.tag pattern", oci("ref: {tag: 'a/b'}")),
        breaks(
            "spec.oci.ref.digest maxLength",
            oci(&format!("ref: {{digest: 'sha256:{}'}}", "a".repeat(65))),
        ),
        breaks("spec.oci.ref.digest pattern", oci("ref: {digest: abc}")),
        breaks("spec.oci.ref.semver minLength", oci("ref: {semver: ''}")),
        breaks("spec.oci.ref.semver maxLength", oci(&format!("ref: {{semver: {}}}", long(257)))),
        breaks("spec.oci.secretRef.name required", oci("secretRef: {}")),
        breaks("spec.oci.secretRef.name maxLength", oci(&format!("secretRef: {{name: {}}}", long(254)))),
        breaks("spec.oci.secretRef.name pattern", oci("secretRef: {name: 'a/b'}")),
        breaks("spec.path maxLength", format!("path: {}", long(513))),
        breaks(
            "spec.path rule: write a directory from the root of the repository, without a leading / and without ..",
            "path: a/../../b",
        ),
        breaks("spec.include maxItems", format!("include: {}", many(65, |n| format!("f{n}")))),
        breaks("spec.include[] minLength", "include: ['']"),
        breaks("spec.include[] maxLength", format!("include: [{}]", long(257))),
        breaks("spec.exclude maxItems", format!("exclude: {}", many(65, |n| format!("f{n}")))),
        breaks("spec.exclude[] minLength", "exclude: ['']"),
        breaks("spec.exclude[] maxLength", format!("exclude: [{}]", long(257))),
        breaks("spec.prefix maxLength", format!("prefix: {}", long(33))),
        breaks("spec.prefix pattern", "prefix: Team-"),
        breaks("spec.interval maxLength", format!("interval: {}s", "1".repeat(64))),
        breaks("spec.interval minLength", "interval: ''"),
        breaks("spec.interval rule: write a duration like 500ms, 30s, 1m30s or 1h", "interval: soon"),
        breaks("spec.interval rule: write a duration of at least 30s, such as 10m", "interval: 29s"),
        breaks("spec.timeout maxLength", format!("timeout: {}s", "1".repeat(64))),
        breaks("spec.timeout minLength", "timeout: ''"),
        breaks("spec.timeout rule: write a duration like 500ms, 30s, 1m30s or 1h", "timeout: soon"),
        breaks("spec.timeout rule: write a duration above zero, such as 30s", "timeout: 0s"),
    ]
}

/// A source of an artifact, with a change put over it.
fn oci(change: &str) -> String {
    let oci = with("url: 'oci://registry.example.com/a'", change);
    json!({ "git": null, "oci": oci }).to_string()
}

fn object(at: &str, name: &str, spec: &Value) -> Value {
    json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillSource", "metadata": { "name": name, "namespace": at }, "spec": spec })
}

#[test]
fn every_bound_of_a_source_has_a_case_that_breaks_it() {
    assert_complete(&SkillSource::crd(), &cases(), &[NAME]);
}

const NAME: &str =
    "metadata rule: metadata.name has at most 63 characters, since it is a label of the Skills";

#[tokio::test]
async fn the_api_server_refuses_each_broken_bound_of_a_source_and_names_the_field() {
    let Some(client) = rules_admin().await else { return };
    for case in cases() {
        create(&client, &object("default", "s", &case.spec(SHORTEST))).await.assert_refused(&case);
    }
    let long_name = object("default", &long(64), &with(SHORTEST, "{}"));
    create(&client, &long_name).await.assert_names("", "metadata.name has at most 63 characters");
}

#[tokio::test]
async fn a_source_is_of_a_repository_or_an_artifact_and_a_table_shows_its_address() {
    let Some(client) = rules_admin().await else { return };
    let at = namespace(&client, "source-places").await;
    let both = object(&at, "both", &with(SHORTEST, "oci: {url: 'oci://registry.example.com/a'}"));
    create(&client, &both).await.assert_names("spec", "write one of spec.git and spec.oci");
    keep(&client, &object(&at, "git", &with(SHORTEST, "{}"))).await;
    keep(&client, &object(&at, "oci", &with(SHORTEST, &oci("ref: {tag: v1}")))).await;
    let mut list = http::Request::get(format!("/apis/skillet.dev/v1alpha1/namespaces/{at}/skillsources"));
    list.headers_mut()
        .unwrap()
        .insert("accept", "application/json;as=Table;v=v1;g=meta.k8s.io".parse().unwrap());
    let table: Value = client.request(list.body(Vec::new()).unwrap()).await.unwrap();
    let urls: Vec<&Value> = table["rows"].as_array().unwrap().iter().map(|row| &row["cells"][1]).collect();
    assert_eq!(urls, ["https://git.example.com/a.git", "oci://registry.example.com/a"]);
}

#[tokio::test]
async fn a_source_has_defaults_that_everybody_can_read() {
    let Some(client) = rules_admin().await else { return };
    let at = namespace(&client, "source-defaults").await;
    let kept = keep(&client, &object(&at, "s", &with(SHORTEST, "{}"))).await;
    let shown = ["interval", "timeout", "prune", "suspend"].map(|field| kept["spec"][field].clone());
    assert_eq!(shown, [json!("10m"), json!("1m"), json!(true), json!(false)]);
}
