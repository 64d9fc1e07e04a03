//! A `tool_choice` that names a tool of the provider, and follows the skill that stands in its place.

use serde_json::{Value, json};

use super::{NativeTool, NativeUse, TakenTools};
use crate::{DialectName, ToolDefinition};

impl DialectName {
    /// Removes a choice that forces one of these tools, and returns the tool.
    pub(super) fn take_forced(self, request: &mut Value, uses: &[NativeUse]) -> Option<NativeTool> {
        let choice = request.get("tool_choice")?;
        let named = |of: &&NativeUse| match self {
            Self::OpenAiChat | Self::OpenAiResponses => is_of(choice, of.tool),
            Self::Anthropic => choice["type"] == "tool" && choice["name"] == of.settings["name"],
            // Its choices name functions only.
            Self::Gemini => false,
        };
        let forced = uses.iter().find(named)?.tool;
        request.as_object_mut()?.remove("tool_choice");
        Some(forced)
    }

    /// Names the skills where the request's choice named the tools that they replace.
    pub(super) fn follow_choice(
        self,
        request: &mut Value,
        taken: &TakenTools,
        skills: &[(NativeTool, ToolDefinition)],
    ) {
        let by_tool = |tool| skills.iter().find(|(of, _)| *of == tool).map(|(_, skill)| &*skill.name);
        if let Some(name) = taken.forced.and_then(by_tool) {
            request["tool_choice"] = match (self, &taken.choice) {
                // What else is said, such as of parallel calls, is said of every choice.
                (Self::Anthropic, Some(choice)) => {
                    let mut choice = choice.clone();
                    choice["name"] = name.into();
                    choice
                }
                _ => self.function(name),
            };
        }
        for place in ["/tool_choice/tools", "/tool_choice/allowed_tools/tools"] {
            let list = request.pointer_mut(place).and_then(Value::as_array_mut);
            for allowed in list.into_iter().flatten() {
                let found = taken.uses.iter().find(|of| is_of(allowed, of.tool));
                if let Some(name) = found.and_then(|of| by_tool(of.tool)) {
                    *allowed = self.function(name);
                }
            }
        }
    }

    fn function(self, name: &str) -> Value {
        match self {
            Self::OpenAiChat => json!({"type": "function", "function": {"name": name}}),
            Self::OpenAiResponses | Self::Anthropic | Self::Gemini => {
                json!({"type": "function", "name": name})
            }
        }
    }
}

fn is_of(choice: &Value, tool: NativeTool) -> bool {
    choice["type"].as_str().and_then(NativeTool::of_type) == Some(tool)
}
