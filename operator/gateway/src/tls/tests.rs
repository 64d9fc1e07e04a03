//! Served and refused under certificates that the tests make themselves.

use std::{
    env,
    sync::atomic::{AtomicU32, Ordering},
};

use axum::{Router, routing::get};

use super::*;

const LOOK_OFTEN: Duration = Duration::from_millis(10);
static FOLDERS: AtomicU32 = AtomicU32::new(0);

/// Pairs for localhost, good for a hundred years. Each was made by
/// `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout first.key -out first.crt -days 36500
/// -subj /CN=localhost -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE`.
const FIRST: (&str, &str) = (include_str!("tests/first.crt"), include_str!("tests/first.key"));
const SECOND: (&str, &str) = (include_str!("tests/second.crt"), include_str!("tests/second.key"));

/// A folder with a certificate and its key, removed at the end.
struct Mount(PathBuf);

impl Mount {
    fn with(pair: (&str, &str)) -> Self {
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("skillet-tls-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mount = Self(folder);
        mount.put(pair);
        mount
    }

    fn files(&self) -> Files {
        Files { certificate: self.0.join("tls.crt"), key: self.0.join("tls.key") }
    }

    fn put(&self, (certificate, key): (&str, &str)) {
        fs::write(self.files().certificate, certificate).unwrap();
        fs::write(self.files().key, key).unwrap();
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

fn trusting((certificate, _): (&str, &str)) -> reqwest::Client {
    let root = reqwest::Certificate::from_pem(certificate.as_bytes()).unwrap();
    reqwest::Client::builder().tls_built_in_root_certs(false).add_root_certificate(root).build().unwrap()
}

async fn serve(mount: &Mount) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let listener = TlsListener::renewed_every(LOOK_OFTEN, listener, mount.files()).unwrap();
    let port = listener.local_addr().unwrap().port();
    let routes = Router::new().route("/", get(async || "hello"));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    port
}

async fn ask(client: &reqwest::Client, port: u16) -> reqwest::Result<String> {
    client.get(format!("https://localhost:{port}/")).send().await?.text().await
}

#[tokio::test]
async fn a_client_that_trusts_the_certificate_is_served() {
    let mount = Mount::with(FIRST);
    let port = serve(&mount).await;
    // One that says nothing holds nobody up.
    let _silent = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    assert_eq!(ask(&trusting(FIRST), port).await.unwrap(), "hello");
    assert!(ask(&trusting(SECOND), port).await.is_err(), "another certificate is not trusted");
    assert!(reqwest::get(format!("http://localhost:{port}/")).await.is_err(), "nothing goes in the clear");
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_without_a_restart() {
    let mount = Mount::with(FIRST);
    let port = serve(&mount).await;
    assert_eq!(ask(&trusting(FIRST), port).await.unwrap(), "hello");
    mount.put(SECOND);
    let client = trusting(SECOND);
    let asked = async {
        while ask(&client, port).await.is_err() {
            sleep(LOOK_OFTEN).await;
        }
    };
    timeout(Duration::from_secs(60), asked).await.unwrap();
}

#[test]
fn a_pair_that_cannot_be_used_is_refused_and_named() {
    let mount = Mount::with(FIRST);
    let before = Mounted::read(&mount.files()).unwrap();
    let refused = || look(&mount.files(), &before).err().unwrap().to_string();
    assert!(look(&mount.files(), &before).unwrap().is_none());
    for ((certificate, key), said) in [
        ((FIRST.0, SECOND.1), "do not go together"),
        (("", FIRST.1), "tls.crt has no certificate"),
        (("-----BEGIN CERTIFICATE-----\n", FIRST.1), "tls.crt is not PEM"),
        ((FIRST.0, "-----BEGIN "), "tls.key is not PEM"),
    ] {
        mount.put((certificate, key));
        assert!(refused().contains(said), "{}", refused());
    }
    fs::remove_file(mount.files().certificate).unwrap();
    assert!(refused().contains("could not read"), "{}", refused());
}
