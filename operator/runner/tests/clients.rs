//! Unmodified clients in a sandbox with named egress: each reaches an allowed host by its name, and no other.
//!
//! A client that this machine does not have is skipped, but for the sandbox lane. `clients_installed` has those of no package.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::path::Path;
use std::process::Command;

use support::bundle::{Level, Sandbox, runc};
use support::clients::{Check, hosts, networked};
use support::servers::{PYTHON, Web};
use support::{script, script_of};

/// One client: the program that must exist, a name, the shell script, and what it prints at its end.
type Client = (&'static str, &'static str, &'static str, &'static str);

/// `web.example` serves HTTP and HTTPS; the certificate is at $CERTIFICATE.
const SHELL: &[Client] = &[
    ("/usr/bin/curl", "http", "curl -sS http://web.example/hello", "hello web.example\n"),
    (
        "/usr/bin/curl",
        "https",
        "curl -sS --cacert $CERTIFICATE https://web.example/hello",
        "hello web.example\n",
    ),
    (
        "/usr/bin/curl",
        "post",
        "head -c 5000000 /dev/zero >body; curl -sS --data-binary @body http://web.example/count",
        "5000000 bytes\n",
    ),
    (
        "/usr/bin/curl",
        "large",
        "curl -sS http://web.example/size/30000000 | wc -c; curl -sS --cacert $CERTIFICATE https://web.example/size/3000000 | wc -c",
        "30000000\n3000000\n",
    ),
    (
        "/usr/bin/curl",
        "parallel",
        "curl -sS -Z --parallel-max 50 --parallel-immediate 'http://web.example/size/[1001-1050]' | wc -c",
        "51275\n",
    ),
    (
        "/usr/bin/curl",
        "errors",
        "curl -sS http://other.example/; echo $?; curl -sS http://web.example:81/; echo $?; curl -sS http://10.0.0.1/; echo $?",
        "6\n7\n7\n",
    ),
    ("/usr/bin/wget", "wget", "wget -q -O - http://web.example/hello", "hello web.example\n"),
    ("/usr/bin/busybox", "wget", "busybox wget -q -O - http://web.example/hello", "hello web.example\n"),
    (
        "/usr/bin/busybox",
        "nslookup",
        "busybox nslookup web.example 9.9.9.9 | grep -A1 Name; busybox nslookup -type=a other.example 9.9.9.9 | grep -c NXDOMAIN",
        "Name:\tweb.example\nAddress: 198.18.1.0\n1\n",
    ),
    (
        "/usr/bin/dig",
        "dig",
        "dig +short @1.1.1.1 web.example; dig +tcp +short @1.1.1.1 web.example",
        "198.18.1.0\n198.18.1.0\n",
    ),
    (
        "/usr/bin/getent",
        "getent",
        "getent ahostsv4 web.example | head -1",
        "198.18.1.0      STREAM web.example\n",
    ),
    (
        "/usr/bin/git",
        "git",
        "git ls-remote http://web.example/repo.git | cut -f2; git clone -q http://web.example/repo.git copy && cat copy/file",
        "HEAD\nrefs/heads/main\ncontent\n",
    ),
    (
        "/usr/bin/openssl",
        "s_client",
        "printf 'GET /hello HTTP/1.0\\r\\nHost: web.example\\r\\n\\r\\n' | openssl s_client -quiet -connect web.example:443 -CAfile $CERTIFICATE -verify_return_error -ign_eof 2>/dev/null | tail -1",
        "hello web.example\n",
    ),
    (
        "/usr/bin/nc",
        "nc",
        "printf 'GET /hello HTTP/1.0\\r\\nHost: w\\r\\n\\r\\n' | nc web.example 80 | tail -1",
        "hello w\n",
    ),
    (
        "/bin/bash",
        "/dev/tcp",
        "bash -c 'exec 3<>/dev/tcp/web.example/80; printf \"GET /hello HTTP/1.0\\r\\nHost: w\\r\\n\\r\\n\" >&3; tail -1 <&3'",
        "hello w\n",
    ),
    ("/usr/bin/redis-cli", "redis-cli", "redis-cli -h redis.example ping", "PONG\n"),
    (
        "/usr/bin/psql",
        "psql",
        "PGCONNECT_TIMEOUT=5 psql -w 'host=postgres.example user=u dbname=d' 2>&1 | tail -1",
        "psql: error: connection to server at \"postgres.example\" (198.18.1.3), port 5432 failed: FATAL:  go away\n",
    ),
    (
        "/usr/bin/ssh",
        "ssh",
        "ssh -F none -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null u@ssh.example 2>&1 | tail -1 | tr -d '\\r'",
        "Connection closed by 198.18.1.4 port 22\n",
    ),
    (
        "/usr/bin/pip3",
        "pip",
        "pip3 --disable-pip-version-check download -q --no-deps --index-url http://web.example/simple --trusted-host web.example -d . nothing && ls *.whl",
        "nothing-1.0-py3-none-any.whl\n",
    ),
    (
        "/usr/bin/chromium",
        "chromium",
        "chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-zygote --user-data-dir=$PWD/profile --dump-dom http://web.example/hello 2>errors | grep -o 'hello web.example'",
        "hello web.example\n",
    ),
];

