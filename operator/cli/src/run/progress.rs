//! Progress on standard error while the command waits for an execution.
//!
//! A terminal shows one line that is overwritten; a log gets one line per change, so that it stays short.

use std::time::Duration;

use skillet_api::{Phase, Reason, SkillExecutionStatus};

use crate::{
    console::{self, printable},
    humanize,
};

/// If the operator reports nothing for this long, it probably does not work.
const SILENT_AFTER: Duration = Duration::from_secs(15);

/// The stage of an execution, as people see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProgressStage {
    /// Accepted by the API server, and not seen by an operator.
    Created,
    /// Seen by an operator, which starts its sandbox.
    Starting {
        message: String,
    },
    Queued {
        message: String,
    },
    Running {
        node: Option<String>,
        attempt: u32,
    },
    Ended,
}

pub(crate) fn stage(status: Option<&SkillExecutionStatus>) -> ProgressStage {
    let Some(status) = status else { return ProgressStage::Created };
    match status.phase {
        Phase::Pending if status.reason == Some(Reason::Queued) => {
            ProgressStage::Queued { message: status.message.clone().unwrap_or_default() }
        }
        Phase::Pending => ProgressStage::Starting { message: status.message.clone().unwrap_or_default() },
        Phase::Running => ProgressStage::Running { node: status.node.clone(), attempt: status.attempts },
        Phase::Succeeded | Phase::Failed | Phase::TimedOut | Phase::Cancelled => ProgressStage::Ended,
    }
}

/// Describes a stage; `None` if there is nothing to say.
fn words(stage: &ProgressStage) -> Option<String> {
    Some(match stage {
        ProgressStage::Created => "waiting for its start".to_owned(),
        ProgressStage::Starting { message } if message.is_empty() => "starting sandbox".to_owned(),
        ProgressStage::Starting { message } => format!("starting sandbox: {message}"),
        ProgressStage::Queued { message } if message.is_empty() => "queued".to_owned(),
        ProgressStage::Queued { message } => format!("queued: {message}"),
        ProgressStage::Running { node, attempt } => {
            let on = node.as_ref().map(|node| format!(" on node {node}")).unwrap_or_default();
            let again = if *attempt > 1 { format!(", attempt {attempt}") } else { String::new() };
            format!("running{on}{again}")
        }
        ProgressStage::Ended => return None,
    })
}

/// The amount and the style of progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgressStyle {
    /// Only warnings.
    Quiet,
    /// A line for each change.
    Lines,
    /// One line that is overwritten.
    Live,
}

/// Shows the progress of an execution.
pub(crate) struct Progress {
    style: ProgressStyle,
    name: String,
    stage: ProgressStage,
    is_cancelling: bool,
    is_hint_given: bool,
    turn: usize,
}

impl Progress {
    pub(crate) fn new(style: ProgressStyle, name: &str) -> Self {
        Self {
            style,
            name: name.to_owned(),
            stage: ProgressStage::Created,
            is_cancelling: false,
            is_hint_given: false,
            turn: 0,
        }
    }

    /// Shows the loss of the watch alone.
    pub(crate) fn quiet(name: &str) -> Self {
        Self::new(ProgressStyle::Quiet, name)
    }

    /// Takes a new status.
    pub(crate) fn update(&mut self, status: Option<&SkillExecutionStatus>) {
        let stage = stage(status);
        if stage != self.stage {
            self.stage = stage;
            self.say_stage();
        }
    }

    /// Prints a sentence in every style.
    pub(crate) fn say(&self, sentence: &str) {
        self.clear();
        console::explain(&format!("{}: {sentence}\n", self.name));
    }

    pub(crate) fn announce_cancel(&mut self) {
        self.is_cancelling = true;
        self.say("cancelling; press Ctrl-C again to leave at once");
    }

    /// Refreshes a terminal's line; to be called a few times a second.
    pub(crate) fn tick(&mut self, elapsed: Duration) {
        if is_silent_too_long(&self.stage, elapsed)
            && !self.is_hint_given
            && self.style != ProgressStyle::Quiet
        {
            self.is_hint_given = true;
            self.say("no sign of its start yet; kubectl skill doctor checks the operator");
        }
        if self.style != ProgressStyle::Live {
            return;
        }
        self.turn += 1;
        if let Some(line) = live_line(&self.name, &self.stage, self.is_cancelling, self.turn, elapsed) {
            console::explain(&line);
        }
    }

    /// Clears the line that is overwritten.
    pub(crate) fn clear(&self) {
        if self.style == ProgressStyle::Live {
            console::explain("\r\x1b[K");
        }
    }

    fn say_stage(&self) {
        if self.style != ProgressStyle::Lines {
            return;
        }
        if let Some(words) = words(&self.stage) {
            self.say(&printable(&words));
        }
    }
}

fn is_silent_too_long(stage: &ProgressStage, elapsed: Duration) -> bool {
    *stage == ProgressStage::Created && elapsed >= SILENT_AFTER
}

fn live_line(
    name: &str,
    stage: &ProgressStage,
    is_cancelling: bool,
    turn: usize,
    elapsed: Duration,
) -> Option<String> {
    const TURNS: [char; 4] = ['|', '/', '-', '\\'];
    let words = if is_cancelling { "cancelling".to_owned() } else { printable(&words(stage)?) };
    let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    let turn = TURNS[turn % TURNS.len()];
    // Wrapping is off while the line is written: a wrapped line could not be overwritten.
    Some(format!("\r\x1b[K\x1b[?7l{turn} {name}: {words} ({})\x1b[?7h", humanize::duration(millis)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe(phase: Phase, reason: Option<Reason>, node: Option<&str>, attempts: u32) -> Option<String> {
        let status = SkillExecutionStatus {
            phase,
            reason,
            message: Some("waits for a free place".into()),
            node: node.map(String::from),
            attempts,
            ..SkillExecutionStatus::default()
        };
        words(&stage(Some(&status)))
    }

    #[test]
    fn every_stage_has_its_words() {
        assert_eq!(words(&stage(None)).unwrap(), "waiting for its start");
        assert_eq!(
            describe(Phase::Pending, None, None, 0).unwrap(),
            "starting sandbox: waits for a free place"
        );
        assert_eq!(
            describe(Phase::Pending, Some(Reason::Queued), None, 0).unwrap(),
            "queued: waits for a free place"
        );
        assert_eq!(describe(Phase::Running, None, Some("n1"), 1).unwrap(), "running on node n1");
        assert_eq!(describe(Phase::Running, None, None, 2).unwrap(), "running, attempt 2");
        assert_eq!(describe(Phase::Failed, None, None, 2), None);
    }

    #[test]
    fn a_terminal_s_line_is_written_over_and_never_wraps() {
        let line = live_line("word-count-x", &ProgressStage::Created, false, 0, Duration::from_millis(1_250))
            .unwrap();
        assert_eq!(line, "\r\x1b[K\x1b[?7l| word-count-x: waiting for its start (1.2s)\x1b[?7h");
        let line = live_line("x", &ProgressStage::Created, true, 1, Duration::ZERO).unwrap();
        assert!(line.contains("cancelling"));
        assert_eq!(live_line("x", &ProgressStage::Ended, false, 0, Duration::ZERO), None);
    }

    #[test]
    fn only_silence_at_the_start_is_suspicious() {
        let running = ProgressStage::Running { node: None, attempt: 1 };
        assert!(is_silent_too_long(&ProgressStage::Created, SILENT_AFTER));
        assert!(!is_silent_too_long(&ProgressStage::Created, Duration::from_secs(1)));
        assert!(!is_silent_too_long(&running, SILENT_AFTER));
    }
}
