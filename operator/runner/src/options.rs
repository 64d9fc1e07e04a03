//! The runner's command line.
//!
//! Flags and no environment: an image's own environment must not be able to change a sandbox.

use std::path::PathBuf;
use std::time::Duration;

use skillet_protocol::SCRATCH;

pub(crate) const USAGE: &str = "\
skillet-runner [--scratch DIR] [--termination-log FILE] [--idle-limit SECONDS] [COMMAND]

Without a command: serve one run on stdin and stdout, as PID 1 of a sandbox.

  install DEST     copy this program to DEST
  self-test        try to break each rule of this sandbox and print the result as JSON
  bench-spawn N    print as JSON the time that confinement adds to the start of a program
  version          print the version

  --scratch DIR           the only folder a program may write to (default /dev/shm)
  --termination-log FILE  file that takes the receipt (default /dev/termination-log)
  --idle-limit SECONDS    longest wait for a run (default 120)
  --network               programs may connect to the hosts that their run names, through the operator";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) scratch: PathBuf,
    pub(crate) termination_log: PathBuf,
    pub(crate) idle_limit: Duration,
    /// Sockets of programs are answered by the runner instead of refused.
    pub(crate) network: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Serve,
    Install {
        destination: PathBuf,
    },
    SelfTest,
    BenchSpawn {
        rounds: usize,
    },
    Version,
    /// Internal: tries to break the rules under which it was started.
    Probe {
        parent_is_init: bool,
    },
    /// Internal: starts a confined program for each byte read and writes the time that it took.
    BenchConfined,
    /// Internal: ends at once, for measurements.
    Noop,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UsageError {
    #[error("unknown argument {0:?}")]
    Unknown(String),
    #[error("{0} needs a value")]
    Missing(&'static str),
    #[error("{0} is not a number: {1:?}")]
    NotANumber(&'static str, String),
}

pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<(Options, Command), UsageError> {
    let mut options = Options {
        scratch: PathBuf::from(SCRATCH),
        termination_log: PathBuf::from("/dev/termination-log"),
        idle_limit: Duration::from_secs(120),
        network: false,
    };
    let mut command = Command::Serve;
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let mut value = |name| words.next().ok_or(UsageError::Missing(name));
        match word.as_str() {
            "--scratch" => options.scratch = value("--scratch")?.into(),
            "--termination-log" => options.termination_log = value("--termination-log")?.into(),
            "--idle-limit" => {
                options.idle_limit = Duration::from_secs(number("--idle-limit", value("--idle-limit")?)?);
            }
            "--network" => options.network = true,
            "install" => command = Command::Install { destination: value("install")?.into() },
            "self-test" => command = Command::SelfTest,
            "bench-spawn" => {
                command = Command::BenchSpawn { rounds: number("bench-spawn", value("bench-spawn")?)? };
            }
            "version" => command = Command::Version,
            "probe" => command = Command::Probe { parent_is_init: value("probe")? == "init" },
            "bench-confined" => command = Command::BenchConfined,
            "noop" => command = Command::Noop,
            _ => return Err(UsageError::Unknown(word)),
        }
    }
    Ok((options, command))
}

fn number<T: std::str::FromStr>(name: &'static str, text: String) -> Result<T, UsageError> {
    text.parse().map_err(|_| UsageError::NotANumber(name, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_line(line: &str) -> Result<(Options, Command), UsageError> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn each_command_is_one_word() {
        let check =
            |line: &str, expected: Command| assert_eq!(parse_line(line).unwrap().1, expected, "{line}");
        check("", Command::Serve);
        check("install /skillet/runner", Command::Install { destination: "/skillet/runner".into() });
        check("self-test", Command::SelfTest);
        check("bench-spawn 50", Command::BenchSpawn { rounds: 50 });
        check("version", Command::Version);
        check("probe init", Command::Probe { parent_is_init: true });
        check("probe other", Command::Probe { parent_is_init: false });
        check("bench-confined", Command::BenchConfined);
        check("noop", Command::Noop);
    }

    #[test]
    fn options_come_before_or_after() {
        let (options, command) =
            parse_line("--scratch /s self-test --termination-log /t --idle-limit 5 --network").unwrap();
        let expected = Options {
            scratch: "/s".into(),
            termination_log: "/t".into(),
            idle_limit: Duration::from_secs(5),
            network: true,
        };
        assert_eq!((options, command), (expected, Command::SelfTest));
        assert!(!parse_line("").unwrap().0.network);
        assert_eq!(parse_line("").unwrap().0.idle_limit, Duration::from_secs(120));
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(parse_line("serve"), Err(UsageError::Unknown("serve".into())));
        for name in ["install", "--scratch", "--termination-log", "--idle-limit", "bench-spawn", "probe"] {
            assert_eq!(parse_line(name), Err(UsageError::Missing(name)));
        }
        assert_eq!(parse_line("bench-spawn x"), Err(UsageError::NotANumber("bench-spawn", "x".into())));
        assert_eq!(parse_line("--idle-limit -1"), Err(UsageError::NotANumber("--idle-limit", "-1".into())));
    }
}
