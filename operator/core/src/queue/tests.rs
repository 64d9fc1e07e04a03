//! Order, turns and limits of the queue; a seeded run against a plain, slow statement of the same rules.

use std::time::Instant;

use super::*;
use crate::test_rng::TestRng;

const NO_SKILL_LIMIT: &dyn Fn(&str, &str) -> Option<u32> = &|_, _| None;

/// Pushes `namespace/skill:key` in order, and pops all that `limits` let run at once.
fn check(pushed: &str, total: u32, per_namespace: u32, skill_limit: Option<u32>, expected: &str) {
    let mut queue = FairQueue::new();
    for (place, word) in (0..).zip(pushed.split_whitespace()) {
        let (place_of, key) = word.split_once(':').unwrap();
        let (namespace, skill) = place_of.split_once('/').unwrap();
        assert!(queue.push(namespace, skill, (100, place), key));
    }
    let per_skill = |_: &str, skill: &str| if skill.starts_with("limited") { skill_limit } else { None };
    let limits = ConcurrencyLimits { total, per_namespace, per_skill: &per_skill };
    let mut running = RunningCounts::default();
    let mut popped = Vec::new();
    while let Some(entry) = queue.pop(&limits, &running) {
        running.start(&entry.namespace, &entry.skill);
        popped.push(entry.key);
    }
    assert_eq!(popped.join(" "), expected);
    assert_eq!(queue.len() + popped.len(), pushed.split_whitespace().count());
}

#[test]
fn a_namespace_is_served_in_order_of_arrival() {
    check("n/a:1 n/b:2 n/a:3 n/c:4", 10, 10, None, "1 2 3 4");
}

#[test]
fn namespaces_take_turns() {
    check("a/s:a1 a/s:a2 a/s:a3 b/s:b1 c/s:c1 c/s:c2", 10, 10, None, "a1 b1 c1 a2 c2 a3");
}

#[test]
fn the_limits_of_cluster_and_namespace_hold() {
    check("a/s:a1 a/s:a2 a/s:a3 b/s:b1 b/s:b2", 3, 10, None, "a1 b1 a2");
    check("a/s:a1 a/s:a2 a/s:a3 b/s:b1 b/s:b2", 10, 1, None, "a1 b1");
    check("a/s:a1", 0, 10, None, "");
    check("a/s:a1", 10, 0, None, "");
}

#[test]
fn a_skill_at_its_limit_holds_back_only_itself() {
    check("n/limited:1 n/limited:2 n/free:3 n/limited:4 n/free:5", 10, 10, Some(1), "1 3 5");
    check("n/limited:1 n/limited:2 n/limited:3", 10, 10, Some(2), "1 2");
    check("n/limited:1 m/limited:2", 10, 10, Some(1), "2 1");
    check("n/limited:1 n/free:2", 10, 10, Some(0), "2");
}

#[test]
fn arrival_decides_not_the_order_of_pushing() {
    let mut queue = FairQueue::new();
    for (seconds, sequence, key) in
        [(20, 1, "later"), (10, 2, "second"), (10, 1, "first"), (10, 2, "second again")]
    {
        assert!(queue.push("n", "s", (seconds, sequence), key));
    }
    let limits = ConcurrencyLimits { total: 9, per_namespace: 9, per_skill: NO_SKILL_LIMIT };
    let popped: Vec<&str> =
        std::iter::from_fn(|| queue.pop(&limits, &RunningCounts::default())).map(|entry| entry.key).collect();
    assert_eq!(popped, ["first", "second", "second again", "later"]);
    assert!(queue.is_empty());
}

#[test]
fn an_entry_is_queued_once_and_can_be_taken_out() {
    let mut queue = FairQueue::new();
    assert!(queue.push("n", "s", (1, 0), "a"));
    assert!(queue.push("n", "s", (2, 0), "b"));
    assert!(!queue.push("n", "s", (3, 0), "a"));
    assert!(queue.contains(&"a"));
    assert!(queue.remove(&"a"));
    assert!(!queue.remove(&"a"));
    assert!(!queue.contains(&"a"));
    let limits = ConcurrencyLimits { total: 9, per_namespace: 9, per_skill: NO_SKILL_LIMIT };
    let next = queue.pop(&limits, &RunningCounts::default()).unwrap();
    assert_eq!(next, QueuedRun { namespace: "n".into(), skill: "s".into(), key: "b" });
    assert!(queue.push("n", "s", (1, 0), "b"), "what was popped can come back");
}

