//! Types of unquoted scalars by YAML 1.1, as PyYAML reads them: `yes` is a boolean, `1.10` a number, `2024-01-31` a date.

use super::YamlValue;

pub(super) fn resolve(text: &str) -> YamlValue {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => YamlValue::Null,
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => YamlValue::Boolean(true),
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => YamlValue::Boolean(false),
        _ if is_number(text) || is_date(text) => YamlValue::Number(text.to_owned()),
        _ => YamlValue::Text(text.to_owned()),
    }
}

/// Reads the words that authors use for true and false.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "y" | "t" | "1" => Some(true),
        "false" | "no" | "off" | "n" | "f" | "0" => Some(false),
        _ => None,
    }
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if let Some(hexadecimal) = digits.strip_prefix("0x") {
        return all(hexadecimal, |b| b.is_ascii_hexdigit() || b == b'_');
    }
    if let Some(binary) = digits.strip_prefix("0b") {
        return all(binary, |b| matches!(b, b'0' | b'1' | b'_'));
    }
    if matches!(digits, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    if digits.contains(':') {
        return is_base_60(digits);
    }
    match digits.split_once('.') {
        Some((whole, rest)) => {
            let (fraction, exponent) =
                rest.split_once(['e', 'E']).map_or((rest, None), |(f, e)| (f, Some(e)));
            let is_exponent = |text: &str| text.strip_prefix(['-', '+']).is_some_and(is_digits);
            let is_whole = if whole.is_empty() {
                fraction.starts_with(|c: char| c.is_ascii_digit())
            } else {
                is_digits(whole)
            };
            is_whole && (fraction.is_empty() || is_digits(fraction)) && exponent.is_none_or(is_exponent)
        }
        None => is_digits(digits) && !(digits.starts_with('0') && digits.contains(['8', '9'])),
    }
}

/// True for a number of hours, minutes and seconds, such as `1:30`.
fn is_base_60(digits: &str) -> bool {
    let whole = digits.split_once('.').map_or(digits, |(whole, _)| whole);
    let mut parts = whole.split(':');
    let is_part = |part: &str| {
        all(part, |b| b.is_ascii_digit()) && (part.len() == 1 || (part.len() == 2 && part < "60"))
    };
    parts.next().is_some_and(|first| is_digits(first) && !first.starts_with('0'))
        && parts.all(is_part)
        && (digits == whole || all(&digits[whole.len() + 1..], |b| b.is_ascii_digit() || b == b'_'))
}

/// True for digits, with underscores behind the first one.
fn is_digits(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit()) && all(text, |b| b.is_ascii_digit() || b == b'_')
}

fn all(text: &str, is_good: fn(u8) -> bool) -> bool {
    !text.is_empty() && text.bytes().all(is_good)
}

/// True for a date, also with a time behind it.
fn is_date(text: &str) -> bool {
    let (date, time) =
        text.split_once(['T', 't', ' ']).map_or((text, None), |(date, time)| (date, Some(time)));
    let parts: Vec<&str> = date.split('-').collect();
    let has_lengths = |longest: usize| {
        parts.len() == 3
            && parts[0].len() == 4
            && parts[1..].iter().all(|part| (1..=longest).contains(&part.len()))
    };
    let is_time =
        |time: &str| time.contains(':') && time.trim_start().starts_with(|c: char| c.is_ascii_digit());
    parts.iter().all(|part| all(part, |b| b.is_ascii_digit()))
        && match time {
            None => has_lengths(2) && parts[1..].iter().all(|part| part.len() == 2),
            Some(time) => has_lengths(2) && is_time(time),
        }
}
