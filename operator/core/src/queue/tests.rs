//! Order, turns and limits of the queue; a seeded run against a plain, slow statement of the same rules.

use super::*;
use crate::{test_cost::assert_linear, test_rng::TestRng};

const NO_SKILL_LIMIT: &dyn Fn(&str, &str) -> Option<u32> = &|_, _| None;

/// Limits of places only.
fn of_places(
    total: u32,
    per_namespace: u32,
    per_skill: &dyn Fn(&str, &str) -> Option<u32>,
) -> ConcurrencyLimits<'_> {
    // The limits live as long as their policy, and a test's policy as long as the test.
    let policy = Box::leak(Box::new(places(total, per_namespace)));
    ConcurrencyLimits::new(policy, total, per_skill)
}

/// A policy with limits of places only.
fn places(total: u32, per_namespace: u32) -> Concurrency {
    Concurrency { total, per_namespace, cpu: "0".into(), memory: "0".into() }
}

/// A size that no limit counts.
const ANY: SandboxSize = SandboxSize { cpu_millis: 1000, memory_bytes: 1 << 28 };

/// The lane of `namespace`, or of `namespace@caller`.
fn lane(text: &str) -> Lane {
    let (namespace, caller) = text.split_once('@').unzip();
    Lane::new(namespace.unwrap_or(text), caller)
}

/// Pushes `lane/skill:key` in order, and pops all that `limits` let run at once.
fn check(pushed: &str, total: u32, per_lane: u32, skill_limit: Option<u32>, expected: &str) {
    let mut queue = FairQueue::new();
    for (place, word) in (0..).zip(pushed.split_whitespace()) {
        let (place_of, key) = word.split_once(':').unwrap();
        let (of, skill) = place_of.split_once('/').unwrap();
        assert!(queue.push(&lane(of), skill, (100, place), key));
    }
    let per_skill = |_: &str, skill: &str| if skill.starts_with("limited") { skill_limit } else { None };
    let limits = of_places(total, per_lane, &per_skill);
    let mut running = RunningCounts::default();
    let mut popped = Vec::new();
    while let Some(entry) = queue.pop(&limits, &running) {
        running.start(&entry.lane, &entry.skill, ANY);
        popped.push(entry.key);
    }
    assert_eq!(popped.join(" "), expected);
    assert_eq!(queue.len() + popped.len(), pushed.split_whitespace().count());
}

#[test]
fn a_lane_is_served_in_order_of_arrival() {
    check("n/a:1 n/b:2 n/a:3 n/c:4", 10, 10, None, "1 2 3 4");
}

#[test]
fn lanes_take_turns() {
    check("a/s:a1 a/s:a2 a/s:a3 b/s:b1 c/s:c1 c/s:c2", 10, 10, None, "a1 b1 c1 a2 c2 a3");
    check("p@x/s:x1 p@x/s:x2 p@x/s:x3 p/s:p1 p@y/s:y1 q@x/s:q1", 10, 10, None, "p1 x1 y1 q1 x2 x3");
}

#[test]
fn callers_of_one_namespace_have_limits_of_their_own_and_share_that_of_a_skill() {
    check("p@x/s:x1 p@x/s:x2 p@x/s:x3 p@y/s:y1 p@y/s:y2", 10, 2, None, "x1 y1 x2 y2");
    check("p@x/limited:1 p@y/limited:2 p@z/limited:3 q@z/limited:4", 10, 10, Some(2), "1 2 4");
}

#[test]
fn a_place_that_gets_free_goes_to_the_lane_with_the_fewest_runs() {
    let (mut queue, mut running) = (FairQueue::new(), RunningCounts::default());
    for (of, runs) in [("a", 3), ("b", 2), ("c", 2)] {
        (0..runs).for_each(|_| running.start(&lane(of), "s", ANY));
    }
    for key in ["a1", "b1", "b2", "c1"] {
        queue.push(&lane(&key[..1]), "s", (1, 0), key);
    }
    let limits = of_places(99, 99, NO_SKILL_LIMIT);
    let popped: Vec<&str> = std::iter::from_fn(|| {
        let next = queue.pop(&limits, &running)?;
        running.start(&next.lane, &next.skill, ANY);
        Some(next.key)
    })
    .collect();
    assert_eq!(popped, ["b1", "c1", "a1", "b2"], "b and c have two; then all have three");
}

