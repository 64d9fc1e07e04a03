//! Fetches from a real git server, and from one that misbehaves.

use std::{collections::BTreeMap, fs, time::Duration};

use reqwest::{Url, header::HeaderValue};
use skillet_instructions::tree::FileTree;
use tokio::time::Instant;

use super::*;
use crate::{
    allowed_hosts::AllowedHosts,
    fetch::Files,
    http_client::Credentials,
    selection::Selection,
    testing::{AUTHORIZATION, GitServer, Mood},
};

const LIMIT: Duration = Duration::from_secs(20);

fn wanted(server: &GitServer) -> Wanted<GitReference> {
    Wanted {
        url: server.url("skills"),
        reference: None,
        path: String::new(),
        selection: Selection::new(&[], &[]),
        known: None,
    }
}

async fn fetch_as(
    wanted: Wanted<GitReference>,
    hosts: &[&str],
    credentials: Credentials,
    limit: Duration,
) -> Result<Found, Failure> {
    let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    let url = Url::parse(&wanted.url).unwrap();
    let client =
        HttpClient::new(Place::Git, url, AllowedHosts::new(&hosts), credentials, Instant::now() + limit)?;
    let (runtime, interrupted) = (Handle::current(), AtomicBool::new(false));
    tokio::task::spawn_blocking(move || fetch(&wanted, client, runtime, &std::env::temp_dir(), &interrupted))
        .await
        .unwrap()
}

async fn fetch_from(server: &GitServer, wanted: Wanted<GitReference>) -> Result<Found, Failure> {
    fetch_as(wanted, &[&server.host], Credentials::default(), LIMIT).await
}

async fn files(server: &GitServer, wanted: Wanted<GitReference>) -> Files {
    match fetch_from(server, wanted).await {
        Ok(Found::Files(files)) => files,
        other => panic!("{other:?}"),
    }
}

async fn failure(server: &GitServer, wanted: Wanted<GitReference>) -> Failure {
    fetch_from(server, wanted).await.unwrap_err()
}

fn texts(tree: &FileTree) -> BTreeMap<String, String> {
    let files = tree.resolve().files.into_iter();
    files
        .map(|(path, real)| {
            let content = tree.content(&real).unwrap_or(b"(too large)");
            (path, String::from_utf8_lossy(content).into_owned())
        })
        .collect()
}

fn reference(branch: Option<&str>, tag: Option<&str>, commit: Option<&str>) -> GitReference {
    let text = |text: Option<&str>| text.map(ToOwned::to_owned);
    GitReference { branch: text(branch), tag: text(tag), commit: text(commit) }
}

#[tokio::test]
async fn branches_tags_and_commits_give_their_files_and_revision() {
    let server = GitServer::start().await;
    let repository = server.repository("skills");
    let first = repository.commit(&[("pdf/SKILL.md", "one")]);
    repository.git(&["tag", "v1"]);
    repository.git(&["tag", "--annotate", "--message=m", "v1-annotated"]);
    repository.git(&["push", "--quiet", "--tags", "origin"]);
    let second = repository.commit(&[("pdf/SKILL.md", "two"), ("pdf/a/b.txt", "b")]);
    repository.git(&["switch", "--quiet", "--create", "team/next"]);
    let third = repository.commit(&[("pdf/SKILL.md", "three")]);
    for (reference, revision, text) in [
        (None, format!("main@sha1:{second}"), "two"),
        (Some(reference(Some("main"), None, None)), format!("main@sha1:{second}"), "two"),
        (Some(reference(Some("team/next"), None, None)), format!("team/next@sha1:{third}"), "three"),
        (Some(reference(None, Some("v1"), None)), format!("v1@sha1:{first}"), "one"),
        (Some(reference(None, Some("v1-annotated"), None)), format!("v1-annotated@sha1:{first}"), "one"),
        (Some(reference(None, None, Some(&first))), format!("sha1:{first}"), "one"),
    ] {
        let files = files(&server, Wanted { reference, ..wanted(&server) }).await;
        assert_eq!(
            (files.revision.as_str(), texts(&files.tree)["pdf/SKILL.md"].as_str()),
            (revision.as_str(), text)
        );
    }
}

#[tokio::test]
async fn a_known_revision_is_not_transferred_again() {
    let server = GitServer::start().await;
    let repository = server.repository("skills");
    let commit = repository.commit(&[("SKILL.md", "x")]);
    server.take_requests();
    let known = Some(format!("main@sha1:{commit}"));
    let found = fetch_from(&server, Wanted { known: known.clone(), ..wanted(&server) }).await;
    assert!(matches!(found, Ok(Found::Unchanged)), "{found:?}");
    assert_eq!(server.take_requests().len(), 2, "the greeting and the list of references");
    // A force push to another history is another revision.
    repository.git(&["commit", "--quiet", "--amend", "--message=other"]);
    let pushed = repository.commit(&[("SKILL.md", "y")]);
    let files = files(&server, Wanted { known, ..wanted(&server) }).await;
    assert_eq!(files.revision, format!("main@sha1:{pushed}"));
}

