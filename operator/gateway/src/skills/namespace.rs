//! The skills of one namespace: each with the version that is offered, and the index over them.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};
use skillet_api::{Skill, SkillVersion};
use skillet_core::{
    dialect::{ToolDefinition, schema},
    offer::{Candidate, Change, Index, Reading},
    version::SkillSemver,
};

/// One skill with its versions.
#[derive(Clone, Debug)]
pub struct Known {
    pub skill: Arc<Skill>,
    /// Sealed versions, by number.
    pub versions: BTreeMap<SkillSemver, Arc<SkillVersion>>,
}

impl Known {
    /// The version that is offered and run: the newest sealed one. None where nothing can run.
    pub fn newest(&self) -> Option<&Arc<SkillVersion>> {
        self.versions.values().next_back()
    }

    /// The schema of the input as its author wrote it.
    pub fn input_schema(&self) -> Option<&Value> {
        self.newest()?.spec.tool.as_ref()?.input_schema.as_ref()
    }
}

/// All skills of one namespace.
#[derive(Clone, Debug)]
pub struct Namespace {
    name: Arc<str>,
    skills: BTreeMap<Arc<str>, Arc<Known>>,
    /// Versions whose skill has not been seen yet.
    early: BTreeMap<Arc<str>, BTreeMap<SkillSemver, Arc<SkillVersion>>>,
    index: Index,
}

impl Namespace {
    pub fn new(name: Arc<str>, reading: Reading) -> Self {
        Self { name, skills: BTreeMap::new(), early: BTreeMap::new(), index: Index::new(reading) }
    }

    /// Over those of them that can run.
    pub fn index(&self) -> &Index {
        &self.index
    }

    pub fn get(&self, name: &str) -> Option<&Arc<Known>> {
        self.skills.get(name)
    }

    /// Whether there is neither a skill in it nor a version.
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty() && self.early.is_empty()
    }

    /// By name.
    pub fn list(&self) -> impl Iterator<Item = &Arc<Known>> {
        self.skills.values()
    }

    /// Sets or removes a skill. Its versions stay: they are the API server's to delete.
    pub fn put_skill(&mut self, name: &str, skill: Option<Arc<Skill>>) {
        let old = self.skills.remove(name);
        let versions = match old {
            Some(known) => known.versions.clone(),
            None => self.early.remove(name).unwrap_or_default(),
        };
        match skill {
            Some(skill) => {
                self.skills.insert(name.into(), Arc::new(Known { skill, versions }));
            }
            None if versions.is_empty() => {}
            None => {
                self.early.insert(name.into(), versions);
            }
        }
        self.prepare(name);
    }

    /// Sets or removes a version.
    pub fn put_version(&mut self, skill: &str, number: &SkillSemver, version: Option<&Arc<SkillVersion>>) {
        let set = |versions: &mut BTreeMap<SkillSemver, Arc<SkillVersion>>| match version {
            Some(version) => drop(versions.insert(number.clone(), version.clone())),
            None => drop(versions.remove(number)),
        };
        if let Some(known) = self.skills.get_mut(skill) {
            set(&mut Arc::make_mut(known).versions);
            return self.prepare(skill);
        }
        let versions = self.early.entry(skill.into()).or_default();
        set(versions);
        if versions.is_empty() {
            self.early.remove(skill);
        }
    }

    /// Removes the version of an object's name, where only that is known of it.
    pub fn forget_version(&mut self, object: &str) {
        let of = |versions: &BTreeMap<SkillSemver, Arc<SkillVersion>>| {
            let found = versions.iter().find(|(_, version)| version.metadata.name.as_deref() == Some(object));
            found.map(|(number, _)| number.clone())
        };
        let known = self.skills.iter().map(|(skill, known)| (skill, &known.versions));
        let found =
            known.chain(self.early.iter()).find_map(|(skill, versions)| Some((skill.clone(), of(versions)?)));
        if let Some((skill, number)) = found {
            self.put_version(&skill, &number, None);
        }
    }

    /// Reads text by other rules from now on.
    pub fn read_as(&mut self, reading: Reading) {
        if self.index.reading() != reading {
            let candidates: Vec<Arc<Candidate>> = self.index.candidates().cloned().collect();
            self.index = Index::build(reading, candidates);
        }
    }

    fn prepare(&mut self, name: &str) {
        let candidate = self.skills.get(name).and_then(|known| candidate(&self.name, known));
        self.index.apply(match candidate {
            Some(candidate) => Change::Upsert(Arc::new(candidate)),
            None => Change::Remove(name.into()),
        });
    }
}

fn candidate(namespace: &Arc<str>, known: &Known) -> Option<Candidate> {
    let Skill { metadata, spec, .. } = known.skill.as_ref();
    if metadata.deletion_timestamp.is_some() {
        return None;
    }
    let version = known.newest()?;
    let name: Arc<str> = metadata.name.as_deref()?.into();
    let description: Arc<str> = version.spec.description.as_str().into();
    let parameters = match known.input_schema() {
        Some(schema) => schema::normalise(schema),
        None => json!({ "type": "object", "properties": {} }),
    };
    let tool = ToolDefinition {
        name: name.clone(),
        description: description.clone(),
        parameters: Arc::new(parameters),
    };
    Some(Candidate {
        namespace: namespace.clone(),
        version: version.spec.version.as_str().into(),
        description,
        tags: spec.tags.clone(),
        mode: spec.mode,
        enabled: spec.enabled,
        invocation: spec.invocation,
        install_count: 0,
        registered: metadata.creation_timestamp.as_ref().map_or(0, |at| at.0.as_second()),
        tool: Arc::new(tool),
        name,
    })
}
