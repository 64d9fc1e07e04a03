//! Conversations with a scripted server.

use super::*;

type Answers = Vec<(Ticket, Result<Value, McpFailure>)>;

/// The messages that are sent, and the answers.
fn split(effects: Vec<Effect>) -> (Vec<Value>, Answers) {
    let (mut sent, mut answers) = (Vec::new(), Vec::new());
    for effect in effects {
        match effect {
            Effect::Send(line) => {
                assert_eq!(line.last(), Some(&b'\n'));
                sent.push(serde_json::from_slice(&line).unwrap());
            }
            Effect::Answer(ticket, answer) => {
                answers.push((ticket, answer.map(|text| serde_json::from_str(&text).unwrap())));
            }
        }
    }
    (sent, answers)
}

fn receive(client: &mut McpClient, message: &Value) -> (Vec<Value>, Answers) {
    split(client.receive(format!("{message}\r\n").as_bytes()))
}

fn ready() -> McpClient {
    let mut client = McpClient::default();
    client.start();
    receive(&mut client, &json!({ "id": 1, "result": { "protocolVersion": "2024-11-05" } }));
    client
}

fn call(name: &str) -> McpRequest {
    McpRequest::CallTool { name: name.to_owned(), arguments: json!({ "a": 1 }) }
}

#[test]
fn requests_wait_until_the_server_is_ready() {
    let mut client = McpClient::default();
    let (sent, _) = split(vec![client.start()]);
    assert_eq!((&sent[0]["id"], &sent[0]["method"]), (&json!(1), &json!("initialize")));
    assert!(client.ask(7, call("add")).is_empty());
    assert!(client.receive(b"a banner\n\n[]\n{\"jsonrpc\":").is_empty());
    let (sent, answers) = split(client.receive(b"\"2.0\",\"id\":1,\"result\":{}}\n"));
    assert_eq!(sent[0]["method"], "notifications/initialized");
    assert_eq!(sent[1]["params"], json!({ "name": "add", "arguments": { "a": 1 } }));
    assert!(answers.is_empty());
    let result = json!({ "content": [{ "type": "text", "text": "2" }] });
    let (_, answers) = receive(&mut client, &json!({ "id": 2, "result": result }));
    assert_eq!(answers, [(7, Ok(result))]);
}

#[test]
fn answers_find_their_requests_in_any_order_and_once() {
    let mut client = ready();
    for ticket in [10, 11] {
        client.ask(ticket, call("add"));
    }
    let answer = |id: u64| json!({ "id": id, "result": { "n": id } });
    assert_eq!(receive(&mut client, &answer(3)).1, [(11, Ok(json!({ "n": 3 })))]);
    assert_eq!(receive(&mut client, &answer(3)).1, []);
    assert_eq!(receive(&mut client, &json!([answer(2)])).1, [(10, Ok(json!({ "n": 2 })))]);
    assert_eq!(receive(&mut client, &answer(99)).1, []);
}

#[test]
fn a_list_of_tools_has_all_pages_and_an_end() {
    let mut client = ready();
    client.ask(1, McpRequest::ListTools);
    let page = |id: u64, cursor: &str| json!({ "id": id, "result": { "tools": [{ "name": id }], "nextCursor": cursor } });
    let (sent, answers) = receive(&mut client, &page(2, "b"));
    assert_eq!((&sent[0]["params"], answers.len()), (&json!({ "cursor": "b" }), 0));
    let last = json!({ "id": 3, "result": { "tools": [{ "name": 3 }] } });
    let all = json!({ "tools": [{ "name": 2 }, { "name": 3 }] });
    assert_eq!(receive(&mut client, &last).1, [(1, Ok(all))]);
    client.ask(2, McpRequest::ListTools);
    let mut answers = Vec::new();
    for id in 4..1000 {
        answers = receive(&mut client, &page(id, "again")).1;
        if !answers.is_empty() {
            break;
        }
    }
    assert_eq!(answers[0].1.as_ref().unwrap()["tools"].as_array().unwrap().len(), MAX_PAGES as usize);
}

