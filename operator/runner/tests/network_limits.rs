//! Named egress and its limits: the flag, connections, memory, records, and the way of everything else beside a flood.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use skillet_protocol::{
    OperatorMessage, Receipt, RefusalReason, RefusedConnection, Run, RunOutcome, RunnerMessage, Verdict,
};
use support::egress::{python, run, start};
use support::plain::{Plain, RUNNER, hello};
use support::servers::{echo, serve};
use support::{Folder, MARGIN, eventually, script};

#[test]
fn a_run_with_hosts_is_refused_without_the_flag_and_one_without_hosts_reaches_none() {
    let mut without = Plain::new();
    without.session.hello(1);
    without.session.say(&OperatorMessage::Run(Box::new(python("connect()"))));
    match without.session.message() {
        Some(RunnerMessage::Refused(refused)) => {
            assert_eq!(refused.reason, RefusalReason::InvalidRun);
            assert_eq!(refused.message, "the run names hosts, and this sandbox has no named egress");
        }
        other => panic!("{other:?}"),
    }
    without.session.say(&OperatorMessage::Run(Box::new(script("echo free"))));
    let finished = without.session.finish();
    assert_eq!(finished.succeeded().stdout(), "free\n");

    let run = Run { network: None, ..python("socket.socket(); connect()") };
    let mut plain = start(run, &[]);
    let finished = plain.session.finish();
    assert!(finished.stderr().contains("Name or service not known"), "{}", finished.stderr());
}

#[test]
fn without_the_flag_sockets_are_refused_and_the_receipt_says_nothing_of_egress() {
    let mut run = python("try:\n    socket.socket()\nexcept PermissionError:\n    print('refused')");
    run.network = None;
    let finished = support::plain::run(run).succeeded();
    assert_eq!(finished.stdout(), "refused\n");
    assert_eq!(finished.receipt.isolation.named_egress, None);
    assert!(!serde_json::to_string(&finished.receipt).unwrap().contains("namedEgress"));
}

#[test]
fn a_program_that_does_not_read_gets_no_more_than_the_windows() {
    let endless = serve(|mut stream| while stream.write_all(&[7; 8192]).is_ok() {});
    let content = "
kept = [connect() for _ in range(4)]
print('connected', flush=True)
sys.stdin.read()
total = 0
kept[0].setblocking(False)
try:
    while True:
        total += len(kept[0].recv(1 << 20))
except BlockingIOError:
    print(total, flush=True)
os._exit(0)
";
    let mut run = python(content);
    run.keeps_input_open = true;
    let mut plain = start(run, &[("a.example", 80, endless)]);
    plain.session.wait_for_stdout();
    // The windows are spent once nothing more comes in a while; the memory of the runner shows it.
    let memory = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", plain.session.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    support::holds_for(Duration::from_millis(500), || {
        assert!(memory() < 16 << 10, "{} kB", memory());
    });
    plain.session.say(&OperatorMessage::Input(vec![]));
    let total: usize = plain.session.finish().succeeded().stdout().trim().parse().unwrap();
    assert!(total > 10_000 && total < 1_000_000, "{total}");
}

#[test]
fn connections_are_limited_and_a_closed_one_makes_room() {
    let content = "
kept = [connect() for _ in range(4)]
try:
    connect()
except OSError as error:
    print(errno.errorcode[error.errno])
kept.pop().close()
for _ in range(20):
    connect().close()
print('room')
";
    let (finished, plain) = run(content, echo());
    assert_eq!(finished.succeeded().stdout(), "EAGAIN\nroom\n");
    assert_eq!(plain.session.broker.as_ref().unwrap().opened.len(), 24);
}

#[test]
fn refusals_are_recorded_once_with_their_reason() {
    let content = "
for host, port in (('10.0.0.1', 80), ('10.0.0.1', 80), ('a.example', 443), ('::1.2.3.4', 80), ('b.example.', 80), ('a.example.search.local.', 80)):
    try:
        socket.create_connection((host, port))
        print('connected to', host)
    except OSError:
        pass
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect_ex(('10.0.0.2', 123))
";
    let (finished, plain) = run(content, echo());
    assert_eq!(finished.succeeded().stdout(), "");
    let refused = |host: &str, port, verdict| RefusedConnection { host: host.into(), port, verdict };
    let expected = [
        refused("10.0.0.1", 80, Verdict::HostNotAllowed),
        refused("a.example", 443, Verdict::PortNotAllowed),
        refused("::102:304", 80, Verdict::HostNotAllowed),
        refused("b.example", 0, Verdict::HostNotAllowed),
        refused("a.example.search.local", 0, Verdict::HostNotAllowed),
        refused("10.0.0.2", 123, Verdict::HostNotAllowed),
    ];
    assert_eq!(plain.session.broker.as_ref().unwrap().refused, expected);
}

