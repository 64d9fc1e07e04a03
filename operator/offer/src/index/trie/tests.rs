//! Matches in texts, by both ways of searching, and the state after changes.

use super::*;
use skillet_core::test_rng::TestRng;

fn search(trie: &Trie, text: &str) -> Vec<PatternId> {
    search_with(trie, text, &mut SuffixLinks::default())
}

fn search_with(trie: &Trie, text: &str, links: &mut SuffixLinks) -> Vec<PatternId> {
    let mut found = Vec::new();
    trie.find_in_one_pass(text.as_bytes(), links, &mut found);
    found.sort_unstable();
    let mut short = Vec::new();
    trie.find(text.as_bytes(), links, &mut short);
    short.sort_unstable();
    short.dedup();
    assert_eq!(found, short, "{text}");
    found
}

#[test]
fn nested_and_overlapping_patterns_are_found() {
    let mut trie = Trie::new();
    for (number, pattern) in ["cat", "at", "cater", "网页", "页"].into_iter().enumerate() {
        assert_eq!(trie.insert(pattern, u32::try_from(number).unwrap()), u32::try_from(number).unwrap());
    }
    assert_eq!(trie.insert("cat", 9), 0);
    assert_eq!((trie.get("cat"), trie.get("ca"), trie.get("dog")), (Some(0), None, None));
    assert_eq!(search(&trie, "concatenate"), [0, 1]);
    assert_eq!(search(&trie, "caterer 网页"), [0, 1, 2, 3, 4]);
    assert_eq!(search(&trie, "dog"), [0; 0]);
}

#[test]
fn nested_patterns_cost_no_memory_or_time_for_each_position_of_the_text() {
    let mut trie = Trie::new();
    let nested: Vec<String> = (1..=32).map(|length| "a".repeat(length)).collect();
    for (number, pattern) in (0..).zip(&nested) {
        trie.insert(pattern, number);
        trie.insert(&format!("{}b", "a".repeat(60)), 99);
    }
    let (mut links, mut found) = (SuffixLinks::default(), Vec::new());
    trie.find(&vec![b'a'; 8_000_000], &mut links, &mut found);
    found.sort_unstable();
    assert_eq!(found, (0..32).collect::<Vec<_>>());
    assert!(found.capacity() <= 64, "memory does not depend on the length of the text");
}

#[test]
fn after_changes_the_trie_finds_the_same_as_a_plain_search() {
    let mut rng = TestRng::new(5);
    let mut trie = Trie::new();
    // The number of searches wraps around in between.
    let mut links = SuffixLinks::after(u32::MAX - 1_000);
    let mut patterns: Vec<Option<String>> = vec![None; 12];
    for round in 0..3_000 {
        let at = rng.below(12) as usize;
        let pattern = rng.text("abé", 4);
        let number = u32::try_from(at).unwrap();
        if let Some(old) = patterns[at].take() {
            trie.remove(&old);
        } else if !pattern.is_empty() && !patterns.contains(&Some(pattern.clone())) {
            assert_eq!(trie.insert(&pattern, number), number);
            patterns[at] = Some(pattern);
        }
        let text = rng.text("abéc", 10);
        let is_in = |pattern: &Option<String>| pattern.as_ref().is_some_and(|p| text.contains(p));
        let expected: Vec<usize> = (0..12).filter(|at| is_in(&patterns[*at])).collect();
        let found: Vec<usize> = search_with(&trie, &text, &mut links).iter().map(|id| *id as usize).collect();
        assert_eq!(found, expected, "{round} {text} {patterns:?}");
    }
    for pattern in patterns.into_iter().flatten() {
        trie.remove(&pattern);
    }
    assert!(trie.edges.is_empty() && trie.roots.iter().all(|child| *child == NONE));
    assert_eq!(trie.nodes.len(), trie.free_nodes.len() + 1);
}
