//! One HTTP request of a skill: dialed under its policy, over TLS or not, through its redirects, with one time limit for all.

mod body;
mod headers;
mod memory;
#[cfg(test)]
mod native_skills;
mod record;
mod redirect;
#[cfg(test)]
mod secret_attempts;
#[cfg(test)]
mod tests;

use std::{error::Error, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, header};
use http_body_util::Full;
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use skillet_protocol::Verdict;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinSet,
    time::{Instant, timeout_at},
};
use tokio_rustls::{TlsConnector, rustls::ClientConfig};
use url::Url;

use self::{
    body::BodyLimit,
    record::{CountedStream, Record},
    redirect::Hop,
};
use crate::{
    dialer::{Dialer, Places},
    limits::RunScope,
    metrics::Metrics,
    mounted::Mounted,
    policy::HostRules,
    request::{EgressRequest, EgressResponse, EgressResult, HttpResponse, MAX_RESPONSE_BYTES},
};

/// Longest time of a request, whatever it says.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(300);
const MAX_REDIRECTS: u32 = 20;
/// Most bytes of a response's head.
const MAX_HEAD_BYTES: usize = 64 << 10;

pub(crate) use self::memory::{Memory, Reservation};

/// Sends the HTTP requests of skills.
pub(crate) struct Requester {
    pub(crate) dialer: Dialer,
    pub(crate) hosts_tls: Mounted<ClientConfig>,
    pub(crate) metrics: Metrics,
}

/// A request that was checked.
struct Checked {
    scope: Arc<RunScope>,
    hop: Hop,
    body: Bytes,
    others: HostRules,
    redirects: u32,
    limit: BodyLimit,
}

impl Requester {
    /// Sends a request and returns its outcome with all its connections.
    pub(crate) async fn send(&self, request: EgressRequest, memory: &mut Reservation) -> EgressResponse {
        let deadline = Instant::now() + Duration::from_millis(request.timeout_ms).min(LONGEST_TIMEOUT);
        let mut record = Record::default();
        let result = match check(request) {
            Err(message) => EgressResult::Invalid { message },
            Ok(checked) => {
                match timeout_at(deadline, self.follow(checked, deadline, &mut record, memory)).await {
                    Ok(Ok(response)) => EgressResult::Response(response),
                    Ok(Err(result)) => result,
                    Err(_) => EgressResult::TimedOut,
                }
            }
        };
        self.metrics.request(result.outcome());
        EgressResponse { result, connections: record.finish() }
    }

    async fn follow(
        &self,
        checked: Checked,
        deadline: Instant,
        record: &mut Record,
        memory: &mut Reservation,
    ) -> Result<HttpResponse, EgressResult> {
        let Checked { scope, mut hop, body, others, redirects, limit } = checked;
        let mut followed = 0;
        loop {
            let exchange = self.exchange(&scope, &hop, &body, deadline, record).await?;
            let Exchange { response, bytes, .. } = exchange;
            let (mut parts, incoming) = response.into_parts();
            let location = redirect::location(parts.status, &parts.headers);
            if let Some(location) = location.filter(|_found| redirects > 0) {
                record.end();
                let next = redirect::next(&hop, parts.status, location, &scope.policy, &others);
                hop = next.map_err(|refused| refuse(refused, record))?;
                followed += 1;
                if followed > redirects {
                    let host = hop.url.host_str().map(str::to_owned);
                    let message = format!("the host redirects more than {redirects} times");
                    return Err(EgressResult::RedirectRefused { host, verdict: None, message });
                }
                continue;
            }
            let read =
                body::read(incoming, limit, memory).await.map_err(|result| over_limit(&bytes, result))?;
            record.end();
            let (body, is_truncated) = body::decode(&mut parts.headers, read, limit, memory)?;
            let headers = headers::of_response(&parts.headers);
            let (status, url) = (parts.status.as_u16(), hop.url.into());
            return Ok(HttpResponse { status, headers, body, is_truncated, url });
        }
    }

    /// Sends one request of the chain and returns the head of its response.
    async fn exchange(
        &self,
        scope: &Arc<RunScope>,
        hop: &Hop,
        body: &Bytes,
        deadline: Instant,
        record: &mut Record,
    ) -> Result<Exchange, EgressResult> {
        let invalid = |message: &str| EgressResult::Invalid { message: message.to_owned() };
        let host = hop.url.host_str().ok_or_else(|| invalid("the URL has no host"))?;
        let port = hop.url.port_or_known_default().ok_or_else(|| invalid("the URL has no port"))?;
        record.begin(host, port);
        let left = deadline.saturating_duration_since(Instant::now());
        let dialed = match self.dialer.dial_for(left, scope, host, port).await {
            Ok(dialed) => dialed,
            Err(refusal) => {
                record.decide(refusal.verdict, refusal.address);
                return Err(EgressResult::Failed { verdict: refusal.verdict, message: refusal.message });
            }
        };
        let bytes = record.decide(Verdict::Allowed, Some(dialed.address));
        let name = dialed.host.as_str().to_owned();
        let stream = CountedStream {
            stream: dialed.stream,
            bytes: Arc::clone(&bytes),
            scope: Arc::clone(scope),
            metrics: self.metrics.clone(),
        };
        let mut driver = JoinSet::new();
        let response = async {
            if hop.url.scheme() == "https" {
                let server =
                    ServerName::try_from(name).map_err(|_| invalid("the host has no name for TLS"))?;
                let connector = TlsConnector::from(self.hosts_tls.current());
                let stream = connector.connect(server, stream).await.map_err(|error| tls_failed(&error))?;
                send(stream, hop, body, &mut driver).await
            } else {
                send(stream, hop, body, &mut driver).await
            }
        };
        let response = response.await.map_err(|result| over_limit(&bytes, result))?;
        Ok(Exchange { response, bytes, _driver: driver, _places: dialed.places })
    }
}

