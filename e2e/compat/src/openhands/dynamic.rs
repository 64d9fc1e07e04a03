//! `dynamic_render`, `dynamic_render_where`: commands in a body. The commands of the cases are run by `sh` in a directory of their own.

use std::{
    io::Read,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use skillet_instructions::dynamic::{BodyPart, CommandEnd, render, split};

use crate::{
    case::Case,
    judge::{Answer, Sense},
};

const TIME_LIMIT: Duration = Duration::from_secs(10);

/// A directory for the commands of one case; removed at its end.
pub(super) struct Shell {
    root: PathBuf,
    limit: Duration,
}

pub(super) fn dynamic_render(case: &Case) -> Result<Answer, String> {
    let shell = Shell::new(case)?;
    let content = case.text("content");
    let rendered = shell.hide_root(&render(content, |command| shell.run(command)));
    let is_same = is_expected(&rendered, &case.expected);
    // Commands that CommonMark shows as code stay text; otherwise the two agree.
    let settle = |text: &str| shell.hide_root(&shell.run_all(text));
    let is_protected = !is_same
        && case.expected["rendered"].as_str().is_some_and(|expected| settle(expected) == settle(&rendered));
    let is_no_text = !is_same && rendered.contains('\u{fffd}');
    let difference = if is_protected {
        Some("code is what CommonMark shows as code")
    } else {
        is_no_text.then_some("bytes that are not UTF-8 are shown as U+FFFD")
    };
    Ok(Answer {
        meets_want: if difference.is_some() { Sense::Met } else { Sense::Unknown },
        difference: difference.map(str::to_owned),
        is_same,
        value: json!({ "rendered": rendered }),
    })
}

/// Commands run when the model calls for the skill, and on no other way.
pub(super) fn dynamic_render_where(case: &Case) -> Result<Answer, String> {
    let activation = case.text("activation").to_lowercase();
    let is_called = ["invoke", "render"].iter().any(|word| activation.contains(word));
    let shell = Shell::new(case)?;
    let content = case.text("content");
    let text = if is_called { render(content, |command| shell.run(command)) } else { content.to_owned() };
    let literal: Vec<&str> = commands(content);
    let is_literal = literal.iter().any(|command| text.contains(&format!("!`{command}`")));
    let value = json!({"command_executed": is_called && !literal.is_empty(), "literal_present": is_literal});
    Ok(Answer::by_fields(case, value, &["command_executed", "literal_present"]))
}

fn commands(content: &str) -> Vec<&str> {
    let parts = split(content).into_iter();
    parts
        .filter_map(|part| if let BodyPart::Command(command) = part { Some(command) } else { None })
        .collect()
}

fn is_expected(rendered: &str, expected: &Value) -> bool {
    if let Some(whole) = expected["rendered"].as_str() {
        return rendered == whole;
    }
    if let Some(start) = expected["rendered_starts_with"].as_str() {
        return rendered.starts_with(start);
    }
    let text = |field: &str| expected[field].as_str().unwrap_or_default();
    let bytes = expected["rendered_bytes"].as_u64();
    bytes == u64::try_from(rendered.len()).ok()
        && rendered.starts_with(text("starts_with"))
        && rendered.ends_with(text("ends_with"))
}

impl Shell {
    pub(super) fn new(case: &Case) -> Result<Self, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("skillet-compat-{}-{number}", std::process::id()));
        let limit = ["timeout", "timeout_seconds"].iter().find_map(|field| case.input[field].as_f64());
        let limit = limit.map_or(TIME_LIMIT, Duration::from_secs_f64);
        let shell = Self { root, limit };
        let not_written = |error: std::io::Error| format!("could not write the case's files: {error}");
        std::fs::create_dir_all(shell.directory()).map_err(not_written)?;
        for (path, text) in case.input["working_dir_files"].as_object().into_iter().flatten() {
            let is_name = !path.contains('/') && path != "..";
            let text =
                text.as_str().filter(|_text| is_name).ok_or("a file of the case is no text or no name")?;
            std::fs::write(shell.directory().join(path), text).map_err(not_written)?;
        }
        Ok(shell)
    }

    fn directory(&self) -> PathBuf {
        self.root.join("w")
    }

    pub(super) fn run(&self, command: &str) -> CommandEnd {
        let child = Command::new("sh")
            .args(["-c", command])
            .current_dir(self.directory())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        match child {
            Ok(child) => self.wait(child),
            Err(error) => CommandEnd::Failed { reason: error.to_string() },
        }
    }

    /// Runs what looks like a command, whether Markdown protects it or not.
    fn run_all(&self, text: &str) -> String {
        let mut output = String::new();
        let mut rest = text;
        while let Some((before, (command, after))) =
            rest.split_once("!`").and_then(|(before, behind)| Some((before, behind.split_once('`')?)))
        {
            output.push_str(before);
            output.push_str(&skillet_instructions::dynamic::output(command, self.run(command)));
            rest = after;
        }
        output + rest
    }

    fn wait(&self, mut child: Child) -> CommandEnd {
        let stdout = child.stdout.take().map(|pipe| thread::spawn(move || read_all(pipe)));
        let stderr = child.stderr.take().map(|pipe| thread::spawn(move || read_all(pipe)));
        let deadline = Instant::now() + self.limit;
        let status = loop {
            match child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(2)),
                Ok(None) => {
                    child.kill().ok();
                    child.wait().ok();
                    return CommandEnd::TimedOut { limit: self.limit };
                }
                Err(error) => return CommandEnd::Failed { reason: error.to_string() },
            }
        };
        let bytes = |reader: Option<thread::JoinHandle<Vec<u8>>>| {
            reader.and_then(|reader| reader.join().ok()).unwrap_or_default()
        };
        CommandEnd::Exited {
            code: status.code().or(status.signal().map(|signal| -signal)).unwrap_or(-1),
            stdout: bytes(stdout),
            stderr: String::from_utf8_lossy(&bytes(stderr)).into_owned(),
        }
    }

    fn hide_root(&self, text: &str) -> String {
        text.replace(&path_text(&self.root), "$ROOT")
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.root).ok();
    }
}

fn read_all(mut pipe: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    pipe.read_to_end(&mut bytes).ok();
    bytes
}

/// The path as a shell shows it.
fn path_text(path: &Path) -> String {
    path.canonicalize().unwrap_or_else(|_| path.to_owned()).display().to_string()
}
