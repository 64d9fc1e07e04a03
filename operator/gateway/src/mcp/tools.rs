//! The tools that a caller is listed: what is among them, under which names, on which page.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::Arc,
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use rmcp::{
    ErrorData,
    model::{CacheScope, ListToolsResult, Tool, ToolAnnotations},
};
use serde_json::{Map, Value};
use skillet_api::skill::{Invocation, Mode};
use skillet_llm::{
    tool_names::{MAX_LENGTH, OfferTable, SkillIdentity},
    tool_schema,
};

use super::{
    instruction_tools,
    management_tool::{self, ManagementTool},
};
use crate::{
    auth::{AuthError, Verb},
    catalog::{CachedVersion, SkillCatalog},
    resolve::{self, Lookup, ResolvedSkill},
};

/// Tools on one page.
pub(super) const PAGE: usize = 100;

/// A skill that the caller may run, at the version that is run.
#[derive(Clone, Debug)]
pub(super) struct Runnable {
    pub(super) resolved: ResolvedSkill,
    pub(super) version: Arc<CachedVersion>,
}

impl Runnable {
    /// None where it is not for models, or nothing of it can run.
    fn new(resolved: ResolvedSkill) -> Option<Self> {
        let spec = &resolved.entry.skill.spec;
        let is_on = match spec.mode {
            Mode::On | Mode::Auto => spec.enabled,
            Mode::Off => false,
        };
        let is_for_models = match spec.invocation {
            Invocation::Auto | Invocation::Hybrid => true,
            Invocation::Manual => false,
        };
        if !is_on || !is_for_models || resolved.entry.skill.lacks_secret {
            return None;
        }
        let version = resolved.entry.current().filter(|version| version.spec.has_program)?.clone();
        Some(Self { resolved, version })
    }

    fn needs_confirmation(&self) -> bool {
        match self.resolved.entry.skill.spec.invocation {
            Invocation::Hybrid => true,
            Invocation::Auto | Invocation::Manual => false,
        }
    }

    fn tool(&self, name: &str) -> Tool {
        let spec = &self.version.spec;
        let input = spec.tool.input_schema().unwrap_or_default();
        let tool =
            Tool::new(name.to_owned(), spec.description.to_string(), object(tool_schema::normalize(&input)))
                .with_title(self.resolved.name().to_string())
                .with_annotations(self.annotations());
        match spec.tool.output_schema() {
            Some(Value::Object(schema)) if schema.get("type") == Some(&"object".into()) => {
                tool.with_raw_output_schema(Arc::new(schema))
            }
            Some(_) | None => tool,
        }
    }

    /// A sandbox has no network and leaves nothing behind. Where a person is to confirm the call, the hints are those
    /// that make clients ask one.
    fn annotations(&self) -> ToolAnnotations {
        let asks = self.needs_confirmation();
        ToolAnnotations::new().read_only(!asks).destructive(asks).open_world(false)
    }
}

