//! A model that gives everyone the same short answer at once, whole or streamed. It calls no tool and reads nothing.

use std::{fmt::Write as _, io, net::SocketAddr, sync::Arc};

use serde_json::{Value, json};
use tokio::task::yield_now;

use crate::http::{self, Connection};

const WORDS: [&str; 16] = [
    "The",
    " weather",
    " in",
    " Lisbon",
    " is",
    " mild",
    " today",
    ":",
    " about",
    " nineteen",
    " degrees",
    ",",
    " with",
    " some",
    " wind",
    ".",
];
/// The field by which a client requests a stream.
pub(crate) const STREAM: (&str, &str) = ("accept", "text/event-stream");

/// Answers as bytes, made once.
struct Answers {
    whole: Vec<u8>,
    /// Up to and with the first event, and all that follows.
    streamed: (Vec<u8>, Vec<u8>),
}

/// Serves until the process ends.
pub(crate) async fn start() -> io::Result<SocketAddr> {
    let answers = Arc::new(Answers::new());
    http::listen(move |connection| serve(connection, answers.clone())).await
}

async fn serve(mut connection: Connection, answers: Arc<Answers>) -> io::Result<()> {
    while let Some(head) = connection.head().await? {
        connection.body(&head).await?;
        if head.has(STREAM.1) {
            let (first, rest) = &answers.streamed;
            connection.write(first).await?;
            // A model takes its time between two words; here nobody waits more than a turn.
            yield_now().await;
            connection.write(rest).await?;
        } else {
            connection.write(&answers.whole).await?;
        }
    }
    Ok(())
}

impl Answers {
    fn new() -> Self {
        let usage = json!({ "prompt_tokens": 500, "completion_tokens": WORDS.len(), "total_tokens": 500 + WORDS.len() });
        let message = json!({ "role": "assistant", "content": WORDS.concat(), "refusal": null });
        let choice = json!({ "index": 0, "message": message, "logprobs": null, "finish_reason": "stop" });
        let mut whole = completion("chat.completion", &choice);
        whole["usage"] = usage;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        let event = |value: &Value| http::chunk(&format!("data: {value}\n\n"));
        let first = format!("{head}{}", event(&piece(&json!({ "role": "assistant", "content": "" }), None)));
        let mut rest = String::new();
        for word in WORDS {
            rest.push_str(&event(&piece(&json!({ "content": word }), None)));
        }
        // Writing to a String cannot fail.
        write!(
            rest,
            "{}{}{}",
            event(&piece(&json!({}), Some("stop"))),
            http::chunk("data: [DONE]\n\n"),
            http::chunk("")
        )
        .ok();
        Self {
            whole: http::answer("200 OK", &whole.to_string()),
            streamed: (first.into_bytes(), rest.into_bytes()),
        }
    }
}

fn piece(delta: &Value, finish: Option<&str>) -> Value {
    completion("chat.completion.chunk", &json!({ "index": 0, "delta": delta, "finish_reason": finish }))
}

fn completion(object: &str, choice: &Value) -> Value {
    json!({ "id": "chatcmpl-bench", "object": object, "created": 1_750_000_000, "model": "gpt-4o", "choices": [choice] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_same_words_come_whole_and_streamed() {
        let address = start().await.unwrap().to_string();
        let mut connection = Connection::open(&address).await.unwrap();
        let mut ask = async |headers: &[(&str, &str)]| {
            connection.write(&http::request("POST /v1/chat/completions", headers, "{}")).await.unwrap();
            let head = connection.head().await.unwrap().unwrap();
            String::from_utf8(connection.body(&head).await.unwrap()).unwrap()
        };
        let whole: Value = serde_json::from_str(&ask(&[]).await).unwrap();
        let streamed = ask(&[STREAM]).await;
        let events = streamed
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
        let words: Vec<String> = events
            .filter_map(|event| Some(event["choices"][0]["delta"]["content"].as_str()?.to_owned()))
            .collect();
        assert_eq!(whole["choices"][0]["message"]["content"], words.concat());
        assert!(streamed.ends_with("data: [DONE]\n\n"));
    }
}
