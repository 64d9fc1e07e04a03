//! Durations in the notation of users: `500ms`, `30s`, `1m30s`, `1h`.

use std::{borrow::Cow, fmt, str::FromStr, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A span of time, written as whole numbers with the units `ms`, `s`, `m` and `h`, greatest unit first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SkillDuration(pub Duration);

const UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
/// Most characters of the written form.
const LONGEST: usize = 32;
/// Message of the schema's rule.
const RULE: &str = "write a duration like 500ms, 30s, 1m30s or 1h";
/// Regular expression of the notation, for the schema.
pub(crate) const PATTERN: &str = "^([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$";

impl FromStr for SkillDuration {
    type Err = String;

    /// # Errors
    /// A sentence that names the text and the accepted form.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not a duration; write it like 500ms, 30s, 1m30s or 1h");
        if text.is_empty() || text.len() > LONGEST {
            return Err(wrong());
        }
        let mut rest = text;
        let mut millis: u64 = 0;
        let mut next_unit = 0;
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
            let number: u64 = rest[..digits].parse().map_err(|_| wrong())?;
            let after = &rest[digits..];
            let letters = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
            let unit =
                (next_unit..UNITS.len()).find(|i| UNITS[*i].0 == &after[..letters]).ok_or_else(wrong)?;
            let part = number.checked_mul(UNITS[unit].1).ok_or_else(wrong)?;
            millis = millis.checked_add(part).ok_or_else(wrong)?;
            next_unit = unit + 1;
            rest = &after[letters..];
        }
        Ok(Self(Duration::from_millis(millis)))
    }
}

impl fmt::Display for SkillDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        if rest == 0 {
            return f.write_str("0s");
        }
        for (unit, size) in UNITS {
            if rest >= size {
                write!(f, "{}{unit}", rest / size)?;
                rest %= size;
            }
        }
        Ok(())
    }
}

impl Serialize for SkillDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SkillDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for SkillDuration {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "SkillDuration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let rule = format!("self.matches('{PATTERN}')");
        json_schema!({
            "type": "string",
            "minLength": 2,
            "maxLength": LONGEST,
            "x-kubernetes-validations": [{ "rule": rule, "message": RULE }],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(text: &str) -> Option<u128> {
        text.parse::<SkillDuration>().ok().map(|d| d.0.as_millis())
    }

    #[test]
    fn units_add_up() {
        assert_eq!(millis("500ms"), Some(500));
        assert_eq!(millis("30s"), Some(30_000));
        assert_eq!(millis("1m30s"), Some(90_000));
        assert_eq!(millis("1h1ms"), Some(3_600_001));
        assert_eq!(millis("0s"), Some(0));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "",
            "30",
            "s",
            "-1s",
            "1.5s",
            "1s1m",
            "1s1s",
            "1d",
            "1 s",
            "99999999999999999999s",
            "9999999999999999h",
        ] {
            assert_eq!(millis(text), None, "{text:?}");
        }
    }

    #[test]
    fn the_written_form_reads_back() {
        for text in ["1ms", "1s", "1m30s", "2h", "1h1m1s1ms"] {
            assert_eq!(text.parse::<SkillDuration>().unwrap().to_string(), text);
        }
        assert_eq!(SkillDuration(Duration::ZERO).to_string(), "0s");
    }
}
