//! SkillSources against a real git server and a real API server, with the rights that the chart gives and no others.

use std::{
    sync::{Arc, LazyLock, mpsc},
    thread,
    time::Duration,
};

use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use skillet_api::{Skill, SkillPolicy, SkillSource, SkillSourceStatus, names};
use skillet_sources::{
    Metrics, Settings,
    testing::{GitServer, Mood, Repository, registry::Registry},
};
use tokio::runtime::Runtime;

use crate::{
    audit, chart,
    eventually::{LIMIT, eventually},
    operator::{operator, with_the_charts_rights},
    server::namespace,
};

const ACCOUNT: &str = "skillet-sources";

/// The git servers and registries of all tests, and the process that looks at them.
pub struct World {
    open: GitServer,
    private: GitServer,
    certificate: String,
    pub registry: Registry,
    pub private_registry: Registry,
    /// A registry that a test may stop.
    pub failing_registry: tokio::sync::Mutex<Registry>,
    /// Held by a test with a thousand Skills: two at a time would take each other's time.
    pub many: tokio::sync::Mutex<()>,
    _runtime: Runtime,
}

static WORLD: LazyLock<Arc<World>> = LazyLock::new(|| {
    let (sender, receiver) = mpsc::channel();
    // In a runtime of its own: the runtimes of tests end with them.
    thread::spawn(move || {
        let runtime = Runtime::new().unwrap();
        let world = runtime.block_on(async {
            let operator = operator().unwrap();
            let admin = operator.admin().await;
            for template in ["templates/sources.yaml", "templates/rbac-sources.yaml"] {
                chart::apply(&admin, template, &[]).await;
            }
            let client = with_the_charts_rights(operator.server(), &admin, ACCOUNT).await;
            let open = GitServer::start().await;
            let (private, certificate) = GitServer::start_tls().await;
            let policies: Api<SkillPolicy> = Api::all(admin);
            let registries = [Registry::start().await, Registry::start_tls().await, Registry::start().await];
            let mut hosts = vec![&open.host, &private.host];
            hosts.extend(registries.iter().map(|registry| &registry.host));
            let hosts = json!({ "spec": { "sources": { "allowedHosts": hosts } } });
            policies.patch("default", &PatchParams::default(), &Patch::Merge(&hosts)).await.unwrap();
            let settings = Settings { work: std::env::temp_dir() };
            let metrics = Metrics::register(&mut prometheus_client::registry::Registry::default());
            tokio::spawn(skillet_sources::run(client, settings, metrics));
            (open, private, certificate, registries)
        });
        let (open, private, certificate, [registry, private_registry, failing]) = world;
        let (failing_registry, many) = (tokio::sync::Mutex::new(failing), tokio::sync::Mutex::default());
        let world = World {
            open,
            private,
            certificate,
            registry,
            private_registry,
            failing_registry,
            many,
            _runtime: runtime,
        };
        sender.send(world).unwrap();
    });
    Arc::new(receiver.recv().unwrap())
});

/// A namespace with one source.
pub struct Place {
    pub client: Client,
    pub at: String,
}

impl Place {
    pub async fn new(name: &str) -> Option<(Self, Arc<World>)> {
        let client = operator()?.admin().await;
        let world = tokio::task::spawn_blocking(|| Arc::clone(&WORLD)).await.unwrap();
        let at = namespace(&client, name).await;
        Some((Self { client, at }, world))
    }

    pub fn sources(&self) -> Api<SkillSource> {
        Api::namespaced(self.client.clone(), &self.at)
    }

    pub fn skills(&self) -> Api<Skill> {
        Api::namespaced(self.client.clone(), &self.at)
    }

    pub async fn apply(&self, name: &str, spec: Value) {
        let source = json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillSource", "metadata": { "name": name }, "spec": spec });
        let params = PatchParams::apply("tests").force();
        self.sources().patch(name, &params, &Patch::Apply(&source)).await.unwrap();
    }

