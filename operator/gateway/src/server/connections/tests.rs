//! Connections that send too little, too slowly or too often, beside others that are served.

use std::{io, net::Ipv4Addr};

use axum::routing::get;
use futures::future::join_all;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    sync::mpsc,
    task::JoinHandle,
    time::{Instant, timeout},
};

use super::*;
use crate::tls::tests::{FIRST, LOOK_OFTEN, Mount, SECOND};

const REQUEST: &str = "GET / HTTP/1.1\r\nhost: gateway\r\n\r\n";

struct Serving {
    port: u16,
    stop: CancellationToken,
    ended: JoinHandle<()>,
}

impl Serving {
    async fn start(tls: Option<Tls>, routes: Router, most: usize) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let stop = CancellationToken::new();
        let ended = tokio::spawn(serve(listener, tls, routes, most, stop.clone().cancelled_owned()));
        Self { port, stop, ended }
    }

    async fn connect(&self, sent: &str) -> TcpStream {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        stream
    }

    async fn ask(&self, client: &reqwest::Client) -> reqwest::Result<String> {
        client.get(format!("https://localhost:{}/", self.port)).send().await?.text().await
    }
}

fn routes() -> Router {
    Router::new().route("/", get(async || "hello"))
}

fn tls(mount: &Mount) -> Tls {
    Tls::renewed_every(LOOK_OFTEN, mount.files()).unwrap()
}

fn trusting((certificate, _): (&str, &str)) -> reqwest::Client {
    let root = reqwest::Certificate::from_pem(certificate.as_bytes()).unwrap();
    reqwest::Client::builder().tls_built_in_root_certs(false).add_root_certificate(root).build().unwrap()
}

/// Returns all that the server sends until it closes the connection.
async fn read_all(mut stream: TcpStream) -> String {
    let mut text = Vec::new();
    // An error is a connection that was closed with bytes unread.
    stream.read_to_end(&mut text).await.ok();
    String::from_utf8(text).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_a_whole_header_is_closed() {
    let server = Serving::start(None, routes(), 10).await;
    for half in ["", "PRI * HTTP/2.0\r\n", "GET / HTTP/1.1\r\nhost: g"] {
        let start = Instant::now();
        assert_eq!(read_all(server.connect(half).await).await, "");
        assert!(start.elapsed() >= FIRST_REQUEST && start.elapsed() < 2 * FIRST_REQUEST, "{half}");
    }
    let start = Instant::now();
    let kept = read_all(server.connect(&format!("{REQUEST}GET / HT")).await).await;
    assert!(kept.ends_with("hello"), "{kept}");
    assert!(start.elapsed() >= NEXT_REQUEST, "a connection that was used stays open for longer");
}

#[tokio::test]
async fn half_greetings_do_not_stop_another_client() {
    let mount = Mount::with(FIRST);
    let server = Serving::start(Some(tls(&mount)), routes(), 400).await;
    // The first bytes of a greeting, and none at all.
    let _half = join_all((0..300).map(|number| server.connect(["\u{16}\u{3}", ""][number % 2]))).await;
    assert_eq!(server.ask(&trusting(FIRST)).await.unwrap(), "hello");
}

#[tokio::test]
async fn idle_connections_give_their_places_to_new_ones() {
    let (begun, mut begins) = mpsc::unbounded_channel();
    let finish = CancellationToken::new();
    let finished = finish.clone();
    let slow = async move || {
        begun.send(()).unwrap();
        finished.cancelled().await;
        "slow"
    };
    let server = Serving::start(None, routes().route("/slow", get(slow)), 8).await;
    let slow = server.connect("GET /slow HTTP/1.1\r\nhost: g\r\nconnection: close\r\n\r\n").await;
    begins.recv().await.unwrap();
    // Ten thousand, a thousand at a time: each side of each is a file descriptor of this process.
    for _ in 0..10 {
        let mut idle = Vec::new();
        for _ in 0..1000 {
            idle.push(server.connect("").await);
        }
        for _ in 0..20 {
            let closing = server.connect(&REQUEST.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n")).await;
            assert!(read_all(closing).await.ends_with("hello"));
        }
        // All but those that have places are closed.
        join_all(idle.into_iter().take(990).map(read_all)).await;
    }
    finish.cancel();
    assert!(read_all(slow).await.ends_with("slow"), "a request under way keeps its place");
}

#[tokio::test]
async fn a_stop_waits_for_responses_and_not_for_idle_connections() {
    let (chunks, body) = mpsc::unbounded_channel::<&str>();
    let body = Arc::new(Mutex::new(Some(body)));
    let stream = move || {
        let received = body.lock().unwrap().take().unwrap();
        let chunks = futures::stream::unfold(received, |mut received| async {
            let chunk = received.recv().await?;
            Some((Ok::<_, io::Error>(chunk), received))
        });
        std::future::ready(Body::from_stream(chunks))
    };
    let routes = routes().route("/stream", get(stream));
    let Serving { port, stop, ended } = Serving::start(None, routes, 8).await;
    let connect = async |path: &str| {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        stream.write_all(format!("GET {path} HTTP/1.1\r\nhost: g\r\n\r\n").as_bytes()).await.unwrap();
        stream
    };
    let mut idle = connect("/").await;
    idle.read_u8().await.unwrap();
    chunks.send("first").unwrap();
    let mut streaming = connect("/stream").await;
    streaming.read_u8().await.unwrap();
    stop.cancel();
    read_all(idle).await;
    assert!(!ended.is_finished(), "a response is under way");
    assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_err());
    chunks.send("last").unwrap();
    drop(chunks);
    assert!(read_all(streaming).await.contains("last"));
    timeout(Duration::from_secs(60), ended).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_client_that_trusts_the_certificate_is_served() {
    let mount = Mount::with(FIRST);
    let server = Serving::start(Some(tls(&mount)), routes(), 10).await;
    assert_eq!(server.ask(&trusting(FIRST)).await.unwrap(), "hello");
    assert!(server.ask(&trusting(SECOND)).await.is_err(), "another certificate is not trusted");
    let plain = reqwest::get(format!("http://localhost:{}/", server.port)).await;
    assert!(plain.is_err(), "nothing goes in the clear");
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_without_a_restart() {
    let mount = Mount::with(FIRST);
    let server = Serving::start(Some(tls(&mount)), routes(), 10).await;
    assert_eq!(server.ask(&trusting(FIRST)).await.unwrap(), "hello");
    mount.put(SECOND);
    let client = trusting(SECOND);
    let asked = async {
        while server.ask(&client).await.is_err() {
            sleep(LOOK_OFTEN).await;
        }
    };
    timeout(Duration::from_secs(60), asked).await.unwrap();
}

#[tokio::test]
async fn a_connection_writes_at_once() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let connecting = TcpStream::connect(listener.local_addr().unwrap());
    let (client, accepted) = tokio::join!(connecting, listener.accept());
    let (_client, (stream, _)) = (client.unwrap(), accepted.unwrap());
    assert!(!stream.nodelay().unwrap());
    set_nodelay(&stream);
    assert!(stream.nodelay().unwrap());
}
