//! Suffix links of a trie, as one search discovers them. The next search reuses the memory, not the links.

use super::trie::NONE;

/// State that a search keeps for each node of a trie.
#[derive(Clone, Debug, Default)]
pub(super) struct SuffixLinks {
    /// Number of the search. State of another search does not count.
    search: u32,
    nodes: Vec<NodeState>,
}

#[derive(Clone, Copy, Debug)]
struct NodeState {
    search: u32,
    /// True once the search has returned the patterns that end with this node.
    is_reported: bool,
    /// Node of the longest text that ends with this node's text; [`NONE`] until it is computed.
    suffix: u32,
}

impl SuffixLinks {
    /// Starts another search, in a trie of this many nodes.
    pub(super) fn begin(&mut self, nodes: usize) {
        self.search = self.search.wrapping_add(1);
        if self.search == 0 {
            self.nodes.clear();
            self.search = 1;
        }
        if self.nodes.len() < nodes {
            self.nodes.resize(nodes, NodeState { search: 0, is_reported: false, suffix: NONE });
        }
    }

    fn state(&mut self, node: u32) -> Option<&mut NodeState> {
        let state = self.nodes.get_mut(node as usize)?;
        if state.search != self.search {
            *state = NodeState { search: self.search, is_reported: false, suffix: NONE };
        }
        Some(state)
    }

    /// Marks a node as reported. True if it was not yet.
    pub(super) fn mark_reported(&mut self, node: u32) -> bool {
        self.state(node).is_some_and(|state| !std::mem::replace(&mut state.is_reported, true))
    }

    /// Returns the suffix link of a node, if it is computed.
    pub(super) fn suffix(&mut self, node: u32) -> Option<u32> {
        self.state(node).map(|state| state.suffix).filter(|suffix| *suffix != NONE)
    }

    pub(super) fn set_suffix(&mut self, node: u32, suffix: u32) {
        if let Some(state) = self.state(node) {
            state.suffix = suffix;
        }
    }
}

#[cfg(test)]
impl SuffixLinks {
    /// Returns the state after this many searches.
    pub(super) fn after(searches: u32) -> Self {
        Self { search: searches, nodes: Vec::new() }
    }
}
