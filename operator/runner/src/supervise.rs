//! Runs one accepted program to its end: feeds its input, forwards its output, obeys orders and the clock.
//!
//! # Guarantees
//!
//! - A run ends with the program itself, not with its pipes. Processes that it leaves behind are killed.
//! - Time limit, grace and cancel hold whatever the program does, and while nobody reads its output.
//! - A lost operator does not end the program; the receipt still reports the result.
//!
//! One thread polls everything. `termination` decides about time without I/O; `confine` starts the program.

use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, Timespec};
use rustix::process::{Pid, Signal};
use skillet_protocol::{Masker, Run, RunOutcome, RunnerMessage, StreamSummary};

use crate::capture::{Capture, Stream};
use crate::confine::{Confinement, ResourceLimits};
use crate::connection::{Connection, Event};
use crate::handshake::Reaction;
use crate::network::Network;
use crate::processes::Processes;
use crate::program::{Part, Ready, RunningProgram};
use crate::scratch;
use crate::signals::{Received, Signals};
use crate::termination::{Action, Cause, KILL_LIMIT, Termination, outcome};

/// The parts of the runner that a program needs.
pub(crate) struct Sandbox<'a> {
    pub(crate) confinement: &'a Arc<Confinement>,
    pub(crate) processes: Processes,
    pub(crate) signals: &'a Signals,
    pub(crate) scratch: &'a Path,
    /// Processes of this uid that the program's limit must not count.
    pub(crate) other_processes: u64,
}

/// Result of one execution.
pub(crate) struct RunResult {
    pub(crate) outcome: RunOutcome,
    pub(crate) duration: Duration,
    pub(crate) stdout: StreamSummary,
    pub(crate) stderr: StreamSummary,
}

