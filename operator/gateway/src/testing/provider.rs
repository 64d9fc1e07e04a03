//! A model provider: it returns what a test has set, and keeps the requests that it received.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use axum::{Router, extract::State, response::IntoResponse};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header::CONTENT_TYPE};
use serde_json::Value;
use skillet_kube::lock;
use tokio::net::TcpListener;

/// The next responses, `{}` if a test set none, and the requests so far.
#[derive(Default)]
pub(crate) struct Provider {
    responses: Mutex<VecDeque<(StatusCode, HeaderMap, String)>>,
    requests: Mutex<Vec<(HeaderMap, String)>>,
    paths: Mutex<Vec<String>>,
}

impl Provider {
    /// Starts a provider, and returns its address.
    pub(super) fn serve() -> (Arc<Self>, String) {
        let provider = Arc::<Self>::default();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let listener = TcpListener::from_std(listener).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let routes = Router::new().fallback(respond).with_state(provider.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        (provider, url)
    }

    /// Sets a response.
    pub(crate) fn will_answer(&self, headers: &[(&'static str, &'static str)], body: &Value) {
        let header = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let response = (StatusCode::OK, headers.iter().map(header).collect(), body.to_string());
        lock(&self.responses).push_back(response);
    }

    /// Sets a JSON response.
    pub(crate) fn will_say(&self, body: &Value) {
        self.will_write("application/json", body.to_string());
    }

    /// Sets a response with this content type and text.
    pub(crate) fn will_write(&self, content_type: &'static str, text: String) {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(content_type))]);
        lock(&self.responses).push_back((StatusCode::OK, headers, text));
    }

    /// Sets an error.
    pub(crate) fn will_fail(&self, status: u16, body: &Value) {
        let status = StatusCode::from_u16(status).unwrap();
        lock(&self.responses).push_back((status, HeaderMap::new(), body.to_string()));
    }

    /// Returns path and query of every request.
    pub(crate) fn paths(&self) -> Vec<String> {
        lock(&self.paths).clone()
    }

    /// Returns the text of every request.
    pub(crate) fn texts(&self) -> Vec<String> {
        lock(&self.requests).iter().map(|(_, text)| text.clone()).collect()
    }

    pub(crate) fn last_request(&self) -> Value {
        serde_json::from_str(self.texts().last().unwrap()).unwrap()
    }

    /// Returns headers and text of every request.
    pub(crate) fn requests(&self) -> Vec<(HeaderMap, String)> {
        lock(&self.requests).clone()
    }
}

async fn respond(
    State(provider): State<Arc<Provider>>,
    uri: Uri,
    headers: HeaderMap,
    body: String,
) -> impl IntoResponse {
    lock(&provider.requests).push((headers, body));
    lock(&provider.paths).push(uri.to_string());
    lock(&provider.responses)
        .pop_front()
        .unwrap_or_else(|| (StatusCode::OK, HeaderMap::new(), "{}".to_owned()))
}
