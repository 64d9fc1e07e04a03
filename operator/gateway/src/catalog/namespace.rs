//! The skills of one namespace: each with the version that is offered, and the index over them.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::json;
use skillet_api::names::version_name;
use skillet_core::{json_text::JsonText, version::SkillSemver};
use skillet_llm::tool_schema;
use skillet_offer::{Candidate, CandidateTool, Change, Index, MatchMode, QuestionVectors};

use crate::embeddings::EmbeddingsState;

use super::{
    entry::{CachedSkill, CachedVersion, CatalogEntry, Versions},
    instructions::Guides,
};

/// All skills of one namespace.
#[derive(Clone, Debug)]
pub struct Namespace {
    name: Arc<str>,
    skills: BTreeMap<Arc<str>, Arc<CatalogEntry>>,
    /// Versions whose skill has not been seen yet.
    early: BTreeMap<Arc<str>, Versions>,
    index: Index,
    guides: Guides,
    last_change: u64,
}

/// The resolution of a skill's name after a change. It is computed once, and set in each copy of the namespace.
pub(super) struct Outcome {
    name: Arc<str>,
    known: Option<Arc<CatalogEntry>>,
    /// Versions without their skill.
    early: Versions,
}

impl Namespace {
    pub fn new(name: Arc<str>, reading: MatchMode, model: Option<Arc<dyn QuestionVectors>>) -> Self {
        let index = Index::new(reading).with_model(model);
        Self {
            name,
            skills: BTreeMap::new(),
            early: BTreeMap::new(),
            index,
            guides: Guides::default(),
            last_change: 0,
        }
    }

    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Over all of them but those that are on their way out.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The skills with instructions that models may read.
    pub fn guides(&self) -> &Guides {
        &self.guides
    }

    pub fn get(&self, name: &str) -> Option<&Arc<CatalogEntry>> {
        self.skills.get(name)
    }

    /// Returns true if the namespace has neither skills nor versions.
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty() && self.early.is_empty()
    }

    /// By name.
    pub fn list(&self) -> impl Iterator<Item = &Arc<CatalogEntry>> {
        self.skills.values()
    }

    /// A skill is new or was changed.
    pub(super) fn with_skill(&self, mut skill: CachedSkill) -> Outcome {
        skill.namespace = self.name.clone();
        let versions = self.versions(&skill.name);
        if let Some(current) = versions.current(&skill) {
            skill.share(current);
        }
        Outcome::new(skill.name.clone(), Some(Arc::new(skill)), versions)
    }

    /// A skill was deleted. Its versions stay: they are the API server's to delete.
    pub(super) fn without_skill(&self, name: &str) -> Outcome {
        Outcome::new(name.into(), None, self.versions(name))
    }

    /// A version is new.
    pub(super) fn with_version(&self, skill: &str, mut version: CachedVersion) -> Outcome {
        let known = self.get(skill).map(|known| known.skill.clone());
        if let Some(skill) = &known {
            version.share(skill);
        }
        Outcome::new(skill.into(), known, self.versions(skill).with(version))
    }

    /// A version was deleted.
    pub(super) fn without_version(&self, skill: &str, number: &SkillSemver) -> Outcome {
        let known = self.get(skill).map(|known| known.skill.clone());
        Outcome::new(skill.into(), known, self.versions(skill).without(number))
    }

    /// The version of an object's name was deleted, where only that is known of it.
    pub(super) fn without_object(&self, object: &str) -> Option<Outcome> {
        let known = self.skills.iter().map(|(skill, known)| (skill, &known.versions));
        let (skill, number) = known.chain(&self.early).find_map(|(skill, versions)| {
            let is_it = |version: &&Arc<CachedVersion>| version_name(skill, &version.spec.version) == *object;
            Some((skill, &versions.iter().find(is_it)?.number))
        })?;
        Some(self.without_version(skill, number))
    }

    fn versions(&self, skill: &str) -> Versions {
        let of_known = self.get(skill).map(|known| &known.versions);
        of_known.or_else(|| self.early.get(skill)).cloned().unwrap_or_default()
    }

    /// The number of the change that made it what it is.
    pub fn last_change(&self) -> u64 {
        self.last_change
    }

    /// Makes a change that was worked out. Done again, it does nothing more.
    pub(super) fn set(&mut self, outcome: &Outcome, number: u64) {
        self.last_change = number;
        let Outcome { name, known, early } = outcome;
        match known {
            Some(known) => drop(self.skills.insert(name.clone(), known.clone())),
            None => drop(self.skills.remove(name)),
        }
        if early.is_empty() {
            self.early.remove(name);
        } else {
            self.early.insert(name.clone(), early.clone());
        }
        self.guides.set(name, known.as_ref());
        self.index.apply(match known.as_ref().and_then(|known| known.candidate.clone()) {
            Some(candidate) => Change::Upsert(candidate),
            None => Change::Remove(name.clone()),
        });
    }

    /// Returns the skills whose vectors the model has now and the index does not, or the other way round.
    pub(super) fn find_new_vectors(&self, embeddings: &EmbeddingsState) -> Vec<Arc<CatalogEntry>> {
        let changed = |entry: &Arc<CatalogEntry>| {
            let candidate = entry.candidate.as_ref()?;
            let vector = embeddings.skill_vector(candidate, None);
            let candidate =
                (vector != candidate.vector).then(|| Candidate { vector, ..(**candidate).clone() })?;
            Some(Arc::new(CatalogEntry { candidate: Some(Arc::new(candidate)), ..(**entry).clone() }))
        };
        self.skills.values().filter_map(changed).collect()
    }

    /// Sets skills that differ in their vectors only.
    pub(super) fn set_vectors(&mut self, skills: &[Arc<CatalogEntry>]) {
        for entry in skills {
            self.skills.insert(entry.skill.name.clone(), entry.clone());
            if let Some(candidate) = &entry.candidate {
                self.index.set_vector(candidate);
            }
        }
    }

    /// Sets the model, with the skills whose vectors it changes.
    pub(super) fn set_model(
        &mut self,
        skills: &[Arc<CatalogEntry>],
        model: Option<Arc<dyn QuestionVectors>>,
    ) {
        self.set_vectors(skills);
        self.index.set_model(model);
    }

    /// Reads text by other rules from now on.
    pub fn read_as(&mut self, reading: MatchMode) {
        if self.index.matching() != reading {
            let candidates: Vec<Arc<Candidate>> = self.index.candidates().cloned().collect();
            self.index = Index::build(reading, candidates).with_model(self.index.model().cloned());
        }
    }
}

