//! Instructions that users may name, as prompts: their inputs are the arguments.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use rmcp::{
    ErrorData,
    model::{
        CacheScope, GetPromptResult, JsonObject, ListPromptsResult, Prompt, PromptArgument, PromptMessage,
        Role,
    },
};
use serde_json::Value;
use skillet_instructions::{block, inputs::CallValues};

use super::tools::{self, PAGE};
use crate::{
    auth::AuthError,
    catalog::{CachedInstructions, CachedVersion},
    commands::{BodyText, CommandEnds},
    resolve::{Lookup, ResolvedSkill},
};

/// The argument that is the text behind a slash name in other clients.
const TEXT: &str = "arguments";

/// Everything that one caller may name, by name.
pub(super) struct PromptList(BTreeMap<String, ResolvedSkill>);

impl PromptList {
    pub(super) async fn of(lookup: Lookup<'_>) -> Result<Self, AuthError> {
        let namespaces = tools::namespaces(lookup).await?;
        let skills = tools::callable(lookup.catalog, &namespaces).into_iter();
        let named = skills.filter(|skill| guide(skill).is_some());
        Ok(Self(named.map(|skill| (skill.name().to_string(), skill)).collect()))
    }

    /// The page after `cursor`, by name.
    pub(super) fn page(&self, cursor: Option<&str>) -> Result<ListPromptsResult, ErrorData> {
        let last = cursor.map(tools::read_cursor).transpose()?;
        let rest = self.0.iter().filter(|(name, _)| last.as_ref().is_none_or(|last| *name > last));
        let mut rest = rest.peekable();
        let page: Vec<Prompt> = rest.by_ref().take(PAGE).filter_map(|(_, skill)| prompt(skill)).collect();
        let next = match rest.peek() {
            Some(_) => page.last().map(|last| tools::cursor(&last.name)),
            None => None,
        };
        let mut result = ListPromptsResult::with_all_items(page);
        result.next_cursor = next;
        result.ttl_ms = Some(0);
        result.cache_scope = Some(CacheScope::Private);
        Ok(result)
    }

    /// The body of a prompt with these arguments.
    pub(super) fn body(&self, name: &str, arguments: Option<&JsonObject>) -> Result<BodyText, ErrorData> {
        let found = self.0.get(name).and_then(|skill| Some((skill, skill.entry.guide()?.0)));
        let (skill, version) = found
            .filter(|(skill, _)| guide(skill).is_some())
            .ok_or_else(|| ErrorData::invalid_params(format!("Unknown prompt: {name}"), None))?;
        Ok(BodyText {
            namespace: skill.namespace.clone(),
            skill: skill.name().clone(),
            version: version.clone(),
            invocation: skill.entry.skill.spec.invocation,
            values: values(arguments),
        })
    }
}

/// Returns the prompt of a body with the ends of its commands.
pub(super) fn render(body: &BodyText, ends: &CommandEnds) -> Result<GetPromptResult, ErrorData> {
    let BodyText { skill, version, .. } = body;
    let text = body.text(ends).map_err(|missing| ErrorData::invalid_params(missing.to_string(), None))?;
    let message = PromptMessage::new_text(Role::User, block::render(skill, &version.spec.version, &text));
    Ok(GetPromptResult::new(vec![message]).with_description(version.spec.description.to_string()))
}

/// Changes with everything that the lists of prompts and resources of these skills show.
pub(super) fn fingerprint(skills: &[ResolvedSkill]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for skill in skills {
        let Some((version, guide)) = skill.entry.guide() else { continue };
        (&skill.namespace, skill.name(), &version.spec.version, version.spec.seal).hash(&mut hasher);
        (guide.is_hidden, guide.triggers.slash.is_empty()).hash(&mut hasher);
    }
    hasher.finish()
}

/// The instructions of a skill, if a user may name them.
fn guide(skill: &ResolvedSkill) -> Option<(&CachedVersion, &CachedInstructions)> {
    let (version, guide) = skill.entry.guide()?;
    (!guide.triggers.slash.is_empty()).then_some((version, guide))
}

fn prompt(skill: &ResolvedSkill) -> Option<Prompt> {
    let (version, guide) = guide(skill)?;
    let inputs = guide.inputs.iter().map(|input| {
        let is_required = input.is_required && input.default.is_none();
        let argument = PromptArgument::new(&*input.name).with_required(is_required);
        if input.description.is_empty() { argument } else { argument.with_description(&*input.description) }
    });
    let mut arguments: Vec<PromptArgument> = inputs.collect();
    if arguments.is_empty() {
        let text = PromptArgument::new(TEXT).with_required(false);
        arguments.push(text.with_description("Words for the instructions."));
    }
    Some(Prompt::new(skill.name().to_string(), Some(version.spec.description.to_string()), Some(arguments)))
}

fn values(arguments: Option<&JsonObject>) -> CallValues {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
    let mut named: BTreeMap<String, String> =
        arguments.into_iter().flatten().map(|(name, value)| (name.clone(), text(value))).collect();
    let text = named.remove(TEXT).unwrap_or_default();
    CallValues { named, text }
}
