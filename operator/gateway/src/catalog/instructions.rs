//! The cached instructions of a version, and those of a namespace with an index of their triggers.
//!
//! Bodies are kept, since a trigger puts them into a request again with every turn. Files are read when a model reads them.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
    time::Duration,
};

use skillet_api::{
    SkillVersionSpec,
    dynamic::DynamicContent,
    instructions::Activation,
    skill::{File, Invocation, Mode},
};
use skillet_core::skill::{Interpreter, declared_inputs};
use skillet_instructions::{
    dynamic::commands,
    inputs::Input,
    tool_rules::ToolRules,
    triggers::{TriggerIndex, Triggers},
};

use super::entry::{CachedVersion, CatalogEntry};

/// Instructions of a sealed version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedInstructions {
    pub body: Arc<str>,
    pub activation: Activation,
    /// With the skill's own name as a slash name, unless users may not name it.
    pub triggers: Triggers,
    pub inputs: Box<[Input]>,
    pub allowed_tools: Box<[String]>,
    pub denied_tools: Box<[String]>,
    /// The rules of both lists; `None` if they restrict nothing.
    pub rules: Option<Arc<ToolRules>>,
    /// A model does not see that they exist.
    pub is_hidden: bool,
    /// Use of the commands in the body.
    pub dynamic: DynamicContent,
    /// The different commands of the body that may run.
    pub commands: Box<[String]>,
    /// The skill's own time limit.
    pub timeout: Option<Duration>,
    /// Names of the MCP servers.
    pub servers: Box<[String]>,
    /// Paths of the bundle's files.
    pub files: Box<[String]>,
    /// Those of them that only programs can read, since they are in an image.
    pub image_files: Box<[String]>,
    /// Those of them that have a known interpreter.
    pub scripts: Box<[String]>,
}

/// The skills of a namespace that have instructions for models.
#[derive(Clone, Debug, Default)]
pub struct Guides {
    by_name: BTreeMap<Arc<str>, Arc<CatalogEntry>>,
    /// Places are those in `by_name`. Made at the first use after a change.
    triggers: OnceLock<Arc<TriggerIndex>>,
}

impl CachedInstructions {
    /// Returns `None` for a version without instructions.
    pub(super) fn of(spec: &SkillVersionSpec) -> Option<Self> {
        let instructions = spec.instructions.as_ref()?;
        let triggers = instructions.triggers.clone().unwrap_or_default();
        let mut slash = Vec::new();
        if instructions.user_invocable {
            slash.push(spec.skill.clone());
            slash.extend(triggers.slash.iter().filter(|name| **name != spec.skill).cloned());
        }
        let own_files = || spec.files.iter().map(|file| &file.path);
        let listed = instructions.files_from.as_ref().map(|source| source.image.files.clone());
        let mut image_files = listed.unwrap_or_default();
        image_files.retain(|path| !own_files().any(|own| own == path));
        let scripts = spec.files.iter().filter(|file| is_script(file)).map(|file| &file.path);
        let image_scripts = image_files.iter().filter(|path| Interpreter::of(path, b"").is_some());
        Some(Self {
            body: instructions.body.as_str().into(),
            activation: instructions.activation,
            triggers: Triggers {
                keywords: triggers.keywords,
                exclude: triggers.exclude,
                slash,
                paths: triggers.paths,
            },
            inputs: declared_inputs(&instructions.inputs).into(),
            allowed_tools: instructions.allowed_tools.as_slice().into(),
            denied_tools: instructions.denied_tools.as_slice().into(),
            rules: ToolRules::new(&instructions.allowed_tools, &instructions.denied_tools).map(Arc::new),
            is_hidden: instructions.disable_model_invocation,
            dynamic: instructions.dynamic,
            commands: commands(&instructions.body).into_iter().map(ToOwned::to_owned).collect(),
            timeout: spec.limits.as_ref().and_then(|limits| limits.timeout).map(|timeout| timeout.0),
            servers: instructions.mcp_servers.keys().cloned().collect(),
            files: own_files().chain(&image_files).cloned().collect(),
            scripts: scripts.chain(image_scripts).cloned().collect(),
            image_files: image_files.into(),
        })
    }

    /// True if name and description are in the listing.
    pub fn is_listed(&self) -> bool {
        self.activation == Activation::Listed && !self.is_hidden
    }
}

/// Tells if a file has a known interpreter. Files in base64 are no text, so that only the path may name one.
fn is_script(file: &File) -> bool {
    let text = file.content.as_deref().unwrap_or_default();
    Interpreter::of(&file.path, text.as_bytes()).is_some()
}

impl CatalogEntry {
    /// The instructions of the current version, if models may read them.
    pub fn guide(&self) -> Option<(&Arc<CachedVersion>, &CachedInstructions)> {
        let spec = &self.skill.spec;
        let is_on = match (spec.mode, spec.invocation) {
            (Mode::Off, _) | (_, Invocation::Manual) => false,
            (Mode::On | Mode::Auto, Invocation::Auto | Invocation::Hybrid) => spec.enabled,
        };
        if !is_on || self.skill.is_being_deleted {
            return None;
        }
        let version = self.current()?;
        Some((version, version.spec.instructions.as_deref()?))
    }
}

