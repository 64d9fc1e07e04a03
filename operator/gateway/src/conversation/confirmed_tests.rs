//! Calls that wait for a person's word, from the model's answer over the client to the run: in all dialects, and attacked.

use serde_json::json;
use skillet_core::dialect::{
    confirmation::{ConfirmationKey, NONCE_BYTES, PendingCall, answer::HEADER},
    names::SkillIdentity,
};

use super::{
    super::test_bed::{Bed, caller, key},
    *,
};

pub(super) const CHAT: &str = "/v1/chat/completions";
const GEMINI: &str = "/v1beta/models/gemini-2.5-pro:generateContent";
const REFUSE: &str = r#"{"skillet":"refuse"}"#;

pub(super) fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

pub(super) fn pay() -> Value {
    call("call_1", "pay", "{\"amount\":5}")
}

/// An answer of the model's with these calls.
pub(super) fn calling(calls: &[Value]) -> Value {
    let message = json!({"role": "assistant", "content": null, "tool_calls": calls});
    json!({"id": "r", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}})
}

pub(super) fn saying(text: &str) -> Value {
    json!({"id": "r", "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]})
}

pub(super) fn asking(messages: &[Value]) -> Value {
    json!({"model": "m", "messages": messages})
}

pub(super) fn result(content: &str) -> Value {
    json!({"role": "tool", "tool_call_id": "call_1", "content": content})
}

pub(super) fn user() -> Value {
    json!({"role": "user", "content": "pay 5"})
}

/// The confirmation that a question's text tells its reader to send.
fn confirmation(text: &str) -> String {
    let from = text.find(r#"{"skillet":"confirm""#).unwrap_or_else(|| panic!("no question in {text}"));
    text[from..].split_inclusive('}').next().unwrap().to_owned()
}

fn token_of(confirmation: &str) -> String {
    serde_json::from_str::<Value>(confirmation).unwrap()["token"].as_str().unwrap().to_owned()
}

/// The model calls `pay`; the messages so far and the confirmation that would run it.
pub(super) async fn asked(bed: &Bed) -> (Vec<Value>, String) {
    bed.will_say(&calling(&[pay()]));
    let answer = bed.json(CHAT, &asking(&[user()])).await;
    let message = answer["choices"][0]["message"].clone();
    let confirmation = confirmation(message["content"].as_str().unwrap());
    (vec![user(), message], confirmation)
}

/// What the model reads as the result of the call, when the client gives this one.
async fn told_as(bed: &Bed, account: &str, messages: &[Value], content: &str) -> Value {
    bed.will_say(&saying("done"));
    let messages = [messages, &[result(content)]].concat();
    bed.send_as(account, CHAT, &[], &asking(&messages)).await;
    let asked = bed.asked();
    let told = asked["messages"].as_array().unwrap().iter().find(|message| message["role"] == "tool");
    serde_json::from_str(told.unwrap()["content"].as_str().unwrap()).unwrap()
}

async fn told(bed: &Bed, messages: &[Value], content: &str) -> Value {
    told_as(bed, "agent", messages, content).await
}

pub(super) fn reason(told: &Value) -> &str {
    told["error"]["reason"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn a_hybrid_call_goes_to_the_client_and_runs_once_it_is_confirmed() {
    let bed = Bed::new(Some(key())).await;
    bed.will_say(&calling(&[pay()]));
    let answer = bed.json(CHAT, &asking(&[user()])).await;
    assert_eq!(bed.asked()["tools"][1]["function"]["name"], "pay", "it is offered like any other");
    let message = &answer["choices"][0]["message"];
    assert_eq!(
        (&message["tool_calls"], &answer["choices"][0]["finish_reason"]),
        (&json!([pay()]), &json!("tool_calls"))
    );
    assert_eq!(bed.made(), 0);
    let confirmation = confirmation(message["content"].as_str().unwrap());
    assert_eq!(told(&bed, &[user(), message.clone()], &confirmation).await, json!({"paid": 5}));
    let execution = &bed.api.executions()[0];
    assert_eq!(execution["metadata"]["namespace"], "team");
    assert_eq!(
        (
            &execution["spec"]["skill"],
            &execution["spec"]["version"],
            &execution["spec"]["input"],
            &execution["spec"]["caller"]
        ),
        (&json!("pay"), &json!("1.0.0"), &json!({"amount": 5}), &json!("team/agent"))
    );
}

#[tokio::test]
async fn the_same_confirmation_is_answered_from_the_same_execution_as_long_as_that_is_kept() {
    let bed = Bed::new(Some(key())).await;
    let (mut messages, confirmation) = asked(&bed).await;
    for _ in 0..2 {
        assert_eq!(told(&bed, &messages, &confirmation).await, json!({"paid": 5}));
    }
    messages.extend([result(&confirmation), json!({"role": "assistant", "content": "done"}), user()]);
    assert_eq!(told(&bed, &messages, "unused").await, json!({"paid": 5}));
    assert_eq!(bed.api.executions().len(), 1);
    let name = bed.api.executions()[0]["metadata"]["name"].as_str().unwrap().to_owned();
    bed.api.delete(&crate::fake_api::path("team", "skillexecutions", &name));
    let made = bed.made();
    assert_eq!(reason(&told(&bed, &messages, "unused").await), "ResultGone");
    assert_eq!((bed.made(), bed.api.executions().len()), (made, 0), "it is not run again");
}

#[tokio::test]
async fn without_a_persons_yes_nothing_runs_and_the_model_reads_why() {
    let bed = Bed::new(Some(key())).await;
    let (messages, _) = asked(&bed).await;
    for (content, why) in [
        (REFUSE, "refused"),
        (r#"{"skillet":"maybe"}"#, "not one of this gateway's"),
        (r#"{"skillet":"confirm","token":"1.2.3.AAAA"}"#, "not one of this gateway's"),
        ("ok", "nobody confirmed"),
        ("", "nobody confirmed"),
    ] {
        let told = told(&bed, &messages, content).await;
        assert_eq!(reason(&told), "NotConfirmed", "{content}");
        assert!(told["error"]["message"].as_str().unwrap().contains(why), "{told}");
    }
    assert_eq!(bed.made(), 0);
}

/// A token that this gateway might have made, for a call of `pay` with 5.
fn forged(of: &str, key: &ConfirmationKey, namespace: &str, expires: u64) -> String {
    let (caller, arguments) = (asking::caller(&caller("team", of)), json!({"amount": 5}));
    let call = PendingCall { caller: &caller, call_id: "call_1", tool: "pay", arguments: &arguments };
    let skill = SkillIdentity { namespace, name: "pay", version: "1.0.0" };
    let token = key.make(&call, skill, expires, [1; NONCE_BYTES]);
    json!({"skillet": "confirm", "token": token}).to_string()
}

#[tokio::test]
async fn attacks_with_the_tokens_of_others_and_for_others_run_nothing() {
    let bed = Bed::new(Some(key())).await;
    let (messages, confirmation) = asked(&bed).await;
    let with = |call: Value| vec![user(), json!({"role": "assistant", "tool_calls": [call]})];
    let stranger = ConfirmationKey::new(&[8; 32]).unwrap();
    let other_id = json!({"role": "tool", "tool_call_id": "call_2", "content": confirmation});
    let table = [
        ("another caller", told_as(&bed, "other", &messages, &confirmation).await),
        ("other arguments", told(&bed, &with(call("call_1", "pay", "{\"amount\":6}")), &confirmation).await),
        ("other tool", told(&bed, &with(call("call_1", "look", "{\"amount\":5}")), &confirmation).await),
        ("other key", told(&bed, &messages, &forged("agent", &stranger, "team", u64::MAX)).await),
        ("other call", {
            let messages = [with(call("call_2", "pay", "{\"amount\":5}")), vec![other_id]].concat();
            told(&bed, &messages, "unused").await
        }),
        ("no call", told(&bed, &[user()], &confirmation).await),
        ("expired", told(&bed, &messages, &forged("agent", &key(), "team", 5)).await),
    ];
    for (attack, told) in table {
        assert_eq!(reason(&told), "NotConfirmed", "{attack}: {told}");
    }
    assert_eq!(bed.made(), 0);
}

#[tokio::test]
async fn a_confirmation_gives_no_right_that_the_caller_lacks() {
    let bed = Bed::new(Some(key())).await;
    let (messages, _) = asked(&bed).await;
    let far = forged("agent", &key(), "far", u64::MAX);
    assert_eq!(
        reason(&told(&bed, &messages, &far).await),
        "Forbidden",
        "a namespace that is not looked into"
    );
    // From now on nothing is allowed; what is remembered of before is not of this skill.
    bed.reviews.withdraw_all();
    let own = forged("agent", &key(), "team", u64::MAX);
    assert_eq!(reason(&told(&bed, &messages, &own).await), "Forbidden");
    assert_eq!(bed.made(), 0);
}

#[tokio::test]
async fn a_skill_that_models_may_not_call_any_more_is_not_run() {
    let bed = Bed::new(Some(key())).await;
    let (messages, confirmation) = asked(&bed).await;
    bed.skill("team", "pay", "manual");
    assert_eq!(reason(&told(&bed, &messages, &confirmation).await), "ManualOnly");
    assert_eq!(bed.made(), 0);
}

#[tokio::test]
async fn what_was_begun_in_time_is_found_after_the_token_has_expired() {
    let bed = Bed::new(Some(key())).await;
    let (messages, _) = asked(&bed).await;
    let late = forged("agent", &key(), "team", 5);
    let mut order = Order::new(caller("team", "agent"), "team", "pay");
    order.version = Some("1.0.0".into());
    order.input = json!({"amount": 5});
    order.idempotency = Some(format!("confirmed/{}", token_of(&late).rsplit('.').next().unwrap()));
    bed.gateway.executor.start(&order).await.unwrap();
    assert_eq!(told(&bed, &messages, &late).await, json!({"paid": 5}));
    assert_eq!(bed.made(), 1);
}

#[tokio::test]
async fn the_results_of_the_clients_own_tools_are_left_alone() {
    let bed = Bed::new(Some(key())).await;
    let (messages, confirmation) = asked(&bed).await;
    let own = json!([{"type": "function", "function": {"name": "pay", "parameters": {}}}]);
    for content in [REFUSE, confirmation.as_str(), "ok"] {
        bed.will_say(&saying("done"));
        let mut request = asking(&[&messages[..], &[result(content)]].concat());
        request["tools"] = own.clone();
        bed.send(CHAT, &request).await;
        assert_eq!(bed.asked()["messages"][2]["content"], *content);
    }
    assert_eq!(bed.made(), 0);
}

#[tokio::test]
async fn beside_it_other_skills_run_and_the_client_keeps_its_own_calls() {
    let bed = Bed::new(Some(key())).await;
    bed.will_say(&calling(&[call("call_0", "look", "{}"), pay(), call("call_2", "own", "{}")]));
    let answer = bed.json(CHAT, &asking(&[user()])).await;
    let message = &answer["choices"][0]["message"];
    assert_eq!(message["tool_calls"], json!([pay(), call("call_2", "own", "{}")]));
    let text = message["content"].as_str().unwrap();
    let (ran, question) =
        (text.find("[Skill result: look]").unwrap(), text.find("The skill pay waits").unwrap());
    assert!(ran < question, "{text}");
    assert_eq!(bed.made(), 1);
}

#[tokio::test]
async fn a_call_whose_arguments_are_broken_cannot_be_confirmed() {
    let bed = Bed::new(Some(key())).await;
    bed.will_say(&calling(&[call("call_1", "pay", "{\"amo")]));
    let answer = bed.json(CHAT, &asking(&[user()])).await;
    let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
    assert!(text.contains("not JSON") && !text.contains("token"), "{text}");
}

#[tokio::test]
async fn without_a_key_no_hybrid_skill_is_offered_and_nothing_is_confirmed() {
    let bed = Bed::new(None).await;
    bed.will_say(&saying("hello"));
    bed.send(CHAT, &asking(&[user()])).await;
    assert_eq!(bed.asked()["tools"].as_array().unwrap().len(), 1);
    let messages = [user(), json!({"role": "assistant", "tool_calls": [pay()]})];
    let told = told(&bed, &messages, &forged("agent", &key(), "team", u64::MAX)).await;
    assert_eq!(reason(&told), "NotConfirmed");
    assert_eq!(bed.made(), 0);
    let explained =
        bed.json("/v1/explain", &json!({"dialect": "openai-chat", "request": asking(&[user()])})).await;
    let of = |name: &str| {
        let skills = explained["skills"].as_array().unwrap();
        skills.iter().find(|skill| skill["name"] == name).unwrap()["reason"].clone()
    };
    assert_eq!((of("pay"), of("look")), (json!("NoConfirmationKey"), json!("Offered")));
}

#[tokio::test]
async fn a_skill_that_the_request_forces_is_forced_in_the_first_round_only() {
    let bed = Bed::new(Some(key())).await;
    let mut request = asking(&[user()]);
    request["tool_choice"] = json!({"type": "function", "function": {"name": "look"}});
    bed.will_say(&calling(&[call("c", "look", "{}")]));
    bed.will_say(&saying("done"));
    bed.send(CHAT, &request).await;
    assert_eq!((&bed.asked()["tool_choice"], bed.made()), (&json!("auto"), 1));
}

#[tokio::test]
async fn a_dry_run_runs_nothing_that_is_confirmed() {
    let bed = Bed::new(Some(key())).await;
    let (mut messages, confirmation) = asked(&bed).await;
    messages.push(result(&confirmation));
    bed.send_as("agent", CHAT, &[("x-skillet-dry-run", "true")], &asking(&messages)).await;
    assert_eq!(bed.made(), 0);
}

#[tokio::test]
async fn only_the_newest_of_very_many_confirmations_are_looked_for() {
    let bed = Bed::new(Some(key())).await;
    let (messages, confirmation) = asked(&bed).await;
    let turn = [messages[1].clone(), result(&confirmation)];
    let many: Vec<Value> =
        std::iter::once(user()).chain(turn.iter().cycle().take(2 * (LIMIT + 1)).cloned()).collect();
    bed.will_say(&saying("done"));
    bed.send(CHAT, &asking(&many)).await;
    let told = bed.asked()["messages"].clone();
    assert!(told[2]["content"].as_str().unwrap().contains("LimitReached"), "{}", told[2]);
    // The last turn begins the run, and the others may look for it before or after.
    assert_eq!(told[2 * (LIMIT + 1)]["content"], "{\"paid\":5}");
    assert_eq!(bed.made(), 1);
    // From now on it is there.
    bed.will_say(&saying("done"));
    bed.send(CHAT, &asking(&many)).await;
    let told = bed.asked()["messages"].clone();
    assert!(told[2]["content"].as_str().unwrap().contains("LimitReached"), "{}", told[2]);
    for turn in 2..=LIMIT + 1 {
        assert_eq!(told[2 * turn]["content"], "{\"paid\":5}");
    }
    assert_eq!(bed.api.executions().len(), 1);
}

#[tokio::test]
async fn a_result_of_a_tool_that_is_not_declared_is_left_also_where_it_names_skillet() {
    let bed = Bed::new(Some(key())).await;
    let listed = r#"{"skillet":{"chart":"skillet-0.1.0","status":"deployed"}}"#;
    let turn = json!({"role": "assistant", "tool_calls": [call("call_1", "helm_list", "{}")]});
    bed.will_say(&saying("done"));
    bed.send(CHAT, &asking(&[user(), turn, result(listed)])).await;
    assert_eq!(bed.asked()["messages"][2]["content"], listed);
}

#[tokio::test]
async fn a_stream_asks_before_its_end() {
    let bed = Bed::new(Some(key())).await;
    let chunk = |delta: Value, reason: Value| {
        format!(
            "data: {}\n\n",
            json!({"id": "r", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
        )
    };
    let mut delta = json!({"role": "assistant", "tool_calls": [pay()]});
    delta["tool_calls"][0]["index"] = json!(0);
    let called = chunk(delta, Value::Null);
    let end = chunk(json!({}), json!("tool_calls")) + "data: [DONE]\n\n";
    bed.will_write("text/event-stream", format!("{called}{end}"));
    let mut request = asking(&[user()]);
    request["stream"] = json!(true);
    let stream = bed.send(CHAT, &request).await;
    let rest = stream.strip_prefix(&called).unwrap_or_else(|| panic!("{stream}"));
    let events: Vec<&str> = rest.split("\n\n").collect();
    let question: Value = serde_json::from_str(events[0].strip_prefix("data: ").unwrap()).unwrap();
    let text = question["choices"][0]["delta"]["content"].as_str().unwrap();
    assert!(events[1].contains("tool_calls") && rest.ends_with("data: [DONE]\n\n"), "{rest}");
    let message = json!({"role": "assistant", "content": text, "tool_calls": [pay()]});
    assert_eq!(told(&bed, &[user(), message], &confirmation(text)).await, json!({"paid": 5}));
}

#[tokio::test]
async fn a_stream_tells_what_other_skills_gave_before_it_asks() {
    let bed = Bed::new(Some(key())).await;
    let say = |data: Value| format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap());
    let mut stream =
        say(json!({"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}}));
    for (index, name) in ["look", "pay"].into_iter().enumerate() {
        let block = json!({"type": "tool_use", "id": format!("toolu_{name}"), "name": name, "input": {}});
        stream += &say(json!({"type": "content_block_start", "index": index, "content_block": block}));
        stream += &say(json!({"type": "content_block_stop", "index": index}));
    }
    stream += &say(
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 2}}),
    );
    stream += &say(json!({"type": "message_stop"}));
    bed.will_write("text/event-stream", stream);
    let out = bed.send("/v1/messages", &json!({"stream": true, "messages": [user()]})).await;
    let (ran, asked) = (out.find("[Skill result: look]").unwrap(), out.find("The skill pay waits").unwrap());
    assert!(ran < asked && out.contains("toolu_pay") && !out.contains("toolu_look"), "{out}");
    assert!(out.ends_with(&say(json!({"type": "message_stop"}))));
}

#[tokio::test]
async fn a_streamed_turn_goes_back_in_an_order_that_the_provider_takes() {
    let bed = Bed::new(Some(key())).await;
    let call = json!({"type": "tool_use", "id": "toolu_own", "name": "own", "input": {}});
    let told = json!({"type": "text", "text": "[Skill result: look]\n{}"});
    let result = json!({"type": "tool_result", "tool_use_id": "toolu_own", "content": "ok"});
    let turn = |blocks: Value| json!({"role": "assistant", "content": blocks});
    let messages = |blocks| json!([user(), turn(blocks), {"role": "user", "content": [result]}]);
    let sent = json!({"messages": messages(json!([call, told]))});
    for skills in ["all", "off"] {
        bed.will_say(&json!({"id": "msg", "content": []}));
        bed.send_as("agent", "/v1/messages", &[("x-skillet-skills", skills)], &sent).await;
        assert_eq!(bed.asked()["messages"], messages(json!([told, call])), "skills {skills}");
    }
}

#[tokio::test]
async fn responses_anthropic_and_gemini_ask_and_confirm_in_their_own_form() {
    let bed = Bed::new(Some(key())).await;
    let call = json!({"type": "function_call", "id": "fc", "call_id": "call_1", "name": "pay", "arguments": "{\"amount\":5}"});
    bed.will_say(&json!({"id": "resp", "output": [call]}));
    let answer = bed.json("/v1/responses", &json!({"input": "pay"})).await;
    let question = confirmation(answer["output"][0]["content"][0]["text"].as_str().unwrap());
    let output = json!({"type": "function_call_output", "call_id": "call_1", "output": question});
    bed.will_say(&json!({"id": "resp", "output": []}));
    bed.send("/v1/responses", &json!({"input": [answer["output"][0], answer["output"][1], output]})).await;
    assert_eq!(bed.asked()["input"][2]["output"], "{\"paid\":5}");

    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "pay", "input": {"amount": 5}});
    bed.will_say(&json!({"id": "msg", "content": [call], "stop_reason": "tool_use"}));
    let answer = bed.json("/v1/messages", &json!({"messages": [user()]})).await;
    let question = confirmation(answer["content"][0]["text"].as_str().unwrap());
    let result = json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": question}]});
    bed.will_say(&json!({"id": "msg", "content": []}));
    let turns = [
        user(),
        json!({"role": "assistant", "content": answer["content"]}),
        json!({"role": "user", "content": [result]}),
    ];
    bed.send("/v1/messages", &json!({ "messages": turns })).await;
    assert_eq!(bed.asked()["messages"][2]["content"][0]["content"], "{\"paid\":5}");

    // Gemini gives no id to this call.
    let part = json!({"functionCall": {"name": "pay", "args": {"amount": 5}}});
    bed.will_say(
        &json!({"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}]}),
    );
    let user = json!({"role": "user", "parts": [{"text": "pay"}]});
    let answer = bed.json(GEMINI, &json!({"contents": [user]})).await;
    let content = &answer["candidates"][0]["content"];
    let question: Value =
        serde_json::from_str(&confirmation(content["parts"][0]["text"].as_str().unwrap())).unwrap();
    let response =
        json!({"role": "user", "parts": [{"functionResponse": {"name": "pay", "response": question}}]});
    bed.will_say(&json!({"candidates": []}));
    bed.send(GEMINI, &json!({"contents": [user, content, response]})).await;
    assert_eq!(bed.asked()["contents"][2]["parts"][0]["functionResponse"]["response"], json!({"paid": 5}));
    assert_eq!(bed.api.executions().len(), 3);
}

#[tokio::test]
async fn a_router_that_asks_the_model_itself_gets_the_question_and_the_result() {
    let bed = Bed::new(Some(key())).await;
    let injected =
        bed.json("/v1/inject", &json!({"dialect": "openai-chat", "request": asking(&[user()])})).await;
    assert_eq!(injected["offered"]["pay"]["confirm"], true);
    assert_eq!(injected["offered"]["look"].get("confirm"), None);
    let intercept = json!({"dialect": "openai-chat", "request": injected["request"], "offered": injected["offered"], "answer": calling(&[pay()])});
    let answered = bed.json("/v1/intercept", &intercept).await;
    let message = &answered["answer"]["choices"][0]["message"];
    let confirmation = confirmation(message["content"].as_str().unwrap());
    let request = asking(&[user(), message.clone(), result(&confirmation)]);
    let injected = bed.json("/v1/inject", &json!({"dialect": "openai-chat", "request": request})).await;
    assert_eq!(injected["request"]["messages"][2]["content"], "{\"paid\":5}");
}

#[path = "confirmed_header_tests.rs"]
mod header;
