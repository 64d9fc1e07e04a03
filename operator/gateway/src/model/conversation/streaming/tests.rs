//! The end of a body: complete if the stream completed, else an error.

use std::panic::AssertUnwindSafe;

use axum::body::Body;
use bytes::Bytes;
use futures::{FutureExt as _, StreamExt as _};
use serde_json::json;
use skillet_llm::DialectName;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use super::{
    super::tests::{
        key,
        spans::{self, Log},
        stocked,
    },
    chunks::KEEP_ALIVE_AFTER,
    *,
};
use crate::testing::TestGateway;

/// Returns the bytes of a body, and true if it ends whole.
async fn read_to_end(body: Body) -> (String, bool) {
    let mut stream = body.into_data_stream();
    let mut text = Vec::new();
    while let Some(piece) = stream.next().await {
        match piece {
            Ok(bytes) => text.extend_from_slice(&bytes),
            Err(_) => return (String::from_utf8(text).unwrap(), false),
        }
    }
    (String::from_utf8(text).unwrap(), true)
}

fn chunk(text: &'static str) -> Chunk {
    Chunk::Bytes(Bytes::from_static(text.as_bytes()))
}

#[tokio::test]
async fn a_body_whose_end_was_sent_is_whole_and_no_other() {
    let (chunks, received) = mpsc::channel(BUFFERED_CHUNKS);
    send(&chunks, chunk("a")).await.ok();
    end(Ok(()), 0, &chunks).await;
    assert_eq!(read_to_end(body(received)).await, ("a".to_owned(), true));

    let (chunks, received) = mpsc::channel(BUFFERED_CHUNKS);
    let panics = async move {
        send(&chunks, chunk("a")).await.ok();
        panic!("as a fault of ours would");
    };
    assert!(AssertUnwindSafe(panics).catch_unwind().await.is_err());
    assert_eq!(read_to_end(body(received)).await, ("a".to_owned(), false));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_too_slowly_gets_no_end_that_looks_like_one() {
    let (chunks, received) = mpsc::channel(BUFFERED_CHUNKS);
    let held = async {
        loop {
            send(&chunks, chunk("a")).await?;
        }
    };
    // Nobody reads, so that the limit is waited for on the clock that stands still.
    let held: Result<(), Stop> = held.await;
    assert!(matches!(held, Err(Stop::ClientGone)));
    end(held, 0, &chunks).await;
    drop(chunks);
    assert_eq!(read_to_end(body(received)).await, ("a".repeat(BUFFERED_CHUNKS), false));
}

async fn read_request(socket: &mut TcpStream) {
    let mut request = Vec::new();
    while !request.ends_with(b"}") {
        socket.read_buf(&mut request).await.unwrap();
    }
}

/// A provider that says this and closes the connection, once for each of them.
async fn provider(gateway: &TestGateway, says: Vec<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    gateway.change_policy(|policy| {
        policy.gateway.providers.anthropic.base_url.clone_from(&url);
        policy.gateway.providers.openai.base_url = url;
    });
    tokio::spawn(async move {
        for text in says {
            let (mut socket, _) = listener.accept().await.unwrap();
            read_request(&mut socket).await;
            socket.write_all(text.as_bytes()).await.unwrap();
        }
    });
}

fn saying(status: &str, length: usize, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
}

/// The status and body of a streamed answer.
async fn streamed(gateway: &TestGateway) -> (u16, String, bool) {
    let response = gateway.respond("/v1/chat/completions", &json!({"stream": true, "messages": []})).await;
    let status = response.status().as_u16();
    let (text, is_whole) = read_to_end(response.into_body()).await;
    (status, text, is_whole)
}

const MIB: usize = 1 << 20;
const CALLING: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":{\"name\":\"look\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n";

#[tokio::test]
async fn a_providers_error_that_breaks_off_does_not_end_as_if_whole() {
    let gateway = stocked(Some(key()));
    let says = [saying("429 Slow", 4, "wait"), saying("429 Slow", 99, "wai")];
    provider(&gateway, says.to_vec()).await;
    assert_eq!(streamed(&gateway).await, (429, "wait".to_owned(), true));
    assert_eq!(streamed(&gateway).await, (429, "wai".to_owned(), false));
}

#[tokio::test]
async fn a_provider_that_fails_in_a_later_round_leaves_the_client_what_its_skills_gave() {
    let gateway = stocked(Some(key()));
    let whole = json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": null, "tool_calls": [
        {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}]}, "finish_reason": "tool_calls"}]});
    let whole = whole.to_string();
    for later in [saying("500 Wrong", 2, "no"), saying("200 OK", 9, "{"), String::new()] {
        provider(&gateway, vec![saying("200 OK", CALLING.len(), CALLING), later.clone()]).await;
        let (status, text, is_whole) = streamed(&gateway).await;
        let is_broken = later.contains(" 200 ");
        assert_eq!((status, is_whole), (200, !is_broken), "{text}");
        assert_eq!(text.contains("[Skill result: look]"), !is_broken, "{text}");

        provider(&gateway, vec![saying("200 OK", whole.len(), &whole), later]).await;
        let response = gateway.respond("/v1/chat/completions", &json!({"messages": []})).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["x-skillet-ran"], "look");
        assert!(response.headers().contains_key("x-skillet-incomplete"));
        let (text, is_whole) = read_to_end(response.into_body()).await;
        assert!(is_whole && text.contains("[Skill result: look]") && text.contains("\"stop\""), "{text}");
    }
}

