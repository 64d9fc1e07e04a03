//! The runner as an ordinary process: needs neither root nor a container.

use std::path::{Path, PathBuf};
use std::process::Command;

use skillet_protocol::{Hello, OperatorMessage, Receipt, Run, RunOutcome};

use super::{Finished, Folder, Session};

pub const RUNNER: &str = env!("CARGO_BIN_EXE_skillet-runner");

pub struct Plain {
    pub session: Session,
    pub scratch: Folder,
    log: PathBuf,
    _folder: Folder,
}

impl Plain {
    pub fn new() -> Self {
        Self::with(&[])
    }

    pub fn with(arguments: &[&str]) -> Self {
        Self::of(Path::new(RUNNER), arguments)
    }

    /// A runner of another build.
    pub fn of(runner: &Path, arguments: &[&str]) -> Self {
        let (scratch, folder) = (Folder::new("/dev/shm"), Folder::new("/tmp"));
        let log = folder.0.join("termination-log");
        std::fs::write(&log, "").unwrap();
        let mut command = Command::new(runner);
        command.arg("--scratch").arg(&scratch.0).arg("--termination-log").arg(&log).args(arguments);
        // What the image or the pod sets must not reach the program.
        command.env("FROM_THE_POD", "1");
        Self { session: Session::start(&mut command), scratch, log, _folder: folder }
    }

    /// The receipt in the termination message, after the runner's end.
    pub fn left(&mut self) -> Receipt {
        assert!(self.session.end().success());
        serde_json::from_str(&std::fs::read_to_string(&self.log).unwrap()).unwrap()
    }

    pub fn is_unused(&mut self) {
        let receipt = self.left();
        assert_eq!(receipt.outcome, RunOutcome::Unused);
        assert_eq!((receipt.execution_uid.as_str(), receipt.attempt), ("", 0));
    }

    pub fn terminate(&self) {
        let pid = rustix::process::Pid::from_raw(self.session.pid().try_into().unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }
}

pub fn run(run: Run) -> Finished {
    Plain::new().session.run(run)
}

pub fn hello() -> OperatorMessage {
    OperatorMessage::Hello(Hello { epoch: 1 })
}
