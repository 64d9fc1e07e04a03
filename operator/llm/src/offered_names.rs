//! The tool names that one request offered, by owner of their calls.

use std::{
    collections::HashSet,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};

use crate::tool_names::builtin;

/// The names of a request's offered tools. A call of any other name is the client's.
#[derive(Clone, Debug, Default)]
pub struct OfferedNames {
    skills: HashSet<Arc<str>>,
    confirmed: HashSet<Arc<str>>,
    /// Built-in programs of `skills`, and those of `confirmed`, whose own names mean them too.
    builtins: HashSet<&'static str>,
    confirmed_builtins: HashSet<&'static str>,
    /// Names of tools that run in the gateway and came between two rounds. All clones share them.
    added: Arc<RwLock<HashSet<Arc<str>>>>,
}

impl OfferedNames {
    /// `skills` run in the gateway. Calls of `confirmed` await a person's confirmation: the client gets them like its
    /// own.
    pub fn new(
        skills: impl IntoIterator<Item = Arc<str>>,
        confirmed: impl IntoIterator<Item = Arc<str>>,
    ) -> Self {
        Self {
            skills: skills.into_iter().collect(),
            confirmed: confirmed.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Adds the own names of built-in programs whose skills run in the gateway.
    #[must_use]
    pub fn with_builtins(mut self, builtins: impl IntoIterator<Item = &'static str>) -> Self {
        self.builtins.extend(builtins);
        self
    }

    /// Adds the own names of built-in programs whose calls await a person's confirmation.
    #[must_use]
    pub fn with_confirmed_builtins(mut self, builtins: impl IntoIterator<Item = &'static str>) -> Self {
        self.confirmed_builtins.extend(builtins);
        self
    }

    /// Returns true if no name was offered.
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty() && self.confirmed.is_empty() && self.added().is_empty()
    }

    /// Returns true if calls of this name run in the gateway and are removed from the client's view.
    pub fn contains(&self, name: &str) -> bool {
        self.skills.contains(name)
            || self.added().contains(name)
            || (!self.confirmed.contains(name) && self.builtins.contains(builtin::canonical(name)))
    }

    /// Returns true if calls of this name go to the client and await confirmation.
    pub fn needs_confirmation(&self, name: &str) -> bool {
        self.confirmed.contains(name)
            || (!self.skills.contains(name) && self.confirmed_builtins.contains(builtin::canonical(name)))
    }

    /// Returns true if a tool that runs in the gateway has a name that begins so.
    pub fn any_begins_with(&self, begin: &str) -> bool {
        self.skills.iter().chain(&*self.added()).any(|name| name.starts_with(begin))
            || self.builtins.iter().any(|name| builtin::may_become(name, begin))
    }

    /// Returns true if the text has the name of any offered tool.
    pub fn any_is_in(&self, text: &str) -> bool {
        let mut fixed = self.skills.iter().chain(&self.confirmed);
        // The own names of a built-in end in its word.
        let mut builtins = self.builtins.iter().chain(&self.confirmed_builtins);
        fixed.any(|name| text.contains(&**name))
            || self.added().iter().any(|name| text.contains(&**name))
            || builtins.any(|name| text.contains(*name))
    }

    /// Names of the tools that run in the gateway from the first round on.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<str>> {
        self.skills.iter()
    }

    /// Adds tools that run in the gateway, from the next round on.
    pub fn add(&self, names: impl IntoIterator<Item = Arc<str>>) {
        self.added.write().unwrap_or_else(PoisonError::into_inner).extend(names);
    }

    fn added(&self) -> RwLockReadGuard<'_, HashSet<Arc<str>>> {
        self.added.read().unwrap_or_else(PoisonError::into_inner)
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