#[test]
fn running_counts_by_namespace_and_skill() {
    let mut running = RunningCounts::default();
    running.start("n", "a");
    running.start("n", "a");
    running.start("n", "b");
    assert_eq!((running.total(), running.in_namespace("n"), running.of_skill("n", "a")), (3, 3, 2));
    running.finish("n", "a");
    running.finish("n", "b");
    running.finish("n", "b");
    running.finish("m", "a");
    assert_eq!((running.total(), running.in_namespace("n"), running.of_skill("n", "a")), (1, 1, 1));
    running.finish("n", "a");
    assert_eq!((running.total(), running.in_namespace("n"), running.of_skill("n", "a")), (0, 0, 0));
}

/// The rules said plainly: of the namespaces in turn, the first whose earliest entry that may run exists.
#[derive(Default)]
struct Plain {
    waiting: Vec<((i64, u64), String, String, u32)>,
    last: String,
}

impl Plain {
    fn pop(&mut self, limits: &ConcurrencyLimits<'_>, running: &RunningCounts) -> Option<u32> {
        if running.total() >= limits.total {
            return None;
        }
        self.waiting.sort();
        let may_run = |namespace: &String, skill: &String| {
            let limit = (limits.per_skill)(namespace, skill);
            running.in_namespace(namespace) < limits.per_namespace
                && limit.is_none_or(|limit| running.of_skill(namespace, skill) < limit)
        };
        let mut namespaces: Vec<String> = self.waiting.iter().map(|entry| entry.1.clone()).collect();
        namespaces.sort();
        namespaces.dedup();
        let served = namespaces.iter().filter(|namespace| **namespace <= self.last).count();
        namespaces.rotate_left(served);
        let found = namespaces.iter().find_map(|turn| {
            self.waiting
                .iter()
                .position(|(_, namespace, skill, _)| namespace == turn && may_run(namespace, skill))
        })?;
        let (_, namespace, _, key) = self.waiting.remove(found);
        self.last = namespace;
        Some(key)
    }
}

#[test]
fn it_does_what_the_plain_rules_say_at_every_step() {
    for seed in 0..20 {
        let mut rng = TestRng::new(seed);
        let (mut queue, mut plain, mut running) =
            (FairQueue::new(), Plain::default(), RunningCounts::default());
        let mut started: Vec<QueuedRun<u32>> = Vec::new();
        let per_skill = |_: &str, skill: &str| (skill == "0").then_some(1);
        let limits = ConcurrencyLimits { total: 6, per_namespace: 3, per_skill: &per_skill };
        for key in 0..2_000_u32 {
            match rng.below(10) {
                0..4 => {
                    let namespace = rng.below(4).to_string();
                    let skill = rng.below(3).to_string();
                    let arrival = (i64::from(rng.below(50)), u64::from(key));
                    queue.push(&namespace, &skill, arrival, key);
                    plain.waiting.push((arrival, namespace, skill, key));
                }
                4 => {
                    let victim = rng.below(key + 1);
                    let was_there = plain.waiting.iter().any(|entry| entry.3 == victim);
                    assert_eq!(queue.remove(&victim), was_there);
                    plain.waiting.retain(|entry| entry.3 != victim);
                }
                5..8 => {
                    let popped = queue.pop(&limits, &running);
                    let expected = plain.pop(&limits, &running);
                    assert_eq!(popped.as_ref().map(|entry| entry.key), expected, "seed {seed}, step {key}");
                    if let Some(entry) = popped {
                        running.start(&entry.namespace, &entry.skill);
                        started.push(entry);
                    }
                }
                _ => {
                    if !started.is_empty() {
                        let count = u32::try_from(started.len()).unwrap();
                        let ended = started.swap_remove(rng.below(count) as usize);
                        running.finish(&ended.namespace, &ended.skill);
                    }
                }
            }
            assert_eq!(queue.len(), plain.waiting.len());
            assert!(running.total() <= 6);
        }
    }
}

#[test]
fn a_hundred_thousand_entries_are_no_burden() {
    let start = Instant::now();
    let (mut queue, mut running) = (FairQueue::new(), RunningCounts::default());
    for key in 0..100_000_u64 {
        let skill = if key % 2 == 0 { "limited" } else { "free" };
        queue.push(&format!("n{}", key % 1_000), skill, (0, key), key);
    }
    let per_skill = |_: &str, skill: &str| (skill == "limited").then_some(1);
    let limits = ConcurrencyLimits { total: 64, per_namespace: 16, per_skill: &per_skill };
    let mut started = std::collections::VecDeque::new();
    let mut ended = 0;
    while !queue.is_empty() || !started.is_empty() {
        if let Some(entry) = queue.pop(&limits, &running) {
            running.start(&entry.namespace, &entry.skill);
            started.push_back(entry);
        } else {
            let entry = started.pop_front().unwrap();
            running.finish(&entry.namespace, &entry.skill);
            ended += 1;
        }
    }
    assert_eq!(ended, 100_000);
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}
