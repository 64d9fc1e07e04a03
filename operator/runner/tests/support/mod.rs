//! A runner under test: started as a process of any kind, spoken to in frames, never waited for without a limit.
// Each test binary uses its own part of this.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::panic)]

pub mod broker;
pub mod bundle;
pub mod clients;
pub mod egress;
pub mod plain;
pub mod servers;

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use skillet_protocol::{
    FileContent, Hello, OperatorMessage, Program, Ready, Receipt, Refused, Run, RunFile, RunLimits,
    RunOutcome, RunnerMessage, StreamError, StreamReader,
};

/// Far more than anything here takes on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(30);

/// Latest end after a limit, on a busy machine. The programs would go on for ten times as long, or for ever.
pub const MARGIN: Duration = Duration::from_secs(10);

/// A runner and the operator's side of its stream.
pub struct Session {
    child: Child,
    stdin: Option<Arc<Mutex<ChildStdin>>>,
    /// Answers the connections of the program.
    pub broker: Option<broker::Broker>,
    /// Output that came while a test waited for something else. `finish` returns it first.
    pub aside: Vec<u8>,
    /// Longest wait for a message.
    limit: Duration,
    pieces: Receiver<Vec<u8>>,
    reader: StreamReader,
}

/// Everything that one run sent.
pub struct Finished {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub stdout_tail: Vec<u8>,
    pub stderr_tail: Vec<u8>,
    pub refused: Vec<Refused>,
    pub receipt: Receipt,
}

impl Session {
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take().map(|stdin| Arc::new(Mutex::new(stdin)));
        let mut stdout = child.stdout.take().unwrap();
        let (send, pieces) = channel();
        std::thread::spawn(move || {
            let mut buffer = vec![0; 64 * 1024];
            while let Ok(length @ 1..) = stdout.read(&mut buffer) {
                if send.send(buffer[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child, stdin, broker: None, aside: vec![], limit: LIMIT, pieces, reader: StreamReader::new() }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn say(&mut self, order: &OperatorMessage) {
        self.say_bytes(&order.encode().unwrap());
    }

    /// Says it even when no one listens any more.
    pub fn say_bytes(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_ref().unwrap();
        let _ = stdin.lock().unwrap_or_else(PoisonError::into_inner).write_all(bytes);
    }

    /// Connects the program's channels to `hosts`: a name and a port, and the server that stands for them.
    pub fn with_hosts(&mut self, hosts: &[(&str, u16, std::net::SocketAddr)]) {
        self.broker = Some(broker::Broker::new(hosts, Arc::downgrade(self.stdin.as_ref().unwrap())));
    }

    fn network(&mut self, request: skillet_protocol::NetworkRequest) {
        if let Some(broker) = &mut self.broker {
            broker.take(request);
        }
    }

    pub fn hang_up(&mut self) {
        self.stdin = None;
    }

    pub fn hello(&mut self, epoch: u64) -> Ready {
        self.say(&OperatorMessage::Hello(Hello { epoch }));
        match self.message() {
            Some(RunnerMessage::Ready(ready)) => *ready,
            other => panic!("no Ready but {other:?}"),
        }
    }

    /// The next message; `None` when the stream ended rightly.
    pub fn message(&mut self) -> Option<RunnerMessage> {
        self.try_message().unwrap()
    }

    pub fn try_message(&mut self) -> Result<Option<RunnerMessage>, StreamError> {
        let until = Instant::now() + self.limit;
        loop {
            if let Some(message) = self.reader.next_message()? {
                return Ok(Some(message));
            }
            match self.pieces.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(piece) => self.reader.push(&piece),
                Err(RecvTimeoutError::Disconnected) => return self.reader.finish().map(|()| None),
                Err(RecvTimeoutError::Timeout) => panic!("no message within {:?}", self.limit),
            }
        }
    }

    /// Greets, sends `run` and reads on to the end.
    pub fn run(&mut self, run: Run) -> Finished {
        self.hello(run.epoch);
        self.say(&OperatorMessage::Run(Box::new(run)));
        self.finish()
    }

    /// Reads on until some stdout came.
    pub fn wait_for_stdout(&mut self) -> Vec<u8> {
        loop {
            match self.message() {
                Some(RunnerMessage::Stdout(bytes)) => return bytes,
                Some(RunnerMessage::Accepted(_) | RunnerMessage::Stderr(_)) => {}
                Some(RunnerMessage::Network(request)) => self.network(request),
                other => panic!("no output but {other:?}"),
            }
        }
    }

    /// Like `finish`, for a program that is silent for longer than usual.
    pub fn finish_within(&mut self, limit: Duration) -> Finished {
        self.limit = limit;
        self.finish()
    }

    /// Reads on to the end of the run.
    pub fn finish(&mut self) -> Finished {
        let mut finished = Finished {
            stdout: std::mem::take(&mut self.aside),
            stderr: vec![],
            stdout_tail: vec![],
            stderr_tail: vec![],
            refused: vec![],
            receipt: Receipt::unused(skillet_protocol::Isolation::default()),
        };
        while let Some(message) = self.message() {
            match message {
                RunnerMessage::Ready(_) | RunnerMessage::Accepted(_) => {}
                RunnerMessage::Network(request) => self.network(request),
                RunnerMessage::Stdout(bytes) => finished.stdout.extend(bytes),
                RunnerMessage::Stderr(bytes) => finished.stderr.extend(bytes),
                RunnerMessage::StdoutTail(bytes) => finished.stdout_tail = bytes,
                RunnerMessage::StderrTail(bytes) => finished.stderr_tail = bytes,
                RunnerMessage::Refused(refused) => finished.refused.push(refused),
                RunnerMessage::Exit(receipt) => finished.receipt = *receipt,
            }
        }
        assert_ne!(finished.receipt.outcome, RunOutcome::Unused, "the stream ended without a run");
        finished
    }

    /// Waits for the runner itself to end.
    pub fn end(&mut self) -> ExitStatus {
        let mut status = None;
        eventually("the runner ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Finished {
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }

    /// Asserts exit code 0, showing what the program said when it is another.
    pub fn succeeded(self) -> Self {
        assert_eq!(
            self.receipt.outcome,
            RunOutcome::Exited { code: 0 },
            "{}{}",
            self.stdout(),
            self.stderr()
        );
        self
    }
}

/// Asks until the answer is yes, with a limit.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < until, "not within {LIMIT:?}: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A folder of the test's own, gone at its end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(beneath: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = Path::new(beneath).join(format!("skillet-runner-test-{}-{count}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A run of a shell script, with limits that fit a test.
pub fn script(content: &str) -> Run {
    script_of("/bin/sh", "main.sh", content)
}

pub fn script_of(interpreter: &str, file_name: &str, content: &str) -> Run {
    Run {
        keeps_input_open: false,
        execution_uid: "execution-1".into(),
        attempt: 1,
        epoch: 1,
        program: Program::Command { argv: vec![interpreter.into(), file_name.into()] },
        files: vec![RunFile { path: file_name.into(), content: FileContent::from(content) }],
        input: "{}".into(),
        env: [].into(),
        secret_env: [].into(),
        network: None,
        limits: RunLimits {
            timeout_ms: 20_000,
            grace_ms: 200,
            processes: 32,
            output_bytes: 1 << 20,
            file_bytes: 32 << 20,
            open_files: 256,
        },
    }
}

/// Checks again and again that something holds for a time.
pub fn holds_for(time: std::time::Duration, check: impl Fn()) {
    let until = std::time::Instant::now() + time;
    while std::time::Instant::now() < until {
        check();
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}