impl Guides {
    /// Takes a skill in, or out if models may read no instructions of it.
    pub(super) fn set(&mut self, name: &Arc<str>, entry: Option<&Arc<CatalogEntry>>) {
        let guide = entry.filter(|entry| entry.guide().is_some());
        let is_changed = match guide {
            Some(entry) => {
                self.by_name.insert(name.clone(), entry.clone());
                true
            }
            None => self.by_name.remove(name).is_some(),
        };
        if is_changed {
            self.triggers = OnceLock::new();
        }
    }

    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    /// Returns true if a skill restricts tools or has globs of paths, so that calls of earlier turns matter.
    pub fn depend_on_calls(&self) -> bool {
        let depends = |guide: &CachedInstructions| {
            guide.rules.is_some() || !guide.triggers.paths.is_empty() || !guide.servers.is_empty()
        };
        self.list().any(|entry| entry.guide().is_some_and(|(_, guide)| depends(guide)))
    }

    /// The skills by name.
    pub fn list(&self) -> impl Iterator<Item = &Arc<CatalogEntry>> {
        self.by_name.values()
    }

    pub fn get(&self, name: &str) -> Option<&Arc<CatalogEntry>> {
        self.by_name.get(name)
    }

    /// The index of all triggers. Its places are those of [`Self::list`].
    pub fn triggers(&self) -> &TriggerIndex {
        self.triggers.get_or_init(|| {
            let triggers = |entry: &Arc<CatalogEntry>| {
                entry.guide().map(|(_, guide)| guide.triggers.clone()).unwrap_or_default()
            };
            Arc::new(TriggerIndex::new(self.list().map(triggers).collect()))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{
        super::entry::{CachedSkill, Versions},
        *,
    };

    fn entry(skill: &Value, instructions: &Value) -> Arc<CatalogEntry> {
        let mut spec = json!({ "version": "1.0.0", "description": "says" });
        spec.as_object_mut().unwrap().extend(skill.as_object().unwrap().clone());
        let skill = json!({ "metadata": { "namespace": "ns", "name": "a" }, "spec": spec });
        let version = json!({
            "metadata": { "namespace": "ns", "name": "a-1.0.0" },
            "spec": { "skill": "a", "version": "1.0.0", "digest": "d", "instructions": instructions,
                "files": [{ "path": "a/b.md", "content": "x" }] },
        });
        let version = CachedVersion::of(&serde_json::from_value(version).unwrap()).unwrap();
        let skill = CachedSkill::of(&serde_json::from_value(skill).unwrap()).unwrap();
        Arc::new(CatalogEntry::new(Arc::new(skill), Versions::default().with(version)))
    }

    #[test]
    fn a_guide_is_what_models_may_read() {
        let text = json!({ "body": "Read." });
        let is_guide = |skill: Value| entry(&skill, &text).guide().is_some();
        assert!(is_guide(json!({})) && is_guide(json!({ "invocation": "hybrid", "mode": "on" })));
        for off in [json!({ "mode": "off" }), json!({ "enabled": false }), json!({ "invocation": "manual" })]
        {
            assert!(!is_guide(off));
        }
        assert!(entry(&json!({}), &Value::Null).guide().is_none());
    }

    #[test]
    fn a_skill_is_a_slash_name_unless_users_may_not_name_it() {
        let of = |instructions: Value| {
            let entry = entry(&json!({}), &instructions);
            let (_, guide) = entry.guide().unwrap();
            (guide.triggers.slash.clone(), guide.is_listed(), guide.files.to_vec())
        };
        let files = vec!["a/b.md".to_owned()];
        assert_eq!(of(json!({})), (vec!["a".to_owned()], true, files.clone()));
        let named = json!({ "triggers": { "slash": ["b", "a"] }, "activation": "Triggered" });
        assert_eq!(of(named), (vec!["a".to_owned(), "b".to_owned()], false, files.clone()));
        let hidden = json!({ "userInvocable": false, "disableModelInvocation": true });
        assert_eq!(of(hidden), (Vec::new(), false, files));
    }

    #[test]
    fn triggers_follow_each_change() {
        let mut guides = Guides::default();
        let name: Arc<str> = "a".into();
        guides.set(&name, Some(&entry(&json!({}), &json!({ "triggers": { "keywords": ["deploy"] } }))));
        assert_eq!(guides.triggers().matches("Deploy it").len(), 1);
        guides.set(&name, Some(&entry(&json!({}), &json!({ "triggers": { "keywords": ["ship"] } }))));
        assert!(guides.triggers().matches("Deploy it").is_empty());
        guides.set(&name, None);
        assert!(guides.is_empty() && guides.triggers().matches("ship").is_empty());
    }
}
