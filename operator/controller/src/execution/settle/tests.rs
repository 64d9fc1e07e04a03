//! The end of a run by what its sandbox left, while the API server or the kubelet does not answer.

use serde_json::json;
use skillet_protocol::Isolation;

use super::{
    super::{
        attempt_outcome::AttemptOutcome,
        tests::{context, pod, serving},
    },
    *,
};
use crate::sandbox::logs::tests::frames;

fn ended(receipt: Option<RunOutcome>, is_out_of_memory: bool) -> Ended {
    let receipt =
        receipt.map(|outcome| Box::new(Receipt { outcome, ..Receipt::unused(Isolation::default()) }));
    Ended { is_container: true, is_out_of_memory, receipt, message: "Error".into() }
}

fn reason(settled: &Settled) -> Option<Reason> {
    match settled {
        Settled::Lost { reason, .. } => Some(*reason),
        Settled::Ran { .. }
        | Settled::Unused
        | Settled::OutOfMemory
        | Settled::NeverBegan
        | Settled::Hangs => None,
    }
}

#[test]
fn a_whole_log_is_the_result_of_the_run() {
    let exit = RunnerMessage::Exit(Box::new(Receipt::unused(Isolation::default())));
    let messages = vec![RunnerMessage::Stdout(b"a".to_vec()), RunnerMessage::Stdout(b"b".to_vec()), exit];
    match from_messages(messages) {
        Some(Settled::Ran { captured, .. }) => assert_eq!(captured.stdout, b"ab"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_receipt_without_a_log_is_a_lost_result() {
    let settled = from_status(ended(Some(RunOutcome::Exited { code: 0 }), false));
    assert_eq!(reason(&settled), Some(Reason::ResultLost));
    let settled = from_gone(Some(ended(Some(RunOutcome::Exited { code: 0 }), false)));
    assert_eq!(reason(&settled), Some(Reason::ResultLost));
}

#[test]
fn a_runner_that_was_ended_from_outside_is_no_lost_result() {
    for settled in [from_status, |ended| from_gone(Some(ended))] {
        let Settled::Ran { receipt, captured } = settled(ended(Some(RunOutcome::Cancelled), false)) else {
            panic!("the receipt of a run that was ended is its end")
        };
        for (is_cancelled, expected) in [(false, Some(Reason::SandboxLost)), (true, None)] {
            let reason = match AttemptOutcome::ran(receipt.clone(), captured.clone(), is_cancelled) {
                AttemptOutcome::Lost { reason, .. } => Some(reason),
                _ => None,
            };
            assert_eq!(reason, expected);
        }
    }
}

#[test]
fn an_unused_sandbox_ran_nothing() {
    assert_eq!(from_status(ended(Some(RunOutcome::Unused), false)), Settled::Unused);
    assert_eq!(from_gone(Some(ended(Some(RunOutcome::Unused), false))), Settled::Unused);
}

#[test]
fn a_container_killed_for_memory_is_out_of_memory() {
    assert_eq!(from_status(ended(None, true)), Settled::OutOfMemory);
}

#[test]
fn without_receipt_and_log_the_sandbox_is_lost() {
    assert_eq!(reason(&from_status(ended(None, false))), Some(Reason::SandboxLost));
    assert_eq!(reason(&from_gone(None)), Some(Reason::SandboxLost));
}
/// The server's answer to a read of the pod and of the log, so long after the start. `None` is a lost connection.
type Answer = Option<Reply>;
type Reply = (u16, Vec<u8>);

const EXITED: &str = "spec: {containers: [], nodeName: n}\nstatus: {phase: Succeeded, containerStatuses: [{name: c, image: i, imageID: '', ready: false, restartCount: 0, state: {terminated: {exitCode: 0, message: '%'}}}]}";
const RUNNING: &str = "spec: {containers: [], nodeName: n}\nstatus: {conditions: [{type: Ready, status: 'True'}], containerStatuses: [{name: c, image: i, imageID: '', ready: true, restartCount: 0, state: {running: {}}}]}";

fn exited() -> String {
    let receipt =
        Receipt { outcome: RunOutcome::Exited { code: 0 }, ..Receipt::unused(Isolation::default()) };
    EXITED.replace('%', &receipt.termination_message().replace('\'', "''"))
}

fn pods(yaml: Option<&str>) -> Reply {
    let items: Vec<Pod> = yaml.map(pod).into_iter().collect();
    let list = json!({ "apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": items });
    (200, list.to_string().into())
}

fn failed(code: u16) -> Reply {
    let status =
        json!({ "kind": "Status", "status": "Failure", "code": code, "message": "no", "reason": "" });
    (code, status.to_string().into())
}

/// Settles a sandbox over an API server that answers by the seconds since the start.
async fn settled(
    is_overdue: bool,
    pods: impl Fn(u64) -> Answer + Send + Sync + 'static,
    log: impl Fn(u64) -> Answer + Send + Sync + 'static,
) -> (Settled, u64) {
    let begun = Instant::now();
    let (client, _) = serving(move |call| {
        let second = begun.elapsed().as_secs();
        if call.path.ends_with("/log") { log(second) } else { pods(second) }
    });
    let ctx = context(client);
    let mut sandbox = SandboxRef { job: "run-u-1".into(), pod: Some("p".into()), ..SandboxRef::default() };
    let mut receiver = ctx.pods.follow(&sandbox.job);
    let settled = if is_overdue {
        settle_overdue(&ctx, &receiver, &sandbox).await
    } else {
        ctx.pods.show(pod(&exited()), false);
        settle(&ctx, &mut receiver, &mut sandbox, Duration::from_secs(5)).await
    };
    (settled, begun.elapsed().as_secs())
}

fn whole() -> Reply {
    (200, frames(true))
}

fn assert_ran((settled, _): (Settled, u64)) {
    assert!(matches!(settled, Settled::Ran { .. }), "{settled:?}");
}

#[tokio::test(start_paused = true)]
async fn a_log_that_nobody_gives_for_minutes_is_read_afterwards() {
    assert_ran(settled(false, |_| None, |second| if second < 120 { None } else { Some(whole()) }).await);
    assert_ran(
        settled(false, |_| None, |second| if second < 30 { Some(failed(502)) } else { Some(whole()) }).await,
    );
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_does_not_answer_decides_nothing() {
    let back = |second| if second < 600 { None } else { Some(pods(Some(&exited()))) };
    assert_ran(settled(true, back, |second| if second < 600 { None } else { Some(whole()) }).await);
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_that_is_slow_loses_no_result() {
    let slow = |second| if second < 5 { Some(failed(500)) } else { Some(whole()) };
    assert_ran(settled(true, |_| Some(pods(Some(RUNNING))), slow).await);
}

#[tokio::test(start_paused = true)]
async fn a_node_is_lost_when_the_api_server_says_so() {
    let unready = RUNNING.replace("'True'", "'False'");
    let noticed = move |second| Some(pods(Some(if second < 45 { RUNNING } else { &unready })));
    let (settled, after) = settled(true, noticed, |_| Some(failed(500))).await;
    assert_eq!(reason(&settled), Some(Reason::SandboxLost));
    assert!((45..60).contains(&after), "{after}");
}

#[tokio::test(start_paused = true)]
async fn an_overdue_sandbox_is_judged_by_its_log() {
    let overdue = async |log: fn(u64) -> Answer| settled(true, |_| Some(pods(Some(RUNNING))), log).await.0;
    assert_eq!(overdue(|_| Some((200, Vec::new()))).await, Settled::NeverBegan);
    assert_eq!(overdue(|_| Some((200, frames(false)))).await, Settled::Hangs);
    assert_eq!(reason(&overdue(|_| Some(failed(400))).await), Some(Reason::SandboxLost));
    assert_eq!(reason(&overdue(|_| Some(failed(500))).await), Some(Reason::SandboxLost), "at last");
    let gone = settled(true, |_| Some(pods(None)), |_| None).await.0;
    assert_eq!(reason(&gone), Some(Reason::SandboxLost));
}
