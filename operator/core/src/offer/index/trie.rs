//! Names and tags as a trie of bytes: finds every one of them at every place of a text.
//!
//! It takes a change in as many steps as the pattern has bytes. An automaton's failure links, which a change would make
//! anew, are found while a text is searched, for the nodes that the text leads to. So a search takes as many steps as
//! the text has bytes, whatever text and patterns there are, and gives each pattern once.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

use super::marks::Marks;

/// The number of a pattern; given out again after the pattern was removed.
pub(super) type PatternId = u32;

pub(super) const NONE: u32 = u32::MAX;
const ROOT: u32 = 0;

#[derive(Clone, Debug)]
pub(super) struct Trie {
    nodes: Vec<Node>,
    free_nodes: Vec<u32>,
    /// Children of the root by their byte.
    roots: Box<[u32; 256]>,
    /// Which two bytes a pattern may begin with, by their lowest six bits: nearly all places of a text are done with
    /// after a look at this. Bits stay when patterns go; then it only saves less.
    beginnings: [u64; 64],
    /// Children of all other nodes, but for those that stand in the node.
    edges: HashMap<u64, u32, BuildHasherDefault<EdgeHasher>>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    /// The pattern that ends here.
    pattern: PatternId,
    children: u32,
    parent: u32,
    /// One of the children, and the byte that leads to it: most nodes have no other.
    first: u32,
    first_byte: u8,
    /// The byte that leads here from the parent.
    byte: u8,
}

const LEAF: Node = Node { pattern: NONE, children: 0, parent: ROOT, first: NONE, first_byte: 0, byte: 0 };

impl Trie {
    pub(super) fn new() -> Self {
        Self {
            nodes: vec![LEAF],
            free_nodes: Vec::new(),
            roots: Box::new([NONE; 256]),
            beginnings: [0; 64],
            edges: HashMap::default(),
        }
    }

    /// The pattern's number; `new` is taken as its number where it is not in yet.
    pub(super) fn insert(&mut self, pattern: &str, new: PatternId) -> PatternId {
        if let [first, second, ..] = pattern.as_bytes()
            && let Some(seconds) = self.beginnings.get_mut(usize::from(first & 63))
        {
            *seconds |= 1 << (second & 63);
        }
        let mut at = ROOT;
        for byte in pattern.bytes() {
            at = match self.child(at, byte) {
                Some(child) => child,
                None => self.grow(at, byte),
            };
        }
        match self.nodes.get_mut(at as usize) {
            Some(node) if node.pattern == NONE => {
                node.pattern = new;
                new
            }
            Some(node) => node.pattern,
            None => new,
        }
    }

    pub(super) fn get(&self, pattern: &str) -> Option<PatternId> {
        let mut bytes = pattern.bytes();
        let end = bytes.try_fold(ROOT, |at, byte| self.child(at, byte))?;
        self.pattern(end)
    }

    /// Forgets a pattern, and the nodes that only it had.
    pub(super) fn remove(&mut self, pattern: &str) {
        let mut path = vec![ROOT];
        for byte in pattern.bytes() {
            let Some(child) = path.last().and_then(|at| self.child(*at, byte)) else { return };
            path.push(child);
        }
        let Some(end) = path.pop() else { return };
        if let Some(node) = self.nodes.get_mut(end as usize) {
            node.pattern = NONE;
        }
        let mut child = end;
        for byte in pattern.bytes().rev() {
            let is_needed = |node: &Node| node.pattern != NONE || node.children > 0;
            let Some(parent) = path.pop() else { return };
            if self.nodes.get(child as usize).is_none_or(is_needed) {
                return;
            }
            self.cut(parent, byte, child);
            child = parent;
        }
    }

    /// Appends the patterns in the text, each once.
    pub(super) fn find(&self, text: &[u8], marks: &mut Marks, found: &mut Vec<PatternId>) {
        marks.begin(self.nodes.len());
        let mut at = ROOT;
        let mut rest = text.iter();
        while let Some(byte) = rest.next() {
            at = self.step(at, *byte, marks);
            if at == ROOT {
                continue;
            }
            let mut end = at;
            while end != ROOT && marks.give(end) {
                found.extend(self.pattern(end));
                end = self.suffix(end, marks);
            }
            let is_first = self.nodes.get(at as usize).is_some_and(|node| node.parent == ROOT);
            let is_last = |second: &u8| !self.may_begin(*byte, *second);
            if is_first && rest.as_slice().first().is_some_and(is_last) {
                at = ROOT;
            }
        }
    }

    /// The longest text of the trie that the text so far and this byte end with.
    fn step(&self, mut at: u32, byte: u8, marks: &mut Marks) -> u32 {
        loop {
            match self.child(at, byte) {
                Some(child) => return child,
                None if at == ROOT => return ROOT,
                None => at = self.suffix(at, marks),
            }
        }
    }

    /// It goes no deeper than a pattern is long.
    fn suffix(&self, at: u32, marks: &mut Marks) -> u32 {
        let Some(Node { parent, byte, .. }) = self.nodes.get(at as usize).copied() else { return ROOT };
        if parent == ROOT {
            return ROOT;
        }
        if let Some(known) = marks.suffix(at) {
            return known;
        }
        let of_parent = self.suffix(parent, marks);
        let suffix = self.step(of_parent, byte, marks);
        marks.set_suffix(at, suffix);
        suffix
    }

    fn may_begin(&self, first: u8, second: u8) -> bool {
        self.beginnings.get(usize::from(first & 63)).is_some_and(|seconds| seconds >> (second & 63) & 1 == 1)
    }

    fn pattern(&self, at: u32) -> Option<PatternId> {
        self.nodes.get(at as usize).map(|node| node.pattern).filter(|pattern| *pattern != NONE)
    }