/// A repository and a package index, as files.
fn fill(folder: &Path) {
    let setup = "set -e; git init -q -b main work; cd work; echo content >file; git add file
        git -c user.name=t -c user.email=t@example.com commit -q -m m; git clone -q --bare . ../repo.git
        cd ../repo.git; git update-server-info; cd ..; mkdir -p simple/nothing; cd simple/nothing
        mkdir -p p/nothing-1.0.dist-info; cd p
        printf 'Metadata-Version: 2.1\\nName: nothing\\nVersion: 1.0\\n' >nothing-1.0.dist-info/METADATA
        printf 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n' >nothing-1.0.dist-info/WHEEL
        printf '' >nothing-1.0.dist-info/RECORD
        /usr/bin/python3 -m zipfile -c ../nothing-1.0-py3-none-any.whl nothing-1.0.dist-info
        echo '<a href=\"nothing-1.0-py3-none-any.whl\">nothing</a>' >../index.html";
    assert!(Command::new("/bin/sh").args(["-c", setup]).current_dir(folder).status().unwrap().success());
}

/// A script of tests/clients; its first lines say what it prints.
struct Script {
    name: String,
    interpreter: &'static str,
    content: String,
    prints: String,
}

fn scripts() -> Vec<Script> {
    let folder = std::env::current_dir().unwrap().join("tests/clients");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |file: &std::path::PathBuf| {
        let content = std::fs::read_to_string(file).unwrap();
        let (interpreter, mark) = match file.extension().and_then(|kind| kind.to_str()) {
            Some("py") => (PYTHON, "# prints: "),
            Some("js") => ("/usr/bin/node", "// prints: "),
            Some("java") => ("/usr/bin/java", "// prints: "),
            _ => panic!("{} has no interpreter", file.display()),
        };
        let lines = content.lines().map_while(|line| line.strip_prefix(mark));
        let prints: String = lines.flat_map(|line| [line, "\n"]).collect();
        assert_ne!(prints, "", "{} does not say what it prints", file.display());
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        Script { name, interpreter, content, prints }
    };
    files.iter().map(read).collect()
}

#[test]
fn programs_reach_allowed_hosts() {
    let web = Web::start();
    fill(&web.folder.0);
    let mut check = Check::new(&web);
    for (program, name, content, expected) in SHELL {
        check.client(program, name, script(content), expected);
    }
    check.finish();
}

#[test]
fn scripts_reach_allowed_hosts_and_themselves() {
    let web = Web::start();
    let mut check = Check::new(&web);
    for Script { name, interpreter, content, prints } in scripts() {
        check.client(interpreter, &name, script_of(interpreter, &name, &content), &prints);
    }
    check.finish();
}

#[test]
fn scripts_work_at_each_level_of_a_sandbox() {
    let Some(runc) = runc() else { return };
    let web = Web::start();
    let mut failures = vec![];
    for level in [Level::Strict, Level::Compatible, Level::Unprofiled] {
        for Script { name, interpreter, content, prints } in scripts() {
            // The certificate is not in the sandbox, and its processes are too few for the others.
            if interpreter != PYTHON || content.contains("CERTIFICATE") {
                continue;
            }
            let mut sandbox = Sandbox::with(&runc, level, 256 << 20, &["--network"]);
            sandbox.session.with_hosts(&hosts(&web));
            let run = script_of(interpreter, &name, &content);
            let finished = sandbox.session.run(networked(run, &[("web.example", &[80, 443])], 64));
            if finished.stdout() != prints || sandbox.left() != finished.receipt {
                failures.push(format!("{name} at {level:?}: {}{}", finished.stdout(), finished.stderr()));
            }
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}