/// The head of a response, and what its connection lives on.
struct Exchange {
    response: Response<Incoming>,
    bytes: Arc<record::Bytes>,
    // Dropping it ends the connection.
    _driver: JoinSet<()>,
    _places: Places,
}

fn check(request: EgressRequest) -> Result<Checked, String> {
    let EgressRequest {
        policy,
        method,
        url,
        headers,
        body,
        response_bytes,
        cuts_body,
        redirects,
        redirect_hosts,
        timeout_ms: _,
    } = request;
    let scope = RunScope::new(&policy).map_err(|error| error.to_string())?;
    let others = HostRules::new(&redirect_hosts).map_err(|error| error.to_string())?;
    let method =
        Method::from_bytes(method.as_bytes()).map_err(|_| "the method is no HTTP method".to_owned())?;
    if method == Method::CONNECT {
        return Err("the method CONNECT is not for skills".to_owned());
    }
    let mut url = Url::parse(&url).map_err(|error| format!("the URL cannot be read: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("the URL is neither http nor https".to_owned());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("the URL has a user name; use a header".to_owned());
    }
    url.set_fragment(None);
    let hop = Hop { method, url, headers: headers::of_request(&headers)?, has_body: body.is_some() };
    Ok(Checked {
        scope,
        hop,
        body: body.unwrap_or_default().into(),
        others,
        redirects: redirects.min(MAX_REDIRECTS),
        limit: BodyLimit { bytes: response_bytes.min(MAX_RESPONSE_BYTES), cuts: cuts_body },
    })
}

async fn send<S>(
    stream: S,
    hop: &Hop,
    body: &Bytes,
    driver: &mut JoinSet<()>,
) -> Result<Response<Incoming>, EgressResult>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let handshake =
        http1::Builder::new().max_buf_size(MAX_HEAD_BYTES).handshake::<_, Full<Bytes>>(TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.map_err(|error| broken(&error))?;
    // An error of the connection is also an error of its request.
    driver.spawn(async { drop(connection.await) });
    let request = head(hop).and_then(|request| {
        let body = if hop.has_body { body.clone() } else { Bytes::new() };
        request.body(Full::new(body)).map_err(|_| "the request cannot be written".to_owned())
    });
    let request = request.map_err(|message| EgressResult::Invalid { message })?;
    sender.send_request(request).await.map_err(|error| broken(&error))
}

fn head(hop: &Hop) -> Result<http::request::Builder, String> {
    let Hop { method, url, headers, .. } = hop;
    let host = url[url::Position::BeforeHost..url::Position::AfterPort].to_owned();
    let target = url[url::Position::BeforePath..url::Position::AfterQuery].to_owned();
    let mut all = HeaderMap::with_capacity(headers.len() + 3);
    all.insert(
        header::HOST,
        HeaderValue::try_from(host).map_err(|_| "the host cannot be written".to_owned())?,
    );
    all.insert(header::USER_AGENT, HeaderValue::from_static(concat!("skillet/", env!("CARGO_PKG_VERSION"))));
    all.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(body::ACCEPTED_ENCODINGS));
    if headers.contains_key(header::USER_AGENT) {
        all.remove(header::USER_AGENT);
    }
    for (name, value) in headers {
        all.append(name, value.clone());
    }
    let mut builder = Request::builder().method(method.clone()).uri(target);
    if let Some(map) = builder.headers_mut() {
        *map = all;
    }
    Ok(builder)
}

fn refuse(refused: redirect::Refused, record: &mut Record) -> EgressResult {
    let redirect::Refused { host, port, verdict, message } = refused;
    if let (Some(host), Some(port), Some(verdict)) = (&host, port, verdict) {
        record.begin(host, port);
        record.decide(verdict, None);
    }
    EgressResult::RedirectRefused { host, verdict, message }
}

/// A connection that the run's limit has ended looks like one that the host has ended.
fn over_limit(bytes: &record::Bytes, result: EgressResult) -> EgressResult {
    if bytes.is_over_limit() {
        let message = "the run has transferred all the bytes that it may".to_owned();
        return EgressResult::Failed { verdict: Verdict::EgressLimitReached, message };
    }
    result
}

fn tls_failed(error: &std::io::Error) -> EgressResult {
    EgressResult::TlsFailed { message: cause(error) }
}

fn broken(error: &hyper::Error) -> EgressResult {
    EgressResult::Broken { message: cause(error) }
}

/// The innermost cause, which says what happened.
fn cause(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
