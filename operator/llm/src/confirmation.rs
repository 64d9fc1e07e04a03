//! Calls of `hybrid` skills, which a person confirms or refuses in the next request. Nothing is stored in between.
//!
//! The model's call goes to the client with its id, and a text beside it asks the person (`prompt`). The text carries
//! a token (`token`): the skill that would run, and a code over caller, call, arguments and expiry under a key that
//! only gateways have. The next request confirms with the token, or refuses (`reply`).
//!
//! A token proves that a person may confirm this call, not that it runs once. Every prompt has its own code, even for
//! equal calls: whoever runs calls tells them apart by the code.

pub mod prompt;
mod provider_ids;
pub mod reply;
mod token;

pub use provider_ids::ProviderIds;
pub use token::{
    ConfirmationError, ConfirmationKey, Confirmed, KEY_MINIMUM_BYTES, KeyTooShort, NONCE_BYTES, PendingCall,
};
