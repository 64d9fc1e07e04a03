//! Calls of `hybrid` skills: a person says yes or no, in the next request, and nothing is remembered in between.
//!
//! The model's call goes to the client as it is, with its id, and a text beside it asks the person (`prompt`). The text
//! has a token in it: which skill would run, and a code over who called it with which arguments until when, under a key
//! that only gateways have. The next request says yes with the token, or no (`reply`).
//!
//! A token says that a person may confirm this call, not that it runs once. Every question has a code of its own, also two
//! about calls that are alike in everything: whoever runs calls keeps them apart by the code.

pub mod prompt;
mod provider_ids;
pub mod reply;
mod token;

pub use provider_ids::ProviderIds;
pub use token::{
    ConfirmationError, ConfirmationKey, Confirmed, KEY_MINIMUM_BYTES, KeyTooShort, NONCE_BYTES, PendingCall,
};
