//! Tests over all dialects, and what their tests share.

mod confirmation_stream_tests;
pub(crate) mod corruption;
mod malformed_input_tests;
