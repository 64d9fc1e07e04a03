//! The name of a workspace: a digest of its owner, so that no owner's text is part of a path.

use std::{fmt, str::FromStr};

use sha2::{Digest as _, Sha256};
use thiserror::Error;

/// Bytes of the digest that the name has.
const DIGEST_BYTES: usize = 12;

/// Name of a workspace: 24 hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkspaceId(String);

#[derive(Debug, PartialEq, Eq, Error)]
#[error("a workspace is named by {} hexadecimal digits in lower case", 2 * DIGEST_BYTES)]
pub struct InvalidWorkspaceId;

impl WorkspaceId {
    /// Returns the name of the owner's workspace. An empty owner is `anonymous`.
    pub fn of_owner(owner: &str) -> Self {
        let owner = if owner.is_empty() { "anonymous" } else { owner };
        let mut digest = format!("{:x}", Sha256::digest(owner.as_bytes()));
        digest.truncate(2 * DIGEST_BYTES);
        Self(digest)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for WorkspaceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for WorkspaceId {
    type Err = InvalidWorkspaceId;

    fn from_str(text: &str) -> Result<Self, InvalidWorkspaceId> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_id = text.len() == 2 * DIGEST_BYTES && text.bytes().all(is_digit);
        if is_id { Ok(Self(text.to_owned())) } else { Err(InvalidWorkspaceId) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_the_start_of_the_digest_of_the_owner() {
        assert_eq!(WorkspaceId::of_owner("team/agent").as_str().len(), 24);
        assert_ne!(WorkspaceId::of_owner("team/agent"), WorkspaceId::of_owner("team/other"));
        // `printf anonymous | sha256sum`
        assert_eq!(WorkspaceId::of_owner("").as_str(), "2f183a4e64493af3f377f745");
        assert_eq!(WorkspaceId::of_owner("anonymous"), WorkspaceId::of_owner(""));
    }

    #[test]
    fn only_digests_are_ids() {
        let id = WorkspaceId::of_owner("team/agent");
        assert_eq!(id.to_string().parse(), Ok(id));
        for text in
            ["", "..", "2f183a4e64493af3f377f74", "2F183A4E64493AF3F377F745", "../83a4e64493af3f377f745"]
        {
            assert_eq!(text.parse::<WorkspaceId>(), Err(InvalidWorkspaceId), "{text}");
        }
    }
}
