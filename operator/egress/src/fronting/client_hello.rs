//! The server name in a ClientHello. Pure; anything that is not exactly of its form is an error.

/// The names that a ClientHello shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ClientHello<'a> {
    pub(super) server_name: Option<&'a [u8]>,
    /// The client may send data before it knows whether the server wants another ClientHello.
    pub(super) has_early_data: bool,
}

const SERVER_NAME: u16 = 0;
const EARLY_DATA: u16 = 42;
const HOST_NAME: u8 = 0;
const VERSION_AND_RANDOM: usize = 34;

/// Reads the body of a ClientHello, after type and length.
pub(super) fn parse(body: &[u8]) -> Option<ClientHello<'_>> {
    let mut rest = Reader(body);
    rest.take(VERSION_AND_RANDOM)?;
    rest.sized_u8()?;
    rest.sized_u16()?;
    rest.sized_u8()?;
    let mut hello = ClientHello { server_name: None, has_early_data: false };
    if rest.0.is_empty() {
        return Some(hello);
    }
    let mut extensions = Reader(rest.sized_u16()?);
    if !rest.0.is_empty() {
        return None;
    }
    while !extensions.0.is_empty() {
        let kind = extensions.u16()?;
        let content = extensions.sized_u16()?;
        match kind {
            // A second name, in this extension or another, is read by some servers and not by others.
            SERVER_NAME if hello.server_name.is_some() => return None,
            SERVER_NAME => hello.server_name = Some(host_name(content)?),
            EARLY_DATA => hello.has_early_data = true,
            _ => {}
        }
    }
    Some(hello)
}

fn host_name(content: &[u8]) -> Option<&[u8]> {
    let mut outer = Reader(content);
    let mut list = Reader(outer.sized_u16()?);
    let kind = list.take(1)?[0];
    let name = list.sized_u16()?;
    (kind == HOST_NAME && list.0.is_empty() && outer.0.is_empty()).then_some(name)
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn u16(&mut self) -> Option<u16> {
        let (bytes, rest) = self.0.split_first_chunk::<2>()?;
        self.0 = rest;
        Some(u16::from_be_bytes(*bytes))
    }

    fn sized_u8(&mut self) -> Option<&'a [u8]> {
        let length = self.take(1)?[0];
        self.take(usize::from(length))
    }

    fn sized_u16(&mut self) -> Option<&'a [u8]> {
        let length = self.u16()?;
        self.take(usize::from(length))
    }
}
