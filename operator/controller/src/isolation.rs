//! The level of isolation that a policy requires, in the words of the runner's protocol.

use skillet_api::IsolationLevel;
use skillet_protocol::Level;

pub(crate) fn level(level: IsolationLevel) -> Level {
    match level {
        IsolationLevel::Strict => Level::Strict,
        IsolationLevel::Compatible => Level::Compatible,
    }
}