fn object(schema: Value) -> Map<String, Value> {
    match schema {
        Value::Object(fields) => fields,
        // Normalised schemas are objects.
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}

/// Returns the namespaces of a caller's tools, the nearest first.
pub(super) async fn namespaces(lookup: Lookup<'_>) -> Result<Vec<Arc<str>>, AuthError> {
    lookup.allowed_namespaces(&[Verb::Get, Verb::Execute]).await
}

/// Returns the skills that their names mean in these namespaces.
pub(super) fn callable(catalog: &SkillCatalog, namespaces: &[Arc<str>]) -> Vec<ResolvedSkill> {
    let skills = resolve::list(catalog, namespaces).into_iter();
    skills.filter(|skill| skill.shadowed_by.is_none()).collect()
}

fn runnable(skills: Vec<ResolvedSkill>) -> Vec<Runnable> {
    skills.into_iter().filter_map(Runnable::new).collect()
}

/// Resolves a tool name of the caller.
pub(super) async fn resolve(lookup: Lookup<'_>, tool_name: &str) -> Result<Option<Runnable>, AuthError> {
    if is_plain(tool_name) {
        let namespaces = namespaces(lookup).await?;
        return Ok(resolve::resolve_in(lookup.catalog, &namespaces, tool_name).and_then(Runnable::new));
    }
    Ok(ToolList::of(lookup).await?.get(tool_name).cloned())
}

/// Returns true if no skill of another name can have this tool name. A changed name, a name that tells two skills
/// apart, an alias or a management tool's has a `_` in it.
fn is_plain(tool_name: &str) -> bool {
    let is_own = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    tool_name.len() <= MAX_LENGTH
        && tool_name.starts_with(|c: char| c.is_ascii_alphabetic())
        && tool_name.bytes().all(is_own)
}

/// Changes with everything that a list of these skills shows. Versions are immutable, so their contents need not be
/// looked at; the tools' names follow from the skills'.
pub(super) fn fingerprint(skills: Vec<ResolvedSkill>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for skill in runnable(skills) {
        let (resolved, spec) = (&skill.resolved, &skill.version.spec);
        (&resolved.namespace, resolved.name(), &spec.version, spec.seal, skill.needs_confirmation())
            .hash(&mut hasher);
    }
    hasher.finish()
}

/// Everything that one caller may run, by tool name.
pub(super) struct ToolList {
    table: OfferTable<Runnable>,
}

impl ToolList {
    pub(super) async fn of(lookup: Lookup<'_>) -> Result<Self, AuthError> {
        let runnable = runnable(callable(lookup.catalog, &namespaces(lookup).await?));
        let identities = runnable.iter().map(|one| SkillIdentity {
            namespace: &one.resolved.namespace,
            name: one.resolved.name(),
            version: &one.version.spec.version,
        });
        let reserved = ManagementTool::ALL.into_iter().map(ManagementTool::name);
        let reserved: Vec<&str> = reserved.chain(instruction_tools::names()).collect();
        let table = OfferTable::new(reserved, identities.zip(runnable.iter().cloned()));
        Ok(Self { table })
    }

    pub(super) fn get(&self, tool_name: &str) -> Option<&Runnable> {
        self.table.get(tool_name)
    }

    #[cfg(test)]
    pub(super) fn names(&self) -> impl Iterator<Item = &Arc<str>> {
        self.table.iter().map(|(name, _)| name)
    }

    /// The name under which a skill is listed.
    pub(super) fn name_of(&self, skill: &ResolvedSkill) -> Option<&Arc<str>> {
        let is_it = |one: &ResolvedSkill| one.namespace == skill.namespace && one.name() == skill.name();
        self.table.iter().find(|(_, one)| is_it(&one.resolved)).map(|(name, _)| name)
    }

    /// The page after `cursor`: the management tools, those for instructions, then the skills by tool name. A cursor
    /// is the last name given, so that no change between two pages moves what is on them.
    pub(super) fn page(
        &self,
        instruction_tools: Vec<Tool>,
        cursor: Option<&str>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut skills: Vec<(&Arc<str>, &Runnable)> = self.table.iter().collect();
        skills.sort_unstable_by_key(|(name, _)| *name);
        let (mut tools, rest) = match cursor {
            None => {
                let tools = management_tool::tools().into_iter().chain(instruction_tools);
                (tools.collect(), skills.as_slice())
            }
            Some(cursor) => {
                let last = read_cursor(cursor)?;
                let given = skills.partition_point(|(name, _)| ***name <= *last);
                (Vec::new(), skills.get(given..).unwrap_or_default())
            }
        };
        let (page, left) = rest.split_at(PAGE.saturating_sub(tools.len()).min(rest.len()));
        tools.extend(page.iter().map(|(name, skill)| skill.tool(name)));
        let mut result = ListToolsResult::with_all_items(tools);
        if let (Some((last, _)), false) = (page.last(), left.is_empty()) {
            result.next_cursor = Some(self::cursor(last));
        }
        result.ttl_ms = Some(0);
        result.cache_scope = Some(CacheScope::Private);
        Ok(result)
    }
}

/// Returns the cursor of a page that ends with a name.
pub(super) fn cursor(last: &str) -> String {
    URL_SAFE_NO_PAD.encode(last.as_bytes())
}

/// Reads the last name of the page before.
pub(super) fn read_cursor(cursor: &str) -> Result<String, ErrorData> {
    let name = URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    name.ok_or_else(|| ErrorData::invalid_params("the cursor is not one of this server's", None))
}
