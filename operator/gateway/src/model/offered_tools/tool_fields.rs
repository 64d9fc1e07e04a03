//! An offered tool as a router gives it back.

use serde::Deserialize;

use super::{InstructionsAction, OfferedTool, SearchAction, ServerTarget, Target};

/// Longest name of a server or a tool, and longest id of a session, that a router may give back.
const MAX_MCP_TEXT: usize = 2048;

/// The fields of an [`OfferedTool`], apart so that an error names its field.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ToolFields {
    namespace: Option<String>,
    skill: Option<String>,
    version: Option<String>,
    #[serde(default)]
    confirm: bool,
    search: Option<SearchAction>,
    instructions: Option<InstructionsAction>,
    mcp_server: Option<String>,
    mcp_tool: Option<String>,
    mcp_session: Option<String>,
}

impl TryFrom<ToolFields> for OfferedTool {
    type Error = &'static str;

    fn try_from(fields: ToolFields) -> Result<Self, Self::Error> {
        let ToolFields {
            namespace,
            skill,
            version,
            confirm,
            search,
            instructions,
            mcp_server,
            mcp_tool,
            mcp_session,
        } = fields;
        let skill = namespace.zip(skill).zip(version);
        match (skill, (search, instructions), (mcp_server, mcp_tool, mcp_session)) {
            (None, (Some(search), None), (None, None, None)) => Ok(Self::Search { search }),
            (None, (None, Some(instructions)), (None, None, None)) => Ok(Self::Instructions { instructions }),
            (Some(((namespace, skill), version)), (None, None), (None, None, None)) => {
                Ok(Self::Skill(Target { namespace, skill, version, confirm }))
            }
            (
                Some(((namespace, skill), version)),
                (None, None),
                (Some(mcp_server), Some(mcp_tool), Some(mcp_session)),
            ) if [mcp_server.len(), mcp_tool.len(), mcp_session.len()]
                .iter()
                .all(|size| *size <= MAX_MCP_TEXT) =>
            {
                Ok(Self::Server(ServerTarget {
                    namespace,
                    skill,
                    version,
                    mcp_server,
                    mcp_tool,
                    mcp_session,
                }))
            }
            _ => Err(
                "a tool has `namespace`, `skill` and `version`, of an MCP server also `mcpServer`, `mcpTool` and `mcpSession`; or `search` or `instructions` alone",
            ),
        }
    }
}
