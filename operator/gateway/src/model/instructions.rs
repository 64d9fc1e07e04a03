//! Instructions of skills in a model request: a listing beside the system's words, tools that read them and run their
//! scripts, and the texts that triggers put behind messages.
//!
//! The listing and the tools depend on the skills, and on those that are triggered, and not on the question, so that the provider's prompt cache holds.
//! The texts of triggers follow from the messages alone, so that every request of a conversation has them in the same places.

mod calls;
mod commands;
pub(crate) mod direct;
mod explanation;
mod listing;
mod paths;
mod question;
mod restrictions;
mod scripts;
mod triggered;

use std::sync::Arc;

use serde_json::Value;
use skillet_api::skill::Invocation;
use skillet_instructions::inputs::CallValues;
use skillet_llm::{DialectName, add_result_texts, add_system_text, add_user_texts, history::ResultLocation};
use skillet_offer::SkillFilter;

pub(super) use self::{
    calls::{GuideScope, ReadAction, ReadRequest, read_body, read_bundle_file, read_file, read_instructions},
    commands::PendingText,
    explanation::explain,
    listing::add_offer,
    question::InstructionsQuestion,
    restrictions::{RestrictingSkill, Restrictions, find_restrictions, read_restriction, read_servers},
    scripts::{RUN_SCRIPT_WITH_CONFIRMATION, read_script, script_of},
};
use crate::{
    catalog::{CachedContent, CachedInstructions, CachedVersion, CatalogEntry, Namespace},
    commands::BodyText,
    mcp_servers::SkillServer,
};

/// Texts for a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct InstructionTexts {
    /// The listing, and the skills that are always there.
    pub(super) system: Vec<String>,
    /// Blocks of triggered skills, each with the place of its turn of the user.
    pub(super) turns: Vec<(usize, String)>,
    /// Blocks of skills that a path triggers, each with the place of the result of the call that names it.
    pub(super) results: Vec<(ResultLocation, String)>,
    /// Those of them whose commands are to run.
    pending: Vec<PendingText>,
}

impl InstructionTexts {
    pub(super) fn is_empty(&self) -> bool {
        let Self { system, turns, results, pending: _ } = self;
        system.is_empty() && turns.is_empty() && results.is_empty()
    }

    pub(super) fn bytes(&self) -> usize {
        let turns = self.turns.iter().map(|(_, text)| text.len());
        let results = self.results.iter().map(|(_, text)| text.len());
        self.system.iter().map(String::len).chain(turns).chain(results).sum()
    }

    /// Puts the texts into the request.
    pub(super) fn add_to(&self, dialect: DialectName, request: &mut Value) {
        // The places of results are those before a message is added.
        add_result_texts(dialect, request, &self.results);
        for text in &self.system {
            add_system_text(dialect, request, text);
        }
        if !self.turns.is_empty() {
            add_user_texts(dialect, request, &self.turns);
        }
    }
}

/// A skill whose instructions models of a caller may read.
#[derive(Clone, Copy)]
pub(super) struct VisibleGuide<'a> {
    pub(super) namespace: &'a Arc<str>,
    pub(super) entry: &'a Arc<CatalogEntry>,
    pub(super) version: &'a Arc<CachedVersion>,
    pub(super) instructions: &'a CachedInstructions,
}

impl<'a> VisibleGuide<'a> {
    pub(super) fn name(&self) -> &'a str {
        &self.entry.skill.name
    }

    /// Returns true if a person confirms what the skill runs.
    fn is_confirmed(&self) -> bool {
        self.entry.skill.spec.invocation == Invocation::Hybrid
    }

    /// Returns the MCP servers whose tools models get with the text. Nobody is asked to confirm a call of one, so a skill whose
    /// runs a person confirms has none.
    fn servers(&self) -> impl Iterator<Item = SkillServer> {
        let servers: &'a [String] = if self.is_confirmed() { &[] } else { &self.instructions.servers };
        let (namespace, skill) = (self.namespace.clone(), self.entry.skill.name.clone());
        let CachedContent { version, seal, .. } = &self.version.spec;
        let (version, seal) = (version.clone(), *seal);
        servers.iter().map(move |name| SkillServer {
            namespace: namespace.clone(),
            skill: skill.clone(),
            version: version.clone(),
            seal,
            name: name.clone(),
        })
    }

    /// Returns the body with the values of a call.
    fn body(&self, values: CallValues) -> BodyText {
        BodyText {
            namespace: self.namespace.clone(),
            skill: self.entry.skill.name.clone(),
            version: self.version.clone(),
            invocation: self.entry.skill.spec.invocation,
            values,
        }
    }
}

/// Returns the skills with instructions in these namespaces, the nearest first and then by name. A skill of a nearer
/// namespace hides others of its name.
pub(super) fn visible<'a>(
    namespaces: &'a [Arc<Namespace>],
    filter: &'a SkillFilter,
) -> impl Iterator<Item = VisibleGuide<'a>> {
    let of = move |(place, namespace): (usize, &'a Arc<Namespace>)| {
        let entries = namespace.guides().list();
        entries.filter_map(move |entry| guide(namespaces, filter, place, entry))
    };
    namespaces.iter().enumerate().flat_map(of)
}

/// Returns the skill that a name means, if it is visible.
pub(super) fn find<'a>(
    namespaces: &'a [Arc<Namespace>],
    filter: &'a SkillFilter,
    name: &str,
) -> Option<VisibleGuide<'a>> {
    let mut places = namespaces.iter().enumerate();
    places.find_map(|(place, namespace)| guide(namespaces, filter, place, namespace.guides().get(name)?))
}

fn guide<'a>(
    namespaces: &'a [Arc<Namespace>],
    filter: &SkillFilter,
    place: usize,
    entry: &'a Arc<CatalogEntry>,
) -> Option<VisibleGuide<'a>> {
    let (nearer, name) = (namespaces.get(..place)?, &entry.skill.name);
    let hides = |near: &Arc<Namespace>| near.get(name).is_some_and(|other| !other.skill.is_being_deleted);
    let is_wanted = match filter {
        SkillFilter::Off => false,
        SkillFilter::All => true,
        SkillFilter::Only(names) | SkillFilter::Exactly(names) => {
            names.iter().any(|wanted| **wanted == **name)
        }
    };
    if !is_wanted || nearer.iter().any(hides) {
        return None;
    }
    let (version, instructions) = entry.guide()?;
    Some(VisibleGuide { namespace: namespaces.get(place)?.name(), entry, version, instructions })
}

#[cfg(test)]
mod tests;