#[tokio::test]
async fn log_lines_of_a_broken_stream_carry_the_request_id() {
    let (log, _guard) = Log::capture();
    let gateway = stocked(Some(key()));
    provider(&gateway, vec![saying("200 OK", 99, "data: {}\n\n")]).await;
    spans::send(&gateway, "r-2", json!({ "model": "m", "stream": true })).await;
    spans::check(&log.line("Stream was broken off"), "r-2");
}

#[tokio::test]
async fn a_request_that_fails_because_of_skills_is_sent_once_more_without_them() {
    let refusal = r#"{"error":{"message":"this model does not support tools"}}"#;
    let answer =
        r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}]}"#;
    for stream in [false, true] {
        let gateway = stocked(Some(key()));
        let refused = saying("400 Bad Request", refusal.len(), refusal);
        let answered = saying("200 OK", answer.len(), answer);
        provider(&gateway, vec![refused, answered.clone(), answered]).await;
        let request = json!({"model": "plain", "stream": stream, "messages": []});
        // The second request is not offered anything at all.
        for _ in 0..2 {
            let response = gateway.respond("/v1/chat/completions", &request).await;
            assert_eq!(response.status(), 200);
            assert_eq!(response.headers()["x-skillet-not-offered"], "ProviderRefused");
            assert_eq!(response.headers()["x-skillet-offered"], "");
            assert_eq!(read_to_end(response.into_body()).await, (answer.to_owned(), true));
        }
    }
}

