//! A second reconcile gives the same result as the first: a change that changes nothing causes no write.

use kube::{
    Api, Resource,
    api::{Patch, PatchParams},
};
use serde::de::DeserializeOwned;
use serde_json::json;
use skillet_api::{
    Skill, SkillExecution, SkillPolicy, names,
    reason::{EMBEDDINGS_READY, ISOLATION_PROVEN, READY},
};

use crate::{
    audit::Request,
    eventually::{LIMIT, eventually},
    objects::{apply_skill, condition, ended, event, execute, sealed_skill, skill_status},
    operator::{Operator, operator},
    server::is_wanted,
};

/// Changes a field that the operator ignores, so that it reconciles the object again.
async fn touch<K: Resource + Clone + DeserializeOwned + std::fmt::Debug>(
    api: &Api<K>,
    name: &str,
    mark: &str,
) {
    let change = json!({ "metadata": { "annotations": { "tests/mark": mark } } });
    api.patch(name, &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
}

/// Waits until the operator has made more than `before` requests of this kind.
async fn one_more(operator: &Operator, before: usize, is_meant: impl Fn(&Request) -> bool) -> usize {
    eventually("the operator looks again", LIMIT, async || {
        let count = operator.requests().iter().filter(|request| is_meant(request)).count();
        (count > before).then_some(count)
    })
    .await
}

/// Selects the requests that list the versions of a Skill. Each reconcile begins with one.
fn is_reconcile_of(at: &str) -> impl Fn(&Request) -> bool {
    move |request: &Request| {
        request.resource == "skillet.dev/skillversions"
            && request.verb == "list"
            && request.namespace == at
            && request.query.contains("labelSelector")
    }
}

#[tokio::test]
async fn a_skill_that_is_reconciled_again_is_not_written_again() {
    let Some(operator) = operator() else { return };
    let (client, at) = operator.namespace("twice-skill").await;
    sealed_skill(&client, &at, "a", "{}").await;
    let api: Api<Skill> = Api::namespaced(client, &at);
    let is_look = is_reconcile_of(&at);
    // Reconciles of one object do not overlap: when the next has begun, the one before has made its writes.
    let mut looks = operator.requests().iter().filter(|request| is_look(request)).count();
    for mark in ["1", "2"] {
        touch(&api, "a", mark).await;
        looks = one_more(operator, looks, &is_look).await;
    }
    let before = operator.writes(&at).len();
    for mark in ["3", "4", "5", "6"] {
        touch(&api, "a", mark).await;
        looks = one_more(operator, looks, &is_look).await;
    }
    let writes = operator.writes(&at);
    assert_eq!(writes.len(), before, "{:#?}", &writes[before..]);
    let of_kind = |verb: &str, resource: &str| {
        writes.iter().filter(|write| write.right() == (verb.into(), resource.into())).count()
    };
    assert_eq!(of_kind("create", "skillet.dev/skillversions"), 1);
    // Another watch shows the sealed version, and it may be ahead of the watch that shows the status.
    assert!(of_kind("patch", "skillet.dev/skills/status") <= 2, "{writes:#?}");
}

#[tokio::test]
async fn a_problem_of_a_skill_is_reported_once() {
    let Some(operator) = operator() else { return };
    let (client, at) = operator.namespace("twice-problem").await;
    apply_skill(&client, &at, "a", "limits: {timeout: 9h}").await;
    skill_status(&client, &at, "a", |status| condition(status, "Ready").0 == "False").await;
    let api: Api<Skill> = Api::namespaced(client, &at);
    let is_look = is_reconcile_of(&at);
    let mut looks = operator.requests().iter().filter(|request| is_look(request)).count();
    for mark in ["1", "2", "3", "4"] {
        touch(&api, "a", mark).await;
        looks = one_more(operator, looks, &is_look).await;
    }
    let rights: Vec<_> = operator.writes(&at).iter().map(Request::right).collect();
    let wanted = [("patch", "skillet.dev/skills/status"), ("create", "events.k8s.io/events")];
    assert_eq!(rights, wanted.map(|(verb, resource)| (verb.to_owned(), resource.to_owned())));
}

#[tokio::test]
async fn a_policy_that_is_reconciled_again_is_not_written_again() {
    let Some(operator) = operator() else { return };
    let client = operator.admin().await;
    let api: Api<SkillPolicy> = Api::all(client);
    let is_look = |request: &Request| request.resource == "nodes" && request.verb == "list";
    let is_write =
        |request: &Request| request.is_write() && request.resource.starts_with("skillet.dev/skillpolicies");
    let mut looks = one_more(operator, 0, is_look).await;
    add_condition_of_gateway(&api).await;
    for mark in ["1", "2", "3"] {
        touch(&api, "default", mark).await;
        looks = one_more(operator, looks, is_look).await;
    }
    let conditions = api.get("default").await.unwrap().status.unwrap_or_default().conditions;
    let mut types: Vec<&str> = conditions.iter().map(|condition| &*condition.type_).collect();
    types.sort_unstable();
    assert_eq!(
        types,
        [EMBEDDINGS_READY, ISOLATION_PROVEN, READY],
        "each writer keeps the other's conditions"
    );
    let writes: Vec<_> =
        operator.requests().into_iter().filter(is_write).map(|write| write.right()).collect();
    let wanted = [("create", "skillet.dev/skillpolicies"), ("patch", "skillet.dev/skillpolicies/status")];
    assert_eq!(writes, wanted.map(|(verb, resource)| (verb.to_owned(), resource.to_owned())));
}

/// Writes the gateway's part of the policy's status.
async fn add_condition_of_gateway(api: &Api<SkillPolicy>) {
    let condition = json!({
        "type": EMBEDDINGS_READY, "status": "False", "reason": "EmbeddingsUnavailable", "message": "no vectors",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let patch = json!({
        "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillPolicy", "metadata": { "name": "default" },
        "status": { "conditions": [condition] },
    });
    let params = PatchParams::apply(names::GATEWAY_FIELD_MANAGER).force();
    api.patch_status("default", &params, &Patch::Apply(&patch)).await.unwrap();
}

#[tokio::test]
async fn a_finished_execution_is_not_written_again() {
    let Some(operator) = operator() else { return };
    let (client, at) = operator.namespace("twice-execution").await;
    execute(&client, &at, "e", "skill: nothing").await;
    ended(&client, &at, "e").await;
    let api: Api<SkillExecution> = Api::namespaced(client.clone(), &at);
    for mark in ["1", "2", "3"] {
        touch(&api, "e", mark).await;
    }
    // Executions are seen in the order of their changes: when this one has ended, the others were looked at.
    execute(&client, &at, "last", "skill: nothing").await;
    ended(&client, &at, "last").await;
    let of_first: Vec<_> = operator
        .writes(&at)
        .into_iter()
        .filter(|write| write.name == "e")
        .map(|write| write.right())
        .collect();
    assert_eq!(of_first, [("patch".to_owned(), "skillet.dev/skillexecutions/status".to_owned())]);
}

#[tokio::test]
async fn a_restarted_operator_writes_nothing() {
    if !is_wanted() {
        return;
    }
    let start = || Operator::start(async |_| ());
    let operator = tokio::task::spawn_blocking(start).await.unwrap();
    let (client, at) = operator.namespace("twice-restart").await;
    sealed_skill(&client, &at, "good", "{}").await;
    apply_skill(&client, &at, "bad", "limits: {timeout: 9h}").await;
    skill_status(&client, &at, "bad", |status| condition(status, "Ready").0 == "False").await;
    execute(&client, &at, "e", "skill: nothing").await;
    ended(&client, &at, "e").await;
    event(&client, &at, "e", "SkillNotFound").await;

    let operator = tokio::task::spawn_blocking(|| {
        // A stopped operator has no write in flight.
        let stopped = operator.stop();
        let before = stopped.writes_that_counted();
        (stopped.start_again(), before)
    });
    let (operator, before) = operator.await.unwrap();
    let is_look = is_reconcile_of(&at);
    let is_policy_look = |request: &Request| request.resource == "nodes" && request.verb == "list";
    let count = |is_meant: &dyn Fn(&Request) -> bool| {
        operator.requests().iter().filter(|request| is_meant(request)).count()
    };
    let (mut looks, mut policy_looks) = (count(&is_look), count(&is_policy_look));
    let skills: Api<Skill> = Api::namespaced(client.clone(), &at);
    let policies: Api<SkillPolicy> = Api::all(client.clone());
    for mark in ["1", "2"] {
        for name in ["good", "bad"] {
            touch(&skills, name, mark).await;
            looks = one_more(&operator, looks, &is_look).await;
        }
        touch(&policies, "default", mark).await;
        policy_looks = one_more(&operator, policy_looks, is_policy_look).await;
    }
    execute(&client, &at, "last", "skill: nothing").await;
    ended(&client, &at, "last").await;
    let after = operator.writes_that_counted();
    let rewrites: Vec<&Request> = after[before.len()..].iter().filter(|write| write.name != "last").collect();
    // The event about the last execution has a name of its own, and may be there already.
    let rewrites: Vec<_> =
        rewrites.into_iter().filter(|write| write.resource != "events.k8s.io/events").collect();
    assert!(rewrites.is_empty(), "{rewrites:#?}");
}
