//! HTTP/1.1 as far as a measurement needs it, at next to no cost: kept connections, whole heads, bodies of a given length
//! or in chunks. Both ends of it are trusted; it is no server or client for anything else.

use std::{
    fmt::Write as _,
    io::{self, ErrorKind},
    net::{IpAddr, SocketAddr},
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

const END_OF_HEAD: &[u8] = b"\r\n\r\n";
/// Read at once.
const PIECE: usize = 64 * 1024;

/// One kept connection.
pub(crate) struct Connection {
    stream: TcpStream,
    /// Read and not yet taken.
    read: Vec<u8>,
}

/// First line and headers of a request or an answer.
pub(crate) struct Head {
    text: String,
    length: Length,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Length {
    Bytes(usize),
    Chunks,
}

impl Connection {
    pub(crate) async fn open(address: &str) -> io::Result<Self> {
        Self::new(TcpStream::connect(address).await?)
    }

    fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { stream, read: Vec::with_capacity(PIECE) })
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// The next head; none where the other side has closed.
    pub(crate) async fn head(&mut self) -> io::Result<Option<Head>> {
        loop {
            if let Some(at) = find(&self.read, END_OF_HEAD) {
                let bytes: Vec<u8> = self.read.drain(..at + END_OF_HEAD.len()).collect();
                return Head::of(bytes).map(Some);
            }
            if !self.more().await? {
                return Ok(None);
            }
        }
    }

    /// Waits until something of the body is there.
    pub(crate) async fn first_byte(&mut self) -> io::Result<()> {
        while self.read.is_empty() {
            self.must_have_more().await?;
        }
        Ok(())
    }

    /// Takes the body that belongs to a head.
    pub(crate) async fn body(&mut self, head: &Head) -> io::Result<Vec<u8>> {
        match head.length {
            Length::Bytes(length) => self.take(length).await,
            Length::Chunks => {
                let mut body = Vec::new();
                loop {
                    let size = self.chunk_size().await?;
                    let mut chunk = self.take(size + 2).await?;
                    if size == 0 {
                        return Ok(body);
                    }
                    chunk.truncate(size);
                    body.append(&mut chunk);
                }
            }
        }
    }

    /// Takes a body of this length and keeps nothing of it.
    pub(crate) async fn discard(&mut self, length: usize) -> io::Result<()> {
        let mut left = length;
        loop {
            let taken = left.min(self.read.len());
            self.read.drain(..taken);
            left -= taken;
            if left == 0 {
                return Ok(());
            }
            self.must_have_more().await?;
        }
    }

    async fn chunk_size(&mut self) -> io::Result<usize> {
        loop {
            if let Some(at) = find(&self.read, b"\r\n") {
                let line: Vec<u8> = self.read.drain(..at + 2).collect();
                let line = String::from_utf8_lossy(&line);
                return usize::from_str_radix(line.trim(), 16).map_err(|_| broken("a chunk has no size"));
            }
            self.must_have_more().await?;
        }
    }

    async fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.read.len() < length {
            self.must_have_more().await?;
        }
        Ok(self.read.drain(..length).collect())
    }

    async fn must_have_more(&mut self) -> io::Result<()> {
        if self.more().await? { Ok(()) } else { Err(broken("the other side closed in the middle")) }
    }

    async fn more(&mut self) -> io::Result<bool> {
        Ok(self.stream.read_buf(&mut self.read).await? > 0)
    }
}

impl Head {
    fn of(bytes: Vec<u8>) -> io::Result<Self> {
        let text = String::from_utf8(bytes).map_err(|_| broken("a head is not text"))?;
        let mut length = Length::Bytes(0);
        for line in text.lines().skip(1) {
            let Some((name, value)) = line.split_once(':') else { continue };
            if name.eq_ignore_ascii_case("content-length") {
                length = Length::Bytes(value.trim().parse().map_err(|_| broken("a length is no number"))?);
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                length = Length::Chunks;
            }
        }
        Ok(Self { text, length })
    }

    /// The method and target of a request, or version and status of an answer.
    pub(crate) fn line(&self) -> &str {
        self.text.lines().next().unwrap_or_default()
    }

    /// The target of a request.
    pub(crate) fn target(&self) -> &str {
        self.line().split(' ').nth(1).unwrap_or_default()
    }

