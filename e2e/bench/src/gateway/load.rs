//! Requests to the gateway and to the model: one at a time in turn, or as many as go.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use futures::future::try_join_all;
use serde_json::{Value, json};
use skillet_offer::synthetic;

use super::{api, model};
use crate::{
    http::{self, Connection, Head},
    samples::Samples,
};

const SEED: u64 = 7;
/// Tells which skills were offered.
const OFFERED: &str = "x-skillet-offered";

/// The part of a response to wait for.
#[derive(Clone, Copy)]
pub(crate) enum Until {
    /// Its last byte, of an answer in one piece.
    Whole,
    /// Its first byte, of a stream.
    FirstByte,
}

/// A chat request of some 2 KB as bytes.
pub(crate) fn chat(seed: u64, until: Until) -> Vec<u8> {
    let (texts, tools) = synthetic::request(seed);
    let role = |place| if place == 0 { "system" } else { "user" };
    let messages: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(place, text)| json!({ "role": role(place), "content": text }))
        .collect();
    let mut body = json!({ "model": "gpt-4o", "messages": messages, "tools": tools });
    let bearer = format!("Bearer {}", api::TOKEN);
    let mut headers = vec![("content-type", "application/json"), ("authorization", bearer.as_str())];
    match until {
        Until::Whole => {}
        Until::FirstByte => {
            body["stream"] = json!(true);
            headers.push(model::STREAM);
        }
    }
    http::request("POST /v1/chat/completions", &headers, &body.to_string())
}

/// Times of the gateway and of the model itself, request by request in turn.
pub(crate) async fn in_turn(
    gateway: &str,
    model: &str,
    until: Until,
    warm_up: usize,
    requests: usize,
) -> anyhow::Result<(Samples, Samples)> {
    let (mut through, mut straight) = (Connection::open(gateway).await?, Connection::open(model).await?);
    let asked = chat(SEED, until);
    let (mut by_gateway, mut by_model) = (Samples::default(), Samples::default());
    for number in 0..warm_up + requests {
        let pair = (time(&mut through, &asked, until).await?, time(&mut straight, &asked, until).await?);
        if number >= warm_up {
            by_gateway.add(pair.0);
            by_model.add(pair.1);
        }
    }
    Ok((by_gateway, by_model))
}

async fn time(connection: &mut Connection, asked: &[u8], until: Until) -> anyhow::Result<Duration> {
    let start = Instant::now();
    connection.write(asked).await?;
    let head = answered(connection).await?;
    let first = match until {
        Until::Whole => None,
        Until::FirstByte => {
            connection.first_byte().await?;
            Some(start.elapsed())
        }
    };
    connection.body(&head).await?;
    Ok(first.unwrap_or_else(|| start.elapsed()))
}

/// Asks once; whether a skill was offered.
pub(crate) async fn is_offered_skills(gateway: &str, seed: u64) -> anyhow::Result<bool> {
    let mut connection = Connection::open(gateway).await?;
    connection.write(&chat(seed, Until::Whole)).await?;
    let head = answered(&mut connection).await?;
    connection.body(&head).await?;
    let offered = head.header(OFFERED).context("the gateway did not say what it offered")?;
    Ok(!offered.is_empty())
}

/// Requests answered within a time over a number of connections.
pub(crate) async fn flood(gateway: &str, connections: usize, time: Duration) -> anyhow::Result<usize> {
    let asked = chat(SEED, Until::Whole);
    let end = Instant::now() + time;
    let each = (0..connections).map(|_| async {
        let mut connection = Connection::open(gateway).await?;
        let mut answers = 0;
        while Instant::now() < end {
            connection.write(&asked).await?;
            let head = answered(&mut connection).await?;
            connection.body(&head).await?;
            answers += 1;
        }
        anyhow::Ok(answers)
    });
    Ok(try_join_all(each).await?.into_iter().sum())
}

async fn answered(connection: &mut Connection) -> anyhow::Result<Head> {
    let head = connection.head().await?.context("the connection was closed")?;
    if head.status() != "200" {
        let body = connection.body(&head).await?;
        bail!("{}: {}", head.line(), String::from_utf8_lossy(&body));
    }
    ensure!(!head.has("\r\nconnection: close"), "the gateway does not keep the connection");
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_of_some_two_kilobytes() {
        for until in [Until::Whole, Until::FirstByte] {
            let bytes = chat(1, until).len();
            assert!((1_500..3_500).contains(&bytes), "{bytes}");
        }
    }

    #[tokio::test]
    async fn both_ways_are_asked_equally_often() {
        let model = model::start().await.unwrap().to_string();
        for until in [Until::Whole, Until::FirstByte] {
            let (first, second) = in_turn(&model, &model, until, 2, 5).await.unwrap();
            assert_eq!((first.number(), second.number()), (5, 5));
        }
        assert!(flood(&model, 2, Duration::from_millis(20)).await.unwrap() >= 2);
        assert!(is_offered_skills(&model, 1).await.is_err());
    }
}
