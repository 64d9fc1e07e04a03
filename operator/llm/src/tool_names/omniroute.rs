//! The names that OmniRoute gives to skills. Conversations and clients that moved from it still use them.

use base64::{
    Engine as _,
    alphabet::URL_SAFE,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

use super::{MAX_LENGTH, hex, replace_illegal, with_hash};

const PREFIX: &str = "omr_skill_";
const MCP_PREFIX: &str = "skill_";

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new()
        .with_encode_padding(false)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// OmniRoute's tool name of a skill; `None` if it is longer than any provider takes.
pub fn encode(name: &str, version: &str) -> Option<String> {
    let encoded = format!("{PREFIX}{}", BASE64.encode(format!("{name}@{version}")));
    (encoded.len() <= MAX_LENGTH).then_some(encoded)
}

/// Returns true if a tool name has the form of OmniRoute's.
pub fn is_encoded(tool_name: &str) -> bool {
    tool_name.starts_with(PREFIX)
}

/// Reads `name@version` from OmniRoute's tool name. `None` for any other name.
pub fn decode(tool_name: &str) -> Option<String> {
    let bytes = BASE64.decode(tool_name.strip_prefix(PREFIX)?).ok()?;
    let identifier = String::from_utf8(bytes).ok()?;
    let (name, version) = identifier.rsplit_once('@')?;
    let parts: Vec<&str> = version.split('.').collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_identifier = !name.is_empty() && parts.len() == 3 && parts.iter().all(is_number);
    is_identifier.then_some(identifier)
}

/// The name of a skill on OmniRoute's MCP server: truncated, with a hash, if it is too long.
pub fn mcp_tool_name(name: &str) -> String {
    let legal = format!("{MCP_PREFIX}{}", replace_illegal(name));
    if legal.len() <= MAX_LENGTH { legal } else { with_hash(&legal, &hex(name)) }
}
