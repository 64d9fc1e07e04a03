//! All skills of the cluster as the watch shows them, prepared to be offered.
//!
//! One index per namespace, swapped in whole: a request reads without a lock and without copying.

use std::sync::Arc;

use skillet_api::{Skill, SkillPolicySpec, SkillVersion};

use crate::identity::Caller;

/// One skill with the version that is offered and run.
#[derive(Clone, Debug)]
pub struct Known {
    pub skill: Arc<Skill>,
    /// The newest sealed version; none where nothing can run.
    pub version: Option<Arc<SkillVersion>>,
}

/// What the watch has shown.
#[derive(Default)]
pub struct Skills {}

impl Skills {
    /// The policy in force.
    pub fn policy(&self) -> Arc<SkillPolicySpec> {
        Arc::default()
    }

    /// Namespaces that a caller's names are looked up in, the nearest first: its own, the platform's, the catalogues'.
    pub fn namespaces(&self, _caller: &Caller) -> Vec<Arc<str>> {
        Vec::new()
    }

    /// A skill by namespace and name.
    pub fn get(&self, _namespace: &str, _name: &str) -> Option<Arc<Known>> {
        None
    }

    /// Every skill of a namespace, by name.
    pub fn list(&self, _namespace: &str) -> Vec<Arc<Known>> {
        Vec::new()
    }
}
