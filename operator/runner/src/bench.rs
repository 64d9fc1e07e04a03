//! Measures the time that confinement adds to the start of a program, confined and bare in turn.

use std::io::{self, Read as _, Write as _};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::confine::{Confinement, ResourceLimits};
use crate::options::Options;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BenchReport {
    rounds: usize,
    bare_us: f64,
    confined_us: f64,
    added_us: f64,
}

/// Starts this program's own `noop` bare and confined in turn, and returns the medians as JSON.
///
/// A second process starts the confined ones: like a runner it is under its filter, and this process must not be.
pub(crate) fn spawn(rounds: usize, options: &Options) -> io::Result<String> {
    let mut confined_spawner = Command::new("/proc/self/exe")
        .args(options.network.then_some("--network"))
        .arg("--scratch")
        .arg(&options.scratch)
        .arg("bench-confined")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let pipes = confined_spawner.stdin.take().zip(confined_spawner.stdout.take());
    let (mut requests, mut responses) = pipes.ok_or(io::ErrorKind::BrokenPipe)?;
    let (mut bare, mut confined) = (Vec::new(), Vec::new());
    for _ in 0..rounds.max(1) {
        bare.push(measure(&mut noop())?);
        requests.write_all(&[0])?;
        let mut nanos = [0; 8];
        responses.read_exact(&mut nanos)?;
        confined.push(Duration::from_nanos(u64::from_ne_bytes(nanos)));
    }
    drop(requests);
    confined_spawner.wait()?;
    let (bare, confined) = (median(bare), median(confined));
    let micros = |duration: Duration| duration.as_secs_f64() * 1e6;
    let report = BenchReport {
        rounds,
        bare_us: micros(bare),
        confined_us: micros(confined),
        added_us: micros(confined) - micros(bare),
    };
    serde_json::to_string(&report).map_err(io::Error::from)
}

/// Starts a confined program for each byte of stdin and writes the nanoseconds that it took, until stdin ends.
pub(crate) fn serve_confined(options: &Options) -> io::Result<()> {
    // The program that is started makes no socket, so nobody listens to calls.
    let (confinement, _listener) = Confinement::establish(options)?;
    let confinement = Arc::new(confinement);
    let limits = ResourceLimits { processes: 4096, file_bytes: 1 << 20, open_files: 64 };
    let mut request = [0];
    while io::stdin().read(&mut request)? == 1 {
        let mut command = noop();
        confinement.confine(&mut command, limits);
        let nanos = u64::try_from(measure(&mut command)?.as_nanos()).unwrap_or(u64::MAX);
        io::stdout().write_all(&nanos.to_ne_bytes())?;
        io::stdout().flush()?;
    }
    Ok(())
}

fn noop() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg("noop").env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn measure(command: &mut Command) -> io::Result<Duration> {
    let started = Instant::now();
    let status = command.status()?;
    if status.success() { Ok(started.elapsed()) } else { Err(io::Error::other("noop did not end well")) }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        let times = [5, 1, 9].map(Duration::from_micros).to_vec();
        assert_eq!(median(times), Duration::from_micros(5));
        assert_eq!(median(vec![]), Duration::ZERO);
    }
}
