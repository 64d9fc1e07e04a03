//! A trie over the bytes of names and tags, which finds each of them at every position of a text.
//!
//! A change takes as many steps as the pattern has bytes. The suffix links of an Aho-Corasick automaton would have to be
//! rebuilt after a change, so a search of a long text computes them for the nodes that it visits. Such a search takes as
//! many steps as the text has bytes, whatever the text and the patterns, and returns each pattern once.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
};

use super::suffix_links::SuffixLinks;

/// Number of a pattern. Numbers of removed patterns are used again.
pub(super) type PatternId = u32;

pub(super) const NONE: u32 = u32::MAX;
const ROOT: u32 = 0;
/// Longest text that is searched from each position anew, in bytes. At worst it takes milliseconds and megabytes.
const SHORT: usize = 16 * 1024;

#[derive(Clone, Debug)]
pub(super) struct Trie {
    nodes: Vec<Node>,
    free_nodes: Vec<u32>,
    /// Children of the root by their byte.
    roots: Box<[u32; 256]>,
    /// Pairs of first bytes of the patterns, by their lowest six bits. This filter rules out nearly all positions of a
    /// text. Bits stay when patterns go, which only weakens the filter.
    beginnings: [u64; 64],
    /// Children of all other nodes, except the child in the node itself.
    edges: HashMap<u64, u32, BuildHasherDefault<EdgeHasher>>,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    /// The pattern that ends here.
    pattern: PatternId,
    children: u32,
    parent: u32,
    /// One child, and the byte that leads to it. Most nodes have no other child.
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

    /// Returns the pattern's number, which is `new` if the pattern is new.
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

    /// Removes a pattern, and the nodes that only it had.
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

    /// Appends the patterns in the text, each at least once, and at most once for each position of a short text.
    pub(super) fn find(&self, text: &[u8], links: &mut SuffixLinks, found: &mut Vec<PatternId>) {
        if text.len() <= SHORT {
            self.find_from_each_position(text, found);
        } else {
            self.find_in_one_pass(text, links, found);
        }
    }

    /// Searches a short text. Nearly all positions end after one or two steps.
    fn find_from_each_position(&self, text: &[u8], found: &mut Vec<PatternId>) {
        for (start, first) in text.iter().enumerate() {
            let Some(mut at) = self.child(ROOT, *first) else { continue };
            found.extend(self.pattern(at));
            let rest = text.get(start + 1..).unwrap_or_default();
            if !rest.first().is_some_and(|second| self.may_begin(*first, *second)) {
                continue;
            }
            for byte in rest {
                let Some(child) = self.child(at, *byte) else { break };
                at = child;
                found.extend(self.pattern(at));
            }
        }
    }

    fn find_in_one_pass(&self, text: &[u8], links: &mut SuffixLinks, found: &mut Vec<PatternId>) {
        links.begin(self.nodes.len());
        let mut at = ROOT;
        let mut rest = text.iter();
        while let Some(byte) = rest.next() {
            at = self.step(at, *byte, links);
            if at == ROOT {
                continue;
            }
            let Some(node) = self.nodes.get(at as usize) else { continue };
            let is_first = node.parent == ROOT;
            // Nearly all positions of a text reach a first node where no pattern ends, and no second node.
            if !is_first || node.pattern != NONE {
                self.report(at, links, found);
            }
            if is_first && rest.as_slice().first().is_some_and(|second| !self.may_begin(*byte, *second)) {
                at = ROOT;
            }
        }
    }

    /// Appends the patterns that end with a node, unless the search has returned them.
    fn report(&self, mut end: u32, links: &mut SuffixLinks, found: &mut Vec<PatternId>) {
        while end != ROOT && links.mark_reported(end) {
            found.extend(self.pattern(end));
            end = self.suffix(end, links);
        }
    }

    /// Returns the node of the longest text in the trie that ends with this byte.
    fn step(&self, mut at: u32, byte: u8, links: &mut SuffixLinks) -> u32 {
        loop {
            match self.child(at, byte) {
                Some(child) => return child,
                None if at == ROOT => return ROOT,
                None => at = self.suffix(at, links),
            }
        }
    }

    /// Returns the suffix link of a node. The recursion is no deeper than a pattern is long.
    fn suffix(&self, at: u32, links: &mut SuffixLinks) -> u32 {
        let Some(Node { parent, byte, .. }) = self.nodes.get(at as usize).copied() else { return ROOT };
        if parent == ROOT {
            return ROOT;
        }
        if let Some(known) = links.suffix(at) {
            return known;
        }
        let of_parent = self.suffix(parent, links);
        let suffix = self.step(of_parent, byte, links);
        links.set_suffix(at, suffix);
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

/// A hash of one multiplication. Nobody outside chooses the edges, so no defense against flooding is needed.
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
mod tests;