impl Outcome {
    fn new(name: Arc<str>, skill: Option<Arc<CachedSkill>>, versions: Versions) -> Self {
        match skill {
            Some(skill) => {
                let candidate = candidate(&skill, versions.current(&skill));
                let known =
                    CatalogEntry { candidate: candidate.map(Arc::new), ..CatalogEntry::new(skill, versions) };
                Self { name, known: Some(Arc::new(known)), early: Versions::default() }
            }
            None => Self { name, known: None, early: versions },
        }
    }
}

impl Outcome {
    /// Gives the skill the vector of its text. A text that stays the same keeps its vector.
    pub(super) fn add_vector(&mut self, embeddings: &EmbeddingsState, namespace: &Namespace) {
        let Some(candidate) = self.known.as_ref().and_then(|known| known.candidate.as_ref()) else { return };
        let before = namespace.index.get(&self.name);
        let vector = embeddings.skill_vector(candidate, before.map(|before| &**before));
        if vector.is_some()
            && let Some(known) = self.known.as_mut().map(Arc::make_mut)
            && let Some(candidate) = known.candidate.as_mut().map(Arc::make_mut)
        {
            candidate.vector = vector;
        }
    }
}

/// None where it is on its way out: it is not there any more, and hides nothing.
fn candidate(skill: &CachedSkill, current: Option<&Arc<CachedVersion>>) -> Option<Candidate> {
    let CachedSkill { namespace, name, created, is_being_deleted, spec, .. } = skill;
    if *is_being_deleted {
        return None;
    }
    let current = current.map(|current| &current.spec);
    let description = current.map_or(&spec.description, |current| &current.description);
    let written = current.and_then(|current| current.tool.input.as_ref());
    let mut parameters = JsonText::new(&match written {
        Some(schema) => tool_schema::normalize(&schema.value()),
        None => json!({ "type": "object", "properties": {} }),
    });
    if let Some(written) = written {
        // Where there was nothing to repair, it is there once.
        parameters.share(written);
    }
    Some(Candidate {
        namespace: namespace.clone(),
        name: name.clone(),
        version: current.map(|current| current.version.clone()).unwrap_or_default(),
        is_ready: current.is_some() && !skill.lacks_secret,
        has_program: current.is_none_or(|current| current.has_program),
        builtin: current.and_then(|current| current.builtin),
        description: description.clone(),
        tags: spec.tags.clone(),
        examples: spec.examples.clone(),
        mode: spec.mode,
        enabled: spec.enabled,
        invocation: spec.invocation,
        // Nothing in the cluster counts installs.
        install_count: 0,
        registered: *created,
        tool: CandidateTool { name: name.clone(), description: description.clone(), parameters },
        vector: None,
    })
}