    fn child(&self, at: u32, byte: u8) -> Option<u32> {
        if at == ROOT {
            return self.roots.get(usize::from(byte)).copied().filter(|child| *child != NONE);
        }
        let node = self.nodes.get(at as usize)?;
        if node.first != NONE && node.first_byte == byte {
            return Some(node.first);
        }
        let others = node.children - u32::from(node.first != NONE);
        if others == 0 { None } else { self.edges.get(&edge(at, byte)).copied() }
    }

    fn grow(&mut self, at: u32, byte: u8) -> u32 {
        let leaf = Node { parent: at, byte, ..LEAF };
        let child = if let Some(free) = self.free_nodes.pop() {
            if let Some(place) = self.nodes.get_mut(free as usize) {
                *place = leaf;
            }
            free
        } else {
            self.nodes.push(leaf);
            u32::try_from(self.nodes.len() - 1).unwrap_or(NONE)
        };
        if at == ROOT {
            self.set_root(byte, child);
        } else if let Some(parent) = self.nodes.get_mut(at as usize) {
            parent.children += 1;
            if parent.first == NONE {
                (parent.first, parent.first_byte) = (child, byte);
            } else {
                self.edges.insert(edge(at, byte), child);
            }
        }
        child
    }

    fn cut(&mut self, at: u32, byte: u8, child: u32) {
        if at == ROOT {
            self.set_root(byte, NONE);
        } else if let Some(parent) = self.nodes.get_mut(at as usize) {
            parent.children -= 1;
            if parent.first == child {
                parent.first = NONE;
            } else {
                self.edges.remove(&edge(at, byte));
            }
        }
        self.free_nodes.push(child);
    }

    fn set_root(&mut self, byte: u8, child: u32) {
        if let Some(place) = self.roots.get_mut(usize::from(byte)) {
            *place = child;
        }
    }
}

fn edge(at: u32, byte: u8) -> u64 {
    u64::from(at) << 8 | u64::from(byte)
}

/// One multiplication: edges are numbers that nobody outside chooses, so there is no flooding to defend against.
#[derive(Clone, Copy, Debug, Default)]
struct EdgeHasher(u64);

impl Hasher for EdgeHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 ^ u64::from(*byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let product = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ (product >> 32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::Dice;

    fn found(trie: &Trie, text: &str) -> Vec<PatternId> {
        found_with(trie, text, &mut Marks::default())
    }

    fn found_with(trie: &Trie, text: &str, marks: &mut Marks) -> Vec<PatternId> {
        let mut found = Vec::new();
        trie.find(text.as_bytes(), marks, &mut found);
        found.sort_unstable();
        found
    }

    #[test]
    fn patterns_are_found_inside_each_other_and_across() {
        let mut trie = Trie::new();
        for (number, pattern) in ["cat", "at", "cater", "网页", "页"].into_iter().enumerate() {
            assert_eq!(trie.insert(pattern, u32::try_from(number).unwrap()), u32::try_from(number).unwrap());
        }
        assert_eq!(trie.insert("cat", 9), 0);
        assert_eq!((trie.get("cat"), trie.get("ca"), trie.get("dog")), (Some(0), None, None));
        assert_eq!(found(&trie, "concatenate"), [0, 1]);
        assert_eq!(found(&trie, "caterer 网页"), [0, 1, 2, 3, 4]);
        assert_eq!(found(&trie, "dog"), [0; 0]);
    }

    #[test]
    fn patterns_inside_each_other_cost_neither_memory_nor_time_for_each_place_of_the_text() {
        let mut trie = Trie::new();
        let nested: Vec<String> = (1..=32).map(|length| "a".repeat(length)).collect();
        for (number, pattern) in (0..).zip(&nested) {
            trie.insert(pattern, number);
            trie.insert(&format!("{}b", "a".repeat(60)), 99);
        }
        let (mut marks, mut found) = (Marks::default(), Vec::new());
        trie.find(&vec![b'a'; 8_000_000], &mut marks, &mut found);
        found.sort_unstable();
        assert_eq!(found, (0..32).collect::<Vec<_>>());
        assert!(found.capacity() <= 64, "nothing stays of the text's length");
    }

    #[test]
    fn after_any_changes_it_finds_what_a_plain_search_finds() {
        let mut dice = Dice::new(5);
        let mut trie = Trie::new();
        // Its numbers of searches begin again in between.
        let mut marks = Marks::after(u32::MAX - 1_000);
        let mut patterns: Vec<Option<String>> = vec![None; 12];
        for round in 0..3_000 {
            let at = dice.below(12) as usize;
            let pattern = dice.text("abé", 4);
            let number = u32::try_from(at).unwrap();
            if let Some(old) = patterns[at].take() {
                trie.remove(&old);
            } else if !pattern.is_empty() && !patterns.contains(&Some(pattern.clone())) {
                assert_eq!(trie.insert(&pattern, number), number);
                patterns[at] = Some(pattern);
            }
            let text = dice.text("abéc", 10);
            let is_in = |pattern: &Option<String>| pattern.as_ref().is_some_and(|p| text.contains(p));
            let expected: Vec<usize> = (0..12).filter(|at| is_in(&patterns[*at])).collect();
            let found: Vec<usize> =
                found_with(&trie, &text, &mut marks).iter().map(|id| *id as usize).collect();
            assert_eq!(found, expected, "{round} {text} {patterns:?}");
        }
        for pattern in patterns.into_iter().flatten() {
            trie.remove(&pattern);
        }
        assert!(trie.edges.is_empty() && trie.roots.iter().all(|child| *child == NONE));
        assert_eq!(trie.nodes.len(), trie.free_nodes.len() + 1);
    }
}
