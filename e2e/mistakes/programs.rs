//! Programs that people type, run to their ends with all they print.

use std::{fs, path::Path, process::Stdio};

use anyhow::{Context as _, Result};
use tokio::{io::AsyncWriteExt as _, process::Command};

/// The end of a program.
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    /// Standard error, then standard output.
    pub(crate) text: String,
}

/// Runs a program in a directory with this standard input.
pub(crate) async fn run(
    program: &str,
    arguments: &[&str],
    directory: &Path,
    input: &str,
) -> Result<Finished> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("could not start {program}"))?;
    let mut stdin = child.stdin.take().context("no standard input")?;
    // A program that does not read its input is no fault.
    stdin.write_all(input.as_bytes()).await.ok();
    drop(stdin);
    let output = child.wait_with_output().await?;
    let text = [output.stderr, output.stdout].concat();
    Ok(Finished { code: output.status.code(), text: String::from_utf8_lossy(&text).into_owned() })
}

/// Writes a file below a directory, with the directories above it.
pub(crate) fn write(directory: &Path, path: &str, text: &str) -> Result<()> {
    let path = directory.join(path);
    fs::create_dir_all(path.parent().unwrap_or(directory))?;
    fs::write(&path, text).with_context(|| format!("could not write {}", path.display()))
}