/// Lanes that hold all they can get, by long runs; then as many others come.
#[test]
fn a_few_lanes_cannot_take_every_place() {
    for total in 1..200_u32 {
        let limits = of_places(total, total, NO_SKILL_LIMIT);
        for hogs in 1..4 {
            let (mut queue, mut running) = (FairQueue::new(), RunningCounts::default());
            for key in 0..total * hogs {
                queue.push(&lane(&format!("hog{}", key % hogs)), "s", (0, u64::from(key)), key);
            }
            while let Some(next) = queue.pop(&limits, &running) {
                running.start(&next.lane, &next.skill, ANY);
            }
            let free = total - running.total();
            assert!(
                free >= (total / 8).max(1).min(total.saturating_sub(hogs)),
                "{hogs} of {total} leave {free}"
            );
            for other in 0..free {
                let other = lane(&format!("other{other}"));
                queue.push(&other, "s", (9, 0), u32::MAX - running.total());
                assert_eq!(queue.pop(&limits, &running).map(|next| next.lane), Some(other.clone()));
                running.start(&other, "s", ANY);
            }
            assert_eq!(queue.pop(&limits, &running), None);
        }
    }
}

/// Long runs of hogs end one after the other, and the places go to lanes below their share until all have one.
#[test]
fn every_lane_that_waits_gets_its_share_of_the_places_that_get_free() {
    let limits = of_places(32, 16, NO_SKILL_LIMIT);
    let (mut queue, mut running) = (FairQueue::new(), RunningCounts::default());
    let lanes: Vec<Lane> = (0..5).map(|number| lane(&format!("n{number}"))).collect();
    let mut held = Vec::new();
    for key in 0..200_usize {
        queue.push(&lanes[key % 2], "s", (0, key as u64), key);
    }
    while let Some(next) = queue.pop(&limits, &running) {
        running.start(&next.lane, "s", ANY);
        held.push(next.lane);
    }
    for key in 200..400 {
        queue.push(&lanes[2 + key % 3], "s", (1, key as u64), key);
    }
    for _ in 0..32 {
        let most = lanes.iter().max_by_key(|lane| running.in_lane(lane)).unwrap();
        running.finish(most, "s", ANY);
        while let Some(next) = queue.pop(&limits, &running) {
            running.start(&next.lane, "s", ANY);
        }
    }
    let runs: Vec<u32> = lanes.iter().map(|lane| running.in_lane(lane)).collect();
    assert!(runs.iter().all(|runs| (5..=6).contains(runs)), "{runs:?}");
}

#[test]
fn the_limits_of_cluster_and_lane_hold() {
    check("a/s:a1 a/s:a2 a/s:a3 b/s:b1 b/s:b2", 3, 10, None, "a1 b1");
    check("a/s:a1 a/s:a2 a/s:a3 b/s:b1 b/s:b2 c/s:c1", 3, 10, None, "a1 b1 c1");
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
        assert!(queue.push(&lane("n"), "s", (seconds, sequence), key));
    }
    let limits = of_places(9, 9, NO_SKILL_LIMIT);
    let popped: Vec<&str> =
        std::iter::from_fn(|| queue.pop(&limits, &RunningCounts::default())).map(|entry| entry.key).collect();
    assert_eq!(popped, ["first", "second", "second again", "later"]);
    assert!(queue.is_empty());
}

#[test]
fn an_entry_is_queued_once_and_can_be_taken_out() {
    let mut queue = FairQueue::new();
    assert!(queue.push(&lane("n"), "s", (1, 0), "a"));
    assert!(queue.push(&lane("n"), "s", (2, 0), "b"));
    assert!(!queue.push(&lane("n"), "s", (3, 0), "a"));
    assert!(queue.contains(&"a"));
    assert!(queue.remove(&"a"));
    assert!(!queue.remove(&"a"));
    assert!(!queue.contains(&"a"));
    let limits = of_places(9, 9, NO_SKILL_LIMIT);
    let next = queue.pop(&limits, &RunningCounts::default()).unwrap();
    assert_eq!(next, QueuedRun { lane: lane("n"), skill: "s".into(), key: "b" });
    assert!(queue.push(&lane("n"), "s", (1, 0), "b"), "what was popped can come back");
}

#[test]
fn running_counts_by_lane_and_skill() {
    let mut running = RunningCounts::default();
    let (own, other) = (lane("n"), lane("n@m"));
    for (lane, skill) in [(&own, "a"), (&other, "a"), (&own, "b")] {
        running.start(lane, skill, ANY);
    }
    assert_eq!((running.total(), running.in_lane(&own), running.in_lane(&other)), (3, 2, 1));
    assert_eq!((running.of_skill("n", "a"), running.of_skill("m", "a")), (2, 0));
    for (lane, skill) in [(&own, "a"), (&own, "b"), (&own, "b"), (&lane("m"), "a")] {
        running.finish(lane, skill, ANY);
    }
    assert_eq!((running.total(), running.in_lane(&own), running.in_lane(&other)), (1, 0, 1));
    running.finish(&other, "a", ANY);
    assert_eq!((running.total(), running.of_skill("n", "a")), (0, 0));
}

