//! The one way out of Skillet: a policy, a resolver and a dialer, and the broker that holds them.

pub mod policy;

pub use policy::{InternalHostRule, RunPolicy};
