//! The user's own tool, where it matters that it is that one: it reads YAML in its own way.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};

use crate::journey::Journey;

impl Journey {
    /// Runs kubectl with `input`, in the journey's namespace where the arguments name none; what it prints.
    pub async fn kubectl(&self, arguments: &[&str], input: &str) -> Result<String> {
        let mut command = Command::new("kubectl");
        command.args(arguments);
        if !arguments.contains(&"--namespace") {
            // Before the name of a plugin it would be refused.
            command.args(["--namespace", &self.namespace]);
        }
        let input = input.to_owned();
        tokio::task::spawn_blocking(move || run(command, &input)).await?
    }
}

fn run(mut command: Command, input: &str) -> Result<String> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut kubectl = command.spawn().context("could not start kubectl")?;
    kubectl.stdin.take().context("kubectl has no input")?.write_all(input.as_bytes())?;
    let output = kubectl.wait_with_output()?;
    ensure!(output.status.success(), "kubectl: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
