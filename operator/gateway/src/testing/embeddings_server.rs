//! A provider of embeddings that a test scripts: texts with words of one meaning have one vector.

use std::sync::{Arc, Mutex};

use axum::{Router, extract::State, response::IntoResponse};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use skillet_kube::lock;
use skillet_offer::synthetic::embed;
use tokio::net::TcpListener;

/// Words that mean the same.
const MEANINGS: [(&str, &str); 2] = [("wumpet", "zorgle"), ("quandle", "frobnic")];

/// The way in which the server answers.
#[derive(Clone, Debug, Default)]
pub(crate) enum Behavior {
    #[default]
    Numbers,
    Base64,
    Status(u16),
    /// This text with status 200.
    Text(String),
    /// Vectors of this many dimensions.
    Dimensions(usize),
    /// One vector less than there are texts.
    Short,
    NotFinite,
    /// Status 413 for a text of more bytes.
    MaxBytes(usize),
    /// Nothing at all.
    Silent,
}

#[derive(Default)]
pub(crate) struct EmbeddingsServer {
    behavior: Mutex<Behavior>,
    requests: Mutex<Vec<(String, HeaderMap, Value)>>,
}

impl EmbeddingsServer {
    /// Starts a server, and returns its address.
    pub(crate) fn serve() -> (Arc<Self>, String) {
        let server = Arc::<Self>::default();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let listener = TcpListener::from_std(listener).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let routes = Router::new().fallback(respond).with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        (server, url)
    }

    pub(crate) fn set(&self, behavior: Behavior) {
        *lock(&self.behavior) = behavior;
    }

    /// Returns path, headers and body of every request.
    pub(crate) fn requests(&self) -> Vec<(String, HeaderMap, Value)> {
        lock(&self.requests).clone()
    }

    /// Returns the texts of all requests since the last call.
    pub(crate) fn take_texts(&self) -> Vec<String> {
        let requests = std::mem::take(&mut *lock(&self.requests));
        let inputs = requests.iter().flat_map(|(_, _, body)| body["input"].as_array().unwrap());
        inputs.map(|text| text.as_str().unwrap().to_owned()).collect()
    }
}

fn vector(text: &str, dimensions: usize) -> Vec<f32> {
    let text = MEANINGS.iter().fold(text.to_owned(), |text, (word, meaning)| text.replace(word, meaning));
    // The description alone gives a skill its direction, so that one word in it decides.
    let description = text.split_once(". ").filter(|(name, _)| !name.contains(' '));
    embed(description.map_or(&*text, |(_, description)| description), dimensions)
}

async fn respond(
    State(server): State<Arc<EmbeddingsServer>>,
    uri: http::Uri,
    headers: HeaderMap,
    body: String,
) -> impl IntoResponse {
    let body: Value = serde_json::from_str(&body).unwrap();
    lock(&server.requests).push((uri.to_string(), headers, body.clone()));
    let texts: Vec<&str> =
        body["input"].as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect();
    let behavior = lock(&server.behavior).clone();
    let dimensions = match behavior {
        Behavior::Dimensions(dimensions) => dimensions,
        _ => body["dimensions"].as_u64().map_or(64, |dimensions| usize::try_from(dimensions).unwrap()),
    };
    let base64 = |values: &[f32]| {
        json!(STANDARD.encode(values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>()))
    };
    let mut data: Vec<Value> = (0..)
        .zip(&texts)
        .map(|(index, text): (usize, _)| {
            let values = vector(text, dimensions);
            let embedding = match behavior {
                Behavior::Base64 => base64(&values),
                Behavior::NotFinite => base64(&vec![f32::NAN; dimensions]),
                _ => json!(values),
            };
            json!({ "object": "embedding", "index": index, "embedding": embedding })
        })
        .collect();
    match behavior {
        Behavior::Status(status) => return (StatusCode::from_u16(status).unwrap(), "no".to_owned()),
        Behavior::Text(text) => return (StatusCode::OK, text),
        Behavior::MaxBytes(bytes) if texts.iter().any(|text| text.len() > bytes) => {
            return (StatusCode::PAYLOAD_TOO_LARGE, "too long".to_owned());
        }
        Behavior::Short => drop(data.pop()),
        Behavior::Silent => std::future::pending().await,
        Behavior::Numbers
        | Behavior::Base64
        | Behavior::Dimensions(_)
        | Behavior::NotFinite
        | Behavior::MaxBytes(_) => {}
    }
    (StatusCode::OK, json!({ "object": "list", "data": data, "model": "m" }).to_string())
}
