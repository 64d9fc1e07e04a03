//! The names that one request offered, by what becomes of their calls.

use std::{collections::HashSet, sync::Arc};

/// Only calls of these names are looked at; every other is the client's and none of ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfferedNames {
    ours: HashSet<Arc<str>>,
    asked: HashSet<Arc<str>>,
}

impl OfferedNames {
    /// `ours` are run here. Calls of `asked` wait for a person's word: the client gets them as if they were its own.
    pub fn new(ours: impl IntoIterator<Item = Arc<str>>, asked: impl IntoIterator<Item = Arc<str>>) -> Self {
        Self { ours: ours.into_iter().collect(), asked: asked.into_iter().collect() }
    }

    /// Whether no name was offered.
    pub fn is_empty(&self) -> bool {
        self.ours.is_empty() && self.asked.is_empty()
    }

    /// Whether calls of this name are run here, and taken out of what the client gets.
    pub fn contains(&self, name: &str) -> bool {
        self.ours.contains(name)
    }

    /// Whether calls of this name go to the client and wait for a person's word.
    pub fn needs_confirmation(&self, name: &str) -> bool {
        self.asked.contains(name)
    }

    /// Names of what is run here.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<str>> {
        self.ours.iter()
    }

    /// Every name that was offered.
    pub fn all(&self) -> impl Iterator<Item = &Arc<str>> {
        self.ours.iter().chain(&self.asked)
    }
}

impl<const N: usize> From<[Arc<str>; N]> for OfferedNames {
    fn from(ours: [Arc<str>; N]) -> Self {
        Self::new(ours, [])
    }
}

impl FromIterator<Arc<str>> for OfferedNames {
    fn from_iter<I: IntoIterator<Item = Arc<str>>>(ours: I) -> Self {
        Self::new(ours, [])
    }
}