#[tokio::test]
async fn a_directory_a_selection_links_and_large_files() {
    let server = GitServer::start().await;
    let repository = server.repository("skills");
    fs::create_dir_all(repository.work.join("team/pdf/node_modules")).unwrap();
    fs::write(repository.work.join("team/pdf/node_modules/x.js"), "x").unwrap();
    fs::write(repository.work.join("team/pdf/movie.bin"), vec![0; (1 << 20) + 1]).unwrap();
    std::os::unix::fs::symlink("SKILL.md", repository.work.join("team/pdf/link.md")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", repository.work.join("team/pdf/out")).unwrap();
    repository.commit(&[("team/pdf/SKILL.md", "pdf"), ("team/drafts/SKILL.md", "draft"), ("x.md", "x")]);
    let selection = Selection::new(&[], &["drafts/".to_owned()]);
    let found = files(&server, Wanted { path: "team/".to_owned(), selection, ..wanted(&server) }).await;
    let expected = [("pdf/SKILL.md", "pdf"), ("pdf/link.md", "pdf"), ("pdf/movie.bin", "(too large)")];
    assert_eq!(texts(&found.tree), expected.map(|(path, text)| (path.to_owned(), text.to_owned())).into());
    assert_eq!(found.tree.resolve().refused_links, [("pdf/out".to_owned(), "leads out of the folder")]);
    for path in ["nothing", "x.md"] {
        let error = failure(&server, Wanted { path: path.to_owned(), ..wanted(&server) }).await;
        assert!(error.to_string().ends_with(&format!("has no directory {path}; see spec.path")), "{error}");
    }
}

#[tokio::test]
async fn one_bad_path_costs_its_file_only() {
    let server = GitServer::start().await;
    let repository = server.repository("skills");
    repository.commit(&[("a/SKILL.md", "a"), ("b\\c/SKILL.md", "b")]);
    let deep = "d/".repeat(40);
    repository.commit(&[(&format!("{deep}SKILL.md"), "d")]);
    let found = files(&server, wanted(&server)).await;
    assert_eq!(texts(&found.tree).keys().collect::<Vec<_>>(), ["a/SKILL.md"]);
    let reasons: Vec<&str> = found.refused.iter().map(|(_, reason)| reason.as_str()).collect();
    assert!(reasons[0].contains("is no path inside the folder"), "{reasons:?}");
    assert_eq!(reasons[1], "lies more than 32 directories deep");
}

#[tokio::test]
async fn what_is_not_there_is_named() {
    let server = GitServer::start().await;
    server.repository("skills").commit(&[("SKILL.md", "x")]);
    let missing = "0123456789012345678901234567890123456789";
    for (reference, name) in [
        (Some(reference(Some("gone"), None, None)), "branch gone".to_owned()),
        (Some(reference(None, Some("v9"), None)), "tag v9".to_owned()),
        (Some(reference(None, None, Some(missing))), format!("commit {missing}")),
    ] {
        let error = failure(&server, Wanted { reference, ..wanted(&server) }).await;
        assert_eq!(error, Failure::RevisionNotFound(Place::Git, name));
    }
    server.repository("empty");
    let error = failure(&server, Wanted { url: server.url("empty"), ..wanted(&server) }).await;
    assert_eq!(error, Failure::RevisionNotFound(Place::Git, "default branch".to_owned()));
    let error = failure(&server, Wanted { url: server.url("other"), ..wanted(&server) }).await;
    assert!(matches!(&error, Failure::AccessDenied(text) if text.contains("404")), "{error:?}");
}

#[tokio::test]
async fn failures_of_servers_have_words_of_their_own_and_their_pages_are_not_shown() {
    let server = GitServer::start().await;
    server.repository("skills").commit(&[("SKILL.md", "x")]);
    let host = server.host.split(':').next().unwrap().to_owned();
    for (mood, expected) in [
        (
            Mood::Private,
            Failure::AccessDenied(format!(
                "{host} answered 401 Unauthorized; name a Secret in spec.git.secretRef"
            )),
        ),
        (Mood::Status(503), Failure::Unavailable(format!("{host} answered 503 Service Unavailable"))),
        (
            Mood::RedirectTo("http://127.0.0.1:1".to_owned()),
            Failure::HostNotAllowed("127.0.0.1:1".to_owned()),
        ),
        (
            Mood::RedirectTo("http://169.254.169.254".to_owned()),
            Failure::HostNotAllowed("169.254.169.254".to_owned()),
        ),
    ] {
        server.set_mood("skills", mood);
        assert_eq!(failure(&server, wanted(&server)).await, expected);
    }
    for text in ["", "0000", "secret page", "zzzz", "001e# service=git-upload-pack\n0000ffff"] {
        server.set_mood("skills", Mood::Text(text.to_owned()));
        let error = failure(&server, wanted(&server)).await;
        assert!(
            matches!(&error, Failure::Invalid(_) | Failure::RevisionNotFound(Place::Git, _)),
            "{text}: {error:?}"
        );
    }
    server.set_mood("skills", Mood::RedirectTo(format!("http://{}", server.host)));
    let error = failure(&server, wanted(&server)).await;
    assert_eq!(error, Failure::Unavailable("the request failed: too many redirects".to_owned()));
}

#[tokio::test]
async fn a_slow_server_ends_at_the_deadline_and_an_endless_one_at_the_limit() {
    let server = GitServer::start().await;
    server.set_mood("skills", Mood::Silent);
    let short = Duration::from_millis(200);
    let error = fetch_as(wanted(&server), &[&server.host], Credentials::default(), short).await;
    assert_eq!(error.unwrap_err(), Failure::TimedOut);
    server.set_mood("skills", Mood::Endless);
    let error = failure(&server, wanted(&server)).await;
    assert_eq!(error, Failure::TooLarge("the repository has more than 256 MiB".to_owned()));
    drop(server);
}

#[tokio::test]
async fn hosts_and_credentials_are_checked_before_a_byte_is_sent() {
    let server = GitServer::start().await;
    let error = fetch_as(wanted(&server), &["github.com"], Credentials::default(), LIMIT).await;
    assert_eq!(error.unwrap_err(), Failure::HostNotAllowed(server.host.clone()));
    let credentials =
        Credentials { authorization: Some(HeaderValue::from_static("Bearer x")), ..Credentials::default() };
    let error = fetch_as(wanted(&server), &[&server.host], credentials, LIMIT).await;
    assert!(error.unwrap_err().to_string().contains("credentials are not sent without TLS"));
    assert_eq!(server.take_requests(), []);
}

#[tokio::test]
async fn a_private_repository_needs_its_secret_and_the_authority_of_its_certificate() {
    let (server, certificate) = GitServer::start_tls().await;
    server.repository("skills").commit(&[("SKILL.md", "x")]);
    server.set_mood("skills", Mood::Private);
    let credentials = |header: &'static str, authorities: &str| Credentials {
        authorization: Some(HeaderValue::from_static(header)),
        authorities: authorities.as_bytes().to_vec(),
    };
    let fetched = async |credentials| fetch_as(wanted(&server), &[&server.host], credentials, LIMIT).await;
    let found = fetched(credentials(AUTHORIZATION, &certificate)).await;
    assert!(matches!(found, Ok(Found::Files(_))), "{found:?}");
    let error = fetched(credentials("Basic b2xkOm9sZA==", &certificate)).await.unwrap_err();
    assert!(
        error.to_string().ends_with("401 Unauthorized; check the Secret of spec.git.secretRef"),
        "{error}"
    );
    let error = fetched(credentials(AUTHORIZATION, "")).await.unwrap_err();
    assert!(matches!(&error, Failure::Unavailable(text) if text.contains("certificate")), "{error:?}");
    let error = fetched(credentials(AUTHORIZATION, "no PEM")).await.unwrap_err();
    assert!(matches!(&error, Failure::Secret(..)), "{error:?}");
    // Another allowed host gets no credentials.
    let other = GitServer::start().await;
    other.set_mood("skills", Mood::RedirectTo(format!("https://{}", server.host)));
    server.take_requests();
    let hosts = [other.host.as_str(), server.host.as_str()];
    let open = Credentials { authorization: None, authorities: certificate.into_bytes() };
    let error = fetch_as(wanted(&other), &hosts, open, LIMIT).await.unwrap_err();
    assert!(matches!(error, Failure::AccessDenied(_)), "{error:?}");
    assert!(server.take_requests().iter().all(|(_, credentials)| credentials.is_none()));
}

