//! Explains the failure of a program from the end of its standard error: the line that says most, and the rule of the
//! sandbox that it probably ran into.

use crate::text::trim;

/// Words of standard error, in lower case, and the explanation. The first entry that fits counts.
const RULES: [(&[&str], Rule); 6] = [
    (
        &[
            "can't start new thread",
            "cannot fork",
            "can't fork",
            "fork: retry",
            "pthread_create",
            "uv_thread_create",
            "resource temporarily unavailable",
            "blockingioerror: [errno 11]",
        ],
        Rule::Processes,
    ),
    (&["modulenotfounderror", "cannot find module", "err_module_not_found"], Rule::Modules),
    (
        &[
            "urlopen error",
            "fetch failed",
            "getaddrinfo",
            "eai_again",
            "enotfound",
            "enetunreach",
            "name resolution",
            "name or service not known",
            "could not resolve host",
            "network is unreachable",
            "bad address",
            "socket: operation not permitted",
            "can't create socket",
            "socket.socket(",
            "connectionerror",
            "connect eperm",
        ],
        Rule::Network,
    ),
    (&["read-only file system", "erofs"], Rule::ReadOnly),
    (&["permission denied", "eacces"], Rule::NotExecutable),
    (&["bad substitution", "syntax error: unexpected", "illegal option -o pipefail"], Rule::Bash),
];

/// A rule of the sandbox that programs run into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Network,
    Processes,
    ReadOnly,
    Modules,
    NotExecutable,
    Bash,
}

/// Returns an explanation of the failure, if standard error has words of a known one.
pub(super) fn explanation(stderr: &str, processes: u32) -> Option<String> {
    let text = stderr.to_lowercase();
    let (_, rule) = RULES.iter().find(|(words, _)| words.iter().any(|word| text.contains(word)))?;
    Some(match rule {
        Rule::Network => "a sandbox has no network; pass the data in the input".to_owned(),
        Rule::Processes => {
            format!(
                "spec.limits.processes of the Skill allows {processes} processes and threads; raise it or start fewer"
            )
        }
        Rule::ReadOnly => "a program can write only below its working directory".to_owned(),
        Rule::Modules => {
            "a runtime has its standard library and no packages; use an image that has them".to_owned()
        }
        Rule::NotExecutable => {
            "files of a skill cannot be executed; run them with their interpreter, such as sh tool.sh"
                .to_owned()
        }
        Rule::Bash => {
            "the runtime shell has busybox sh; a script for bash needs an image that has it".to_owned()
        }
    })
}

/// Returns the line of standard error that says most: the last error of an interpreter, or else the last line.
pub(super) fn headline(stderr: &str) -> &str {
    let lines = || stderr.lines().map(trim_end).filter(|line| !line.is_empty()).rev();
    lines().find(|line| is_error(line)).or_else(|| lines().next()).map(trim).unwrap_or_default()
}

fn trim_end(line: &str) -> &str {
    line.trim_end()
}

/// Tells if a line is the error of an interpreter, such as `ValueError: no such row`. Lines of a stack are indented.
fn is_error(line: &str) -> bool {
    let name = line.split([':', ' ', '(']).next().unwrap_or_default();
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'));
    is_name && ["Error", "Exception", "Interrupt"].iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_an_interpreter_is_the_headline_else_the_last_line() {
        let python = "Traceback (most recent call last):\n  File \"main.py\", line 2, in <module>\n    x()\nKeyError: 'text'\n";
        let node = "/tmp/main.js:1\nthrow new Error(\"no row\")\n^\n\nError: no row\n    at main.js:1:7 {\n  code: 3\n}\n\nNode.js v22.1.0\n";
        for (stderr, expected) in [
            (python, "KeyError: 'text'"),
            (node, "Error: no row"),
            (
                "json.decoder.JSONDecodeError: Expecting value\n",
                "json.decoder.JSONDecodeError: Expecting value",
            ),
            ("one\ntwo \n\n", "two"),
            (
                "jq: error (at <stdin>:0): Cannot index number",
                "jq: error (at <stdin>:0): Cannot index number",
            ),
            ("", ""),
        ] {
            assert_eq!(headline(stderr), expected, "{stderr}");
        }
    }

    #[test]
    fn errors_that_a_rule_of_the_sandbox_causes_are_explained() {
        for (stderr, part) in [
            ("urllib.error.URLError: <urlopen error [Errno 1] Operation not permitted>", "no network"),
            ("TypeError: fetch failed\n  cause: getaddrinfo EAI_AGAIN example.com", "no network"),
            ("wget: bad address 'example.com'", "no network"),
            ("RuntimeError: can't start new thread", "allows 10 processes"),
            ("sh: can't fork: Resource temporarily unavailable", "allows 10 processes"),
            ("OSError: [Errno 30] Read-only file system: '/x'", "working directory"),
            ("ModuleNotFoundError: No module named 'requests'", "standard library"),
            ("Error: Cannot find module 'lodash'", "standard library"),
            ("sh: ./tool.sh: Permission denied", "interpreter"),
            ("/dev/shm/work/a.sh: line 2: syntax error: bad substitution", "busybox"),
            ("main.sh: line 1: syntax error: unexpected \"(\"", "busybox"),
        ] {
            let explanation = explanation(stderr, 10).unwrap_or_default();
            assert!(explanation.contains(part), "{stderr}: {explanation}");
        }
        assert_eq!(explanation("ValueError: no such row", 10), None);
    }
}
