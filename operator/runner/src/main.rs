//! `skillet-runner`: PID 1 of a sandbox. It proves the isolation, runs one confined program and streams the output.
//!
//! The binary is static, has one thread and no privileges. Start reading at `serve`. `confine`, `landlock` and `seccomp`
//! hold the rules for programs; all unsafe code is in `sys`.

mod bench;
mod capture;
mod confine;
mod connection;
mod elf;
mod handshake;
mod install;
mod landlock;
mod network;
mod oom_kills;
mod options;
mod probe;
mod processes;
mod program;
mod scratch;
mod seccomp;
mod selftest;
mod serve;
mod signals;
mod supervise;
mod sys;
mod termination;

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use options::{Command, Options};

fn main() -> ExitCode {
    // Releases abort by themselves. The profile of tests unwinds, which must not happen between fork and exec.
    if cfg!(panic = "unwind") {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            report(panic);
            std::process::abort();
        }));
    }
    let (options, command) = match options::parse(std::env::args().skip(1)) {
        Ok(parsed) => parsed,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{error}\n\n{}", options::USAGE);
            return ExitCode::from(2);
        }
    };
    match run(&options, command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "skillet-runner: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options, command: Command) -> io::Result<()> {
    let print = |text: String| writeln!(io::stdout(), "{text}");
    match command {
        Command::Noop => Ok(()),
        Command::Serve => serve::serve(options),
        Command::Install { destination } => install::install(&destination),
        Command::Version => print(env!("CARGO_PKG_VERSION").to_owned()),
        Command::BenchSpawn { rounds } => print(bench::spawn(rounds, options)?),
        Command::BenchConfined => bench::serve_confined(options),
        Command::Probe { parent_is_init } => {
            print(serde_json::to_string(&probe::run(options, parent_is_init))?)
        }
        Command::SelfTest => {
            rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)?;
            let (confinement, listener) = confine::Confinement::establish(options)?;
            let mut network = listener.map(network::Network::new).transpose()?;
            let tested = selftest::run(&Arc::new(confinement), options, network.as_mut());
            print(serde_json::to_string(&tested.isolation)?)
        }
    }
}