    pub async fn ask(&self, name: &str, request: &str) {
        let change = json!({ "metadata": { "annotations": { names::ANNOTATION_SYNC_REQUEST: request } } });
        self.sources().patch(name, &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
    }

    /// Asks for a look, and returns the status that answers it.
    pub async fn look(&self, name: &str, request: &str) -> SkillSourceStatus {
        self.ask(name, request).await;
        self.status(name, |status| status.last_handled_sync_request.as_deref() == Some(request)).await
    }

    pub async fn status(&self, name: &str, wanted: impl Fn(&SkillSourceStatus) -> bool) -> SkillSourceStatus {
        eventually(format!("the status of SkillSource {}/{name}", self.at), LIMIT, async || {
            let source = self.sources().get(name).await.unwrap();
            source
                .status
                .filter(|status| status.observed_generation == source.metadata.generation && wanted(status))
        })
        .await
    }

    /// Name and sealed version of each Skill, once the operator has sealed all that are there.
    pub async fn sealed(&self, expected: &[(&str, &str)]) {
        eventually(format!("the Skills {expected:?} in {}", self.at), LIMIT, async || {
            let skills = self.skills().list(&ListParams::default()).await.unwrap().items;
            let found: Vec<(String, String)> = skills
                .iter()
                .filter_map(|skill| {
                    let latest = skill.status.as_ref()?.latest_version.clone()?;
                    Some((skill.metadata.name.clone()?, latest))
                })
                .collect();
            let is_same = found.len() == skills.len()
                && found
                    .iter()
                    .map(|(name, version)| (name.as_str(), version.as_str()))
                    .eq(expected.iter().copied());
            is_same.then_some(())
        })
        .await;
    }
}

pub fn ready(status: &SkillSourceStatus) -> (&str, &str, &str) {
    let found = status.conditions.iter().find(|condition| condition.type_ == "Ready").unwrap();
    (&found.status, &found.reason, &found.message)
}

pub fn skill(text: &str) -> String {
    format!("---\ndescription: {text}\n---\n{text}\n")
}

fn repository(world: &World, name: &str, files: &[(&str, &str)]) -> (Repository, String) {
    let repository = world.open.repository(name);
    let commit = repository.commit(files);
    (repository, commit)
}

#[tokio::test]
async fn skills_follow_the_commits_and_a_bad_file_costs_only_itself() {
    let Some((place, world)) = Place::new("source-follow").await else { return };
    let files = [
        ("a/SKILL.md", &*skill("a")),
        ("a/scripts/x.py", "print(1)\n"),
        ("b/SKILL.md", &skill("b")),
        ("c/SKILL.md", "---\ndescription: 42\n---\n"),
    ];
    let (repository, commit) = repository(&world, "follow", &files);
    place.apply("team", json!({ "git": { "url": world.open.url("follow") } })).await;
    let status = place.status("team", |status| status.revision.is_some()).await;
    assert_eq!(status.revision, Some(format!("main@sha1:{commit}")));
    assert_eq!(ready(&status), ("True", "Synced", &*format!("2 Skills of main@sha1:{commit}")));
    assert_eq!((status.skills, status.refused.len()), (2, 1));
    let partially = status.conditions.iter().find(|condition| condition.type_ == "PartiallyInvalid").unwrap();
    assert_eq!(
        partially.message,
        "1 file is no Skill: c/SKILL.md: 2:14: description must be text, not a number or date; write it in quotes (field_type)"
    );
    place.sealed(&[("a", "1.0.0"), ("b", "1.0.0")]).await;

    let second = repository.commit(&[
        ("a/SKILL.md", &skill("a two")),
        ("b/SKILL.md", ""),
        ("c/SKILL.md", &skill("c")),
    ]);
    let status = place.look("team", "second").await;
    assert_eq!((status.revision, status.refused.len()), (Some(format!("main@sha1:{second}")), 0));
    place.sealed(&[("a", "1.0.1"), ("c", "1.0.0")]).await;
    let kept = place.skills().get("a").await.unwrap();
    assert_eq!(kept.spec.files[0].path, "scripts/x.py");

    // A file that was gone comes back with other content: its number was sealed, so it gets the next.
    repository.commit(&[("b/SKILL.md", &skill("b again"))]);
    place.look("team", "third").await;
    place.sealed(&[("a", "1.0.1"), ("b", "1.0.1"), ("c", "1.0.0")]).await;
}

#[tokio::test]
async fn what_others_change_is_undone_and_what_they_made_is_left() {
    let Some((place, world)) = Place::new("source-own").await else { return };
    repository(&world, "own", &[("a/SKILL.md", &skill("a")), ("hand/SKILL.md", &skill("h"))]);
    let by_hand: Skill = serde_json::from_value(json!({
        "apiVersion": "skillet.dev/v1alpha1", "kind": "Skill",
        "metadata": { "name": "hand", "labels": { names::LABEL_SOURCE: "team" } },
        "spec": { "version": "1.0.0", "description": "Mine.", "instructions": { "body": "x" } },
    }))
    .unwrap();
    place.skills().create(&PostParams::default(), &by_hand).await.unwrap();
    place.apply("team", json!({ "git": { "url": world.open.url("own") } })).await;
    let status = place.status("team", |status| status.revision.is_some()).await;
    assert_eq!(status.refused[0].path, "hand/SKILL.md");
    assert!(status.refused[0].message.starts_with("a Skill hand is there and is not of this source"));
    place.sealed(&[("a", "1.0.0"), ("hand", "1.0.0")]).await;

    let edit = json!({ "spec": { "description": "Edited.", "mode": "auto", "version": "1.0.5" } });
    place.skills().patch("a", &PatchParams::default(), &Patch::Merge(&edit)).await.unwrap();
    place.sealed(&[("a", "1.0.5"), ("hand", "1.0.0")]).await;
    place.look("team", "again").await;
    let kept = place.skills().get("a").await.unwrap().spec;
    assert_eq!((kept.description.as_str(), kept.version.as_str()), ("a", "1.0.0"));
    assert_eq!(kept.mode, skillet_api::skill::Mode::Auto, "a field that the source does not set");
    assert_eq!(place.skills().get("hand").await.unwrap().spec.description, "Mine.");
}

#[tokio::test]
async fn a_repository_that_fails_leaves_the_skills_and_says_why() {
    let Some((place, world)) = Place::new("source-fail").await else { return };
    let (repository, _) = repository(&world, "fail", &[("a/SKILL.md", &skill("a"))]);
    let spec = json!({ "git": { "url": world.open.url("fail"), "ref": { "branch": "main" } } });
    place.apply("team", spec.clone()).await;
    place.sealed(&[("a", "1.0.0")]).await;

    world.open.set_mood("fail", Mood::Status(503));
    let status = place.look("team", "down").await;
    assert_eq!(ready(&status), ("False", "SourceUnavailable", "127.0.0.1 answered 503 Service Unavailable"));
    assert!(status.revision.is_some() && status.skills == 1);
    world.open.set_mood("fail", Mood::Well);
    assert_eq!(ready(&place.look("team", "up").await).1, "Synced");

    // A force push is another history of the same branch.
    repository.git(&["commit", "--quiet", "--amend", "--message=other"]);
    let pushed = repository.commit(&[("a/SKILL.md", &skill("a two"))]);
    let status = place.look("team", "forced").await;
    assert_eq!(status.revision, Some(format!("main@sha1:{pushed}")));
    repository.git(&["push", "--quiet", "origin", "main:kept"]);
    // git refuses to delete the branch that HEAD names.
    std::fs::write(repository.bare.join("HEAD"), "ref: refs/heads/kept\n").unwrap();
    repository.git(&["push", "--quiet", "origin", ":main"]);
    let status = place.look("team", "deleted").await;
    assert_eq!(
        ready(&status),
        ("False", "RevisionNotFound", "the repository has no branch main; see spec.git.ref")
    );
    place.sealed(&[("a", "1.0.1")]).await;

    let mut elsewhere = spec;
    elsewhere["git"]["url"] = json!("http://127.0.0.1:1/x.git");
    place.apply("team", elsewhere).await;
    let status = place.status("team", |_| true).await;
    assert_eq!((ready(&status).1, status.conditions.len()), ("HostNotAllowed", 2));
    assert!(ready(&status).2.contains("spec.sources.allowedHosts of SkillPolicy default"));
    place.sealed(&[("a", "1.0.1")]).await;
}

#[tokio::test]
async fn credentials_come_from_a_secret_and_may_be_revoked() {
    let Some((place, world)) = Place::new("source-private").await else { return };
    world.private.repository("private").commit(&[("a/SKILL.md", &skill("a"))]);
    world.private.set_mood("private", Mood::Private);
    let spec = json!({ "git": { "url": world.private.url("private"), "secretRef": { "name": "git" } } });
    place.apply("team", spec).await;
    let status = place.status("team", |status| !status.conditions.is_empty()).await;
    assert_eq!(ready(&status), ("False", "SecretMissing", "spec.git.secretRef: there is no Secret git"));
    let secrets: Api<Secret> = Api::namespaced(place.client.clone(), &place.at);
    let secret = |password: &str| {
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "git" },
            "stringData": { "username": "me", "password": password, "ca.crt": world.certificate } })
    };
    let write = async |password: &str| {
        let params = PatchParams::apply("tests").force();
        secrets.patch("git", &params, &Patch::Apply(&secret(password))).await.unwrap();
    };
    write("secret").await;
    assert_eq!(ready(&place.look("team", "with").await).1, "Synced");
    write("old").await;
    let status = place.look("team", "revoked").await;
    let message = "127.0.0.1 answered 401 Unauthorized; check the Secret of spec.git.secretRef";
    assert_eq!(ready(&status), ("False", "AccessDenied", message));
    place.sealed(&[("a", "1.0.0")]).await;
}

