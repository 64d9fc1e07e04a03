//! The one way out: HTTP skills and unmodified programs reach the hosts that they name, and no others, and the record shows it.

use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use skillet_api::{Phase, Reason, Verdict, network::Connections};
use skillet_e2e::{
    Ended, SkillDraft, journey, journey_under, operator, policy,
    stand_in::{ASK, StandIn},
};

/// Asks the stand-in with the standard library, as any program would.
const PROGRAM: &str = r#"
import json, sys, urllib.request
url = json.load(sys.stdin)["url"]
request = urllib.request.Request(url, data=b"hello", headers={"X-From": "program"})
with urllib.request.urlopen(request, timeout=8) as response:
    print(response.read().decode())
"#;

fn skill(name: &str, run: &Value, network: &Value) -> Value {
    json!({
        "apiVersion": "skillet.dev/v1alpha1", "kind": "Skill", "metadata": { "name": name },
        "spec": { "version": "1.0.0", "run": run, "network": network },
    })
}

fn connections(ended: &Ended) -> Connections {
    ended.status.connections.clone().unwrap_or_default()
}

#[tokio::test]
async fn an_http_skill_sends_one_request_and_its_connection_is_in_the_record() -> Result<()> {
    journey_under(json!({}), async |j| {
        let host = StandIn::allowed(j).await?;
        let run = json!({ "http": {
            "method": "POST", "url": host.url("/weather/{{city}}"), "headers": { "X-Unit": "{{unit|celsius}}" },
            "body": { "days": "{{days}}" }, "responseMapping": { "path": "$.path", "sent": "$.body", "unit": "$.headers['x-unit']" },
        } });
        j.apply(&skill("weather", &run, &host.network())).await?;
        j.ready("weather").await?;
        let ended = j.run("weather", json!({ "city": "São Paulo", "days": 3 })).await?;
        let record = connections(&ended);
        assert_eq!(ended.status.job, None, "no pod was made");
        assert_eq!(
            ended.output(),
            json!({ "path": "/weather/S%C3%A3o%20Paulo", "sent": "{\"days\":3}", "unit": "celsius" })
        );
        assert_eq!((record.allowed, record.refused, host.requests().len()), (1, 0, 1));
        let listed = record.list.first().context("no connection is listed")?;
        assert_eq!((listed.host.as_str(), listed.port), (host.host.as_str(), host.port));
        assert!(listed.address.is_some() && listed.sent_bytes > 50 && listed.received_bytes > 50, "{listed:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn an_unmodified_program_reaches_the_host_that_its_skill_names_and_no_other() -> Result<()> {
    journey_under(json!({}), async |j| {
        let host = StandIn::allowed(j).await?;
        let other = StandIn::start(j, "other").await?;
        let draft = SkillDraft::python("asks", PROGRAM).spec("network", host.network());
        j.apply(&draft.object()).await?;
        j.ready("asks").await?;
        let ended = j.run("asks", json!({ "url": host.url("/a?b=c") })).await?;
        let record = connections(&ended);
        let isolation = ended.status.isolation.clone().unwrap_or_default();
        assert!(isolation.network_blocked, "the pod has no network all the same");
        let output = ended.output();
        assert_eq!((&output["path"], &output["body"]), (&json!("/a?b=c"), &json!("hello")));
        assert_eq!(output["headers"]["x-from"], "program");
        assert_eq!((record.allowed, record.refused), (1, 0), "{record:?}");
        assert!(record.sent_bytes > 100 && record.received_bytes > 100, "{record:?}");

        for url in [other.url("/"), format!("http://{}:1/", host.host), "http://127.0.0.1:6443/".to_owned()] {
            let ended = j.run("asks", json!({ "url": url })).await?;
            let record = connections(&ended);
            ended.is(Phase::Failed, Reason::ExitCode);
            assert_eq!(record.allowed, 0, "{url}: {record:?}");
        }
        assert!(other.requests().is_empty());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn without_both_keys_nothing_is_reached() -> Result<()> {
    journey(async |j| {
        let host = StandIn::start(j, "standin").await?;
        let run = json!({ "http": { "method": "GET", "url": host.url("/") } });
        j.apply(&skill("calls", &run, &host.network())).await?;
        let problem = j.not_ready("calls").await?;
        assert_eq!(problem.reason, Reason::NetworkDisabled.as_str(), "{problem:?}");
        Ok(())
    })
    .await?;
    journey_under(
        json!({ "networkEnabled": true, "network": { "allowedHosts": ["api.example.com"] } }),
        async |j| {
            let host = StandIn::start(j, "standin").await?;
            let run = json!({ "http": { "method": "GET", "url": host.url("/") } });
            j.apply(&skill("calls", &run, &host.network())).await?;
            let problem = j.not_ready("calls").await?;
            assert_eq!(problem.reason, Reason::HostNotAllowed.as_str(), "{problem:?}");
            assert!(host.requests().is_empty());
            Ok(())
        },
    )
    .await
}

#[tokio::test]
async fn a_private_address_behind_an_allowed_name_is_refused() -> Result<()> {
    journey_under(json!({}), async |j| {
        let host = StandIn::start(j, "standin").await?;
        let allowed = json!({ "networkEnabled": true, "network": { "allowedHosts": [host.host] } });
        policy::change(&j.client, allowed).await?;
        let run = json!({ "http": { "method": "GET", "url": host.url("/") } });
        j.apply(&skill("calls", &run, &host.network())).await?;
        j.ready("calls").await?;
        let ended = j.run("calls", json!({})).await?.is(Phase::Failed, Reason::AddressNotAllowed);
        assert_eq!(connections(&ended).list[0].verdict, Verdict::AddressNotAllowed);
        let draft = SkillDraft::python("asks", PROGRAM).spec("network", host.network());
        j.apply(&draft.object()).await?;
        j.ready("asks").await?;
        let ended = j.run("asks", json!({ "url": host.url("/") })).await?.is(Phase::Failed, Reason::ExitCode);
        assert_eq!(connections(&ended).list[0].verdict, Verdict::AddressNotAllowed);
        assert!(host.requests().is_empty());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_secret_goes_only_where_its_owner_lets_it_go_and_is_masked() -> Result<()> {
    const VALUE: &str = "s3cr3t-Value-of-the-owner";
    journey_under(json!({}), async |j| {
        let host = StandIn::allowed(j).await?;
        let secret = |annotations: Value| {
            json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "api", "annotations": annotations },
                "stringData": { "token": VALUE },
            })
        };
        let run = json!({ "http": {
            "method": "GET", "url": host.url("/"), "headers": { "Authorization": "Bearer {{SECRETS.TOKEN}}" },
            "secrets": [{ "name": "TOKEN", "secret": "api", "key": "token" }],
        } });
        j.apply(&secret(json!({}))).await?;
        j.apply(&skill("calls", &run, &host.network())).await?;
        j.ready("calls").await?;
        let named = ["Secret api", "skillet.dev/skills"];
        j.run("calls", json!({})).await?.is(Phase::Failed, Reason::SecretNotGranted).says(&named);
        assert!(host.requests().is_empty());

        j.apply(&secret(json!({ "skillet.dev/skills": "calls", "skillet.dev/hosts": host.host }))).await?;
        let ended = j.run("calls", json!({})).await?;
        let execution = j.kubectl(&["get", "skillexecution", &ended.name, "-o", "yaml"], "").await?;
        assert!(!execution.contains(VALUE), "{execution}");
        assert_eq!(ended.output()["headers"]["authorization"], "Bearer ***");
        assert_eq!(host.requests()[0]["headers"]["authorization"], format!("Bearer {VALUE}"));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_broker_that_is_killed_ends_connections_and_no_run() -> Result<()> {
    const HOLDS: &str = r#"
first = ask()
held = socket.create_connection((host, port), timeout=30)
held.sendall(b"GET / HTTP/1.1\r\n")
try:
    lost = held.recv(1).decode() or "end"
except OSError as error:
    lost = type(error).__name__
print(json.dumps({"first": first, "lost": lost, "again": ask_again()}))
"#;
    journey_under(json!({}), async |j| {
        let host = StandIn::allowed(j).await?;
        let draft = SkillDraft::python("holds", &format!("{ASK}{HOLDS}"));
        let draft = draft.spec("network", host.network()).limit("timeout", "60s");
        j.apply(&draft.object()).await?;
        j.ready("holds").await?;
        let execution = j.start("holds", json!({ "to": [host.host, host.port] })).await?;
        j.running(&execution).await?;
        host.answered(1, Duration::from_secs(20)).await?;
        assert!(operator::kill_pods(&j.client, operator::BROKER).await? > 0);
        let ended = j.ended(&execution).await?;
        let record = connections(&ended);
        let output = ended.output();
        assert_eq!((&output["first"], &output["again"]), (&json!(200), &json!(200)), "{output}");
        assert!(
            ["end", "ConnectionResetError"].contains(&output["lost"].as_str().unwrap_or_default()),
            "{output}"
        );
        assert!(record.allowed >= 2, "{record:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn each_host_of_a_skill_has_an_address_of_its_own_in_the_sandbox() -> Result<()> {
    const BY_ADDRESS: &str = r#"
import http.client, json, socket, sys
listed = dict(reversed(line.split()) for line in open("/etc/hosts") if line.startswith("198.18."))
def ask(host, port):
    connection = http.client.HTTPConnection(listed[host], port, timeout=20)
    connection.request("GET", "/", headers={"Host": "%s:%d" % (host, port)})
    return [listed[host], socket.gethostbyname(host), connection.getresponse().status]
print(json.dumps([ask(*to) for to in json.load(sys.stdin)["hosts"]]))
"#;
    journey_under(json!({}), async |j| {
        let [one, two] = [StandIn::start(j, "one").await?, StandIn::start(j, "two").await?];
        let mut spec = one.policy();
        let [internal, of_two] =
            [&one, &two].map(|host| host.policy()["network"]["internalHosts"][0].clone());
        spec["network"] = json!({ "internalHosts": [internal, of_two], "allowedHosts": ["*.wild.example"] });
        policy::change(&j.client, spec).await?;
        let [of_one, of_two] = [&one, &two].map(|host| host.network()["hosts"][0].clone());
        let network = json!({ "hosts": [{ "name": "*.wild.example" }, of_two, of_one] });
        j.apply(&SkillDraft::python("by-address", BY_ADDRESS).spec("network", network).object()).await?;
        j.ready("by-address").await?;
        let hosts = json!([[two.host, two.port], [one.host, one.port]]);
        let ended = j.run("by-address", json!({ "hosts": hosts })).await?;
        let [first, second] = ["198.18.1.0", "198.18.1.1"];
        assert_eq!(ended.output(), json!([[first, first, 200], [second, second, 200]]));
        for host in [one, two] {
            assert_eq!(host.requests()[0]["headers"]["host"], format!("{}:{}", host.host, host.port));
        }
        Ok(())
    })
    .await
}
