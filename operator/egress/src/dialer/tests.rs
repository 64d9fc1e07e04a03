//! Addresses in turn, and the time that they have.

use prometheus_client::registry::Registry;
use tokio::net::TcpListener;

use super::*;
use crate::testing::{Answers, Loopback, policy};

struct Names {
    answers: Answers,
    loopback: Loopback,
    dialer: Dialer,
}

fn names() -> Names {
    let (answers, loopback) = (Answers::default(), Loopback::default());
    let metrics = Metrics::register(&mut Registry::default());
    let parts: (Arc<dyn Resolve>, Arc<dyn Connect>) = (Arc::new(answers.clone()), Arc::new(loopback.clone()));
    let dialer = Dialer::new(parts.0, parts.1, LimitSettings::default(), metrics);
    Names { answers, loopback, dialer }
}

fn scope() -> Arc<RunScope> {
    RunScope::new(&policy(&[("a.example", &[443])])).unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_address_that_does_not_answer_leaves_time_for_the_next() {
    let Names { answers, loopback, dialer } = names();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    answers.set("a.example", &[&["10.0.0.1", "93.184.216.1", "93.184.216.2", "93.184.216.3"]]);
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    loopback.put("93.184.216.2", 443, closed);
    loopback.put("93.184.216.3", 443, listener.local_addr().unwrap());
    let dialed = dialer.dial(&scope(), "A.example.", 443).await.unwrap();
    assert_eq!(dialed.address.to_string(), "93.184.216.3");
    assert!(dialed.stream.nodelay().unwrap());
    let tried: Vec<_> = loopback.dialed().iter().map(|address| address.ip().to_string()).collect();
    assert_eq!(tried, ["93.184.216.1", "93.184.216.2", "93.184.216.3"]);
}

#[tokio::test(start_paused = true)]
async fn all_addresses_together_have_ten_seconds() {
    let Names { answers, loopback, dialer } = names();
    let many: Vec<String> = (1..30).map(|number| format!("93.184.216.{number}")).collect();
    answers.set("a.example", &[&many.iter().map(String::as_str).collect::<Vec<_>>()]);
    let began = Instant::now();
    let refusal = dialer.dial(&scope(), "a.example", 443).await.unwrap_err();
    assert_eq!(refusal.verdict, Verdict::ConnectTimedOut);
    assert_eq!(began.elapsed().as_secs(), 10);
    assert_eq!(loopback.dialed().len(), 4);
}

#[tokio::test]
async fn a_host_that_refuses_is_named_with_its_address() {
    let Names { answers, loopback, dialer } = names();
    answers.set("a.example", &[&["93.184.216.2"]]);
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    loopback.put("93.184.216.2", 443, closed);
    let refusal = dialer.dial(&scope(), "a.example", 443).await.unwrap_err();
    assert_eq!(refusal.verdict, Verdict::ConnectFailed);
    assert_eq!(refusal.address, Some("93.184.216.2".parse().unwrap()));
    assert!(refusal.message.starts_with("could not connect: "), "{}", refusal.message);
}

#[test]
fn failures_of_name_servers_have_their_own_verdicts() {
    for (error, verdict) in [
        (ResolveError::NotFound, Verdict::NameNotFound),
        (ResolveError::TimedOut, Verdict::ConnectTimedOut),
        (ResolveError::Failed("refused".into()), Verdict::ConnectFailed),
    ] {
        let refusal = unresolved(&error);
        assert_eq!((refusal.verdict, refusal.message), (verdict, error.to_string()));
    }
}

#[tokio::test(start_paused = true)]
async fn connections_above_a_tenants_rate_wait_and_leave_the_host_half_of_the_time() {
    let Names { answers, loopback, mut dialer } = names();
    dialer.limits = Limits::new(LimitSettings { tenant_rate: 1, ..LimitSettings::default() });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    answers.set("a.example", &[&["93.184.216.3"]]);
    loopback.put("93.184.216.3", 443, listener.local_addr().unwrap());
    let (scope, began) = (scope(), Instant::now());
    let dials = (0..8).map(|_| dialer.dial(&scope, "a.example", 443));
    let (dialed, refused): (Vec<_>, Vec<_>) =
        futures::future::join_all(dials).await.into_iter().partition(Result::is_ok);
    assert_eq!((dialed.len(), refused.len()), (6, 2), "one at once, and one in each of five seconds");
    for refusal in refused {
        let refusal = refusal.unwrap_err();
        assert_eq!(refusal.verdict, Verdict::EgressLimitReached);
        assert_eq!(refusal.message, "the namespace opens connections too fast");
    }
    assert!((5000..5100).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
}
