//! Runs over HTTP: whose they are, filters and pages, one by name, cancelling, following.

use serde_json::{Value, json};
use skillet_kube::testing::{eventually, path};

use crate::{
    auth::Verb,
    testing::{AGENT, TestGateway, TestResponse},
};

/// Runs of the team at home and in the platform's namespace, and of others beside them.
fn stocked() -> TestGateway {
    let gateway = TestGateway::without_auth_cache();
    gateway.execution("team", "first", "team", "Succeeded");
    gateway.execution("team", "second", "", "");
    gateway.execution("platform", "third", "team", "Running");
    gateway.execution("platform", "theirs", "other", "Succeeded");
    gateway.execution("other", "foreign", "team", "Succeeded");
    gateway
}

fn ids(answer: &TestResponse) -> Vec<String> {
    let page = answer.json();
    let id = |run: &Value| run["name"].as_str().unwrap().to_owned();
    page["data"].as_array().unwrap_or_else(|| panic!("{answer:?}")).iter().map(id).collect()
}

async fn check(query: &str, expected: &[&str]) {
    let answer = stocked().get(&format!("/api/skills/executions{query}")).await;
    assert_eq!(ids(&answer), expected, "{query}");
}

#[tokio::test]
async fn a_callers_runs_are_listed_newest_first() {
    check("", &["third", "second", "first"]).await;
    check("?limit=1&page=2", &["second"]).await;
    check("?namespace=platform", &["third"]).await;
    let page = stocked().get("/api/skills/executions?limit=2").await.json();
    assert_eq!((&page["total"], &page["totalPages"]), (&json!(3), &json!(2)));
}

#[tokio::test]
async fn runs_are_filtered_by_skill_and_phase() {
    check("?phase=Running", &["third"]).await;
    check("?phase=Succeeded", &["first"]).await;
    check("?phase=Pending", &["second"]).await;
    check("?phase=Failed", &[]).await;
    check("?skill=sum&phase=Succeeded", &["first"]).await;
    check("?skill=other", &[]).await;
    check("?skill=sum,metadata.name%3Dfirst", &[]).await;
}

#[tokio::test]
async fn a_list_reads_only_the_runs_of_its_page() {
    let gateway = stocked();
    gateway.get("/api/skills/executions?limit=1").await;
    assert_eq!(gateway.api.count(&format!("GET {}", path("team", "skillexecutions", ""))), 0);
    assert_eq!(gateway.api.count(&format!("GET {}", path("platform", "skillexecutions", "third"))), 1);
}

#[tokio::test]
async fn who_may_run_only_some_skills_has_to_name_one() {
    let gateway = stocked();
    for namespace in ["team", "platform", "shop"] {
        gateway.deny(namespace, Some("fetch"), Verb::Execute);
    }
    assert_eq!(gateway.get("/api/skills/executions?skill=fetch").await.error().0, 403);
    assert_eq!(ids(&gateway.get("/api/skills/executions?skill=sum").await).len(), 3);
}

#[tokio::test]
async fn one_run_has_all_fields() {
    let gateway = stocked();
    let status = json!({
        "phase": "Failed", "reason": "ExitCode", "message": "exited with 3", "resolvedVersion": "1.0.0", "attempts": 1,
        "startedAt": "2026-01-01T00:00:00.000000Z", "finishedAt": "2026-01-01T00:00:01.000000Z", "durationMs": 12,
        "output": { "a": 1 }, "truncated": true, "exitCode": 3, "digest": "abc", "imageID": "r.example/a@sha256:1", "node": "n1",
        "stdout": { "head": "half", "bytes": 4, "sha256": "d" },
        "stderr": { "head": "oh", "tail": "no", "bytes": 9, "sha256": "e" },
    });
    gateway.api.set_status("team", "first", status);
    let mut run = gateway.get("/api/skills/executions/first").await.json();
    let listed = gateway.get("/api/skills/executions?skill=sum&phase=Failed").await.json();
    assert_eq!(listed["data"][0]["stderr"], json!({ "head": "", "tail": "", "bytes": 9, "sha256": "e" }));
    assert!(run["createdAt"].take().is_string());
    assert_eq!(
        run,
        json!({
            "name": "first", "namespace": "team", "skill": "sum", "version": "1.0.0", "digest": "abc",
            "imageID": "r.example/a@sha256:1", "phase": "Failed", "reason": "ExitCode", "message": "exited with 3",
            "sessionId": null, "caller": null, "input": null, "script": null, "command": null, "output": { "a": 1 },
            "stdout": { "head": "half", "tail": "", "bytes": 4, "sha256": "d" },
            "stderr": { "head": "oh", "tail": "no", "bytes": 9, "sha256": "e" },
            "truncated": true, "exitCode": 3, "durationMs": 12, "attempts": 1, "node": "n1", "createdAt": null,
            "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:01Z",
        })
    );
}

