//! Objects of one execution, from valid input only: nothing here can fail.

pub mod frame;
pub mod sandbox;
