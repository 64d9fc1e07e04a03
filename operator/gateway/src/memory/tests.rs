//! Reservations of several tenants: sizes, shares, waiting and its limit.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use axum::body::Body;
use bytes::Bytes;
use futures::{StreamExt as _, poll, stream};
use http::StatusCode;
use http_body::{Body as HttpBody, Frame, SizeHint};

use super::{limits::MIB, *};

const BODY_BUDGET: BodyBudget = BodyBudget { max_bytes: 32 * MIB, text_copies: 1, parsed_copies: 2 };

fn tenant(name: &str) -> Arc<str> {
    name.into()
}

fn spaces(bytes: usize) -> Body {
    vec![b' '; bytes].into()
}

/// Reserves the memory for a request with this body.
async fn reserve(pool: &MemoryPool, of: &str, body: Body) -> Result<MemoryReservation, ApiError> {
    pool.read(&tenant(of), body, BODY_BUDGET).await.map(|(_, reservation)| reservation)
}

fn reserved(pool: &MemoryPool) -> Reserved {
    pool.0.ledger().all()
}

fn is_overloaded(error: &ApiError) -> bool {
    error.status == StatusCode::SERVICE_UNAVAILABLE && error.code == "Overloaded"
}

#[tokio::test]
async fn a_body_of_the_largest_size_has_room_and_one_of_many_small_values_has_none() {
    let pool = MemoryPool::default();
    let plain = reserve(&pool, "a", spaces(32 * MIB)).await.unwrap();
    assert_eq!(reserved(&pool), Reserved { reading: 0, whole: 96 * MIB });
    drop(plain);
    let mut small = b"{\"messages\":[".to_vec();
    small.extend(b"{\"\":0},".repeat(1_500_000));
    let refused = reserve(&pool, "a", small.into()).await.err().unwrap();
    assert_eq!((refused.status, &*refused.code), (StatusCode::PAYLOAD_TOO_LARGE, "TooLarge"));
    assert_eq!(reserved(&pool), Reserved::default());
    assert!(pool.0.ledger().is_empty());
}

#[tokio::test(start_paused = true)]
async fn one_tenant_does_not_hold_up_the_others() {
    let pool = MemoryPool::default();
    let _first = reserve(&pool, "a", spaces(32 * MIB)).await.unwrap();
    let mut second = Box::pin(reserve(&pool, "a", spaces(32 * MIB)));
    assert!(poll!(&mut second).is_pending());
    // A large one of another tenant has pool, and the small ones of both pass the one that waits.
    let _other = reserve(&pool, "b", spaces(32 * MIB)).await.unwrap();
    for of in ["a", "b", "c"] {
        reserve(&pool, of, "{}".into()).await.unwrap();
    }
    let refused = second.await.err().unwrap();
    assert!(is_overloaded(&refused), "{refused:?}");
    assert_eq!(refused.retry_after, Some(WAIT));
}

#[tokio::test(start_paused = true)]
async fn who_finds_no_room_waits_until_there_is_some() {
    let pool = MemoryPool::default();
    let first = reserve(&pool, "a", spaces(32 * MIB)).await.unwrap();
    let mut second = Box::pin(reserve(&pool, "a", spaces(32 * MIB)));
    assert!(poll!(&mut second).is_pending());
    drop(first);
    second.await.unwrap();
    assert_eq!(reserved(&pool), Reserved::default());
}

#[tokio::test(start_paused = true)]
async fn what_is_not_needed_any_more_is_given_back_early() {
    let pool = MemoryPool::default();
    let mut first = reserve(&pool, "a", spaces(32 * MIB)).await.unwrap();
    let mut second = Box::pin(reserve(&pool, "a", spaces(20 * MIB)));
    assert!(poll!(&mut second).is_pending());
    first.shrink_to(32 * MIB);
    second.await.unwrap();
    assert_eq!(reserved(&pool), Reserved { reading: 0, whole: 32 * MIB });
    first.shrink_to(40 * MIB);
    assert_eq!(reserved(&pool).whole, 32 * MIB, "it does not grow");
}

/// A body with a length, of which only these bytes come.
struct Stalled {
    length: u64,
    first: Option<Bytes>,
}

impl HttpBody for Stalled {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.first.take().map_or(Poll::Pending, |bytes| Poll::Ready(Some(Ok(Frame::data(bytes)))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length)
    }
}

fn stalled(length: usize, bytes: usize) -> Body {
    let first = Some(vec![b' '; bytes].into()).filter(|bytes: &Bytes| !bytes.is_empty());
    Body::new(Stalled { length: length as u64, first })
}

#[tokio::test(start_paused = true)]
async fn announced_lengths_without_bytes_reserve_nothing() {
    let pool = MemoryPool::default();
    let mut idle = Box::pin(reserve(&pool, "a", stalled(32 * MIB, 0)));
    assert!(poll!(&mut idle).is_pending());
    assert_eq!(reserved(&pool), Reserved::default());
    let refused = idle.await.err().unwrap();
    assert_eq!((refused.status, &*refused.code), (StatusCode::REQUEST_TIMEOUT, "TooSlow"));
}

