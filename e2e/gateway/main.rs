//! The gateway's lane: real clients, unmodified, through the running gateway to a scripted model and back.
//!
//! A program of its own, since it changes where the gateway finds its model providers. Needs `SKILLET_E2E=1` and a
//! cluster with Skillet in it, like the others; what more it can be told is in `src/lib.rs`.

mod changes;
mod clients;
mod conversations;
mod documented;
mod keys;
mod readme;
mod sdks;
mod stage;
mod stops;
mod strangers;
