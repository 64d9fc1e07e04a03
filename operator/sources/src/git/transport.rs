//! The HTTP of gix over the client of a transfer.
//!
//! gix asks on a thread that may block. A request is sent when the first byte of its response is read, since gix writes the body
//! before that.

use std::{
    any::Any,
    io::{self, BufRead, Cursor, Read, Write},
    sync::{Arc, Mutex},
};

use bytes::{Buf as _, Bytes};
use gix_transport::client::blocking_io::http::{GetResponse, Http, PostBodyDataKind, PostResponse};
use reqwest::{
    Method, Response,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use skillet_kube::lock;
use tokio::runtime::Handle;

use crate::{failure::Failure, http_client::HttpClient};

/// Sends the requests of gix.
pub(super) struct Transport {
    client: HttpClient,
    runtime: Handle,
    /// The first failure, which gix would only tell as text.
    failure: Arc<Mutex<Option<Failure>>>,
}

impl Transport {
    pub(super) fn new(client: HttpClient, runtime: Handle, failure: Arc<Mutex<Option<Failure>>>) -> Self {
        Self { client, runtime, failure }
    }

    fn exchange(
        &self,
        method: Method,
        url: &str,
        lines: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Shared {
        let mut headers = HeaderMap::new();
        for line in lines {
            let Some((name, value)) = line.as_ref().split_once(':') else { continue };
            if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.trim().parse::<HeaderValue>()) {
                headers.append(name, value);
            }
        }
        let request = Request { method, url: url.to_owned(), headers, body: Vec::new() };
        Shared(Arc::new(Mutex::new(Exchange {
            client: self.client.clone(),
            runtime: self.runtime.clone(),
            failure: Arc::clone(&self.failure),
            request: Some(request),
            response: None,
        })))
    }
}

impl Http for Transport {
    type Headers = Headers;
    type ResponseBody = Body;
    type PostBody = Shared;

    fn get(
        &mut self,
        url: &str,
        _base_url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> gix::Result<GetResponse<Headers, Body>> {
        let exchange = self.exchange(Method::GET, url, headers);
        Ok(GetResponse { headers: Headers::of(&exchange), body: Body::of(&exchange) })
    }

    fn post(
        &mut self,
        url: &str,
        _base_url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
        _body: PostBodyDataKind,
    ) -> gix::Result<PostResponse<Headers, Body, Shared>> {
        let exchange = self.exchange(Method::POST, url, headers);
        Ok(PostResponse { headers: Headers::of(&exchange), body: Body::of(&exchange), post_body: exchange })
    }

    fn configure(&mut self, _config: &dyn Any) -> gix::Result {
        Ok(())
    }
}

struct Request {
    method: Method,
    url: String,
    headers: HeaderMap,
    body: Vec<u8>,
}

/// A request, and then its response.
struct Exchange {
    client: HttpClient,
    runtime: Handle,
    failure: Arc<Mutex<Option<Failure>>>,
    request: Option<Request>,
    response: Option<Response>,
}

impl Exchange {
    fn response(&mut self) -> io::Result<&mut Response> {
        if let Some(Request { method, url, headers, body }) = self.request.take() {
            let sent = self.runtime.block_on(self.client.send(method, &url, headers, body));
            self.response = Some(sent.map_err(|failure| self.fail(failure))?);
        }
        self.response.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    fn headers(&mut self) -> io::Result<Vec<u8>> {
        let response = self.response()?;
        let mut lines = Vec::new();
        for (name, value) in response.headers() {
            lines.extend([name.as_str().as_bytes(), b":", value.as_bytes(), b"\n"].concat());
        }
        Ok(lines)
    }

    fn chunk(&mut self) -> io::Result<Bytes> {
        self.response()?;
        let Some(response) = &mut self.response else { return Ok(Bytes::new()) };
        let chunk = self.runtime.block_on(self.client.chunk(response));
        chunk.map(Option::unwrap_or_default).map_err(|failure| self.fail(failure))
    }

    fn fail(&self, failure: Failure) -> io::Error {
        let kind = match failure {
            Failure::AccessDenied(_) => io::ErrorKind::PermissionDenied,
            _ => io::ErrorKind::Other,
        };
        let error = io::Error::new(kind, failure.clone());
        lock(&self.failure).get_or_insert(failure);
        error
    }
}

/// One exchange, for the body of its request and both parts of its response.
#[derive(Clone)]
pub(super) struct Shared(Arc<Mutex<Exchange>>);

impl Write for Shared {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match &mut lock(&self.0).request {
            Some(request) => request.body.extend_from_slice(buffer),
            None => return Err(io::ErrorKind::BrokenPipe.into()),
        }
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The headers of a response, a line each.
pub(super) struct Headers {
    exchange: Shared,
    lines: Option<Cursor<Vec<u8>>>,
}

impl Headers {
    fn of(exchange: &Shared) -> Self {
        Self { exchange: exchange.clone(), lines: None }
    }

    fn lines(&mut self) -> io::Result<&mut Cursor<Vec<u8>>> {
        let lines = match self.lines.take() {
            Some(lines) => lines,
            None => Cursor::new(lock(&self.exchange.0).headers()?),
        };
        Ok(self.lines.insert(lines))
    }
}

impl Read for Headers {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.lines()?.read(buffer)
    }
}

impl BufRead for Headers {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.lines()?.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        if let Some(lines) = &mut self.lines {
            lines.consume(amount);
        }
    }
}

/// The body of a response.
pub(super) struct Body {
    exchange: Shared,
    chunk: Bytes,
}

impl Body {
    fn of(exchange: &Shared) -> Self {
        Self { exchange: exchange.clone(), chunk: Bytes::new() }
    }
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let available = self.fill_buf()?;
        let length = available.len().min(buffer.len());
        buffer[..length].copy_from_slice(&available[..length]);
        self.consume(length);
        Ok(length)
    }
}

impl BufRead for Body {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.chunk.is_empty() {
            self.chunk = lock(&self.exchange.0).chunk()?;
        }
        Ok(&self.chunk)
    }

    fn consume(&mut self, amount: usize) {
        self.chunk.advance(amount);
    }
}
