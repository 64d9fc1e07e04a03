//! Requests and whole responses.

mod request_tests;
mod response_tests;
