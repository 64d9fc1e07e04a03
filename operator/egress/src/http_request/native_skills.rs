//! The native skills through client, broker and dialer: each request of their cases goes over TLS to a stand-in for its host,
//! which checks what it gets and answers with the response of the case.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
};

use rustls_pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject as _};
use serde_json::Value;
use skillet_core::{
    builtin::{Response as BuiltinResponse, Step},
    http::{HttpResponse as SkillResponse, RenderedRequest},
    native_skills::{Case, TOKEN, chart, for_each_case},
    skill::Handler,
};
use tokio::{io::AsyncWriteExt as _, net::TcpListener};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig};

use super::*;
use crate::testing::{TestBroker, policy, read_request};

/// A request that is to be sent, and the response that the stand-in has for it.
struct Exchange {
    name: String,
    request: RenderedRequest,
    hosts: Vec<(String, Vec<u16>)>,
    fields: Value,
    response: (u16, String, Vec<u8>),
}

fn exchange(case: &Case<'_>, request: RenderedRequest) -> Exchange {
    let (status, content_type, body) = case.response();
    let network = case.content.network.as_ref().unwrap();
    Exchange {
        name: case.name.clone(),
        request,
        hosts: network.hosts.iter().map(|host| (host.name.clone(), host.ports.clone())).collect(),
        fields: case.fields.clone(),
        response: (status, content_type.to_owned(), body),
    }
}

/// Returns the request of a case as the skill renders it. `None` if the input is refused before.
fn rendered(case: &Case<'_>, handler: &Handler) -> Option<RenderedRequest> {
    let input = &case.fields["input"];
    match handler {
        Handler::Http(http) => {
            let secrets = http.secrets().into_iter().map(|secret| (secret.name, TOKEN.to_owned())).collect();
            http.render(input, &secrets).ok().map(|rendered| rendered.request)
        }
        Handler::Builtin(program) => program.render(input, None).ok().map(|call| call.request),
        Handler::Sandbox(_) | Handler::File(_) => None,
    }
}

/// Reads the response of the stand-in as the skill does, and checks what comes of it.
fn check_received(case: &Case<'_>, handler: &Handler, received: &HttpResponse) {
    let HttpResponse { status, headers, body, is_truncated, .. } = received;
    let header = |name: &str| headers.iter().find(|header| header.0 == name).map(|header| header.1.as_str());
    match handler {
        Handler::Http(http) => {
            let response = SkillResponse {
                status: *status,
                content_type: header("content-type"),
                location: header("location"),
                body,
                is_truncated: *is_truncated,
            };
            match http.read_response(&response) {
                Ok(output) => case.check_output(&output),
                Err(error) => case.check_error(error.reason().as_str(), &error.message),
            }
        }
        Handler::Builtin(program) => {
            let call = program.render(&case.fields["input"], None).unwrap();
            let response = BuiltinResponse { status: *status, headers, body };
            match call.read_response(response, "system:serviceaccount:team-a:agent") {
                Ok(Step::Output(output)) => case.check_output(&output),
                other => panic!("{}: {other:?}", case.name),
            }
        }
        Handler::Sandbox(_) | Handler::File(_) => panic!("{} sends nothing", case.name),
    }
}

/// Serves the response of the exchange at its host once, and returns the request that came.
async fn stand_in(broker: &TestBroker, exchange: &Exchange) -> (SocketAddr, tokio::task::JoinHandle<String>) {
    let (host, _port) = exchange.request.host_and_port().unwrap();
    let (certificate, key) = broker.hosts.issue(&host);
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (status, content_type, body) = exchange.response.clone();
    let head = format!(
        "HTTP/1.1 {status} x\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let served = tokio::spawn(async move {
        let mut stream = acceptor.accept(listener.accept().await.unwrap().0).await.unwrap();
        let request = read_request(&mut stream).await;
        stream.write_all(&[head.into_bytes(), body].concat()).await.unwrap();
        stream.shutdown().await.ok();
        request
    });
    (address, served)
}