#[tokio::test(start_paused = true)]
async fn four_slow_bodies_of_two_tenants_hold_up_no_third() {
    let pool = MemoryPool::default();
    let mut slow = Vec::new();
    for (of, announced, bytes) in
        [("a", 32, 31), ("a", 8, 7), ("b", 32, 31), ("b", 8, 7), ("a", 32, 30), ("b", 32, 30)]
    {
        slow.push(Box::pin(reserve(&pool, of, stalled(announced * MIB, bytes * MIB))));
        assert!(poll!(slow.last_mut().unwrap()).is_pending());
    }
    assert!(reserved(&pool).reading >= 76 * MIB, "{:?}", reserved(&pool));
    let start = tokio::time::Instant::now();
    for bytes in [100, MIB, 32 * MIB] {
        drop(reserve(&pool, "c", spaces(bytes)).await.unwrap());
    }
    assert_eq!(start.elapsed(), Duration::ZERO, "nothing was waited for");
    for slow in slow {
        let refused = slow.await.err().unwrap();
        assert!(refused.code == "TooSlow" || refused.code == "Overloaded", "{refused:?}");
    }
    assert!(pool.0.ledger().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_sender_keeps_a_least_rate_however_fast_it_began() {
    let pool = MemoryPool::default();
    let paced = |pause: u64| {
        let chunks = (0..16).map(move |number| {
            let (bytes, pause) = if number == 0 { (MIB, 0) } else { (128 * 1024, pause) };
            async move {
                tokio::time::sleep(Duration::from_secs(pause)).await;
                Ok::<_, std::io::Error>(Bytes::from(vec![b' '; bytes]))
            }
        });
        Body::from_stream(stream::iter(chunks).then(|chunk| chunk))
    };
    reserve(&pool, "a", paced(2)).await.unwrap();
    assert_eq!(reserve(&pool, "a", paced(3)).await.err().unwrap().code, "TooSlow");
}

#[tokio::test(start_paused = true)]
async fn large_bodies_that_come_side_by_side_are_all_read() {
    let pool = MemoryPool::default();
    let chunks = || {
        let chunks = stream::iter((0..64).map(|_| Ok::<_, std::io::Error>(Bytes::from(vec![b' '; MIB / 2]))));
        // Each chunk comes after one of every other sender.
        Body::from_stream(chunks.then(|chunk| async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            chunk
        }))
    };
    let names: Vec<String> = (0..8).map(|number| format!("tenant-{number}")).collect();
    let all = names.iter().map(|name| async { drop(reserve(&pool, name, chunks()).await.unwrap()) });
    futures::future::join_all(all).await;
    assert!(pool.0.ledger().is_empty());
}

#[tokio::test(start_paused = true)]
async fn requests_of_one_tenant_that_are_half_in_do_not_wait_for_each_other() {
    let pool = MemoryPool::default();
    let mut first = pool.enter(&tenant("a"));
    let mut second = pool.enter(&tenant("a"));
    first.read(16 * MIB, 16 * MIB).await.unwrap();
    second.read(16 * MIB, 16 * MIB).await.unwrap();
    first.keep(pool.0.limits.share).await.unwrap();
    let mut waiting = Box::pin(second.keep(pool.0.limits.share));
    assert!(poll!(&mut waiting).is_pending());
    drop(first);
    waiting.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn however_many_tenants_send_large_bodies_one_after_the_other_gets_through() {
    let pool = MemoryPool::default();
    let names: Vec<String> = (0..8).map(|number| format!("tenant-{number}")).collect();
    let all = names.iter().map(|name| async { drop(reserve(&pool, name, spaces(32 * MIB)).await.unwrap()) });
    futures::future::join_all(all).await;
    assert_eq!(reserved(&pool), Reserved::default());
}

#[tokio::test]
async fn a_body_that_is_longer_than_it_may_be_is_refused_however_it_comes() {
    let pool = MemoryPool::default();
    let small = BodyBudget { max_bytes: 4, text_copies: 1, parsed_copies: 1 };
    let read = async |body: Body| pool.read(&tenant("a"), body, small).await.map(|(bytes, _)| bytes);
    let chunks = |parts: &'static [&'static str]| {
        Body::from_stream(stream::iter(parts.iter().map(|part| Ok::<_, std::io::Error>(Bytes::from(*part)))))
    };
    assert_eq!(read("{  }".into()).await.unwrap(), "{  }");
    assert_eq!(read(chunks(&["{ ", " }"])).await.unwrap(), "{  }");
    assert_eq!(read(Body::empty()).await.unwrap(), "");
    for body in ["{   }".into(), chunks(&["{ ", " ", " }"])] {
        assert_eq!(read(body).await.unwrap_err().status, StatusCode::PAYLOAD_TOO_LARGE);
    }
    let broken = stream::iter([Ok(Bytes::from("{")), Err(std::io::Error::other("gone"))]);
    assert_eq!(read(Body::from_stream(broken)).await.unwrap_err().status, StatusCode::BAD_REQUEST);
    assert_eq!(reserved(&pool), Reserved::default());
}

#[tokio::test]
async fn values_that_are_held_several_times_count_as_often() {
    let pool = MemoryPool::default();
    let body = || Body::from(format!("[{}0]", "0,".repeat(100_000)));
    let twice = reserve(&pool, "a", body()).await.unwrap().part.whole;
    let more = BodyBudget { parsed_copies: 6, ..BODY_BUDGET };
    let (_, more) = pool.read(&tenant("b"), body(), more).await.unwrap();
    assert!(twice > 12_000_000 && more.part.whole > 2 * twice, "{twice} {}", more.part.whole);
}
