//! Commands about workspaces: their requests to the gateway, and the files that they write here.

use std::{fs, path::PathBuf};

use clap::Parser as _;
use serde_json::{Value, json};

use super::*;
use crate::{
    arguments::{Args, Command, WorkspaceCpArgs},
    testing::{Requests, refusal, server},
};

const PROXY: &str = "/api/v1/namespaces/skillet-system/services/skillet-gateway:http/proxy/api/workspace";

/// A directory of a test, which goes with it.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kubectl-skill-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

fn answers() -> Value {
    let service = json!({ "apiVersion": "v1", "kind": "Service", "spec": { "ports": [{ "name": "http", "port": 80 }] },
        "metadata": { "name": "skillet-gateway", "namespace": "skillet-system" } });
    let entry = |path: &str, bytes: u64, is_folder: bool| json!({ "path": path, "bytes": bytes, "modified": "2026-01-01T00:00:00Z", "isFolder": is_folder });
    json!({
        "GET /api/v1/services": { "apiVersion": "v1", "kind": "ServiceList", "metadata": {}, "items": [service] },
        "POST /api/v1/namespaces/team-a/serviceaccounts/default/token":
            { "spec": { "audiences": [] }, "status": { "token": "t0ken", "expirationTimestamp": "2026-01-01T00:00:00Z" } },
        format!("GET {PROXY}"): { "entries": [
            entry("reports", 5, true), entry("reports/a.txt", 2, false), entry("reports/b/c.txt", 3, false),
        ] },
        format!("GET {PROXY}/file"): "content",
        format!("PUT {PROXY}/file"): { "path": "a", "bytes": 1 },
        format!("DELETE {PROXY}/file"): "",
    })
}

async fn files(answers: Value) -> (Files, Requests) {
    let (connection, requests) = server(answers);
    let command =
        Args::try_parse_from(["kubectl-skill", "workspace", "ls", "--of", "platform"]).unwrap().command;
    let Command::Workspace(WorkspaceCommand::Ls(args)) = command else { panic!("not ls") };
    let gateway = Gateway::find(&connection, &args.workspace.gateway).await.unwrap();
    (Files::new(gateway, args.workspace.of), requests)
}

fn cp(line: &[&str]) -> WorkspaceCpArgs {
    let words = ["kubectl-skill", "workspace", "cp"].iter().chain(line);
    match Args::try_parse_from(words).unwrap().command {
        Command::Workspace(WorkspaceCommand::Cp(args)) => args,
        other => panic!("{other:?}"),
    }
}

/// Copies, and returns the number of files with the requests about files.
async fn copied(line: &[&str]) -> (usize, Vec<String>) {
    let (files, requests) = files(answers()).await;
    let args = cp(line);
    copy::check(&args).unwrap();
    let count = copy::run(&files, &args).await.unwrap();
    let seen = requests.lock().unwrap();
    let about_files = seen.iter().filter(|request| request.target.contains(PROXY));
    let text = |request: &crate::testing::SeenRequest| {
        let method = request.target.split(' ').next().unwrap();
        let path = request.query.trim_end_matches("&namespace=platform").replace("%2F", "/");
        format!("{method} {path} {}", String::from_utf8_lossy(&request.bytes)).trim().to_owned()
    };
    (count, about_files.map(text).collect())
}

#[tokio::test]
async fn files_are_listed_and_removed_for_the_caller() {
    let (files, requests) = files(answers()).await;
    let entries = files.list("reports & more").await.unwrap();
    let expected = "\
PATH              SIZE   MODIFIED
reports/          5 B    2026-01-01T00:00:00Z
reports/a.txt     2 B    2026-01-01T00:00:00Z
reports/b/c.txt   3 B    2026-01-01T00:00:00Z
";
    assert_eq!(table(&entries), expected);
    files.remove("a/b").await.unwrap();
    let requests = requests.lock().unwrap();
    let [.., list, remove] = requests.as_slice() else { panic!("{requests:?}") };
    assert_eq!(list.query, "path=reports%20%26%20more&namespace=platform");
    assert_eq!(remove.target, format!("DELETE {PROXY}/file"));
    assert_eq!(remove.query, "path=a%2Fb&namespace=platform");
    assert_eq!(remove.headers["x-skillet-token"], "t0ken");
}

