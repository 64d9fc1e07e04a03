//! An agent's side of the gateway: an account with its token, the connection, and a scripted model as the provider.
//!
//! It is no client of a provider. Those are the real ones, in `gateway/clients`.

pub mod gateway_client;
pub mod model;
pub mod tenant;

pub use gateway_client::{GatewayClient, Request, Response, chat};
pub use model::Model;
