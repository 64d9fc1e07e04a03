//! Lifetime, size and sharing of cached results.

use std::{cell::Cell, time::Duration};

use futures::{future::join_all, join};
use tokio::sync::oneshot;

use super::*;

const TTL: Duration = Duration::from_secs(5);

fn unreachable_now() -> AuthError {
    AuthError::Unreachable("down".into())
}

/// Asks at a time, and tells whether the question was really put.
async fn ask(cache: &Arc<TtlCache<&'static str, u32>>, key: &'static str, now: Instant) -> (u32, bool) {
    let asked = Cell::new(false);
    let answer = cache
        .get(&key, now, || {
            asked.set(true);
            async move { Ok(Answer { value: 1, until: now + TTL }) }
        })
        .await;
    (answer.unwrap(), asked.get())
}

#[tokio::test]
async fn an_answer_is_kept_until_its_end_and_not_at_it() {
    let (cache, start) = (TtlCache::at_most(8), Instant::now());
    assert_eq!(ask(&cache, "a", start).await, (1, true));
    assert_eq!(ask(&cache, "a", start + Duration::from_millis(4_999)).await, (1, false));
    assert_eq!(ask(&cache, "b", start).await, (1, true));
    assert_eq!(ask(&cache, "a", start + TTL).await, (1, true));
}

#[tokio::test]
async fn an_answer_that_has_ended_when_it_comes_is_given_and_not_kept() {
    let (cache, now) = (TtlCache::at_most(8), Instant::now());
    let ended = cache.get(&"a", now, || async move { Ok(Answer { value: 2, until: now }) }).await;
    assert_eq!(ended, Ok(2));
    assert_eq!(ask(&cache, "a", now).await, (1, true));
}

#[tokio::test]
async fn an_error_is_returned_and_not_kept() {
    let (cache, now) = (TtlCache::<_, u32>::at_most(8), Instant::now());
    let failed = cache.get(&"a", now, || async { Err(unreachable_now()) }).await;
    assert_eq!(failed, Err(unreachable_now()));
    assert_eq!(ask(&cache, "a", now).await, (1, true));
}

#[tokio::test]
async fn a_full_cache_loses_what_has_ended_and_then_what_ends_next() {
    let (cache, start) = (TtlCache::at_most(2), Instant::now());
    let second = Duration::from_secs(1);
    ask(&cache, "a", start).await;
    ask(&cache, "b", start + second).await;
    ask(&cache, "c", start + 2 * second).await;
    assert_eq!(cache.held().answers.len(), 2);
    assert!(ask(&cache, "b", start + 2 * second).await == (1, false));
    ask(&cache, "d", start + TTL + second).await;
    assert!(ask(&cache, "c", start + TTL + second).await == (1, false));
    assert_eq!(cache.held().answers.len(), 2);
}

#[tokio::test]
async fn what_has_ended_is_dropped_long_before_the_cache_is_full() {
    let (cache, start) = (TtlCache::at_most(1000), Instant::now());
    for key in ["a", "b", "c"] {
        ask(&cache, key, start).await;
    }
    let mut left = Box::pin(cache.get(&"left", start, std::future::pending));
    assert!(futures::poll!(&mut left).is_pending());
    drop(left);
    ask(&cache, "d", start + TTL).await;
    assert_eq!(cache.held().answers.len(), 4, "it is not looked for at each answer");
    ask(&cache, "e", start + SWEEP).await;
    let held = cache.held();
    assert_eq!((held.answers.len(), held.asking.len()), (1, 0), "d has ended as well");
}

#[tokio::test]
async fn those_who_ask_at_one_time_wait_for_one_question() {
    let (cache, now) = (TtlCache::<_, u32>::at_most(8), Instant::now());
    let (answer, question) = oneshot::channel();
    let question = Cell::new(Some(question));
    let all = join_all((0..10).map(|_| {
        cache.get(&"a", now, || {
            let question = question.take().expect("asked once");
            async move { Ok(Answer { value: question.await.unwrap(), until: now + TTL }) }
        })
    }));
    let (answers, ()) = join!(all, async { answer.send(7).unwrap() });
    assert_eq!(answers, vec![Ok(7); 10]);
    assert!(cache.held().asking.is_empty());
}

#[tokio::test]
async fn one_who_leaves_does_not_take_the_answer_from_the_others() {
    let (cache, now) = (TtlCache::<_, u32>::at_most(8), Instant::now());
    let (answer, question) = oneshot::channel();
    let mut first =
        Box::pin(cache.get(&"a", now, || async move {
            Ok(Answer { value: question.await.unwrap(), until: now + TTL })
        }));
    assert!(futures::poll!(&mut first).is_pending());
    let mut second = Box::pin(cache.get(&"a", now, || async { Err(unreachable_now()) }));
    assert!(futures::poll!(&mut second).is_pending());
    drop(first);
    answer.send(7).unwrap();
    assert_eq!(second.await, Ok(7));
}

#[tokio::test]
async fn a_question_that_nobody_waits_for_any_more_is_put_again_and_takes_no_room() {
    let (cache, now) = (TtlCache::at_most(1), Instant::now());
    for key in ["a", "b"] {
        let mut left = Box::pin(cache.get(&key, now, std::future::pending));
        assert!(futures::poll!(&mut left).is_pending());
    }
    assert_eq!(ask(&cache, "b", now).await, (1, true));
}

#[tokio::test]
async fn more_questions_than_there_is_room_for_are_not_put() {
    let (cache, now) = (TtlCache::<_, u32>::at_most(1), Instant::now());
    let mut first = Box::pin(cache.get(&"a", now, std::future::pending));
    assert!(futures::poll!(&mut first).is_pending());
    let refused = cache.get(&"b", now, std::future::pending).await;
    assert!(matches!(refused, Err(AuthError::Unreachable(_))), "{refused:?}");
}