#[tokio::test]
async fn a_refusal_has_the_words_of_the_gateway() {
    let mut answers = answers();
    answers[format!("DELETE {PROXY}/file")] =
        json!({ "code": 404, "error": { "code": "FileNotFound", "message": "the workspace has no a" } });
    let (files, _) = files(answers).await;
    let error = files.remove("a").await.unwrap_err();
    assert_eq!(error.to_string(), "the gateway refused the request: the workspace has no a");
    assert_eq!(error.exit(), Exit::Refused);
    let (connection, _) = server(json!({ "GET /api/v1/services": refusal(403, "no") }));
    let found = Gateway::find(&connection, &cp(&["a", "workspace:"]).workspace.gateway).await;
    assert!(matches!(found.err(), Some(CliError::Forbidden { .. })));
}

#[tokio::test]
async fn a_file_is_copied_to_the_workspace() {
    let here = Directory::new("up");
    fs::write(here.0.join("a.txt"), "a").unwrap();
    for (to, path) in [("workspace:", "a.txt"), ("workspace:in/", "in/a.txt"), ("workspace:b.txt", "b.txt")] {
        assert_eq!(
            copied(&[&here.path("a.txt"), to]).await,
            (1, vec![format!("PUT path={} a", path.replace('.', "%2E"))])
        );
    }
}

#[tokio::test]
async fn a_folder_is_copied_without_its_links() {
    let here = Directory::new("up-r");
    fs::create_dir_all(here.0.join("d/e")).unwrap();
    fs::write(here.0.join("d/z"), "1").unwrap();
    fs::write(here.0.join("d/e/y"), "2").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", here.0.join("d/link")).unwrap();
    let puts = |prefix: &str| vec![format!("PUT path={prefix}e/y 2"), format!("PUT path={prefix}z 1")];
    assert_eq!(copied(&["-r", &here.path("d"), "workspace:"]).await, (2, puts("")));
    assert_eq!(copied(&[&here.path("d"), "workspace:x/", "--recursive"]).await, (2, puts("x/")));
    let error = copy::check(&cp(&[&here.path("d"), "workspace:"])).unwrap_err();
    assert!(error.to_string().ends_with("d is a directory; -r copies it with its content"), "{error}");
    assert_eq!(error.exit(), Exit::Usage);
}

#[tokio::test]
async fn a_file_is_copied_from_the_workspace() {
    let here = Directory::new("down");
    let slash = here.path("new/");
    for (to, written) in [(here.path("b.txt"), "b.txt"), (here.path(""), "a.txt"), (slash, "new/a.txt")] {
        let (count, seen) = copied(&["workspace:reports/a.txt", &to]).await;
        assert_eq!((count, seen), (1, vec!["GET path=reports/a%2Etxt".to_owned()]), "{to}");
        assert_eq!(here.text(written), "content");
    }
}

#[tokio::test]
async fn a_folder_is_copied_from_the_workspace() {
    let here = Directory::new("down-r");
    let (count, seen) = copied(&["-r", "workspace:reports/", &here.path("to")]).await;
    let expected = ["GET path=reports", "GET path=reports/a%2Etxt", "GET path=reports/b/c%2Etxt"];
    assert_eq!((count, seen), (2, expected.map(String::from).to_vec()));
    assert_eq!((here.text("to/a.txt"), here.text("to/b/c.txt")), ("content".into(), "content".into()));
    let mut empty = answers();
    empty[format!("GET {PROXY}")] = json!({ "entries": [] });
    let error =
        copy::run(&files(empty).await.0, &cp(&["-r", "workspace:x", &here.path("")])).await.unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), error.exit()),
        ("the workspace has no files below \"x\"", Exit::Refused)
    );
}

#[tokio::test]
async fn a_copy_within_one_side_or_of_no_file_is_wrong_usage() {
    for line in [["a", "b"], ["workspace:a", "workspace:b"]] {
        let error = copy::check(&cp(&line)).unwrap_err();
        assert!(error.to_string().starts_with("one of SRC and DST must be in the workspace"), "{error}");
    }
    let (files, _) = files(answers()).await;
    let error = copy::run(&files, &cp(&["/none/x", "workspace:a"])).await.unwrap_err();
    assert!(error.to_string().starts_with("could not read /none/x: "), "{error}");
    assert_eq!(error.exit(), Exit::Usage);
    let error = copy::run(&files, &cp(&["workspace:reports/a.txt", "/dev/null/x"])).await.unwrap_err();
    assert!(error.to_string().starts_with("could not write /dev/null/x: "), "{error}");
    assert_eq!(error.exit(), Exit::Failed);
}
