//! Unmodified clients that are no packages of Debian's: libraries of Python, HTTP/2, and a static program in Go.
//!
//! `$SKILLET_CLIENTS` is the folder that e2e/egress/install-clients.sh prints. The sandbox lane sets it.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use support::clients::Check;
use support::servers::Web;
use support::{script, script_of};

/// Module, script, and what it prints.
const PACKAGES: &[(&str, &str, &str)] = &[
    (
        "requests",
        "import requests; print(requests.get('http://web.example/hello').text)",
        "hello web.example\n\n",
    ),
    (
        "requests",
        "import os, requests; print(requests.get('https://web.example/hello', verify=os.environ['CERTIFICATE']).text)",
        "hello web.example\n\n",
    ),
    (
        "httpx",
        "import asyncio, httpx
async def main():
    async with httpx.AsyncClient() as client:
        print(len(await asyncio.gather(*(client.get('http://web.example/hello') for _ in range(20)))))
asyncio.run(main())",
        "20\n",
    ),
    (
        "aiohttp",
        "import aiohttp, asyncio
async def main():
    async with aiohttp.ClientSession() as session, session.get('http://web.example/hello') as response:
        print(await response.text())
asyncio.run(main())",
        "hello web.example\n\n",
    ),
    (
        "grpc",
        "import concurrent.futures, grpc
server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
method = grpc.unary_unary_rpc_method_handler(lambda request, context: request[::-1])
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler('s', {'m': method}),))
port = server.add_insecure_port('127.0.0.1:0')
server.start()
print(grpc.insecure_channel(f'127.0.0.1:{port}').unary_unary('/s/m')(b'abc', timeout=5))
host = grpc.insecure_channel('grpc.example:50051')
print(host.unary_unary('/s/m')(b'from the host', timeout=10))
print(list(host.unary_stream('/s/n')(b'abc', timeout=10)))
try:
    grpc.insecure_channel('grpc.example:50052').unary_unary('/s/m')(b'abc', timeout=10)
except grpc.RpcError as error:
    print(error.code().name)",
        "b'cba'\nb'tsoh eht morf'\n[b'a', b'b', b'c']\nUNAVAILABLE\n",
    ),
    (
        "dns",
        "import dns.resolver
resolver = dns.resolver.Resolver(configure=False)
resolver.nameservers = ['9.9.9.9']
print([str(address) for address in resolver.resolve('web.example', 'A')])",
        "['198.18.1.0']\n",
    ),
];

/// Answers `/s/m` with the bytes backward, and `/s/n` with each of them.
const GRPC_SERVER: &str = "import concurrent.futures, grpc, sys
server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
methods = {'m': grpc.unary_unary_rpc_method_handler(lambda request, context: request[::-1]),
           'n': grpc.unary_stream_rpc_method_handler(lambda request, context: (bytes([byte]) for byte in request))}
server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler('s', methods),))
port = server.add_insecure_port('127.0.0.1:0')
server.start()
print(port, flush=True)
sys.stdin.read()";

fn folder(check: &mut Check<'_>) -> Option<PathBuf> {
    let folder = std::env::var_os("SKILLET_CLIENTS").map(PathBuf::from);
    if folder.is_none() {
        check.missing("SKILLET_CLIENTS names no folder");
    }
    folder
}

/// A server outside of the sandbox, until it is dropped.
struct Server {
    child: Child,
    at: SocketAddr,
}

impl Server {
    /// Starts a server that prints its port.
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, at: SocketAddr::from((Ipv4Addr::LOCALHOST, line.trim().parse().unwrap())) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn clients_in_packages_of_python_reach_allowed_hosts() {
    let web = Web::start();
    let mut check = Check::new(&web);
    if let Some(folder) = folder(&mut check) {
        let python = folder.join("python/bin/python");
        let grpc = Server::start(Command::new(&python).args(["-c", GRPC_SERVER]));
        check.hosts.push(("grpc.example", 50051, grpc.at));
        let python = python.to_str().unwrap();
        for (module, content, expected) in PACKAGES {
            check.client(python, module, script_of(python, "main.py", content), expected);
        }
    }
    check.finish();
}

#[test]
fn a_static_program_in_go_and_curl_speak_http_2_with_an_allowed_host() {
    let web = Web::start();
    let mut check = Check::new(&web);
    if let Some(folder) = folder(&mut check) {
        let client = folder.join("client");
        let (certificate, key) = (web.certificate(), web.key());
        let http2 = Server::start(Command::new(&client).arg("serve").args([&certificate, &key]));
        check.hosts.push(("web.example", 8443, http2.at));
        let client = client.to_str().unwrap();
        let get = format!(
            "export SSL_CERT_FILE=$CERTIFICATE; {client} get http://web.example/hello https://web.example/hello https://web.example:8443/"
        );
        let expected = "HTTP/1.1 hello web.example\nHTTP/1.1 hello web.example\nHTTP/2.0 hello web.example:8443 over HTTP/2.0\n";
        check.client(client, "get", script(&get), expected);
        let refused = format!(
            "{client} get http://other.example/ | grep -o 'no such host'; {client} get http://10.0.0.1/ | grep -o 'connect: .*'"
        );
        check.client(client, "errors", script(&refused), "no such host\nconnect: permission denied\n");
        let curl = "curl -sS --http2 --cacert $CERTIFICATE -w '%{http_version}\\n' https://web.example:8443/";
        check.client("/usr/bin/curl", "HTTP/2", script(curl), "hello web.example:8443 over HTTP/2.0\n2\n");
        let many = "curl -sS --http2 -Z --parallel-max 50 --cacert $CERTIFICATE 'https://web.example:8443/[1-50]' | sort | uniq -c | tr -s ' '";
        check.client(
            "/usr/bin/curl",
            "HTTP/2 streams",
            script(many),
            " 50 hello web.example:8443 over HTTP/2.0\n",
        );
    }
    check.finish();
}
