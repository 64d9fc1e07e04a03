//! What one search notes of the nodes of a trie: memory that is kept for the next, whose marks are others.

use super::trie::NONE;

/// What a search notes of the nodes it comes to, to be used again for the next one.
#[derive(Clone, Debug, Default)]
pub(super) struct SuffixLinks {
    /// SuffixLinks of another search are none.
    search: u32,
    nodes: Vec<Link>,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    search: u32,
    /// Whether the patterns that end with this node were given.
    is_given: bool,
    /// The node of the longest text that ends with this one; [`NONE`] where it is not known yet.
    suffix: u32,
}

impl SuffixLinks {
    /// For another search, in a trie of so many nodes.
    pub(super) fn begin(&mut self, nodes: usize) {
        self.search = self.search.wrapping_add(1);
        if self.search == 0 {
            self.nodes.clear();
            self.search = 1;
        }
        if self.nodes.len() < nodes {
            self.nodes.resize(nodes, Link { search: 0, is_given: false, suffix: NONE });
        }
    }

    fn of(&mut self, node: u32) -> Option<&mut Link> {
        let mark = self.nodes.get_mut(node as usize)?;
        if mark.search != self.search {
            *mark = Link { search: self.search, is_given: false, suffix: NONE };
        }
        Some(mark)
    }

    /// Whether this is the first time.
    pub(super) fn give(&mut self, node: u32) -> bool {
        self.of(node).is_some_and(|mark| !std::mem::replace(&mut mark.is_given, true))
    }

    /// The node of the longest text that ends with this one, where it is known.
    pub(super) fn suffix(&mut self, node: u32) -> Option<u32> {
        self.of(node).map(|mark| mark.suffix).filter(|suffix| *suffix != NONE)
    }

    pub(super) fn set_suffix(&mut self, node: u32, suffix: u32) {
        if let Some(mark) = self.of(node) {
            mark.suffix = suffix;
        }
    }
}

#[cfg(test)]
impl SuffixLinks {
    /// As if there had been so many searches.
    pub(super) fn after(searches: u32) -> Self {
        Self { search: searches, nodes: Vec::new() }
    }
}
