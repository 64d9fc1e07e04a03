//! Amounts of work in tests: the short form, which `make test` runs, or the long form of `make soak`, which sets the variables.

use std::{env, str::FromStr};

/// Returns the number in a variable, or that of the short form.
///
/// # Panics
/// If the variable holds something else, so that nobody takes a short form for a long one.
#[expect(clippy::panic, reason = "a test ends with it")]
pub fn amount<T: FromStr>(variable: &str, short: T) -> T {
    match env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number that fits")),
        Err(_) => short,
    }
}
