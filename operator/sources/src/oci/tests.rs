//! Fetches of artifacts from a registry that answers by a table, and from one that misbehaves.

mod server;

use std::time::Duration;

use reqwest::header::HeaderValue;
use serde_json::json;
use tokio::time::Instant;

use self::server::{Mood, Server};
use super::*;
use crate::{
    allowed_hosts::AllowedHosts,
    fetch::Files,
    http_client::Credentials,
    selection::Selection,
    testing::{
        AUTHORIZATION,
        registry::{Blob, digest, gzip, tar},
    },
};

const LIMIT: Duration = Duration::from_secs(20);

/// A fetch of the repository `skills`.
struct Asked<'a> {
    server: &'a Server,
    reference: Option<OciReference>,
    known: Option<String>,
    hosts: Vec<String>,
    authorization: Option<&'static str>,
    limit: Duration,
}

impl<'a> Asked<'a> {
    fn of(server: &'a Server) -> Self {
        let hosts = vec![server.host.clone()];
        Self { server, reference: None, known: None, hosts, authorization: None, limit: LIMIT }
    }

    async fn found(self) -> Result<Found, Failure> {
        let url = format!("oci://{}/skills", self.server.host);
        let repository = Repository::parse(&url, self.server.certificate.is_empty())?;
        let credentials = Credentials {
            authorization: self.authorization.map(HeaderValue::from_static),
            authorities: self.server.certificate.clone().into_bytes(),
        };
        let origin = repository.origin.clone();
        let deadline = Instant::now() + self.limit;
        let client =
            HttpClient::new(Place::Oci, origin, AllowedHosts::new(&self.hosts), credentials, deadline)?;
        let selection = Selection::new(&[], &[]);
        let wanted =
            Wanted { url, reference: self.reference, path: String::new(), selection, known: self.known };
        let runtime = Handle::current();
        tokio::task::spawn_blocking(move || {
            let interrupted = AtomicBool::new(false);
            fetch(&repository, &wanted, client, &runtime, &std::env::temp_dir(), &interrupted)
        })
        .await
        .unwrap()
    }

    async fn files(self) -> Files {
        match self.found().await {
            Ok(Found::Files(files)) => files,
            other => panic!("{other:?}"),
        }
    }

    async fn failure(self) -> Failure {
        self.found().await.unwrap_err()
    }
}

fn reference(tag: Option<&str>, digest: Option<&str>, semver: Option<&str>) -> OciReference {
    let text = |text: Option<&str>| text.map(ToOwned::to_owned);
    OciReference { tag: text(tag), digest: text(digest), semver: text(semver) }
}

fn skill(text: &str) -> Blob {
    Blob::layer(&[("pdf/SKILL.md", text.as_bytes())])
}