/// The rules said plainly: of the lanes with the fewest runs, the next in turn, with its earliest entry that may run.
#[derive(Default)]
struct Plain {
    waiting: Vec<((i64, u64), Lane, String, u32)>,
    last: Option<Lane>,
}

impl Plain {
    fn pop(&mut self, limits: &ConcurrencyLimits<'_>, running: &RunningCounts) -> Option<u32> {
        self.waiting.sort();
        let (total, per_lane) = (9, 4);
        let free = total - running.total();
        let kept = (total / 8).max(1);
        let may_run = |lane: &Lane, skill: &str| {
            let (held, limit) = (running.in_lane(lane), (limits.per_skill)(&lane.namespace, skill));
            held < per_lane
                && (free > kept || (free > 0 && held == 0))
                && limit.is_none_or(|limit| running.of_skill(&lane.namespace, skill) < limit)
        };
        let mut lanes: Vec<Lane> = self.waiting.iter().map(|entry| entry.1.clone()).collect();
        lanes.sort();
        lanes.dedup();
        let served = lanes.iter().filter(|lane| Some(*lane) <= self.last.as_ref()).count();
        lanes.rotate_left(served);
        // Stable: lanes with equally many runs stay in turn.
        lanes.sort_by_key(|lane| running.in_lane(lane));
        let found = lanes.iter().find_map(|turn| {
            self.waiting.iter().position(|(_, lane, skill, _)| lane == turn && may_run(lane, skill))
        })?;
        let (_, lane, _, key) = self.waiting.remove(found);
        self.last = Some(lane);
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
        let limits = of_places(9, 4, &per_skill);
        for key in 0..2_000_u32 {
            match rng.below(10) {
                0..4 => {
                    let lane = lane(&format!("{}@{}", rng.below(2), rng.below(3)));
                    let skill = rng.below(3).to_string();
                    let arrival = (i64::from(rng.below(50)), u64::from(key));
                    queue.push(&lane, &skill, arrival, key);
                    plain.waiting.push((arrival, lane, skill, key));
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
                        running.start(&entry.lane, &entry.skill, ANY);
                        started.push(entry);
                    }
                }
                _ => {
                    if !started.is_empty() {
                        let count = u32::try_from(started.len()).unwrap();
                        let ended = started.swap_remove(rng.below(count) as usize);
                        running.finish(&ended.lane, &ended.skill, ANY);
                    }
                }
            }
            assert_eq!(queue.len(), plain.waiting.len());
            assert!(running.total() <= 9);
        }
    }
}

#[test]
fn a_hundred_thousand_entries_are_no_burden() {
    assert_linear(12_500, push_and_pop);
}

fn push_and_pop(entries: usize) {
    let (mut queue, mut running) = (FairQueue::new(), RunningCounts::default());
    for key in 0..entries as u64 {
        let skill = if key % 2 == 0 { "limited" } else { "free" };
        queue.push(&lane(&format!("n{}@{}", key % 500, key % 1_000)), skill, (0, key), key);
    }
    let per_skill = |_: &str, skill: &str| (skill == "limited").then_some(1);
    let limits = of_places(64, 16, &per_skill);
    let mut started = std::collections::VecDeque::new();
    let mut ended = 0;
    while !queue.is_empty() || !started.is_empty() {
        if let Some(entry) = queue.pop(&limits, &running) {
            running.start(&entry.lane, &entry.skill, ANY);
            started.push_back(entry);
        } else {
            let entry = started.pop_front().unwrap();
            running.finish(&entry.lane, &entry.skill, ANY);
            ended += 1;
        }
    }
    assert_eq!(ended, entries);
}

/// Runs of this size when no more may start: of the first lane, then of all.
fn held_of(policy: &Concurrency, lanes: u32, size: SandboxSize) -> (u32, u32) {
    let (mut queue, mut running) = (FairQueue::new(), RunningCounts::default());
    for key in 0..lanes * 100 {
        queue.push(&lane(&format!("n{}", key % lanes)), "s", (0, u64::from(key)), key);
    }
    let limits = ConcurrencyLimits::new(policy, policy.total, NO_SKILL_LIMIT);
    while let Some(next) = queue.pop(&limits, &running) {
        running.start(&next.lane, "s", size);
    }
    (running.in_lane(&lane("n0")), running.total())
}

