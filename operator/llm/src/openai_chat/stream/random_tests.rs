//! Streams by chance: whatever comes in, cut anywhere, nothing of ours goes out and nothing of the client's is lost.

use super::*;
use crate::{Dialect as _, openai_chat::OpenAiChat};
use skillet_core::test_rng::{TestRng, cases};

const OURS: [&str; 2] = ["web-search", "web-search-deep"];
const THEIRS: [&str; 3] = ["web", "web-search-site", "other"];
/// In arguments of ours, and nowhere else.
const SECRET: &str = "s3cr3t";

fn filter() -> Box<dyn StreamFilter> {
    OpenAiChat.stream_filter(Arc::new(OURS.into_iter().map(Arc::from).collect()))
}

/// A round as a provider might stream it, and what the client must have of it.
#[derive(Default)]
struct Script {
    bytes: Vec<u8>,
    text: String,
    /// Name and arguments of the client's calls.
    theirs: Vec<(String, String)>,
    ours: usize,
}

impl Script {
    fn push(&mut self, round: usize, delta: &Value, finish_reason: &Value) {
        let chunk = json!({"id": format!("r{round}"), "object": "chat.completion.chunk", "created": round,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]});
        self.bytes.extend_from_slice(format!("data: {chunk}\n\n").as_bytes());
    }

    /// Text and calls of both, begun in order, their arguments and the text between them in any.
    fn roll(rng: &mut TestRng, round: usize) -> Self {
        let mut script = Self::default();
        script.push(round, &json!({"role": "assistant", "content": ""}), &Value::Null);
        let mut open: Vec<(u32, Vec<String>)> = Vec::new();
        let (mut begun, number) = (0, rng.below(5));
        while begun < number || !open.is_empty() {
            script.maybe_text(rng, round);
            if begun < number && rng.below(2) == 0 {
                open.push((begun, script.begin_call(rng, round, begun)));
                begun += 1;
            } else if !open.is_empty() {
                let at = rng.below(u32::try_from(open.len()).unwrap()) as usize;
                let (index, pieces) = &mut open[at];
                let piece = json!({"index": *index, "function": {"arguments": pieces.remove(0)}});
                script.push(round, &json!({"tool_calls": [piece]}), &Value::Null);
                open.retain(|(_, pieces)| !pieces.is_empty());
            }
        }
        script.maybe_text(rng, round);
        script.push(round, &json!({}), &json!("tool_calls"));
        script.bytes.extend_from_slice(b"data: [DONE]\n\n");
        script
    }

    fn maybe_text(&mut self, rng: &mut TestRng, round: usize) {
        let text = rng.text("ab é🙂\n", 6);
        self.text.push_str(&text);
        self.push(round, &json!({ "content": text }), &Value::Null);
        if rng.below(3) == 0 {
            self.bytes.extend_from_slice(b": ping\r\n\r\n");
        }
    }

    /// Writes the name, in one piece or two, and gives the pieces of the arguments.
    fn begin_call(&mut self, rng: &mut TestRng, round: usize, index: u32) -> Vec<String> {
        let is_ours = rng.below(2) == 0;
        let names: &[&str] = if is_ours { &OURS } else { &THEIRS };
        let name = names[rng.below(u32::try_from(names.len()).unwrap()) as usize];
        let mark = if is_ours { SECRET } else { "x" };
        let arguments = json!({ mark: rng.text("aé\"\\{}🙂", 8) }).to_string();
        if is_ours {
            self.ours += 1;
        } else {
            self.theirs.push((name.to_owned(), arguments.clone()));
        }
        let (head, tail) = if rng.below(2) == 0 { (name, "") } else { name.split_at(cut(rng, name)) };
        let function = json!({"name": head, "arguments": ""});
        let call =
            json!({"index": index, "id": format!("c{index}"), "type": "function", "function": function});
        self.push(round, &json!({"tool_calls": [call]}), &Value::Null);
        if !tail.is_empty() {
            let more = json!({"index": index, "function": {"name": tail}});
            self.push(round, &json!({"tool_calls": [more]}), &Value::Null);
        }
        let (head, tail) = arguments.split_at(cut(rng, &arguments));
        vec![head.to_owned(), tail.to_owned()]
    }
}

/// A place between two characters.
fn cut(rng: &mut TestRng, text: &str) -> usize {
    let at = rng.below(u32::try_from(text.len()).unwrap() + 1) as usize;
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap()
}

/// What a client makes of the bytes it was given; fails where they are no proper stream.
#[derive(Default)]
struct Client {
    text: String,
    calls: Vec<(String, String)>,
    ids: Vec<Value>,
    roles: usize,
    ends: usize,
    done: usize,
}

