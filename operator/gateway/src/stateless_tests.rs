//! Requests of routers that ask the model themselves, through the whole gateway.

use super::*;
use crate::gateway_bed::Bed;

#[tokio::test]
async fn a_request_for_several_answers_is_given_back_as_it_is_and_told_why() {
    let bed = Bed::new().await;
    bed.skill("sum");
    let request = |count: u32| json!({ "model": "gpt-x", "messages": [], "n": count });
    let asked = |count: u32| json!({ "dialect": "openai-chat", "request": request(count) });
    let one = bed.post("/v1/inject", &asked(1)).await;
    assert!(one.body["offered"]["sum"].is_object() && one.body.get("notOffered").is_none(), "{one:?}");
    let two = bed.post("/v1/inject", &asked(2)).await;
    assert_eq!(two.body, json!({ "request": request(2), "offered": {}, "notOffered": "SeveralAnswers" }));
    for (count, reason) in [(1, "Offered"), (2, "SeveralAnswers")] {
        let told = bed.post("/v1/explain", &asked(count)).await;
        let skill = &told.body["skills"][0];
        assert_eq!((&skill["reason"], &skill["offered"]), (&json!(reason), &json!(count == 1)));
    }
}

#[test]
fn a_body_of_another_shape_names_the_place() {
    let error = parsed::<Inject>(r#"{"dialect": "openai", "request": {}}"#).unwrap_err();
    assert_eq!(error.field.as_deref(), Some("/dialect"));
    assert!(error.message.contains("openai-chat"), "{}", error.message);
    assert!(parsed::<Inject>(r#"{"dialect": "gemini", "request": {}, "owner": "x"}"#).is_err());
    let offered = r#"{"dialect": "gemini", "request": {}, "answer": {}, "offered": {"t": {"namespace": 1}}}"#;
    let error = parsed::<Intercept>(offered).unwrap_err();
    assert_eq!(error.field.as_deref(), Some("/offered/t/namespace"));
}
