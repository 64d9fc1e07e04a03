//! Amounts of CPU and memory in the notation of pods.

/// Parses thousandths of a CPU: `500m`, `1`, `0.5`. `None` for other text and for less than one thousandth.
pub fn cpu_millis(text: &str) -> Option<u64> {
    let millis = match text.strip_suffix('m') {
        Some(number) => decimal(number, 1)?,
        None => decimal(text, 1000)?,
    };
    (millis > 0).then_some(millis)
}

/// Parses bytes: `134217728`, `128Mi`, `1G`. `None` for other text and for zero.
pub fn memory_bytes(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 6] = [
        ("Ki", 1 << 10),
        ("Mi", 1 << 20),
        ("Gi", 1 << 30),
        ("k", 1_000),
        ("M", 1_000_000),
        ("G", 1_000_000_000),
    ];
    let (number, unit) = UNITS
        .into_iter()
        .find_map(|(sign, unit)| text.strip_suffix(sign).map(|number| (number, unit)))
        .unwrap_or((text, 1));
    whole(number)?.checked_mul(unit).filter(|bytes| *bytes > 0)
}

fn whole(text: &str) -> Option<u64> {
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

/// Multiplies `text` by `scale`, rounded up as Kubernetes does.
fn decimal(text: &str, scale: u64) -> Option<u64> {
    let Some((before, after)) = text.split_once('.') else {
        return whole(text)?.checked_mul(scale);
    };
    let mut sum = whole(before)?.checked_mul(scale)?;
    if after.is_empty() || !after.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let (mut place, mut is_cut) = (scale / 10, false);
    for digit in after.bytes().map(|b| u64::from(b - b'0')) {
        sum = sum.checked_add(digit * place)?;
        is_cut |= place == 0 && digit > 0;
        place /= 10;
    }
    sum.checked_add(u64::from(is_cut))
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
        ] {
            assert_eq!(memory_bytes(text), Some(expected), "{text}");
        }
        for text in ["", "Mi", "0", "0Mi", "-1", "1.5Gi", "1mi", "1 Gi", "1Ti", "99999999999Gi", "1KiMi"] {
            assert_eq!(memory_bytes(text), None, "{text}");
        }
    }
}
