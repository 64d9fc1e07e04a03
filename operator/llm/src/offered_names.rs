//! The tool names that one request offered, by owner of their calls.

use std::{collections::HashSet, sync::Arc};

/// The names of a request's offered tools. A call of any other name is the client's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OfferedNames {
    skills: HashSet<Arc<str>>,
    confirmed: HashSet<Arc<str>>,
}

impl OfferedNames {
    /// `skills` run in the gateway. Calls of `confirmed` await a person's confirmation: the client gets them like its
    /// own.
    pub fn new(
        skills: impl IntoIterator<Item = Arc<str>>,
        confirmed: impl IntoIterator<Item = Arc<str>>,
    ) -> Self {
        Self { skills: skills.into_iter().collect(), confirmed: confirmed.into_iter().collect() }
    }

    /// Returns true if no name was offered.
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty() && self.confirmed.is_empty()
    }

    /// Returns true if calls of this name run in the gateway and are removed from the client's view.
    pub fn contains(&self, name: &str) -> bool {
        self.skills.contains(name)
    }

    /// Returns true if calls of this name go to the client and await confirmation.
    pub fn needs_confirmation(&self, name: &str) -> bool {
        self.confirmed.contains(name)
    }

    /// Names of the tools that run in the gateway.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<str>> {
        self.skills.iter()
    }

    /// All offered names.
    pub fn all(&self) -> impl Iterator<Item = &Arc<str>> {
        self.skills.iter().chain(&self.confirmed)
    }
}

impl<const N: usize> From<[Arc<str>; N]> for OfferedNames {
    fn from(skills: [Arc<str>; N]) -> Self {
        Self::new(skills, [])
    }
}

impl FromIterator<Arc<str>> for OfferedNames {
    fn from_iter<I: IntoIterator<Item = Arc<str>>>(skills: I) -> Self {
        Self::new(skills, [])
    }
}
