//! Tests over all dialects: one contract, malformed input, streams with confirmations.

mod abandon_tests;
mod argument_tests;
mod call_id_tests;
mod confirmation_stream_tests;
mod contract;
mod corruption;
pub(crate) mod fixtures;
mod malformed_input_tests;
mod offer_tests;
mod round_text_tests;
mod rounds;
mod scripts;
mod stream_tests;
