//! The life of a sandbox: proves the isolation, waits for one run, executes it, leaves a receipt.
//!
//! # Guarantees
//!
//! - The self-test runs before the first order is read, and `Ready` carries its result.
//! - Exactly one receipt is written, to the stream and to the termination message, on every way to the end.
//! - The runner writes nothing before a `Hello`: an attach receives only the output that follows it.
//! - A sandbox without a run ends by itself after the idle limit, a SIGTERM, a cancel or a closed stdin.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use rustix::process::DumpableBehavior;
use skillet_protocol::{Accepted, Isolation, Ready, Receipt, Run, RunnerMessage};

use crate::confine::Confinement;
use crate::connection::{Connection, Event};
use crate::handshake::Reaction;
use crate::network::Network;
use crate::options::Options;
use crate::processes::Processes;
use crate::selftest;
use crate::signals::Signals;
use crate::supervise::{Sandbox, wait};

/// Longest wait of the last frames for a reader that has stopped reading.
const FLUSH_LIMIT: Duration = Duration::from_secs(5);

/// Serves one run on stdin and stdout.
pub(crate) fn serve(options: &Options) -> io::Result<()> {
    let processes = Processes::adopt()?;
    let signals = Signals::new(processes.is_init)?;
    // The program has the same uid: without this it could read the runner's memory and open its descriptors.
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let (confinement, listener) = Confinement::establish(options)?;
    let confinement = Arc::new(confinement);
    let mut network = listener.map(Network::new).transpose()?;
    // The operator's attach is still on its way, so Ready can follow Hello at once.
    let tested = selftest::run(&confinement, options, network.as_mut());

    let has_egress = tested.isolation.named_egress == Some(true);
    let mut connection = Connection::new(io::stdin(), io::stdout(), has_egress)?;
    let until = Instant::now().checked_add(options.idle_limit);
    let receipt = match await_run(&mut connection, &signals, &tested.isolation, until) {
        None => Receipt::unused(tested.isolation),
        Some(run) => {
            let sandbox = Sandbox {
                confinement: &confinement,
                processes,
                signals: &signals,
                scratch: &options.scratch,
                other_processes: tested.other_processes,
            };
            execute(&sandbox, *run, tested.isolation, network.as_mut(), &mut connection)
        }
    };
    write_termination_message(options, &receipt);
    flush(&mut connection);
    Ok(())
}

/// Waits for an accepted run; `None` if this sandbox will never run anything.
fn await_run<I: AsFd, O: AsFd>(
    connection: &mut Connection<I, O>,
    signals: &Signals,
    isolation: &Isolation,
    until: Option<Instant>,
) -> Option<Box<Run>> {
    loop {
        while let Some(event) = connection.next_event() {
            match event {
                Event::Order(Reaction::Greet) => connection.send(&ready(isolation)),
                Event::Order(Reaction::Accept(run)) => return Some(run),
                Event::Order(Reaction::Refuse(refused)) => connection.send(&RunnerMessage::Refused(refused)),
                // Without a run there is no program to read it.
                Event::Order(Reaction::Input(_) | Reaction::Network(_) | Reaction::Ignore) => {}
                Event::Order(Reaction::Cancel) | Event::Closed => return None,
            }
        }
        if signals.take().terminate || until.is_some_and(|until| Instant::now() >= until) {
            return None;
        }
        let mut waits = vec![PollFd::from_borrowed_fd(signals.descriptor(), PollFlags::IN)];
        waits.extend(connection.input().map(|input| PollFd::from_borrowed_fd(input, PollFlags::IN)));
        waits.extend(connection.output().map(|output| PollFd::from_borrowed_fd(output, PollFlags::OUT)));
        wait(&mut waits, until);
        drop(waits);
        connection.flush();
    }
}

fn ready(isolation: &Isolation) -> RunnerMessage {
    RunnerMessage::Ready(Box::new(Ready {
        isolation: isolation.clone(),
        runner: env!("CARGO_PKG_VERSION").to_owned(),
    }))
}

fn execute<I: AsFd, O: AsFd>(
    sandbox: &Sandbox<'_>,
    run: Run,
    isolation: Isolation,
    network: Option<&mut Network>,
    connection: &mut Connection<I, O>,
) -> Receipt {
    let accepted = Accepted { execution_uid: run.execution_uid.clone(), attempt: run.attempt };
    connection.send(&RunnerMessage::Accepted(accepted.clone()));
    let result = sandbox.run(run, network, connection);
    let mut receipt = Receipt {
        execution_uid: accepted.execution_uid,
        attempt: accepted.attempt,
        outcome: result.outcome,
        duration_ms: result.duration.as_millis().try_into().unwrap_or(u64::MAX),
        stdout: result.stdout,
        stderr: result.stderr,
        isolation,
        digest: String::new(),
    };
    connection.send_exit(&mut receipt);
    receipt
}

/// Writes the receipt into the termination message. Outside a pod that file does not exist, and is not created.
fn write_termination_message(options: &Options, receipt: &Receipt) {
    let file = std::fs::OpenOptions::new().write(true).truncate(true).open(&options.termination_log);
    if let Ok(mut file) = file {
        let _ = io::Write::write_all(&mut file, receipt.termination_message().as_bytes());
    }
}

fn flush<I: AsFd, O: AsFd>(connection: &mut Connection<I, O>) {
    let until = Instant::now() + FLUSH_LIMIT;
    while let Some(output) = connection.output() {
        if Instant::now() >= until {
            return;
        }
        wait(&mut [PollFd::from_borrowed_fd(output, PollFlags::OUT)], Some(until));
        connection.flush();
    }
}