impl Client {
    fn read(bytes: &[u8]) -> Self {
        let mut client = Self::default();
        for event in EventSplitter::default().feed(bytes).unwrap() {
            match event.data() {
                None => (),
                Some(data) if data == "[DONE]" => client.done += 1,
                Some(data) => client.chunk(&serde_json::from_str(&data).unwrap()),
            }
        }
        client
    }

    fn chunk(&mut self, chunk: &Value) {
        assert_eq!(self.done, 0, "nothing comes after the end");
        self.ids.push(chunk["id"].clone());
        let choice = &chunk["choices"][0];
        self.ends += usize::from(!choice["finish_reason"].is_null());
        self.roles += usize::from(choice["delta"].get("role").is_some());
        self.text.push_str(choice["delta"]["content"].as_str().unwrap_or_default());
        for piece in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
            let index = usize::try_from(piece["index"].as_u64().unwrap()).unwrap();
            if index >= self.calls.len() {
                assert_eq!(index, self.calls.len(), "no gap in the numbers");
                self.calls.push(Default::default());
            }
            let call = &mut self.calls[index];
            call.0.push_str(piece["function"]["name"].as_str().unwrap_or_default());
            call.1.push_str(piece["function"]["arguments"].as_str().unwrap_or_default());
        }
    }
}

fn feed_in_pieces(
    filter: &mut dyn StreamFilter,
    rng: &mut TestRng,
    bytes: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), StreamError> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at((1 + rng.below(90) as usize).min(rest.len()));
        filter.feed(piece, out)?;
        rest = after;
    }
    Ok(())
}

#[test]
fn a_conversation_is_one_stream_with_all_of_the_clients_and_none_of_ours() {
    for seed in 0..cases(600) {
        let mut rng = TestRng::new(seed);
        let mut filter = filter();
        let (mut out, mut text) = (Vec::new(), String::new());
        for round in 1.. {
            let script = Script::roll(&mut rng, round);
            feed_in_pieces(&mut *filter, &mut rng, &script.bytes, &mut out).unwrap();
            let end = filter.end_round(&mut out).unwrap();
            assert_eq!(end.skill_calls.len(), script.ours, "seed {seed}");
            assert!(end.skill_calls.iter().all(|call| OURS.contains(&call.name.as_str())), "seed {seed}");
            assert_eq!(end.has_client_calls, !script.theirs.is_empty(), "seed {seed}");
            assert_eq!(end.response["choices"][0]["message"]["content"], script.text, "seed {seed}");
            text.push_str(&script.text);
            if script.ours > 0 && script.theirs.is_empty() && round < 4 {
                continue;
            }
            if round == 1 && script.ours == 0 {
                assert_eq!(out, script.bytes, "seed {seed}");
            }
            filter.finish(&[], &mut out);
            let client = Client::read(&out);
            assert_eq!((client.text, client.calls), (text, script.theirs), "seed {seed}");
            assert_eq!((client.roles, client.ends, client.done), (1, 1, 1), "seed {seed}");
            assert!(client.ids.iter().all(|id| id == "r1"), "seed {seed}");
            break;
        }
        assert!(!String::from_utf8(out).unwrap().contains(SECRET), "seed {seed}");
    }
}

/// Some bytes flipped, left out or repeated; sometimes a deep nest or the end missing.
fn damage(rng: &mut TestRng, bytes: &mut Vec<u8>) {
    for _ in 0..=rng.below(6) {
        let length = u32::try_from(bytes.len()).unwrap();
        let at = rng.below(length.max(1)) as usize;
        let until = (at + rng.below(40) as usize).min(bytes.len());
        match rng.below(5) {
            0 if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
            1 => drop(bytes.drain(at..until)),
            2 => {
                let again = bytes[at..until].to_vec();
                bytes.splice(at..at, again);
            }
            3 => bytes.truncate(at.max(1)),
            _ => drop(
                bytes.splice(
                    at..at,
                    [&b"[{\"a\":"[..], b"\"\xff", b"\n\n"][rng.below(3) as usize]
                        .repeat(1 + rng.below(200) as usize),
                ),
            ),
        }
    }
}

#[test]
fn damaged_streams_are_an_error_or_something_and_never_a_panic() {
    for seed in 0..cases(1_500) {
        let mut rng = TestRng::new(seed);
        let mut filter = filter();
        let (mut out, mut fed) = (Vec::new(), 0);
        for round in 1..=3 {
            let mut bytes = Script::roll(&mut rng, round).bytes;
            damage(&mut rng, &mut bytes);
            fed += bytes.len();
            let ended = feed_in_pieces(&mut *filter, &mut rng, &bytes, &mut out)
                .and_then(|()| filter.end_round(&mut out));
            if let Ok(end) = ended {
                OpenAiChat.next_request(&json!({}), &end.response, &[]);
                OpenAiChat.client_response(&end.response, &[]);
            }
        }
        filter.finish(&[], &mut out);
        assert!(out.len() <= 3 * fed + 1_000, "seed {seed}");
    }
}