#[tokio::test]
async fn a_suspended_source_does_nothing_until_it_is_resumed() {
    let Some((place, world)) = Place::new("source-suspend").await else { return };
    let (repository, _) = repository(&world, "suspend", &[("a/SKILL.md", &skill("a"))]);
    let spec = |suspend: bool| json!({ "git": { "url": world.open.url("suspend") }, "suspend": suspend, "prefix": "x-" });
    place.apply("team", spec(false)).await;
    place.sealed(&[("x-a", "1.0.0")]).await;
    place.apply("team", spec(true)).await;
    let status = place.status("team", |status| ready(status).1 == "Suspended").await;
    assert_eq!(status.skills, 1);
    repository.commit(&[("b/SKILL.md", &skill("b"))]);
    place.look("team", "now").await;
    place.sealed(&[("x-a", "1.0.0")]).await;
    place.apply("team", spec(false)).await;
    place.sealed(&[("x-a", "1.0.0"), ("x-b", "1.0.0")]).await;
}

#[tokio::test]
async fn a_thousand_skills_are_synced_and_pruned() {
    let Some((place, world)) = Place::new("source-many").await else { return };
    let _alone = world.many.lock().await;
    let files: Vec<(String, String)> =
        (0..1000).map(|n| (format!("s{n}/SKILL.md"), skill(&format!("number {n}")))).collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let (repository, _) = repository(&world, "many", &files);
    place.apply("team", json!({ "git": { "url": world.open.url("many") } })).await;
    let limit = Duration::from_secs(240);
    eventually("a thousand Skills", limit, async || {
        let status = place.sources().get("team").await.unwrap().status?;
        (status.skills == 1000).then_some(())
    })
    .await;
    let gone: Vec<(&str, &str)> = files[1..].iter().map(|(path, _)| (*path, "")).collect();
    repository.commit(&gone);
    place.ask("team", "pruned").await;
    eventually("the pruned Skills", limit, async || {
        let left = place.skills().list_metadata(&ListParams::default()).await.unwrap().items;
        (left.len() == 1).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_source_that_is_gone_is_not_looked_at_and_nothing_was_forbidden() {
    let Some((place, world)) = Place::new("source-gone").await else { return };
    repository(&world, "gone", &[("a/SKILL.md", &skill("a"))]);
    place.apply("team", json!({ "git": { "url": world.open.url("gone") } })).await;
    place.sealed(&[("a", "1.0.0")]).await;
    let owner = place.skills().get("a").await.unwrap().metadata.owner_references.unwrap().remove(0);
    let source = place.sources().get("team").await.unwrap();
    assert_eq!(
        Some(owner.uid),
        source.metadata.uid,
        "the garbage collector removes the Skill with its source"
    );
    place.sources().delete("team", &DeleteParams::default()).await.unwrap();
    let user = format!("system:serviceaccount:{}:{ACCOUNT}", chart::NAMESPACE);
    let requests = audit::requests(&operator().unwrap().server().audit_log(), &user);
    let forbidden: Vec<_> = requests.iter().filter(|request| request.code == 403).collect();
    assert!(!requests.is_empty() && forbidden.is_empty(), "the chart's rules forbid {forbidden:#?}");
    let writes = requests.iter().filter(|request| request.is_write());
    let mut kinds: Vec<&str> = writes.map(|request| request.resource.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds, ["events.k8s.io/events", "skillet.dev/skills", "skillet.dev/skillsources/status"]);
}