impl Sandbox<'_> {
    /// Starts the program and waits for its end.
    pub(crate) fn run<I: AsFd, O: AsFd>(
        &self,
        mut run: Run,
        mut network: Option<&mut Network>,
        connection: &mut Connection<I, O>,
    ) -> RunResult {
        let masker = Masker::new(run.secret_env.values().map(String::as_str));
        let cap = run.limits.output_bytes;
        let captures =
            [Stream::Stdout, Stream::Stderr].map(|stream| Capture::new(stream, cap, masker.clone()));
        let limit = Duration::from_millis(run.limits.timeout_ms);
        let grace = Duration::from_millis(run.limits.grace_ms);
        let oom_kills = crate::oom_kills::count();
        let hosts = run.network.take();
        if let Some(network) = &mut network {
            network.begin(hosts);
        }

        let started = Instant::now();
        let (outcome, captures) = match self.start(run) {
            Err(message) => (RunOutcome::StartFailed { message }, captures),
            Ok((child, input)) => {
                let mut program = RunningProgram::new(child, input, captures);
                let mut termination = Termination::new(started, limit, grace);
                let mut status =
                    self.supervise(&mut program, &mut termination, network.as_deref_mut(), connection);
                status = self.processes.end_all(program.pid, KILL_LIMIT).or(status);
                let is_oom_killed = crate::oom_kills::count() > oom_kills;
                if is_oom_killed {
                    // Files of scratch are memory that no kill frees, and the runner would be killed next.
                    scratch::clear(self.scratch);
                }
                program.drain(connection);
                if let Some(network) = network {
                    network.finish();
                    connection.send_network(network.take_requests());
                }
                (
                    outcome(status, termination.cause(), is_oom_killed),
                    program.outputs.map(|output| output.capture),
                )
            }
        };
        let duration = started.elapsed();
        let [stdout, stderr] = captures.map(|capture| {
            let (frames, summary) = capture.finish();
            for frame in &frames {
                connection.send(frame);
            }
            summary
        });
        RunResult { outcome, duration, stdout, stderr }
    }

    fn start(&self, run: Run) -> Result<(Child, (VecDeque<u8>, bool)), String> {
        let prepared = scratch::prepare(self.scratch, &run)?;
        let (name, arguments) = prepared.argv.split_first().ok_or("the command is empty")?;
        let mut command = Command::new(name);
        command
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
            .env("HOME", &prepared.work)
            .env("TMPDIR", &prepared.temporary)
            .env("LANG", "C.UTF-8")
            .envs(&run.env)
            .envs(&run.secret_env)
            .current_dir(&prepared.work)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        self.confinement.confine(&mut command, ResourceLimits::new(&run.limits, self.other_processes));
        let child = command.spawn().map_err(|error| format!("could not start {name:?}: {error}"))?;
        let input = (run.input.into_bytes().into(), run.keeps_input_open);
        Ok((child, input))
    }

    /// Waits until the program ends or cannot be ended. Returns its exit status if it ended.
    fn supervise<I: AsFd, O: AsFd>(
        &self,
        program: &mut RunningProgram,
        termination: &mut Termination,
        mut network: Option<&mut Network>,
        connection: &mut Connection<I, O>,
    ) -> Option<ExitStatus> {
        let (mut has_more, mut ready) = (false, Ready::ALL);
        loop {
            if ready.has(Part::Orders) {
                while let Some(event) = connection.next_event() {
                    self.obey(event, program, termination, network.as_deref_mut(), connection);
                }
            }
            program.feed();
            if ready.has(Part::Outputs) {
                program.read(connection);
            }
            if let Some(network) = &mut network {
                network.serve(connection, ready.has(Part::Network));
            }
            let signals = if ready.has(Part::Signals) { self.signals.take() } else { Received::default() };
            if signals.terminate {
                self.stop(Cause::Cancel, termination, program.pid);
            }
            if signals.child || has_more {
                let reaped = Processes::reap(program.pid);
                if reaped.program.is_some() {
                    return reaped.program;
                }
                has_more = reaped.is_cut;
            }
            let action = termination.due(Instant::now());
            if action == Action::Abandon {
                return None;
            }
            self.act(action, program.pid);
            let deadline = if has_more { Some(Instant::now()) } else { termination.deadline() };
            ready = program.wait(self.signals, network.as_deref(), connection, deadline);
            connection.flush();
        }
    }

    fn obey<I: AsFd, O: AsFd>(
        &self,
        event: Event,
        program: &mut RunningProgram,
        termination: &mut Termination,
        network: Option<&mut Network>,
        connection: &mut Connection<I, O>,
    ) {
        match event {
            Event::Order(Reaction::Cancel) => self.stop(Cause::Cancel, termination, program.pid),
            Event::Order(Reaction::Refuse(refused)) => connection.send(&RunnerMessage::Refused(refused)),
            Event::Order(Reaction::Input(bytes)) => program.add_input(&bytes),
            Event::Order(Reaction::Network(response)) => {
                if let Some(network) = network {
                    network.respond(response);
                }
            }
            // The program continues without its operator: the receipt reports its end. Nobody adds to its input.
            Event::Closed => {
                program.add_input(&[]);
                if let Some(network) = network {
                    network.lose_operator();
                }
            }
            Event::Order(Reaction::Greet | Reaction::Accept(_) | Reaction::Ignore) => {}
        }
    }

    fn stop(&self, cause: Cause, termination: &mut Termination, program: Pid) {
        self.act(termination.stop(cause, Instant::now()), program);
    }

    fn act(&self, action: Action, program: Pid) {
        match action {
            Action::Nothing | Action::Abandon => {}
            // The program has not been reaped, so its number still names its group.
            Action::Terminate => drop(rustix::process::kill_process_group(program, Signal::TERM)),
            Action::Kill => self.processes.kill_all(),
        }
    }
}

/// Waits until one of `waits` is ready or `deadline` has passed.
pub(crate) fn wait(waits: &mut [PollFd<'_>], deadline: Option<Instant>) {
    let timeout = deadline.map(|deadline| {
        let left = deadline.saturating_duration_since(Instant::now());
        Timespec {
            tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        }
    });
    // An interrupted wait has found nothing ready: the caller looks at the clock and waits again.
    let _ = rustix::event::poll(waits, timeout.as_ref());
}
