//! Requests of `explain` to the gateway through the API server's proxy, and its table.

use clap::Parser as _;
use serde_json::{Value, json};

use super::*;
use crate::{
    arguments::{Args, Command},
    testing::{refusal, server, targets},
};

const SERVICES: &str = "GET /api/v1/services";
const PROXY: &str = "POST /api/v1/namespaces/skillet-system/services/skillet-gateway:http/proxy/v1/explain";

fn services() -> Value {
    let service = |name: &str, port: &str| {
        json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": name, "namespace": "skillet-system" },
            "spec": { "ports": [{ "name": port, "port": 80 }] } })
    };
    let items = [service("skillet-gateway-metrics", "gateway"), service("skillet-gateway", "http")];
    json!({ "apiVersion": "v1", "kind": "ServiceList", "metadata": {}, "items": items })
}

fn explained() -> Value {
    let skill = |name: &str, score: i64, offered: bool, reason: &str| {
        json!({ "namespace": "team-a", "name": name, "version": "1.0.0", "score": score, "offered": offered,
            "reason": reason, "threshold": 20, "signals": [{ "kind": "Tag", "points": score, "text": "csv" }] })
    };
    json!({ "skills": [skill("low", 5, false, "BelowThreshold"), skill("csv", 40, true, "Offered")] })
}

fn args() -> ExplainArgs {
    match Args::try_parse_from(["kubectl-skill", "explain", "count the rows"]).unwrap().command {
        Command::Explain(args) => args,
        other => panic!("{other:?}"),
    }
}

async fn ask(answers: Value) -> (Result<Explanation, CliError>, crate::testing::Requests) {
    let (connection, requests) = server(answers);
    let args = args();
    let asked = async {
        let gateway = Gateway::find(&connection, &args.gateway).await?;
        super::ask(&gateway, &args).await
    };
    (asked.await, requests)
}

const TOKEN: &str = "POST /api/v1/namespaces/team-a/serviceaccounts/default/token";

fn token() -> Value {
    json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": { "audiences": [] },
        "status": { "token": "t0ken", "expirationTimestamp": "2026-01-01T00:00:00Z" } })
}

#[tokio::test]
async fn the_gateway_is_asked_through_its_service_with_a_token_of_its_audience() {
    let (explanation, requests) =
        ask(json!({ SERVICES: services(), TOKEN: token(), PROXY: explained() })).await;
    assert_eq!(explanation.unwrap().skills.len(), 2);
    assert_eq!(targets(&requests), [SERVICES, TOKEN, PROXY]);
    let requests = requests.lock().unwrap();
    assert_eq!(requests[1].body["spec"]["audiences"], json!(["skillet"]));
    assert_eq!(requests[2].headers["x-skillet-token"], "t0ken");
    assert_eq!(requests[2].body["request"]["messages"][0]["content"], "count the rows");
}

#[tokio::test]
async fn a_refusal_has_the_gateway_s_own_message() {
    let mut denied = refusal(401, "");
    denied["error"] = json!({ "message": "the token is not known" });
    let (explanation, _) = ask(json!({ SERVICES: services(), TOKEN: token(), PROXY: denied })).await;
    let error = explanation.unwrap_err();
    assert_eq!(error.to_string(), "the gateway refused the request: the token is not known");
    assert_eq!(error.exit(), Exit::Refused);
}

#[test]
fn the_table_has_offered_skills_first_and_says_why() {
    let explanation = serde_json::from_value::<Explanation>(explained()).unwrap();
    assert_eq!(
        text(&explanation, true),
        "SKILL   NAMESPACE   OFFERED   SCORE   THRESHOLD   DISTANCE   WORDS   LEARNED   VECTOR   WHY              SIGNALS\n\
         csv     team-a      yes       40      20          +20        40      0         0        Offered          Tag csv +40\n\
         low     team-a      no        5       20          -15        5       0         0        BelowThreshold   Tag csv +5\n"
    );
}

#[test]
fn the_points_are_split_and_the_terms_have_a_table_of_their_own() {
    let signal = |kind: &str, points: i64| json!({ "kind": kind, "points": points, "text": "t" });
    let signals = [signal("Tag", 30), signal("Learned", 20), signal("Unused", -10), signal("Vector", 70)];
    let explained = json!({
        "skills": [{ "name": "csv", "score": 110, "threshold": 100, "offered": true, "reason": "Offered", "signals": signals }],
        "terms": [{ "word": "rows", "term": "row", "points": 90 }],
        "embeddings": { "state": "Failed", "message": "no file" },
    });
    let explanation = serde_json::from_value::<Explanation>(explained).unwrap();
    assert_eq!(
        text(&explanation, false),
        "SKILL   NAMESPACE   OFFERED   SCORE   THRESHOLD   DISTANCE   WORDS   LEARNED   VECTOR   WHY\n\
         csv     -           yes       110     100         +10        30      10        70       Offered\n\
         \n\
         WORD   TERM   POINTS\n\
         rows   row    90\n"
    );
    assert_eq!(explanation.embeddings.message.as_deref(), Some("no file"));
}
