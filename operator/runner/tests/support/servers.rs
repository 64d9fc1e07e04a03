//! Servers outside of the sandbox, on loopback, for the clients inside.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::Folder;

pub const PYTHON: &str = "/usr/bin/python3";

/// HTTP and HTTPS of `server.py`, and the folder that they serve.
pub struct Web {
    child: Child,
    pub http: SocketAddr,
    pub https: SocketAddr,
    pub folder: Folder,
    keys: Folder,
}

impl Web {
    pub fn start() -> Self {
        let (folder, keys) = (Folder::new("/tmp"), Folder::new("/tmp"));
        let (certificate, key) = (keys.0.join("certificate.pem"), keys.0.join("key.pem"));
        let status = Command::new("openssl")
            .args([
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-days",
                "2",
            ])
            .args(["-subj", "/CN=web.example", "-addext", "subjectAltName=DNS:web.example"])
            .arg("-keyout")
            .arg(&key)
            .arg("-out")
            .arg(&certificate)
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success(), "openssl makes a certificate");
        let mut child = Command::new(PYTHON)
            .args(["-c", include_str!("server.py")])
            .args([&folder.0, &certificate, &key])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ports: Vec<u16> = line.split_whitespace().map(|port| port.parse().unwrap()).collect();
        let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Self { child, http: at(ports[0]), https: at(ports[1]), folder, keys }
    }

    /// The certificate that clients must trust.
    pub fn certificate(&self) -> PathBuf {
        self.keys.0.join("certificate.pem")
    }

    /// The key of the certificate, for another server of the name.
    pub fn key(&self) -> PathBuf {
        self.keys.0.join("key.pem")
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves each connection in a thread of its own, until the test ends.
pub fn serve(each: impl Fn(TcpStream) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let each = each.clone();
            std::thread::spawn(move || each(stream));
        }
    });
    at
}

/// A server that sends back what it receives.
pub fn echo() -> SocketAddr {
    serve(|mut stream| {
        let mut copy = stream.try_clone().unwrap();
        let _ = std::io::copy(&mut copy, &mut stream);
        let _ = stream.shutdown(std::net::Shutdown::Write);
    })
}

/// A server that expects the start of a protocol and answers with fixed bytes.
pub fn scripted(greeting: &'static [u8], answers: &'static [(&'static [u8], &'static [u8])]) -> SocketAddr {
    serve(move |mut stream| {
        let _ = stream.write_all(greeting);
        let mut received = Vec::new();
        let mut buffer = [0; 4096];
        for (expected, answer) in answers {
            while !received.windows(expected.len()).any(|window| window == *expected) {
                match stream.read(&mut buffer) {
                    Ok(length @ 1..) => received.extend_from_slice(&buffer[..length]),
                    _ => return,
                }
            }
            let _ = stream.write_all(answer);
        }
    })
}

pub fn is_installed(program: &str) -> bool {
    Path::new(program).exists()
}