#[test]
fn a_flood_of_connections_delays_neither_output_nor_receipt() {
    let content = "
def flood():
    c = connect()
    def drain():
        while c.recv(1 << 20): pass
    threading.Thread(target=drain, daemon=True).start()
    while True: c.sendall(b'x' * 65536)
for _ in range(4): threading.Thread(target=flood, daemon=True).start()
time.sleep(0.3)
latest = 0
for n in range(20):
    print(time.monotonic(), flush=True); time.sleep(0.02)
os._exit(0)
";
    let mut plain = start(python(content), &[("a.example", 80, echo())]);
    let now = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap()).as_secs_f64()
    };
    let (mut delays, mut last) = (vec![], 0.0);
    for _ in 0..20 {
        let line = String::from_utf8(plain.session.wait_for_stdout()).unwrap();
        let written: f64 = line.trim().parse().unwrap();
        delays.push(now() - written);
        last = now();
    }
    delays.sort_by(f64::total_cmp);
    plain.session.finish().succeeded();
    assert!(delays[10] < 0.1, "{delays:?}");
    assert!(now() - last < 1.0, "the receipt came {} s after the last line", now() - last);
}

#[test]
fn programs_that_end_while_connections_are_full_leave_their_receipt_at_once() {
    let endless = serve(|mut stream| while stream.write_all(&[7; 8192]).is_ok() {});
    let mut plain = start(
        python(
            "kept = [connect() for _ in range(4)]\nfor c in kept: c.recv(1)\nprint('on', flush=True)\nwhile True: time.sleep(1)",
        ),
        &[("a.example", 80, endless)],
    );
    plain.session.wait_for_stdout();
    let started = Instant::now();
    plain.session.say(&OperatorMessage::Cancel);
    assert_eq!(plain.session.finish().receipt.outcome, RunOutcome::Cancelled);
    assert!(started.elapsed() < MARGIN, "{:?}", started.elapsed());
    assert_eq!(plain.left().outcome, RunOutcome::Cancelled);
}

#[test]
fn sockets_that_are_closed_make_room_for_others() {
    let content = "
for _ in range(3):
    kept = [socket.socket() for _ in range(120)] + [socket.socket(type=socket.SOCK_DGRAM) for _ in range(100)]
    del kept
c = connect(); c.sendall(b'x'); print(c.recv(1))
";
    let (finished, _) = run(content, echo());
    assert_eq!(finished.succeeded().stdout(), "b'x'\n");
}

#[test]
fn a_socket_older_than_the_copy_of_its_end_connects_all_the_same() {
    let content = "
old = socket.socket(); old.setblocking(False); address = socket.gethostbyname('a.example')
time.sleep(5.2)
print(old.connect_ex((address, 80))); old.setblocking(True); old.sendall(b'x'); print(old.recv(1))
";
    let (finished, _) = run(content, echo());
    assert_eq!(finished.succeeded().stdout(), "0\nb'x'\n");
}

#[test]
fn a_flood_that_nobody_reads_stops_the_program_and_not_the_clock() {
    let (scratch, folder) = (Folder::new("/dev/shm"), Folder::new("/tmp"));
    let log = folder.0.join("termination-log");
    std::fs::write(&log, "").unwrap();
    let mut runner = Command::new(RUNNER)
        .arg("--network")
        .args(["--scratch".as_ref(), scratch.0.as_os_str(), "--termination-log".as_ref(), log.as_os_str()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut run = python(
        "
address = socket.gethostbyname('a.example')
while True:
    c = socket.socket(); c.setblocking(False); c.connect_ex((address, 80)); c.close()
",
    );
    run.limits.timeout_ms = 1500;
    let orders = [hello(), OperatorMessage::Run(Box::new(run))].map(|order| order.encode().unwrap()).concat();
    let mut stdin = runner.stdin.take().unwrap();
    stdin.write_all(&orders).unwrap();
    let memory = |pid: u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0");
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    let mut most = 0;
    let mut receipt = String::new();
    eventually("the runner leaves its receipt", || {
        most = most.max(memory(runner.id()));
        receipt = std::fs::read_to_string(&log).unwrap();
        !receipt.is_empty()
    });
    let receipt: Receipt = serde_json::from_str(&receipt).unwrap();
    assert_eq!(receipt.outcome, RunOutcome::TimedOut);
    assert!(receipt.duration_ms < 3000, "{} ms", receipt.duration_ms);
    assert!(most < 16 << 10, "{most} kB");
    drop(runner.stdout.take());
    assert!(runner.wait().unwrap().success());
}