#[tokio::test]
async fn runs_of_others_are_not_there() {
    let gateway = stocked();
    gateway.deny("platform", Some("sum"), Verb::Execute);
    for (uri, status) in [
        ("theirs", 404),
        ("theirs?namespace=platform", 404),
        ("foreign", 404),
        ("foreign?namespace=other", 403),
        ("third", 404),
        ("none", 404),
        ("first%2Fstatus", 404),
        ("..%2F..%2Fother%2Fskillexecutions%2Fforeign", 404),
    ] {
        let answer = gateway.get(&format!("/api/skills/executions/{uri}")).await;
        assert_eq!(answer.error().0, status, "{uri}");
    }
    for method in ["theirs", "foreign", "third"] {
        let uri = format!("/api/skills/executions/{method}");
        assert_eq!(gateway.send("DELETE", &uri, Some(AGENT), &[], "").await.error().0, 404);
    }
    assert_eq!(gateway.api.count("PATCH "), 0);
}

#[tokio::test]
async fn a_run_is_cancelled_once_and_its_record_stays() {
    let gateway = stocked();
    for (method, uri, name, namespace) in
        [("DELETE", "second", "second", "team"), ("POST", "third/cancel", "third", "platform")]
    {
        let answer =
            gateway.send(method, &format!("/api/skills/executions/{uri}"), Some(AGENT), &[], "").await;
        assert_eq!((answer.status, &answer.json()["name"]), (202, &json!(name)));
        let object = gateway.api.object(&path(namespace, "skillexecutions", name)).unwrap();
        assert_eq!(object["spec"]["cancel"], true);
    }
    let ended = gateway.send("DELETE", "/api/skills/executions/first", Some(AGENT), &[], "").await;
    assert_eq!((ended.status, &ended.json()["phase"]), (200, &json!("Succeeded")));
    assert_eq!(gateway.api.count("PATCH "), 2);
    gateway.api.fail_next("PATCH ", 404, "not found");
    let gone = gateway.send("DELETE", "/api/skills/executions/second", Some(AGENT), &[], "").await;
    assert_eq!(gone.error().1, "Gone");
}

#[tokio::test]
async fn a_cluster_that_does_not_answer_is_503() {
    let gateway = stocked();
    gateway.api.fail_next("GET /apis/skillet.dev/v1alpha1/namespaces/team/skillexecutions?", 500, "no");
    assert_eq!(gateway.get("/api/skills/executions").await.error().0, 503);
    gateway.api.fail_next("GET /apis/skillet.dev/v1alpha1/namespaces/team/skillexecutions/first", 400, "no");
    assert_eq!(gateway.get("/api/skills/executions/first").await.error().0, 503);
}

/// Names of the events, and the phase or error of each.
fn events(stream: &str) -> Vec<(String, String)> {
    let events = stream.split("\n\n").filter(|event| event.starts_with("event"));
    events
        .map(|event| {
            let (name, data) = event.split_once('\n').unwrap();
            let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
            let word = data["phase"].as_str().or(data["error"]["code"].as_str()).unwrap();
            (name.strip_prefix("event: ").unwrap().to_owned(), word.to_owned())
        })
        .collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(name, word)| ((*name).to_owned(), (*word).to_owned())).collect()
}