#[tokio::test]
async fn tags_digests_and_ranges_give_their_files_and_revision() {
    let server = Server::start(false).await;
    let latest = server.put("latest", &[skill("latest")]);
    let one = server.put("v1.2.0", &[skill("one")]);
    server.put("1.0.0", &[skill("old")]);
    server.put_at("/v2/skills/tags/list?n=1000", br#"{"tags":["latest","v1.2.0"]}"#.to_vec());
    server.put_at("/v2/skills/tags/list?n=1000&last=x", br#"{"tags":["1.0.0","2.0.0"]}"#.to_vec());
    for (reference, revision, text) in [
        (None, format!("latest@{latest}"), "latest"),
        (Some(reference(Some("v1.2.0"), None, None)), format!("v1.2.0@{one}"), "one"),
        (Some(reference(None, Some(&latest), None)), latest.clone(), "latest"),
        (Some(reference(None, None, Some("^1.0.0"))), format!("v1.2.0@{one}"), "one"),
    ] {
        let files = Asked { reference, ..Asked::of(&server) }.files().await;
        assert_eq!((files.revision, files.tree.content("pdf/SKILL.md")), (revision, Some(text.as_bytes())));
    }
    for (reference, words) in [
        (Some(reference(Some("gone"), None, None)), "the repository has no tag gone; see spec.oci.ref"),
        (
            Some(reference(None, None, Some(">3.0.0"))),
            "has no tag of a version that matches >3.0.0; see spec.oci.ref",
        ),
        (Some(reference(None, None, Some("newest"))), "spec.oci.ref: semver: in the version constraint"),
        (Some(reference(None, Some(&digest(b"x")), None)), "the repository has no manifest sha256:"),
    ] {
        let error = Asked { reference, ..Asked::of(&server) }.failure().await.to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[tokio::test]
async fn a_known_revision_is_not_transferred_again() {
    let server = Server::start(false).await;
    let known = Some(format!("latest@{}", server.put("latest", &[skill("x")])));
    let found = Asked { known: known.clone(), ..Asked::of(&server) }.found().await;
    assert!(matches!(found, Ok(Found::Unchanged)), "{found:?}");
    let requests: Vec<String> = server.take_requests().into_iter().map(|(request, _)| request).collect();
    assert_eq!(requests, ["HEAD /v2/skills/manifests/latest"]);
    let moved = server.put("latest", &[skill("y")]);
    let files = Asked { known, ..Asked::of(&server) }.files().await;
    assert_eq!(files.revision, format!("latest@{moved}"));
}

#[tokio::test]
async fn an_index_layers_and_single_files_are_read() {
    let server = Server::start(false).await;
    let layers = [
        Blob::layer(&[("a/SKILL.md", b"old"), ("a/gone", b"x")]),
        Blob::layer(&[("a/SKILL.md", b"new"), ("a/.wh.gone", b"")]),
    ];
    let inner = server.put("inner", &[&layers[..], &[Blob::file("b/SKILL.md", b"file")]].concat());
    let index = json!({ "schemaVersion": 2, "manifests": [{ "digest": inner, "size": 1 }] });
    let outer = server.put_manifest("latest", &index);
    let files = Asked::of(&server).files().await;
    assert_eq!(files.revision, format!("latest@{outer}"));
    let paths: Vec<String> = files.tree.resolve().files.into_keys().collect();
    assert_eq!(paths, ["a/SKILL.md", "b/SKILL.md"]);
    assert_eq!(files.tree.content("a/SKILL.md"), Some(b"new".as_slice()));
    let nested = json!({ "schemaVersion": 2, "manifests": [{ "digest": outer, "size": 1 }] });
    server.put_manifest("latest", &nested);
    let error = Asked::of(&server).failure().await;
    assert_eq!(error, Failure::Invalid("an index of the artifact names another index".to_owned()));
}

#[tokio::test]
async fn bytes_that_are_not_those_of_their_digest_are_refused() {
    let server = Server::start(false).await;
    let layer = skill("x");
    let pinned = server.put("latest", std::slice::from_ref(&layer));
    for (mood, words) in [
        (Mood::Blob(b"x".to_vec()), "other bytes than those of layer sha256:"),
        (Mood::Blob([layer.bytes.clone(), vec![0]].concat()), "other bytes than those of layer sha256:"),
        (Mood::EndlessBlob, "other bytes than those of layer sha256:"),
        (Mood::Manifest(b"{}".to_vec()), "the registry sent a manifest of sha256:"),
    ] {
        server.set_mood(mood);
        let asked = Asked { reference: Some(reference(None, Some(&pinned), None)), ..Asked::of(&server) };
        let error = asked.failure().await;
        assert!(matches!(&error, Failure::Invalid(text) if text.contains(words)), "{error:?}");
    }
    server.set_mood(Mood::Well);
    server.put_at(&format!("/v2/skills/blobs/{}", digest(&layer.bytes)), Vec::new());
    assert!(matches!(Asked::of(&server).failure().await, Failure::Invalid(_)));
}

#[tokio::test]
async fn bombs_and_broken_layers_end_the_look() {
    let server = Server::start(false).await;
    let zeros = vec![0; 8 << 20];
    let bomb: Vec<(&str, &[u8])> = (0..33).map(|_| ("zeros", zeros.as_slice())).collect();
    let kind = "application/vnd.oci.image.layer.v1.tar+gzip";
    server.put("latest", &[Blob::new(kind, gzip(&tar(&bomb)))]);
    let error = Asked::of(&server).failure().await.to_string();
    assert_eq!(error, "a layer cannot be read: it unpacks to more than 256 MiB");
    for (bytes, words) in
        [(b"\x1f\x8bbroken".to_vec(), "a layer cannot be read"), (vec![b'x'; 1024], "a layer cannot be read")]
    {
        server.put("latest", &[Blob::new(kind, bytes)]);
        let error = Asked::of(&server).failure().await.to_string();
        assert!(error.contains(words), "{error}");
    }
    let mut large = skill("x");
    large.descriptor["size"] = json!(300 << 20);
    server.put("latest", &[large]);
    let error = Asked::of(&server).failure().await;
    assert_eq!(error, Failure::TooLarge("the artifact has more than 256 MiB".to_owned()));
    server.put("latest", &[Blob::new("application/vnd.example", b"x".to_vec())]);
    assert!(
        matches!(Asked::of(&server).failure().await, Failure::Invalid(text) if text.contains("has the media type"))
    );
}

#[tokio::test]
async fn a_registry_that_fails_or_is_silent_says_so() {
    let server = Server::start(false).await;
    server.put("latest", &[skill("x")]);
    let word = |status: &str| format!("127.0.0.1 answered {status}");
    for (mood, failure) in [
        (Mood::Status(503), Failure::Unavailable(word("503 Service Unavailable"))),
        (Mood::Status(429), Failure::Unavailable(word("429 Too Many Requests"))),
        (
            Mood::Status(403),
            Failure::AccessDenied(format!("{}; name a Secret in spec.oci.secretRef", word("403 Forbidden"))),
        ),
        (
            Mood::RedirectBlobs("169.254.169.254".to_owned()),
            Failure::HostNotAllowed("169.254.169.254".to_owned()),
        ),
    ] {
        server.set_mood(mood);
        assert_eq!(Asked::of(&server).failure().await, failure);
    }
    server.set_mood(Mood::Silent);
    let limit = Duration::from_millis(200);
    assert_eq!(Asked { limit, ..Asked::of(&server) }.failure().await, Failure::TimedOut);
    let gone = Server::start(false).await;
    let other = Asked { hosts: Vec::new(), ..Asked::of(&gone) };
    assert_eq!(other.failure().await, Failure::HostNotAllowed(gone.host.clone()));
}

#[tokio::test]
async fn credentials_go_to_the_registry_and_its_server_of_tokens_only() {
    let (server, storage) = (Server::start(true).await, Server::start(true).await);
    let layer = skill("x");
    server.put("latest", std::slice::from_ref(&layer));
    let asked = || Asked { authorization: Some(AUTHORIZATION), ..Asked::of(&server) };
    let basic =
        |header: &str| Mood::Wants { challenge: "Basic realm=\"x\"".to_owned(), header: header.to_owned() };
    server.set_mood(basic(AUTHORIZATION));
    asked().files().await;
    assert!(server.take_requests()[0].1.is_none(), "a registry is asked before it gets credentials");
    let denied = "127.0.0.1 answered 401 Unauthorized; check the Secret of spec.oci.secretRef";
    server.set_mood(basic("Basic other"));
    assert_eq!(asked().failure().await, Failure::AccessDenied(denied.to_owned()));

    let tokens = |wanted: &str| Mood::Tokens { realm_host: None, wanted: Some(wanted.to_owned()) };
    server.set_mood(tokens(AUTHORIZATION));
    server.take_requests();
    asked().files().await;
    let token = "GET /token?service=tests&scope=repository%3Askills%3Apull";
    assert_eq!(server.take_requests()[1], (token.to_owned(), Some(AUTHORIZATION.to_owned())));
    server.set_mood(tokens("Basic other"));
    assert_eq!(asked().failure().await, Failure::AccessDenied(denied.to_owned()));
    let elsewhere = Mood::Tokens { realm_host: Some(storage.host.clone()), wanted: None };
    server.set_mood(elsewhere);
    assert_eq!(asked().failure().await, Failure::HostNotAllowed(storage.host.clone()));
    assert!(storage.take_requests().is_empty());
}

#[tokio::test]
async fn a_token_is_for_everybody_and_blobs_may_be_on_another_host() {
    let (server, storage) = (Server::start(false).await, Server::start(false).await);
    let layer = skill("x");
    server.put("latest", std::slice::from_ref(&layer));
    server.set_mood(Mood::Tokens { realm_host: None, wanted: None });
    Asked::of(&server).files().await;
    let path = format!("/v2/skills/blobs/{}", digest(&layer.bytes));
    storage.put_at(&path, layer.bytes);
    server.set_mood(Mood::RedirectBlobs(storage.host.clone()));
    let hosts = vec![server.host.clone(), storage.host.clone()];
    Asked { hosts, ..Asked::of(&server) }.files().await;
    assert_eq!(storage.take_requests(), [(format!("GET {path}"), None)]);
    let error = Asked { authorization: Some(AUTHORIZATION), ..Asked::of(&server) }.failure().await;
    let message = "spec.oci.url: credentials are not sent without TLS; remove spec.oci.insecure, or remove spec.oci.secretRef";
    assert_eq!(error.to_string(), message);
}

#[test]
fn addresses_of_repositories_are_read() {
    let parse = |url: &str| Repository::parse(url, false).map(|found| (found.origin.to_string(), found.host));
    let expected = ("https://r.example.com:5000/".to_owned(), "r.example.com:5000".to_owned());
    assert_eq!(parse("oci://r.example.com:5000/team/skills"), Ok(expected));
    for url in
        ["https://r.example.com/x", "oci://r.example.com", "oci://r?x/y", "oci://r#x/y", "oci://r:port/y"]
    {
        assert!(matches!(parse(url), Err(Failure::BadUrl(Place::Oci, _))), "{url}");
    }
}