#[test]
fn a_lane_holds_its_part_of_cpu_and_memory_and_leaves_an_eighth() {
    let policy = |cpu: &str, memory: &str| Concurrency {
        cpu: cpu.into(),
        memory: memory.into(),
        ..Concurrency::default()
    };
    let gib = |cpus: u64, gib: u64| SandboxSize { cpu_millis: cpus * 1000, memory_bytes: gib << 30 };
    // 16 of 32 places are half of 32 CPUs, which 8 runs of 2 take.
    assert_eq!(held_of(&policy("32", "0"), 1, gib(2, 1)), (8, 8));
    assert_eq!(held_of(&policy("0", "8Gi"), 1, gib(2, 1)), (4, 4));
    assert_eq!(held_of(&policy("0", "0"), 1, gib(2, 1)), (16, 16), "zero is no limit");
    // Four lanes stop at 28 of 32 CPUs, and other lanes take the rest.
    assert_eq!(held_of(&policy("32", "0"), 4, gib(2, 1)).1, 14);
    assert_eq!(held_of(&policy("32", "0"), 40, gib(2, 1)), (1, 16));
    // The default has room for as many runs of the default size as it has places.
    assert_eq!(
        held_of(&Concurrency::default(), 40, SandboxSize { cpu_millis: 1000, memory_bytes: 256 << 20 }),
        (1, 32)
    );
}

#[test]
fn a_run_larger_than_every_share_runs_alone() {
    let policy = Concurrency { cpu: "2".into(), memory: "1Gi".into(), ..Concurrency::default() };
    let huge = SandboxSize { cpu_millis: 64_000, memory_bytes: 1 << 40 };
    assert_eq!(held_of(&policy, 3, huge), (1, 1));
}

/// Runs of any size come and go: the total is exceeded by less than one run, and what is counted is what runs.
#[test]
fn what_runs_hold_stays_below_the_limits_but_for_the_last_run() {
    let policy = Concurrency { total: 20, per_namespace: 10, cpu: "10".into(), memory: "4Gi".into() };
    let limits = ConcurrencyLimits::new(&policy, policy.total, NO_SKILL_LIMIT);
    for seed in 0..20 {
        let mut rng = TestRng::new(seed);
        let (mut queue, mut running) = (FairQueue::new(), RunningCounts::default());
        let mut started: Vec<(Lane, SandboxSize)> = Vec::new();
        for key in 0..2_000_u32 {
            queue.push(&lane(&rng.below(5).to_string()), "s", (0, u64::from(key)), key);
            if rng.below(3) == 0 && !started.is_empty() {
                let (lane, size) =
                    started.swap_remove(rng.below(u32::try_from(started.len()).unwrap()) as usize);
                running.finish(&lane, "s", size);
            }
            if let Some(next) = queue.pop(&limits, &running) {
                assert!(running.all.cpu_millis < 10_000 && running.all.memory_bytes < 4 << 30);
                let size = SandboxSize {
                    cpu_millis: u64::from(50 + rng.below(4_000)),
                    memory_bytes: u64::from(1 + rng.below(1 << 30)),
                };
                running.start(&next.lane, "s", size);
                started.push((next.lane, size));
            }
        }
        started.drain(..).for_each(|(lane, size)| running.finish(&lane, "s", size));
        assert_eq!((running.all, running.lanes.len(), running.skills.len()), (Held::default(), 0, 0));
    }
}

#[test]
fn the_limit_that_keeps_a_run_waiting_is_named() {
    let check = |total: u32, per_lane: u32, skill_limit: Option<u32>, cpu: &str, expected: &str| {
        let policy = Concurrency { total, per_namespace: per_lane, cpu: cpu.into(), memory: "0".into() };
        let per_skill = |_: &str, _: &str| skill_limit;
        let limits = ConcurrencyLimits::new(&policy, total, &per_skill);
        let mut running = RunningCounts::default();
        running.start(&lane("a"), "s", ANY);
        running.start(&lane("b"), "s", ANY);
        assert_eq!(limits.explain(&lane("a"), "s", &running), expected);
    };
    check(9, 9, Some(1), "0", "spec.limits.concurrency of Skill s is 1");
    check(
        9,
        1,
        None,
        "0",
        "the runs of this namespace fill concurrency.perNamespace of SkillPolicy, which is 1",
    );
    check(2, 2, None, "0", "the runs of the cluster fill concurrency.total of SkillPolicy, which is 2");
    check(9, 9, None, "2", "the runs of the cluster fill concurrency.cpu of SkillPolicy, which is 2");
    let share = "the runs of this namespace fill concurrency.perNamespace of SkillPolicy, which is 3, its share of 3 cpu";
    check(9, 3, None, "3", share);
    check(9, 9, None, "0", "others come before it");
    let policy = Concurrency { total: 9, ..Concurrency::default() };
    let mut running = RunningCounts::default();
    running.start(&lane("a"), "s", ANY);
    running.start(&lane("b"), "s", ANY);
    let shrunk = ConcurrencyLimits::new(&policy, 2, &|_, _| None).explain(&lane("a"), "s", &running);
    assert_eq!(shrunk, "the nodes had no room for more than 2 runs at one time");
}
