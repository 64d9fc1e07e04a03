//! Numbers in text, read as JavaScript's `Number` reads them.
//!
//! Models and clients write `"10000"` for a number now and then. Odd forms such as `"0x10"` are harmless, so one known rule
//! is better than a rule of our own.

use crate::text::trim;

/// Reads a number; text that is no number gives NaN, and empty text 0.
pub fn text_to_number(text: &str) -> f64 {
    let text = trim(text);
    if text.is_empty() {
        return 0.0;
    }
    for (signs, radix) in [(["0x", "0X"], 16), (["0b", "0B"], 2), (["0o", "0O"], 8)] {
        if let Some(digits) = signs.iter().find_map(|sign| text.strip_prefix(sign)) {
            return radix_to_number(digits, radix);
        }
    }
    // Rust also reads "inf", "nan" and "infinity" in any case; JavaScript's Infinity is no whole number either.
    let is_decimal =
        text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
    if is_decimal { text.parse().unwrap_or(f64::NAN) } else { f64::NAN }
}

fn radix_to_number(digits: &str, radix: u32) -> f64 {
    if digits.is_empty() {
        return f64::NAN;
    }
    digits
        .chars()
        .try_fold(0.0, |sum: f64, digit| Some(sum * f64::from(radix) + f64::from(digit.to_digit(radix)?)))
        .unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_every_form_that_javascript_knows() {
        for (text, number) in [
            ("5", 5.0),
            (" 5\n", 5.0),
            ("+5", 5.0),
            ("-2.5", -2.5),
            ("1e3", 1000.0),
            ("5.", 5.0),
            ("0x10", 16.0),
            ("0B11", 3.0),
            ("0o17", 15.0),
            ("", 0.0),
        ] {
            assert!((text_to_number(text) - number).abs() < f64::EPSILON, "{text}");
        }
        for text in ["abc", "5ms", "0x", "0xg", "inf", "Infinity", "NaN", "1_000", "--5", "."] {
            assert!(text_to_number(text).is_nan(), "{text}");
        }
    }
}
