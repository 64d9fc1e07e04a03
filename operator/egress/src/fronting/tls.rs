//! The records of a TLS client up to the point after which it sends no ClientHello in clear text.

use bytes::BytesMut;

use super::{Mismatch, client_hello};
use crate::policy::HostName;

/// Type of a record with a message of the handshake.
pub(super) const HANDSHAKE: u8 = 22;
const CHANGE_CIPHER_SPEC: u8 = 20;
const APPLICATION_DATA: u8 = 23;
const CLIENT_HELLO: u8 = 1;
const RECORD_HEADER: usize = 5;
/// Most bytes of one record: those of TLS 1.2 with its encryption.
const MAX_RECORD: usize = (16 << 10) + 2048;
const MAX_HELLO: usize = 16 << 10;

#[derive(Debug, Default)]
pub(super) struct TlsGuard {
    /// Bytes that are held back: whole and partial records.
    held: Vec<u8>,
    /// The ClientHello as far as its records have come.
    hello: Vec<u8>,
    /// Bytes of `held` whose records were read.
    read: usize,
    phase: Phase,
    /// Bytes of a record that pass unread.
    left: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Hello,
    /// A server may ask for a second ClientHello.
    AfterHello { has_early_data: bool },
}

impl TlsGuard {
    /// Takes bytes of the client. True when nothing more has to be seen; then everything has gone out.
    pub(super) fn pass(
        &mut self,
        host: &HostName,
        bytes: &[u8],
        out: &mut BytesMut,
    ) -> Result<bool, Mismatch> {
        let unread = bytes.len().min(self.left);
        out.extend_from_slice(&bytes[..unread]);
        self.left -= unread;
        self.held.extend_from_slice(&bytes[unread..]);
        while let Some(header) = self.held.get(self.read..self.read + RECORD_HEADER) {
            let (kind, length) = (header[0], usize::from(u16::from_be_bytes([header[3], header[4]])));
            if length > MAX_RECORD {
                return Err(Mismatch);
            }
            let is_over = match (self.phase, kind) {
                (Phase::Hello, HANDSHAKE) | (Phase::AfterHello { .. }, HANDSHAKE | CHANGE_CIPHER_SPEC) => {
                    let start = self.read + RECORD_HEADER;
                    let Some(fragment) = self.held.get(start..start + length) else { return Ok(false) };
                    let (fragment, phase) = (fragment.to_vec(), self.phase);
                    self.read = start + length;
                    match phase {
                        Phase::Hello => {
                            self.first(host, &fragment, out)?;
                            false
                        }
                        Phase::AfterHello { .. } if kind == CHANGE_CIPHER_SPEC => {
                            self.release(out);
                            false
                        }
                        Phase::AfterHello { .. } => !is_second(host, &fragment)?,
                    }
                }
                (Phase::Hello, _) => return Err(Mismatch),
                (Phase::AfterHello { has_early_data: true }, APPLICATION_DATA) => {
                    self.skip(length, out);
                    false
                }
                (Phase::AfterHello { .. }, _) => true,
            };
            if is_over {
                self.read = self.held.len();
                self.release(out);
                return Ok(true);
            }
            if self.phase != Phase::Hello {
                self.release(out);
            }
        }
        Ok(false)
    }

    /// Takes a part of the first ClientHello, and lets it out when it is whole and names the host.
    fn first(&mut self, host: &HostName, fragment: &[u8], out: &mut BytesMut) -> Result<(), Mismatch> {
        self.hello.extend_from_slice(fragment);
        if fragment.is_empty() || self.hello.first() != Some(&CLIENT_HELLO) {
            return Err(Mismatch);
        }
        let Some(length) = hello_length(&self.hello) else { return Ok(()) };
        if length > MAX_HELLO || self.hello.len() > length + 4 {
            return Err(Mismatch);
        }
        if self.hello.len() == length + 4 {
            let has_early_data = check(host, &self.hello[4..])?;
            self.hello = Vec::new();
            self.phase = Phase::AfterHello { has_early_data };
            self.release(out);
        }
        Ok(())
    }

    /// Lets a record out without reading it, as far as it has come.
    fn skip(&mut self, length: usize, out: &mut BytesMut) {
        let end = self.read + RECORD_HEADER + length;
        self.left = end.saturating_sub(self.held.len());
        self.read = end.min(self.held.len());
        self.release(out);
    }

    fn release(&mut self, out: &mut BytesMut) {
        out.extend_from_slice(&self.held[..self.read]);
        self.held.drain(..self.read);
        self.read = 0;
        if self.held.is_empty() {
            self.held = Vec::new();
        }
    }
}

/// Length of a ClientHello without type and length.
fn hello_length(hello: &[u8]) -> Option<usize> {
    hello.get(1..4).map(|length| length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
}

/// True for a second ClientHello, which must be whole and name the host.
///
/// In TLS 1.2 the record may be encrypted, and then its first bytes are of no meaning. They look like those of a ClientHello
/// once in twenty thousand times.
fn is_second(host: &HostName, fragment: &[u8]) -> Result<bool, Mismatch> {
    match fragment {
        [CLIENT_HELLO, 0..=2, _, _, body @ ..] if hello_length(fragment) == Some(body.len()) => {
            check(host, body).map(|_| true)
        }
        [CLIENT_HELLO, 0..=2, ..] | [] | [CLIENT_HELLO] => Err(Mismatch),
        _ => Ok(false),
    }
}

/// Checks the name of a ClientHello. True when the client may send early data. A client without a name shows none.
fn check(host: &HostName, body: &[u8]) -> Result<bool, Mismatch> {
    let hello = client_hello::parse(body).ok_or(Mismatch)?;
    if let Some(name) = hello.server_name {
        let name = std::str::from_utf8(name).ok().and_then(HostName::parse);
        if name.as_ref() != Some(host) {
            return Err(Mismatch);
        }
    }
    Ok(hello.has_early_data)
}
