//! Tools of a request that the provider runs itself: a search of the web, and the reading of a page. A skill can stand in
//! their place.
//!
//! Nothing here decides that: the caller takes the tools out, looks for skills, and puts one in the place of each tool, or
//! puts back what was there.

mod choice;
mod stand_in;

use std::sync::Arc;

use serde_json::Value;

use crate::{DialectError, DialectName, ToolDefinition, wire::items};

pub use stand_in::{limits_domains, stand_in};

/// A tool that a provider runs itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NativeTool {
    WebSearch,
    WebFetch,
}

impl NativeTool {
    pub const ALL: [Self; 2] = [Self::WebSearch, Self::WebFetch];

    /// Returns its name, which is also that of the built-in program with the same purpose.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WebSearch => "web_search",
            Self::WebFetch => "web_fetch",
        }
    }

    /// Returns the tool of a type, such as `web_search`, `web_search_preview` or the dated `web_search_20250305`.
    fn of_type(kind: &str) -> Option<Self> {
        let begins = |tool: &Self| {
            kind.strip_prefix(tool.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        };
        Self::ALL.into_iter().find(begins)
    }

    /// Names of its fields in a tool of Gemini's, which may have functions and other tools beside it.
    const fn gemini_fields(self) -> &'static [&'static str] {
        match self {
            Self::WebSearch => {
                &["googleSearch", "google_search", "googleSearchRetrieval", "google_search_retrieval"]
            }
            Self::WebFetch => &["urlContext", "url_context"],
        }
    }
}

/// The tools of one kind in a request.
#[derive(Clone, Debug, PartialEq)]
pub struct NativeUse {
    pub tool: NativeTool,
    pub count: usize,
    /// The first of them.
    settings: Value,
}

/// Tools that were taken out of a request.
#[derive(Clone, Debug)]
pub struct TakenTools {
    pub uses: Vec<NativeUse>,
    tools: Value,
    choice: Option<Value>,
    /// The tool that the request forces.
    forced: Option<NativeTool>,
}

/// A skill's tool in the place of a provider's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    pub tool: NativeTool,
    pub tool_name: Arc<str>,
    /// The number of tools that it replaces.
    pub converted: usize,
}

impl DialectName {
    /// Returns true if the public provider of this form runs such tools. Chat completions have no tools but functions.
    pub fn has_native_tools(self) -> bool {
        match self {
            Self::OpenAiChat => false,
            Self::OpenAiResponses | Self::Anthropic | Self::Gemini => true,
        }
    }

    /// Returns the tools of a request that its provider runs itself.
    pub fn native_tools(self, request: &Value) -> Vec<NativeTool> {
        let has = |tool: &NativeTool| items(&request["tools"]).iter().any(|of| self.is_native(of, *tool));
        NativeTool::ALL.into_iter().filter(has).collect()
    }

    /// Takes these tools out of a request, and a choice that forces one of them.
    pub fn take_native_tools(self, request: &mut Value, wanted: &[NativeTool]) -> TakenTools {
        let mut uses: Vec<NativeUse> = Vec::new();
        let before = request["tools"].clone();
        let mut tools = Vec::new();
        for mut tool in items(&before).iter().cloned() {
            for kind in wanted.iter().copied().filter(|kind| self.is_native(&tool, *kind)) {
                match uses.iter_mut().find(|of| of.tool == kind) {
                    Some(known) => known.count += 1,
                    None => uses.push(NativeUse { tool: kind, count: 1, settings: tool.clone() }),
                }
            }
            if self.remove_native(&mut tool, wanted) {
                tools.push(tool);
            }
        }
        let mut taken = TakenTools { uses, tools: before, choice: None, forced: None };
        if !taken.uses.is_empty() {
            request["tools"] = tools.into();
            taken.choice = request.get("tool_choice").cloned();
            taken.forced = self.take_forced(request, &taken.uses);
        }
        taken
    }

    /// Puts back what was taken out.
    pub fn put_back_native_tools(self, request: &mut Value, taken: TakenTools) {
        let TakenTools { uses, tools, choice, forced: _ } = taken;
        if uses.is_empty() {
            return;
        }
        let Some(fields) = request.as_object_mut() else { return };
        fields.insert("tools".to_owned(), tools);
        if let Some(choice) = choice {
            fields.insert("tool_choice".to_owned(), choice);
        }
    }

    /// Puts these tools in the place of those that were taken out: at the front, each once, and as the forced one if that was
    /// taken. The second part is true if the request now asks for content of reasoning that the client did not ask for.
    pub fn replace_native_tools(
        self,
        request: &mut Value,
        taken: &TakenTools,
        skills: &[(NativeTool, ToolDefinition)],
    ) -> Result<(Vec<Replacement>, bool), DialectError> {
        let own = self.dialect().client_tool_names(request);
        let is_new = |name: &str| !own.contains(&name);
        let new: Vec<ToolDefinition> =
            skills.iter().map(|(_, tool)| tool).filter(|tool| is_new(&tool.name)).cloned().collect();
        let hides_reasoning = self.dialect().prepend_tools(request, &new)?;
        self.follow_choice(request, taken, skills);
        let replacement = |of: &NativeUse| {
            let (_, skill) = skills.iter().find(|(tool, _)| *tool == of.tool)?;
            Some(Replacement { tool: of.tool, tool_name: skill.name.clone(), converted: of.count })
        };
        Ok((taken.uses.iter().filter_map(replacement).collect(), hides_reasoning))
    }

    fn is_native(self, tool: &Value, kind: NativeTool) -> bool {
        match self {
            Self::Gemini => kind.gemini_fields().iter().any(|field| !tool[*field].is_null()),
            Self::OpenAiChat | Self::OpenAiResponses | Self::Anthropic => {
                // With a function it is the client's own, whatever its type says.
                let is_own = tool.get("function").is_some_and(|function| !function.is_null());
                !is_own && tool["type"].as_str().and_then(NativeTool::of_type) == Some(kind)
            }
        }
    }

    /// Removes what the provider runs of a tool. Returns false if nothing is left.
    fn remove_native(self, tool: &mut Value, kinds: &[NativeTool]) -> bool {
        let is_any = kinds.iter().any(|kind| self.is_native(tool, *kind));
        match (self, tool.as_object_mut()) {
            (Self::Gemini, Some(fields)) if is_any => {
                kinds
                    .iter()
                    .flat_map(|kind| kind.gemini_fields())
                    .for_each(|name| drop(fields.remove(*name)));
                !fields.values().all(Value::is_null)
            }
            _ => !is_any,
        }
    }
}

#[cfg(test)]
mod tests;