#[tokio::test]
async fn a_run_is_followed_to_its_end() {
    let gateway = stocked();
    let ended = gateway.get("/api/skills/executions/first/events").await;
    assert_eq!(ended.headers["content-type"], "text/event-stream");
    assert_eq!(events(&ended.text), pairs(&[("end", "Succeeded")]));
    let question = format!("GET {}", path("team", "skillexecutions", "second"));
    let steps = async {
        // The second question is that of the one who follows, so the change comes by the watch.
        eventually("it is followed", || gateway.api.count(&question) >= 2).await;
        eventually("the watch is in", || {
            gateway.api.count("GET /apis/skillet.dev/v1alpha1/skillexecutions?&watch") > 0
        })
        .await;
        gateway.api.set_status(
            "team",
            "second",
            json!({ "phase": "Cancelled", "attempts": 0, "truncated": false }),
        );
    };
    let (followed, ()) = tokio::join!(gateway.get("/api/skills/executions/second/events"), steps);
    assert_eq!(events(&followed.text), pairs(&[("status", "Pending"), ("end", "Cancelled")]));
}

#[tokio::test]
async fn the_event_stream_of_a_deleted_run_ends_with_an_error() {
    let gateway = stocked();
    let question = format!("GET {}", path("team", "skillexecutions", "second"));
    let steps = async {
        eventually("it is followed", || gateway.api.count(&question) >= 2).await;
        eventually("the watch is in", || {
            gateway.api.count("GET /apis/skillet.dev/v1alpha1/skillexecutions?&watch") > 0
        })
        .await;
        gateway.api.delete(&path("team", "skillexecutions", "second"));
    };
    let (followed, ()) = tokio::join!(gateway.get("/api/skills/executions/second/events"), steps);
    assert_eq!(events(&followed.text), pairs(&[("status", "Pending"), ("error", "Gone")]));
    assert_eq!(gateway.get("/api/skills/executions/none/events").await.error().0, 404);
}

#[tokio::test(start_paused = true)]
async fn an_event_is_sent_if_there_is_memory_for_it() {
    let gateway = stocked();
    let large = json!({
        "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillExecution",
        "metadata": { "namespace": "team", "name": "large" },
        "spec": { "skill": "sum" }, "status": { "phase": "Succeeded", "output": "o".repeat(600_000) },
    });
    gateway.api.put("skillexecutions", large);
    let all = gateway.service.memory.fill("team").await;
    let refused = gateway.get("/api/skills/executions/large/events").await;
    assert_eq!(events(&refused.text), pairs(&[("error", "Overloaded")]));
    drop(all);
    let followed = gateway.get("/api/skills/executions/large/events").await;
    assert_eq!(events(&followed.text), pairs(&[("end", "Succeeded")]));
    assert_eq!(gateway.service.memory.reserved(), 0);
}

#[tokio::test]
async fn a_list_leaves_out_inputs_and_outputs_beyond_a_sum_of_bytes() {
    let gateway = TestGateway::without_auth_cache();
    for number in 0..10 {
        let execution = json!({
            "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillExecution",
            "metadata": { "namespace": "team", "name": format!("run-{number}") },
            "spec": { "skill": "sum", "input": "i".repeat(600_000) },
            "status": { "phase": "Succeeded", "output": "o".repeat(600_000), "attempts": 1, "truncated": false },
        });
        gateway.api.put("skillexecutions", execution);
    }
    let answer = gateway.get("/api/skills/executions").await;
    assert!(answer.text.len() < 9 << 20, "{}", answer.text.len());
    let page = answer.json();
    let runs = page["data"].as_array().unwrap();
    let has_content = |run: &Value| {
        assert_eq!(run["input"].is_null() && run["output"].is_null(), run["omitted"] == true);
        !run["input"].is_null()
    };
    assert_eq!((runs.len(), runs.iter().filter(|run| has_content(run)).count()), (10, 6));
    let one = gateway.get("/api/skills/executions/run-0").await.json();
    assert_eq!((one["input"].as_str().map(str::len), one.get("omitted")), (Some(600_000), None));
}
