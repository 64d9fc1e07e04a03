//! Objects of one execution, from valid input only: nothing here can fail.

pub(crate) mod egress;
pub(crate) mod frame;
pub(crate) mod sandbox;
