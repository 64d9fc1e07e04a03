//! The gateway's lane: real clients, unmodified, through the running gateway to a scripted model and back.
//!
//! A program of its own, since it changes where the gateway finds its model providers. Needs `SKILLET_E2E=1` and a
//! cluster with Skillet in it, like the others. Further variables:
//!
//! | variable | meaning |
//! |---|---|
//! | `SKILLET_GATEWAY_URL` | the gateway, where it does not run as a pod |
//! | `SKILLET_MODEL_URL` | a running `model/model.py` that the gateway and the tests can reach, instead of a pod |

mod access;
mod changes;
mod clients;
mod conversations;
mod documented;
mod keys;
mod model;
mod sdks;
mod stage;
mod stops;
mod strangers;
mod tenant;