/// A tree that names itself ten times on each of ten levels has ten thousand million files in two kilobytes.
#[tokio::test]
async fn a_bomb_of_trees_is_refused_soon() {
    let server = GitServer::start().await;
    let repository = server.repository("skills");
    repository.commit(&[("SKILL.md", "x")]);
    let mut tree = repository.git(&["rev-parse", "HEAD^{tree}"]);
    for _ in 0..10 {
        let lines: Vec<String> = (0..10).map(|n| format!("040000 tree {tree}\td{n}")).collect();
        fs::write(repository.work.join("lines"), lines.join("\n")).unwrap();
        tree = repository.git(&["-c", "alias.make=!git mktree < lines", "make"]);
    }
    let commit = repository.git(&["commit-tree", "-m", "bomb", &tree]);
    repository.git(&["push", "--quiet", "--force", "origin", &format!("{commit}:refs/heads/main")]);
    let error = failure(&server, wanted(&server)).await;
    assert!(matches!(&error, Failure::TooLarge(text) if text.contains("more than")), "{error}");
}

/// A file of a gigabyte of zeros takes a megabyte in a pack.
#[tokio::test]
async fn a_bomb_of_zeros_is_refused_without_its_memory() {
    let server = GitServer::start().await;
    let repository = server.repository("skills");
    let file = fs::File::create(repository.work.join("zeros")).unwrap();
    file.set_len(200 << 20).unwrap();
    drop(file);
    repository.commit(&[("SKILL.md", "x")]);
    let result = fetch_from(&server, wanted(&server)).await;
    let error = result.unwrap_err();
    assert!(matches!(error, Failure::Invalid(_) | Failure::TooLarge(_)), "{error:?}");
}
