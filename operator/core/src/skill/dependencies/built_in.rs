//! Modules that come with Python 3.13 and Node.js 24 in Skillet's runtimes. Authors declare some as packages, which are backports.

use skillet_api::skill::Runtime;

/// The standard library, in the form of package names.
const PYTHON: &str = "\
    abc argparse array ast asyncio atexit base64 bdb binascii bisect builtins bz2 cprofile calendar cmath cmd code \
    codecs codeop collections colorsys compileall concurrent configparser contextlib contextvars copy copyreg csv \
    ctypes dataclasses datetime decimal difflib dis doctest email encodings enum errno faulthandler fcntl filecmp \
    fileinput fnmatch fractions ftplib functools gc genericpath getopt getpass gettext glob graphlib grp gzip \
    hashlib heapq hmac html http imaplib importlib inspect io ipaddress itertools json keyword linecache locale \
    logging lzma mailbox marshal math mimetypes mmap modulefinder multiprocessing netrc ntpath numbers opcode \
    operator optparse os pathlib pdb pickle pickletools pkgutil platform plistlib poplib posix posixpath pprint \
    profile pstats pty pwd py-compile pyclbr pydoc pyexpat queue quopri random re reprlib resource rlcompleter \
    runpy sched secrets select selectors shelve shlex shutil signal site smtplib socket socketserver sqlite3 ssl \
    stat statistics string stringprep struct subprocess symtable sys sysconfig syslog tabnanny tarfile tempfile \
    termios textwrap threading time timeit token tokenize tomllib trace traceback tracemalloc tty types typing \
    unicodedata unittest urllib uuid warnings wave weakref webbrowser wsgiref xml xmlrpc zipapp zipfile zipimport \
    zlib zoneinfo";

const NODE: &str = "\
    assert async_hooks buffer child_process cluster console constants crypto dgram diagnostics_channel dns domain \
    events fs http http2 https inspector module net os path perf_hooks process punycode querystring readline repl \
    stream string_decoder sys timers tls trace_events tty url util v8 vm wasi worker_threads zlib";

/// True for a package name that is a module of the runtime itself.
pub(super) fn has(runtime: Runtime, package: &str) -> bool {
    let modules = match runtime {
        Runtime::Python => PYTHON,
        Runtime::Node => NODE,
        Runtime::Shell => "",
    };
    modules.split_ascii_whitespace().any(|module| module == package)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_of_the_runtimes_are_known() {
        assert!(has(Runtime::Python, "argparse") && has(Runtime::Python, "zoneinfo"));
        assert!(has(Runtime::Node, "fs") && has(Runtime::Node, "worker_threads"));
        assert!(
            !has(Runtime::Python, "requests") && !has(Runtime::Node, "chalk") && !has(Runtime::Shell, "fs")
        );
    }

    /// A package that comes into an image has to come into this list.
    #[test]
    fn the_images_have_no_packages_of_python_and_node() {
        let python = include_str!("../../../../../sandbox-images/python/packages");
        assert!(python.lines().all(|line| !line.starts_with("python3-")), "{python}");
        let node = include_str!("../../../../../sandbox-images/node/npm");
        let packages = node.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let names: Vec<&str> = packages.filter_map(|line| line.split_whitespace().nth(1)).collect();
        assert!(names.iter().all(|name| name.starts_with("node-linux-")), "{names:?}");
    }
}