/// Checks method, path with query, headers and body of a request on the wire against the case.
fn check_wire(exchange: &Exchange, request: &str) {
    let (name, expected) = (&exchange.name, &exchange.fields["request"]);
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let mut lines = head.split("\r\n");
    let url = Url::parse(expected["url"].as_str().unwrap()).unwrap();
    let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let first = format!("{} {target} HTTP/1.1", expected["method"].as_str().unwrap());
    assert_eq!(lines.next(), Some(first.as_str()), "{name}");
    let headers: BTreeMap<String, &str> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value))
        .collect();
    assert_eq!(headers.get("host").copied(), url.host_str(), "{name}");
    for (header, expected) in expected["headers"].as_object().into_iter().flatten() {
        assert_eq!(headers.get(&header.to_lowercase()).copied(), expected.as_str(), "{name}: {header}");
    }
    let is_for_github = url.host_str() == Some("api.github.com");
    assert_eq!(headers.contains_key("authorization"), is_for_github, "{name}: the token is for GitHub");
    let body = (!body.is_empty()).then(|| serde_json::from_str::<Value>(body).unwrap());
    assert_eq!(body.as_ref(), expected.get("body"), "{name}");
}

async fn send(broker: &TestBroker, exchange: &Exchange) -> HttpResponse {
    let (address, served) = stand_in(broker, exchange).await;
    let (host, port) = exchange.request.host_and_port().unwrap();
    broker.host(&host, port, address);
    let hosts: Vec<(&str, &[u16])> =
        exchange.hosts.iter().map(|(name, ports)| (name.as_str(), ports.as_slice())).collect();
    let RenderedRequest { method, url, headers, body } = exchange.request.clone();
    let request = EgressRequest {
        policy: policy(&hosts),
        method: method.as_str().to_owned(),
        url,
        headers,
        body: body.map(String::into_bytes),
        timeout_ms: 10_000,
        response_bytes: 1 << 20,
        ..EgressRequest::default()
    };
    let outcome = broker.client().request(request).await.unwrap();
    let EgressResult::Response(response) = outcome.result else { panic!("{}: {outcome:?}", exchange.name) };
    check_wire(exchange, &served.await.unwrap());
    response
}

#[tokio::test]
async fn each_native_skill_sends_the_requests_of_its_cases_and_reads_the_responses() {
    let exchanges = std::cell::RefCell::new(Vec::new());
    let sends = |handler: &Handler| match handler {
        Handler::Http(_) | Handler::Builtin(_) => Some(handler.clone()),
        Handler::Sandbox(_) | Handler::File(_) => None,
    };
    for_each_case(sends, |case, handler| {
        if let Some(request) = rendered(case, handler) {
            exchanges.borrow_mut().push(exchange(case, request));
        }
    });
    let broker = TestBroker::start().await;
    let mut received = BTreeMap::new();
    for exchange in exchanges.into_inner() {
        let response = send(&broker, &exchange).await;
        received.insert(exchange.name, response);
    }
    for_each_case(sends, |case, handler| {
        if let Some(response) = received.get(&case.name) {
            check_received(case, handler, response);
        }
    });

    // With the programs, whose cases run in the tests of the core, these are all skills of the chart.
    let mut covered: BTreeSet<String> =
        received.keys().map(|name| name.split(',').next().unwrap().to_owned()).collect();
    let programs = std::cell::RefCell::new(BTreeSet::new());
    let runs = |handler: &Handler| matches!(handler, Handler::Sandbox(_)).then_some(());
    for_each_case(runs, |case, ()| {
        programs.borrow_mut().insert(case.name.split(',').next().unwrap().to_owned());
    });
    covered.extend(programs.into_inner());
    assert_eq!(covered.len(), std::fs::read_dir(chart().join("skills")).unwrap().count());
}
