//! `kubectl skill logs`: prints what the status keeps of a program's standard output and standard error.

use kube::Api;
use skillet_api::{Phase, SkillExecution, SkillExecutionStatus, execution::StreamStatus};

use crate::{
    arguments::{ClusterArgs, LogsArgs, Stream},
    connection::{ClusterClient, connect},
    console::{self, Console, printable},
    error::CliError,
    exit::Exit,
    output_format::OutputFormat,
    result::has_ended,
    run::{self, Interrupts, Progress, render_output},
};

pub(crate) async fn run(cluster: &ClusterArgs, args: &LogsArgs, console: &Console) -> Result<Exit, CliError> {
    let ClusterClient { client, namespace } = connect(cluster).await?;
    let LogsArgs { name, follow, stream } = args;
    let mut execution = name.read(&client, &namespace).await?;
    if *follow && !has_ended(&execution) {
        let api: Api<SkillExecution> = Api::namespaced(client, &namespace);
        let mut progress = Progress::quiet(name.as_str());
        execution = run::follow(&api, &execution, None, &mut Interrupts::none(), &mut progress).await?;
    }
    if !has_ended(&execution) {
        return Err(CliError::NotEnded { namespace, name: name.to_string() });
    }
    let status = execution.status.unwrap_or_default();
    if *stream != Stream::Stdout {
        // Text of a program on a terminal; in a file it is exact.
        let text = status.stderr.as_ref().map(kept).unwrap_or_default();
        console::explain(&if console.is_error_terminal() { printable(&text) } else { text });
    }
    if *stream != Stream::Stderr {
        console.print(&standard_output(&status)?)?;
    }
    Ok(Exit::Done)
}

/// Standard output as the status keeps it. That of a success is its output, unless it was cut.
fn standard_output(status: &SkillExecutionStatus) -> Result<String, CliError> {
    // What is kept as output is counted in `stdout` only.
    let stdout = status.stdout.as_ref().filter(|stdout| !stdout.head.is_empty() || !stdout.tail.is_empty());
    match (stdout, &status.output) {
        (Some(stdout), _) => Ok(kept(stdout)),
        (None, Some(output)) if status.phase == Phase::Succeeded => {
            render_output(output, &OutputFormat::Text)
        }
        (None, _) => Ok(status.stdout.as_ref().map(kept).unwrap_or_default()),
    }
}

/// Beginning and end of a stream, with a line for the missing part.
fn kept(stream: &StreamStatus) -> String {
    let StreamStatus { head, tail, bytes, sha256 } = stream;
    let kept = u64::try_from(head.len() + tail.len()).unwrap_or(u64::MAX);
    let missing = bytes.saturating_sub(kept);
    if missing == 0 {
        return format!("{head}{tail}");
    }
    let end_of_line = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
    format!("{head}{end_of_line}[{missing} of {bytes} bytes are not kept; sha256 of all: {sha256}]\n{tail}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stream(head: &str, tail: &str, bytes: u64) -> StreamStatus {
        StreamStatus { head: head.into(), tail: tail.into(), bytes, sha256: "ab".into() }
    }

    #[test]
    fn a_stream_that_was_cut_names_the_missing_bytes() {
        assert_eq!(kept(&stream("one ", "two\n", 8)), "one two\n");
        assert_eq!(
            kept(&stream("one", "two\n", 107)),
            "one\n[100 of 107 bytes are not kept; sha256 of all: ab]\ntwo\n"
        );
    }

    #[test]
    fn the_standard_output_of_a_success_is_its_output() {
        let status = SkillExecutionStatus {
            phase: Phase::Succeeded,
            output: Some(json!({ "output": "three words\n" })),
            stdout: Some(stream("", "", 12)),
            ..SkillExecutionStatus::default()
        };
        assert_eq!(standard_output(&status).unwrap(), "three words\n");
        let failed = SkillExecutionStatus {
            phase: Phase::Failed,
            stdout: Some(stream("halfway\n", "", 8)),
            ..SkillExecutionStatus::default()
        };
        assert_eq!(standard_output(&failed).unwrap(), "halfway\n");
    }
}
