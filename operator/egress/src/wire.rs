//! The agreement of operator and broker beside the frames: paths, names, and the first bytes of a link.

use std::io;

use serde_json::{from_slice, to_vec};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use crate::policy::RunPolicy;

/// Name in the certificate of every broker.
pub const BROKER_NAME: &str = "skillet-broker";
pub(crate) const REQUESTS_PATH: &str = "/v1/requests";
pub(crate) const RUNS_PATH: &str = "/v1/runs";
/// Protocol of a run's link.
pub(crate) const UPGRADE: &str = "skillet-egress";

/// Most bytes of a policy in JSON.
pub const MAX_POLICY_BYTES: usize = 256 << 10;

/// The first bytes of a link: the length of the policy, and the policy. `None` when it is over the limit.
pub(crate) fn encode_policy(policy: &RunPolicy) -> Option<Vec<u8>> {
    let json = to_vec(policy).ok().filter(|json| json.len() <= MAX_POLICY_BYTES)?;
    let length = u32::try_from(json.len()).ok()?;
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.extend_from_slice(&json);
    Some(bytes)
}

/// Reads the first bytes of a link.
pub(crate) async fn read_policy(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<RunPolicy> {
    let length = stream.read_u32().await? as usize;
    if length > MAX_POLICY_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the policy is too large"));
    }
    let mut json = vec![0; length];
    stream.read_exact(&mut json).await?;
    Ok(from_slice(&json)?)
}
