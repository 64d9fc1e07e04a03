//! The routes of the model providers: the proxy, the stateless routes for routers, and what both share.

pub mod conversation;
pub mod inject;
pub mod proxy;
pub mod tool_refusals;
pub mod tools;
mod turn;
pub mod upstream;
