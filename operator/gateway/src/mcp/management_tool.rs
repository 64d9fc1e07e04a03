//! Definitions of the four management tools: names, descriptions, schemas, hints.

use std::sync::Arc;

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Value, json};

/// A tool that manages skills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ManagementTool {
    List,
    Enable,
    Execute,
    Executions,
}

impl ManagementTool {
    pub(super) const ALL: [Self; 4] = [Self::List, Self::Enable, Self::Execute, Self::Executions];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::List => "skillet_skills_list",
            Self::Enable => "skillet_skills_enable",
            Self::Execute => "skillet_skills_execute",
            Self::Executions => "skillet_executions",
        }
    }

    pub(super) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    fn description(self) -> &'static str {
        match self {
            Self::List => {
                "Lists the skills you may see, with mode, version and the tool name of those you may call."
            }
            Self::Enable => {
                "Switches a skill on or off, or changes when it is offered. Needs the right to patch it."
            }
            Self::Execute => "Runs a skill by name, at a version you choose, and waits for its result.",
            Self::Executions => "Lists past and present runs of your namespace, the newest first.",
        }
    }

    fn input_schema(self) -> Value {
        let (properties, required) = match self {
            Self::List => (
                json!({
                    "name": { "type": "string", "description": "Only skills whose name contains this." },
                    "enabled": { "type": "boolean", "description": "Only skills that are enabled, or are not." },
                }),
                json!([]),
            ),
            Self::Enable => (
                json!({
                    "name": { "type": "string", "description": "Name of the skill." },
                    "enabled": { "type": "boolean", "description": "Whether it can be used at all." },
                    "mode": {
                        "type": "string",
                        "enum": ["on", "auto", "off"],
                        "description": "Offered always, when it fits the request, or never.",
                    },
                }),
                json!(["name"]),
            ),
            Self::Execute => (
                json!({
                    "skill": { "type": "string", "description": "Name of the skill." },
                    "version": { "type": "string", "description": "Such as 1.2.3, ^1.2 or *; the newest if left out." },
                    "input": { "description": "Input that fits the skill's schema." },
                    "sessionId": { "type": "string", "description": "Conversation that the run belongs to." },
                }),
                json!(["skill"]),
            ),
            Self::Executions => (
                json!({
                    "limit": { "type": "integer", "minimum": 0, "maximum": 100, "description": "How many; 20 if left out." },
                }),
                json!([]),
            ),
        };
        json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
    }

    fn annotations(self) -> ToolAnnotations {
        let hints = ToolAnnotations::new().open_world(false);
        match self {
            Self::List | Self::Executions => hints.read_only(true),
            Self::Enable => hints.read_only(false).destructive(true).idempotent(true),
            Self::Execute => hints.read_only(false).destructive(true),
        }
    }
}

/// All of them, as they are listed.
pub(super) fn tools() -> Vec<Tool> {
    let tool = |tool: ManagementTool| {
        let schema = tool.input_schema().as_object().cloned().unwrap_or_default();
        Tool::new(tool.name(), tool.description(), Arc::new(schema)).with_annotations(tool.annotations())
    };
    ManagementTool::ALL.map(tool).into()
}
