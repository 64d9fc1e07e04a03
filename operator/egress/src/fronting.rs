//! The name that a program gives to a host inside its connection must be the host's own: the server name of TLS, and the
//! `Host` of HTTP in clear text. Without this check an allowed host of a large provider is a way to all of its customers.
//!
//! Other protocols pass. TLS that hides its server name (ECH) shows the provider's name, which must be allowed then.

mod client_hello;
mod framing;
mod http;
#[cfg(test)]
mod tests;
mod tls;

use bytes::BytesMut;

use self::{http::HttpGuard, tls::TlsGuard};
use crate::policy::HostName;

/// Longest first line, and longest head of a request. Shorter than a window, or a head would wait for room for ever.
const MAX_HEAD: usize = 32 << 10;
/// Longest word that may be an HTTP method.
const MAX_METHOD: usize = 32;

/// The program names another host, or hides the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch;

/// Watches the bytes of one connection.
pub(crate) struct Guard {
    host: HostName,
    state: State,
}

enum State {
    /// The first line of a connection that may be HTTP; these bytes went out already, for a part of a line is no request.
    Start(Vec<u8>),
    Tls(TlsGuard),
    Http(Box<HttpGuard>),
    /// Another protocol, or nothing more to see.
    Open,
}

/// The protocol, as far as the first bytes tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Unknown,
    Tls,
    Http,
    Other,
    /// A request that some server might read otherwise than this guard.
    Malformed,
}

impl Guard {
    pub(crate) fn new(host: HostName) -> Self {
        Self { host, state: State::Start(Vec::new()) }
    }

    /// Takes bytes of the program, and adds those that may go out to `out`.
    pub(crate) fn pass(&mut self, bytes: &[u8], out: &mut BytesMut) -> Result<(), Mismatch> {
        match &mut self.state {
            State::Open => out.extend_from_slice(bytes),
            State::Start(line) => {
                let is_out = line.len();
                line.extend_from_slice(bytes);
                match classify(line) {
                    // One byte of a record of TLS tells nothing, and its client sends more.
                    Protocol::Unknown if line.first() == Some(&tls::HANDSHAKE) => {}
                    Protocol::Unknown => out.extend_from_slice(bytes),
                    Protocol::Other => {
                        // A byte that was held back goes out too.
                        let held = if line.first() == Some(&tls::HANDSHAKE) { 0 } else { is_out };
                        out.extend_from_slice(&line[held..]);
                        self.state = State::Open;
                    }
                    Protocol::Malformed => return Err(Mismatch),
                    Protocol::Tls => {
                        let line = std::mem::take(line);
                        self.state = State::Tls(TlsGuard::default());
                        return self.pass(&line, out);
                    }
                    Protocol::Http => {
                        let line = std::mem::take(line);
                        self.state = State::Http(Box::new(HttpGuard::new(is_out)));
                        return self.pass(&line, out);
                    }
                }
            }
            State::Tls(guard) => {
                if guard.pass(&self.host, bytes, out)? {
                    self.state = State::Open;
                }
            }
            State::Http(guard) => {
                if guard.pass(&self.host, bytes, out)? {
                    self.state = State::Open;
                }
            }
        }
        Ok(())
    }

    /// Takes bytes of the host. Bytes of the program that waited for them are added to `out`.
    pub(crate) fn observe(&mut self, bytes: &[u8], out: &mut BytesMut) -> Result<(), Mismatch> {
        if let State::Http(guard) = &mut self.state
            && guard.observe(&self.host, bytes, out)?
        {
            self.state = State::Open;
        }
        Ok(())
    }

    /// True while bytes of the program wait for a response of the host.
    pub(crate) fn waits(&self) -> bool {
        matches!(&self.state, State::Http(guard) if guard.waits())
    }
}

/// Tells the protocol by the first line.
fn classify(bytes: &[u8]) -> Protocol {
    match bytes {
        [tls::HANDSHAKE, 3, ..] => return Protocol::Tls,
        [] | [tls::HANDSHAKE] => return Protocol::Unknown,
        _ => {}
    }
    // Servers skip empty lines before a request.
    let skipped = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    let line = &bytes[skipped..];
    let method = line.iter().take_while(|byte| is_token(**byte)).count();
    let too_long = bytes.len() > MAX_HEAD;
    match line.get(method) {
        None if too_long || method > MAX_METHOD => return Protocol::Other,
        None => return Protocol::Unknown,
        Some(b' ' | b'\t') if (1..=MAX_METHOD).contains(&method) => {}
        Some(_) => return Protocol::Other,
    }
    let Some(end) = line.iter().position(|byte| *byte == b'\n') else {
        return if too_long { Protocol::Malformed } else { Protocol::Unknown };
    };
    let (method, rest) = line[..end].split_at(method);
    let is_versioned = rest.windows(5).any(|part| part.eq_ignore_ascii_case(b"http/"));
    let is_target = matches!(rest.trim_ascii_start().first(), Some(b'/' | b'*'));
    match (is_versioned, is_known_method(method) && is_target) {
        (true, _) => Protocol::Http,
        (false, true) => Protocol::Malformed,
        (false, false) => Protocol::Other,
    }
}

fn is_known_method(method: &[u8]) -> bool {
    let known = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT"];
    known.iter().any(|known| method.eq_ignore_ascii_case(known.as_bytes()))
}

/// True for a letter of an HTTP token.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
