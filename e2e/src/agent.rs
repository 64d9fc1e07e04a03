//! An agent's side of the gateway: who asks, the way there, and a scripted model where the provider would be.
//!
//! It is no client of a provider. Those are the real ones, in `gateway/clients`.

pub mod access;
pub mod model;
pub mod tenant;

pub use access::{Answer, Ask, Gateway, chat};
pub use model::Model;
