//! Sessions with a scripted server, on a clock that stands still.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::json;
use skillet_core::mcp_client::McpRequest;
use tokio::sync::{Mutex, mpsc};

use super::*;

const IDLE: Duration = Duration::from_secs(60);
const CALL: Duration = Duration::from_secs(5);

async fn driver() -> (SessionDriver, mpsc::Sender<SessionCall>) {
    let (sender, receiver) = mpsc::channel(32);
    let program =
        Program::McpServer { argv: vec!["s".into()], env: BTreeMap::new(), idle: IDLE, call_timeout: CALL };
    let calls = Arc::new(Mutex::new(receiver)).lock_owned().await;
    let mut driver = SessionDriver::new(&program, ("1.0.0".into(), "d".into()), calls).unwrap();
    assert!(matches!(&driver.start()[..], [SessionOrder::Send(_)]));
    driver.on_output(b"{\"id\":1,\"result\":{}}\n");
    (driver, sender)
}

fn call(sender: &mpsc::Sender<SessionCall>, timeout: Option<Duration>) -> oneshot::Receiver<CallEnd> {
    let (answer, answered) = oneshot::channel();
    let request = McpRequest::CallTool { name: "t".into(), arguments: json!({}) };
    sender.try_send(SessionCall { request, timeout, answer, is_delivered: Arc::default() }).ok().unwrap();
    answered
}

async fn step(driver: &mut SessionDriver) -> Vec<SessionOrder> {
    let event = driver.next().await;
    driver.on_event(event)
}

#[tokio::test(start_paused = true)]
async fn a_call_gets_its_answer_and_keeps_the_server() {
    let (mut driver, sender) = driver().await;
    for n in 2..5 {
        tokio::time::advance(IDLE * 9 / 10).await;
        let mut answered = call(&sender, None);
        assert!(matches!(&step(&mut driver).await[..], [SessionOrder::Send(_)]));
        let answer = json!({ "id": n, "result": { "n": n } });
        assert_eq!(driver.on_output(format!("{answer}\n").as_bytes()), []);
        let end = answered.try_recv().unwrap();
        assert_eq!((end.result, end.version.as_str()), (Ok(json!({ "n": n }).to_string()), "1.0.0"));
    }
    assert!(!driver.is_closed());
    assert_eq!(step(&mut driver).await, [SessionOrder::Close]);
    assert!(driver.is_closed() && sender.is_closed());
    assert_eq!(driver.answered, 3);
    assert_eq!(step(&mut driver).await, [SessionOrder::Stop]);
}

#[tokio::test(start_paused = true)]
async fn a_call_without_answer_ends_in_time_and_the_server_hears_of_it() {
    let (mut driver, sender) = driver().await;
    for (timeout, limit) in [(None, CALL), (Some(CALL * 9), CALL), (Some(CALL / 5), CALL / 5)] {
        let answered = call(&sender, timeout);
        step(&mut driver).await;
        let began = Instant::now();
        let orders = step(&mut driver).await;
        assert_eq!(began.elapsed().as_secs(), limit.as_secs());
        let [SessionOrder::Send(line)] = &orders[..] else { panic!("{orders:?}") };
        assert!(String::from_utf8_lossy(line).contains("notifications/cancelled"));
        assert_eq!(answered.await.unwrap().result, Err(CallError::TimedOut { limit }));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_waits_for_is_cancelled_and_never_delivered_if_it_waited() {
    let (mut driver, sender) = driver().await;
    drop(call(&sender, None));
    assert_eq!(step(&mut driver).await, []);
    let answered = call(&sender, None);
    assert!(matches!(&step(&mut driver).await[..], [SessionOrder::Send(_)]));
    drop(answered);
    let began = Instant::now();
    let orders = step(&mut driver).await;
    let [SessionOrder::Send(line)] = &orders[..] else { panic!("{orders:?}") };
    assert!(String::from_utf8_lossy(line).contains("notifications/cancelled"));
    assert!(driver.waiting.is_empty() && began.elapsed().is_zero());
}

#[tokio::test(start_paused = true)]
async fn a_server_has_a_bounded_number_of_calls_and_bytes() {
    let (mut driver, sender) = driver().await;
    let answers: Vec<_> = (0..MAX_CALLS + 5).map(|_| call(&sender, None)).collect();
    for _ in 0..MAX_CALLS {
        step(&mut driver).await;
    }
    assert_eq!((driver.waiting.len(), sender.max_capacity() - sender.capacity()), (MAX_CALLS, 5));
    let flood = vec![b'x'; 1 << 20];
    let closing = (0..100).find(|_| driver.on_output(&flood).contains(&SessionOrder::Close));
    assert_eq!(closing, Some(63));
    let (kept, _) = driver.on_stderr(vec![b'e'; 100_000]);
    assert_eq!((kept.len(), driver.on_stderr(vec![b'e'; 10]).0.len()), (MAX_STDERR, 0));
    drop(answers);
}