    /// Length of the body, if it is not in chunks.
    pub(crate) fn body_length(&self) -> usize {
        match self.length {
            Length::Bytes(length) => length,
            Length::Chunks => 0,
        }
    }

    /// The status of an answer.
    pub(crate) fn status(&self) -> &str {
        self.target()
    }

    /// A header's value.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let headers = self.text.lines().skip(1).filter_map(|line| line.split_once(':'));
        let mut of_name = headers.filter(|(other, _)| other.eq_ignore_ascii_case(name));
        of_name.next().map(|(_, value)| value.trim())
    }

    /// True if a text is anywhere in it.
    pub(crate) fn has(&self, text: &str) -> bool {
        self.text.contains(text)
    }
}

/// Serves on a port of this machine's choice until the process ends: each connection is given to `serve`.
pub(crate) async fn listen<F>(serve: impl Fn(Connection) -> F + Send + 'static) -> io::Result<SocketAddr>
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    listen_on(IpAddr::from([127, 0, 0, 1]), serve).await
}

/// The same at another address of this machine.
pub(crate) async fn listen_on<F>(
    address: IpAddr,
    serve: impl Fn(Connection) -> F + Send + 'static,
) -> io::Result<SocketAddr>
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    let listener = TcpListener::bind((address, 0)).await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(connection) = Connection::new(stream) {
                // A client that goes away is no concern of the server's.
                tokio::spawn(serve(connection));
            }
        }
    });
    Ok(address)
}

/// A request as bytes.
pub(crate) fn request(line: &str, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let length = body.len();
    let mut text = format!("{line} HTTP/1.1\r\nhost: bench\r\ncontent-length: {length}\r\n");
    for (name, value) in headers {
        // Writing to a String cannot fail.
        write!(text, "{name}: {value}\r\n").ok();
    }
    (text + "\r\n" + body).into_bytes()
}

/// A JSON answer as bytes.
pub(crate) fn answer(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
}

/// One chunk of a body.
pub(crate) fn chunk(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

fn broken(what: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two requests on one connection: the second response must not be taken for a part of the first.
    async fn twice(answer: Vec<u8>) -> [(String, Vec<u8>); 2] {
        let address = listen(move |mut connection| {
            let answer = answer.clone();
            async move {
                while let Some(head) = connection.head().await? {
                    assert_eq!((head.target(), head.has("x: y")), ("/a", true));
                    assert_eq!(connection.body(&head).await?, b"body");
                    connection.write(&answer).await?;
                }
                Ok(())
            }
        });
        let mut connection = Connection::open(&address.await.unwrap().to_string()).await.unwrap();
        let mut ask = async || {
            connection.write(&request("POST /a", &[("x", "y")], "body")).await.unwrap();
            let head = connection.head().await.unwrap().unwrap();
            connection.first_byte().await.unwrap();
            (head.status().to_owned(), connection.body(&head).await.unwrap())
        };
        [ask().await, ask().await]
    }

    #[tokio::test]
    async fn a_body_with_a_content_length_is_read_whole() {
        let expected = || ("200".to_owned(), b"{\"a\":1}".to_vec());
        assert_eq!(twice(answer("200 OK", "{\"a\":1}")).await, [expected(), expected()]);
    }

    #[tokio::test]
    async fn a_body_that_is_discarded_ends_where_the_next_request_begins() {
        let address = listen(|mut connection| async move {
            for length in [200_000, 4] {
                let head = connection.head().await?.unwrap();
                assert_eq!(head.body_length(), length);
                connection.discard(length).await?;
                connection.write(&answer("200 OK", "")).await?;
            }
            Ok(())
        });
        let mut connection = Connection::open(&address.await.unwrap().to_string()).await.unwrap();
        let both = [request("POST /", &[], &"x".repeat(200_000)), request("POST /", &[], "body")].concat();
        connection.write(&both).await.unwrap();
        for _ in 0..2 {
            assert_eq!(connection.head().await.unwrap().unwrap().status(), "200");
        }
    }

    #[tokio::test]
    async fn a_body_in_chunks_is_put_together() {
        let head = "HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n";
        let text = format!("{head}{}{}{}", chunk("one "), chunk("two"), chunk(""));
        let expected = || ("404".to_owned(), b"one two".to_vec());
        assert_eq!(twice(text.into_bytes()).await, [expected(), expected()]);
    }
}
