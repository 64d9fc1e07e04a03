//! Limits of a tenant and of the process, and the order of those that wait.

use std::pin::pin;

use futures::{FutureExt as _, future::join_all};

use super::*;

fn limits(tenant_connections: usize, tenant_rate: u32, connections: usize) -> Limits {
    Limits::new(LimitSettings { tenant_connections, tenant_rate, connections })
}

#[test]
fn a_run_has_the_bytes_that_are_left_in_each_direction() {
    let policy =
        RunPolicy { transfer_bytes: 1000, sent_bytes: 900, received_bytes: 10, ..RunPolicy::default() };
    let scope = RunScope::new(&policy).unwrap();
    assert!(scope.count(Flow::Sent, 100) && !scope.count(Flow::Sent, 1));
    assert!(scope.count(Flow::Received, 990) && !scope.count(Flow::Received, 1));
}

/// Enters without a wait.
fn enter(limits: &Limits, tenant: &str) -> Result<TenantPlace, &'static str> {
    limits.enter(tenant, Instant::now()).now_or_never().expect("there is no time to wait")
}

fn seconds_from_now(seconds: u64) -> Instant {
    Instant::now() + Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn a_tenant_has_its_connections_and_the_process_has_them_all() {
    let limits = limits(2, 100, 3);
    let first = enter(&limits, "a").unwrap();
    let _second = enter(&limits, "a").unwrap();
    assert_eq!(enter(&limits, "a").unwrap_err(), "the namespace has no more connections");
    let _other = enter(&limits, "b").unwrap();
    assert_eq!(enter(&limits, "c").unwrap_err(), "the broker has no more connections");
    drop(first);
    assert!(enter(&limits, "a").is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_tenant_opens_connections_at_its_rate() {
    let limits = limits(100, 10, 100);
    let mut open: Vec<TenantPlace> = (0..10).map(|_| enter(&limits, "a").unwrap()).collect();
    assert_eq!(enter(&limits, "a").unwrap_err(), "the namespace opens connections too fast");
    assert!(enter(&limits, "b").is_ok());
    tokio::time::advance(Duration::from_millis(250)).await;
    open.extend([enter(&limits, "a").unwrap(), enter(&limits, "a").unwrap()]);
    assert!(enter(&limits, "a").is_err());
    // Time does not save up more than a second's connections.
    tokio::time::advance(Duration::from_secs(3600)).await;
    assert_eq!((0..20).filter(|_found| enter(&limits, "a").is_ok()).count(), 10);
}

#[tokio::test(start_paused = true)]
async fn connections_above_the_rate_wait_in_order_of_arrival() {
    let (limits, began) = (limits(512, 100, 8192), Instant::now());
    let deadline = seconds_from_now(5);
    let (limits, order) = (&limits, &Mutex::new(Vec::new()));
    let all = (0..150).map(async |number| {
        let place = limits.enter("a", deadline).await.unwrap();
        lock(order).push(number);
        place
    });
    let places = join_all(all).await;
    assert_eq!(places.len(), 150);
    assert_eq!(*lock(order), (0..150).collect::<Vec<_>>());
    let took = began.elapsed();
    assert!((500..600).contains(&took.as_millis()), "100 at once and 50 in half a second: {took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_token_that_would_come_after_the_deadline_is_not_waited_for() {
    let limits = limits(100, 1, 100);
    let _first = enter(&limits, "a").unwrap();
    let mut second = pin!(limits.enter("a", seconds_from_now(3)));
    assert!(second.as_mut().now_or_never().is_none(), "it waits for a second");
    let began = Instant::now();
    let third = limits.enter("a", began + Duration::from_millis(1900)).await;
    assert_eq!(third.unwrap_err(), "the namespace opens connections too fast");
    assert_eq!(began.elapsed(), Duration::ZERO, "it would wait for two");
    second.await.unwrap();
    assert!((1000..1100).contains(&began.elapsed().as_millis()));
    let none = Limits::new(LimitSettings { tenant_rate: 0, ..LimitSettings::default() });
    assert_eq!(
        none.enter("a", seconds_from_now(10)).await.unwrap_err(),
        "the namespace opens connections too fast"
    );
}

#[tokio::test(start_paused = true)]
async fn one_that_does_not_wait_any_longer_gives_its_turn_to_the_next() {
    let (limits, began) = (limits(100, 1, 100), Instant::now());
    let _first = enter(&limits, "a").unwrap();
    let mut second = Box::pin(limits.enter("a", seconds_from_now(5)));
    let mut third = Box::pin(limits.enter("a", seconds_from_now(5)));
    let mut fourth = Box::pin(limits.enter("a", seconds_from_now(5)));
    for waiting in [&mut second, &mut third, &mut fourth] {
        assert!(waiting.now_or_never().is_none());
    }
    drop(second);
    assert_eq!(lock(&limits.tenants).by_name["a"].waiting, 2);
    drop(third);
    let _place = fourth.await.unwrap();
    assert!((1000..1100).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
    let tenants = lock(&limits.tenants);
    assert_eq!((tenants.open, tenants.by_name["a"].waiting), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn those_that_wait_count_as_connections() {
    let limits = limits(2, 1, 100);
    let _first = enter(&limits, "a").unwrap();
    let mut second = pin!(limits.enter("a", seconds_from_now(5)));
    assert!(second.as_mut().now_or_never().is_none());
    let third = limits.enter("a", seconds_from_now(5)).await;
    assert_eq!(third.unwrap_err(), "the namespace has no more connections");
}

#[tokio::test(start_paused = true)]
async fn tenants_without_connections_are_forgotten() {
    let limits = limits(10, 10, 100_000);
    let _kept = enter(&limits, "kept").unwrap();
    for number in 0..10_000u32 {
        drop(enter(&limits, &number.to_string()).unwrap());
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    let tenants = lock(&limits.tenants);
    assert!(tenants.by_name.len() <= KNOWN_TENANTS + 1, "{}", tenants.by_name.len());
    assert!(tenants.by_name.contains_key("kept"));
}