#[test]
fn errors_are_answers() {
    let mut client = ready();
    client.ask(1, call("none"));
    let error = json!({ "id": 2, "error": { "code": -32602, "message": "Unknown tool" } });
    let failure = McpFailure::Server { code: -32602, message: "Unknown tool".into() };
    assert_eq!(receive(&mut client, &error).1, [(1, Err(failure))]);
    client.ask(2, call("odd"));
    let (_, answers) = receive(&mut client, &json!({ "id": 3, "result": 5 }));
    assert_eq!(answers, [(2, Err(McpFailure::Protocol("answered without a result")))]);
    client.ask(3, McpRequest::ListTools);
    let (_, answers) = receive(&mut client, &json!({ "id": 4, "result": {} }));
    assert_eq!(answers, [(3, Err(McpFailure::Protocol("answered without a list of tools")))]);
    let mut refusing = McpClient::default();
    refusing.start();
    refusing.ask(1, call("a"));
    let no = json!({ "id": 1, "error": { "code": 1, "message": "no" } });
    assert_eq!(receive(&mut refusing, &no).1.len(), 1);
    assert!(matches!(&refusing.ask(2, call("a"))[..], [Effect::Answer(2, Err(_))]));
}

#[test]
fn a_server_that_asks_gets_a_pong_or_a_refusal() {
    let mut client = ready();
    let (sent, _) = receive(&mut client, &json!({ "id": "p", "method": "ping" }));
    assert_eq!(sent, [json!({ "jsonrpc": "2.0", "id": "p", "result": {} })]);
    let (sent, _) = receive(&mut client, &json!({ "id": 5, "method": "sampling/createMessage" }));
    assert_eq!((&sent[0]["id"], &sent[0]["error"]["code"]), (&json!(5), &json!(METHOD_NOT_FOUND)));
    let (sent, answers) = receive(&mut client, &json!({ "method": "notifications/message" }));
    assert!(sent.is_empty() && answers.is_empty());
}

#[test]
fn a_request_that_nobody_waits_for_is_cancelled() {
    let mut client = ready();
    client.ask(1, call("slow"));
    let (sent, _) = split(client.cancel(1).into_iter().collect());
    assert_eq!(
        (&sent[0]["method"], &sent[0]["params"]["requestId"]),
        (&json!("notifications/cancelled"), &json!(2))
    );
    assert_eq!(receive(&mut client, &json!({ "id": 2, "result": {} })).1, []);
    assert!(client.cancel(1).is_none());
    let mut new = McpClient::default();
    new.ask(1, call("slow"));
    assert!(new.cancel(1).is_none() && new.waiting.is_empty());
}

#[test]
fn a_line_without_end_fills_no_memory_and_fails_the_requests() {
    let mut client = ready();
    client.ask(1, call("big"));
    for _ in 0..100 {
        assert!(client.receive(&vec![b'x'; 64 * 1024]).is_empty());
        assert!(client.line.len() <= MAX_LINE);
    }
    let answers = split(client.receive(b"\n")).1;
    assert_eq!(answers, [(1, Err(McpFailure::Protocol("wrote a line of more than 1 MiB")))]);
    client.ask(2, call("small"));
    assert_eq!(receive(&mut client, &json!({ "id": 3, "result": {} })).1, [(2, Ok(json!({})))]);
}

#[test]
fn a_list_is_cut_at_its_bytes_and_an_answer_that_nobody_asked_for_is_not_kept() {
    let mut client = ready();
    client.ask(1, McpRequest::ListTools);
    let tool = |n: usize| json!({ "name": format!("t{n}"), "description": "x".repeat(100_000) });
    let page =
        |id: u64| json!({ "id": id, "result": { "tools": [tool(1), tool(2), tool(3)], "nextCursor": "c" } });
    let mut answers = Vec::new();
    for id in 2..50 {
        answers = receive(&mut client, &page(id)).1;
        if !answers.is_empty() {
            break;
        }
    }
    assert_eq!(answers[0].1.as_ref().unwrap()["tools"].as_array().unwrap().len(), 5);
    let hostile = format!("{{\"id\":99,\"result\":[{}0]}}\n", "{\"\":0},".repeat(100_000));
    assert!(client.receive(hostile.as_bytes()).is_empty() && client.sent.is_empty());
    let long = json!({ "id": "x".repeat(1000), "method": "ping" });
    assert!(receive(&mut client, &long).0.is_empty());
}
