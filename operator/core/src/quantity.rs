//! Amounts of CPU and memory in the notation of pods.

/// Parses thousandths of a CPU: `500m`, `1`, `0.5`. `None` for other text and for less than one thousandth.
pub fn cpu_millis(text: &str) -> Option<u64> {
    let millis = match text.strip_suffix('m') {
        Some(number) => decimal(number, 1)?,
        None => decimal(text, 1000)?,
    };
    (millis > 0).then_some(millis)
}

/// Parses bytes: `134217728`, `128Mi`, `1.5G`. `None` for other text and for zero.
pub fn memory_bytes(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 10] = [
        ("Ki", 1 << 10),
        ("Mi", 1 << 20),
        ("Gi", 1 << 30),
        ("Ti", 1 << 40),
        ("Pi", 1 << 50),
        ("k", 1_000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
        ("T", 1_000_000_000_000),
        ("P", 1_000_000_000_000_000),
    ];
    let (number, unit) = UNITS
        .into_iter()
        .find_map(|(sign, unit)| text.strip_suffix(sign).map(|number| (number, unit)))
        .unwrap_or((text, 1));
    decimal(number, unit).filter(|bytes| *bytes > 0)
}

/// Multiplies a decimal number by `scale`, rounded up as Kubernetes does.
fn decimal(text: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let divisor = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    u64::try_from(digits.checked_mul(scale.into())?.div_ceil(divisor)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_is_read_in_thousandths_and_rounded_up() {
        for (text, expected) in [
            ("1", 1000),
            ("500m", 500),
            ("0.5", 500),
            ("0.001", 1),
            ("0.0001", 1),
            ("1.0005", 1001),
            ("1.25", 1250),
            ("2.000000000", 2000),
            ("0.5m", 1),
            ("1.0m", 1),
        ] {
            assert_eq!(cpu_millis(text), Some(expected), "{text}");
        }
        for text in [
            "",
            "m",
            "0",
            "0m",
            "0.0",
            "-1",
            "+1",
            "1.",
            ".5",
            "1e3",
            "1 ",
            "1k",
            "1.x",
            "99999999999999999999",
        ] {
            assert_eq!(cpu_millis(text), None, "{text}");
        }
    }

    #[test]
    fn memory_is_read_in_bytes() {
        for (text, expected) in [
            ("1", 1),
            ("128Mi", 134_217_728),
            ("1Gi", 1 << 30),
            ("2Ki", 2048),
            ("1k", 1_000),
            ("5M", 5_000_000),
            ("1G", 1_000_000_000),
            ("1.5Gi", 3 << 29),
            ("0.5Ki", 512),
            ("1.0001k", 1001),
            ("1Ti", 1 << 40),
        ] {
            assert_eq!(memory_bytes(text), Some(expected), "{text}");
        }
        for text in ["", "Mi", "0", "0Mi", "-1", "1.Gi", "1mi", "1 Gi", "1Ei", "99999999999Gi", "1KiMi"] {
            assert_eq!(memory_bytes(text), None, "{text}");
        }
    }
}
