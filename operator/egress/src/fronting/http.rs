//! The requests of HTTP/1 in clear text: each one of a connection must name the host, and be framed so that there is no doubt
//! where the next one begins. HTTP/2 without TLS is refused.

use bytes::BytesMut;
use httparse::{EMPTY_HEADER, Header, Request, Status};
use url::Url;

use super::{MAX_HEAD, Mismatch, framing::Body};
use crate::policy::HostName;

const MAX_HEADERS: usize = 256;
/// Most bytes of a response's head while the answer to a request for another protocol is looked for.
const MAX_RESPONSE_HEAD: usize = 32 << 10;

pub(super) struct HttpGuard {
    /// Bytes of the head that is read.
    head: Vec<u8>,
    /// Bytes at its start that went out already.
    released: usize,
    body: Body,
    is_first: bool,
    switch: Option<Switch>,
    /// Bytes that wait until the host has agreed to another protocol, or not.
    waiting: Vec<u8>,
}

/// A request after which the connection may carry another protocol.
struct Switch {
    kind: SwitchKind,
    /// The head of the response as far as it has come.
    response: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SwitchKind {
    Upgrade,
    /// HTTP/2, in which each request names a host.
    UpgradeToHttp2,
    Connect,
}

/// A request whose host was checked.
struct Checked {
    body: Body,
    switch: Option<SwitchKind>,
}

impl HttpGuard {
    /// `released` bytes of the first request have gone out already.
    pub(super) fn new(released: usize) -> Self {
        Self {
            head: Vec::new(),
            released,
            body: Body::Done,
            is_first: true,
            switch: None,
            waiting: Vec::new(),
        }
    }