#[tokio::test]
async fn a_request_that_fails_for_another_reason_is_not_sent_again() {
    let gateway = stocked(Some(key()));
    provider(&gateway, vec![saying("400 Bad Request", 9, "max_token")]).await;
    let response = gateway.respond("/v1/chat/completions", &json!({"model": "plain", "messages": []})).await;
    assert_eq!(response.status(), 400);
    assert_eq!(response.headers()["x-skillet-offered"], "look,pay");
    assert_eq!(read_to_end(response.into_body()).await, ("max_token".to_owned(), true));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_waits_for_a_skill_is_kept_alive() {
    let (chunks, mut received) = mpsc::channel(BUFFERED_CHUNKS);
    let work = sleep(KEEP_ALIVE_AFTER * 5 / 2);
    let waiting = stay_alive(work, DialectName::Anthropic.keep_alive(), &chunks).await;
    assert!(waiting.is_ok());
    let mut sent = String::new();
    while let Ok(Chunk::Bytes(bytes)) = received.try_recv() {
        sent.push_str(std::str::from_utf8(&bytes).unwrap());
    }
    assert_eq!(sent, "event: ping\ndata: {\"type\":\"ping\"}\n\n".repeat(2));
    drop(received);
    let gone = stay_alive(std::future::pending::<()>(), "", &chunks).await;
    assert!(matches!(gone, Err(Stop::ClientGone)));
}

#[tokio::test]
async fn a_stream_that_breaks_off_says_so_in_the_dialects_form() {
    for (path, error) in [
        ("/v1/chat/completions", "data: {\"error\":{"),
        ("/v1/responses", "event: error\ndata: {"),
        ("/v1/messages", "event: error\ndata: {\"error\":{"),
    ] {
        let gateway = stocked(Some(key()));
        provider(&gateway, vec![saying("200 OK", 99, ": hello\n\n")]).await;
        let response = gateway.respond(path, &json!({"stream": true, "messages": []})).await;
        let (text, is_whole) = read_to_end(response.into_body()).await;
        assert!(!is_whole && text.contains(error) && text.contains(BROKEN.message), "{path}: {text}");
    }
}

/// The events of a text that is the whole answer.
fn answering(text: &str) -> String {
    let chunk = |delta: serde_json::Value, reason: serde_json::Value| {
        format!(
            "data: {}\n\n",
            json!({"id": "r", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
        )
    };
    let end = chunk(json!({}), json!("stop"));
    format!("{}{end}data: [DONE]\n\n", chunk(json!({ "content": text }), json!(null)))
}

#[tokio::test]
async fn a_later_round_that_breaks_off_is_asked_again_and_a_first_one_is_not() {
    let gateway = stocked(Some(key()));
    let (part, whole) = (answering("The wor"), answering("The words."));
    let part = part.split("data: {\"choices\":[{\"delta\":{},").next().unwrap();
    let broken = saying("200 OK", 9_999, part);
    let first = saying("200 OK", CALLING.len(), CALLING);
    provider(
        &gateway,
        vec![first.clone(), broken.clone(), broken.clone(), saying("200 OK", whole.len(), &whole)],
    )
    .await;
    let (_, text, is_whole) = streamed(&gateway).await;
    assert!(is_whole && text.ends_with("data: [DONE]\n\n"), "{text}");
    let places: Vec<usize> = ["\"The wor\"", "\"\\n\\nThe wor\"", "\"\\n\\nThe words.\""]
        .iter()
        .map(|piece| text.find(piece).unwrap_or_else(|| panic!("{piece}: {text}")))
        .collect();
    assert!(places.is_sorted(), "{text}");
    assert_eq!(gateway.created(), 1, "the skill ran once");

    provider(&gateway, vec![broken.clone(), saying("200 OK", whole.len(), &whole)]).await;
    let (_, text, is_whole) = streamed(&gateway).await;
    assert!(!is_whole && text.contains(BROKEN.message), "{text}");

    provider(&gateway, vec![first, broken.clone(), broken.clone(), broken.clone(), broken]).await;
    let (_, text, is_whole) = streamed(&gateway).await;
    assert!(!is_whole && text.contains(BROKEN.reason), "{text}");
}

#[tokio::test]
async fn an_error_that_the_provider_sends_in_a_later_round_is_tried_again() {
    let gateway = stocked(Some(key()));
    let (part, whole) = (answering("The wor"), answering("The words."));
    let part = part.split("data: {\"choices\":[{\"delta\":{},").next().unwrap();
    let failing = format!("{part}data: {{\"error\":{{\"message\":\"Overloaded\"}}}}\n\n");
    let failing = saying("200 OK", failing.len(), &failing);
    let first = saying("200 OK", CALLING.len(), CALLING);
    provider(&gateway, vec![first.clone(), failing.clone(), saying("200 OK", whole.len(), &whole)]).await;
    let (_, text, is_whole) = streamed(&gateway).await;
    assert!(is_whole && !text.contains("Overloaded"), "{text}");
    assert!(text.contains("\"The wor\"") && text.contains("\"\\n\\nThe words.\""), "{text}");

    provider(&gateway, vec![first, failing.clone(), failing.clone(), failing.clone(), failing]).await;
    let (_, text, is_whole) = streamed(&gateway).await;
    assert!(!is_whole && !text.contains(BROKEN.reason), "{text}");
    assert_eq!((text.matches("Overloaded").count(), text.matches("The wor").count()), (1, 4), "{text}");
}

#[tokio::test]
async fn a_round_that_is_held_back_is_counted() {
    let gateway = stocked(Some(key()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    gateway.change_policy(|policy| policy.gateway.providers.openai.base_url = url);
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        read_request(&mut socket).await;
        let arguments = CALLING.replace("{}", &"x".repeat(MIB));
        socket.write_all(saying("200 OK", 2 * MIB, &arguments).as_bytes()).await.unwrap();
        // The rest never comes.
        std::future::pending::<()>().await;
    });
    let _response = gateway.respond("/v1/chat/completions", &json!({"stream": true, "messages": []})).await;
    let counted = async {
        while gateway.model.memory.reserved() < MIB {
            sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(9), counted).await.unwrap();
}