    pub(super) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes bytes of the program. True when the connection carries another protocol, and everything has gone out.
    pub(super) fn pass(
        &mut self,
        host: &HostName,
        bytes: &[u8],
        out: &mut BytesMut,
    ) -> Result<bool, Mismatch> {
        let mut bytes = bytes;
        while !bytes.is_empty() {
            if self.body != Body::Done {
                self.body.pass(&mut bytes, out)?;
                continue;
            }
            if self.switch.is_some() {
                self.waiting.extend_from_slice(bytes);
                break;
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let (line, rest) = bytes.split_at(end.map_or(bytes.len(), |end| end + 1));
            self.head.extend_from_slice(line);
            bytes = rest;
            if self.head.len() > MAX_HEAD {
                return Err(Mismatch);
            }
            if end.is_some() && is_whole(&self.head) {
                let checked = check(host, &self.head, self.is_first)?;
                out.extend_from_slice(&self.head[self.released..]);
                (self.head, self.released, self.is_first) = (Vec::new(), 0, false);
                self.body = checked.body;
                self.switch = checked.switch.map(|kind| Switch { kind, response: Vec::new() });
            }
        }
        Ok(false)
    }

    /// Takes bytes of the host. True when it has agreed to another protocol.
    pub(super) fn observe(
        &mut self,
        host: &HostName,
        bytes: &[u8],
        out: &mut BytesMut,
    ) -> Result<bool, Mismatch> {
        let Some(switch) = &mut self.switch else { return Ok(false) };
        let Some(agrees) = switch.observe(bytes) else { return Ok(false) };
        let kind = switch.kind;
        self.switch = None;
        let waiting = std::mem::take(&mut self.waiting);
        match (agrees, kind) {
            (true, SwitchKind::UpgradeToHttp2) => Err(Mismatch),
            (true, SwitchKind::Upgrade | SwitchKind::Connect) => {
                out.extend_from_slice(&waiting);
                Ok(true)
            }
            (false, _) => self.pass(host, &waiting, out),
        }
    }
}

impl Switch {
    /// Returns the host's decision, if its response tells it.
    fn observe(&mut self, bytes: &[u8]) -> Option<bool> {
        self.response.extend_from_slice(bytes);
        loop {
            let mut headers = [EMPTY_HEADER; MAX_HEADERS];
            let mut response = httparse::Response::new(&mut headers);
            let (length, code) = match response.parse(&self.response) {
                Ok(Status::Complete(length)) => (length, response.code.unwrap_or_default()),
                Ok(Status::Partial) if self.response.len() <= MAX_RESPONSE_HEAD => return None,
                Ok(Status::Partial) | Err(_) => return Some(false),
            };
            match code {
                101 => return Some(self.kind != SwitchKind::Connect),
                // The response proper follows.
                100..=199 => drop(self.response.drain(..length)),
                200..=299 => return Some(self.kind == SwitchKind::Connect),
                _ => return Some(false),
            }
        }
    }
}

/// True for a head that ends in an empty line, and has another line before.
fn is_whole(head: &[u8]) -> bool {
    let is_ended = head.ends_with(b"\n\n") || head.ends_with(b"\n\r\n");
    is_ended && head.iter().any(|byte| !matches!(byte, b'\r' | b'\n'))
}

/// Checks the host of a request in each place that may name one.
fn check(host: &HostName, head: &[u8], is_first: bool) -> Result<Checked, Mismatch> {
    let mut headers = [EMPTY_HEADER; MAX_HEADERS];
    let mut request = Request::new(&mut headers);
    match request.parse(head) {
        Ok(Status::Complete(length)) if length == head.len() => {}
        Ok(_) | Err(_) => return Err(Mismatch),
    }
    let (Some(method), Some(target), Some(version)) = (request.method, request.path, request.version) else {
        return Err(Mismatch);
    };
    let headers: &[Header<'_>] = request.headers;
    let named =
        |name: &'static str| headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
    let mut hosts = named("host");
    if let Some(header) = hosts.next() {
        check_authority(host, std::str::from_utf8(header.value).map_err(|_| Mismatch)?.trim())?;
    }
    if hosts.next().is_some() {
        return Err(Mismatch);
    }
    let is_connect = method.eq_ignore_ascii_case("CONNECT");
    check_target(host, target, is_connect)?;
    let upgrades: Vec<&[u8]> = named("upgrade").map(|header| header.value).collect();
    let switch = match (is_connect, upgrades.is_empty()) {
        (true, _) => Some(SwitchKind::Connect),
        (false, true) => None,
        (false, false) if upgrades.iter().any(|value| names_http_2(value)) => {
            Some(SwitchKind::UpgradeToHttp2)
        }
        (false, false) => Some(SwitchKind::Upgrade),
    };
    // After other requests it is not known which response is the one to look at.
    if switch.is_some() && !is_first {
        return Err(Mismatch);
    }
    Ok(Checked { body: Body::of(headers, version == 1)?, switch })
}

fn check_target(host: &HostName, target: &str, is_connect: bool) -> Result<(), Mismatch> {
    if is_connect {
        return check_authority(host, target);
    }
    if target.starts_with('/') || target == "*" {
        return Ok(());
    }
    let url = Url::parse(target).map_err(|_| Mismatch)?;
    let is_plain = url.username().is_empty() && url.password().is_none();
    let name = url.host_str().filter(|_found| is_plain).and_then(HostName::parse);
    if name.as_ref() == Some(host) { Ok(()) } else { Err(Mismatch) }
}

/// Checks a host with or without a port.
fn check_authority(host: &HostName, authority: &str) -> Result<(), Mismatch> {
    let name = match authority.split_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        Some(_) => return Err(Mismatch),
        None => authority,
    };
    if HostName::parse(name).as_ref() == Some(host) { Ok(()) } else { Err(Mismatch) }
}

fn names_http_2(value: &[u8]) -> bool {
    value.split(|byte| *byte == b',').any(|token| {
        let token = token.trim_ascii();
        token.len() >= 2 && token[..2].eq_ignore_ascii_case(b"h2")
            || token.to_ascii_lowercase().starts_with(b"http/2")
    })
}
