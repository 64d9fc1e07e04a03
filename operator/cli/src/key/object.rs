//! The ApiKey of a key, made from command-line arguments. Pure.

use std::{fmt, str::FromStr, time::Duration};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use skillet_api::{ApiKey, ApiKeySpec, duration::SkillDuration};
use skillet_core::api_key::KeyHash;

/// Name of a key, which is the name of its ApiKey.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyName(String);

const LONGEST_NAME: usize = 253;

impl KeyName {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for KeyName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let is_good = (1..=LONGEST_NAME).contains(&text.len())
            && text.chars().all(|c| is_end(c) || c == '-')
            && text.starts_with(is_end)
            && text.ends_with(is_end);
        if !is_good {
            return Err(format!(
                "use lower-case letters, digits and -, beginning and ending with a letter or digit, at most {LONGEST_NAME}"
            ));
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for KeyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Lifetime of a key: `90d`, or any other duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeyLifetime(Duration);

const DAY_SECONDS: u64 = 86_400;
const LONGEST: Duration = Duration::from_secs(36_500 * DAY_SECONDS);

impl KeyLifetime {
    /// End of a key that is made at `now`, in whole seconds.
    pub(crate) fn end(self, now: Timestamp) -> Timestamp {
        let seconds = i64::try_from(self.0.as_secs()).unwrap_or(i64::MAX);
        Timestamp::from_second(now.as_second().saturating_add(seconds)).unwrap_or(Timestamp::MAX)
    }
}

impl FromStr for KeyLifetime {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let days = text.strip_suffix('d').filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
        let length = match days.and_then(|number| number.parse::<u64>().ok()) {
            Some(days) => days.checked_mul(DAY_SECONDS).map(Duration::from_secs),
            None => text.parse::<SkillDuration>().ok().map(|duration| duration.0),
        };
        let is_some_time = |length: &Duration| (Duration::from_secs(1)..=LONGEST).contains(length);
        let wrong = || format!("{text:?} is not a lifetime; write it like 90d, 12h or 1h30m, at most 36500d");
        length.filter(is_some_time).map(Self).ok_or_else(wrong)
    }
}

/// Builds the ApiKey of a key from its hash, its service account and its end.
pub(crate) fn api_key(
    name: &KeyName,
    service_account: &str,
    expires_at: Option<Timestamp>,
    hash: KeyHash,
) -> ApiKey {
    let spec = ApiKeySpec {
        hash: hash.to_string(),
        service_account_name: service_account.to_owned(),
        expires_at: expires_at.map(Time),
    };
    ApiKey::new(name.as_str(), spec)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use skillet_core::api_key::KeyText;

    use super::*;

    fn end(lifetime: &str) -> String {
        let now = "2026-01-01T00:00:00.5Z".parse().unwrap();
        lifetime.parse::<KeyLifetime>().unwrap().end(now).to_string()
    }

    #[test]
    fn a_lifetime_is_days_or_a_duration() {
        assert_eq!(end("90d"), "2026-04-01T00:00:00Z");
        assert_eq!(end("1h30m"), "2026-01-01T01:30:00Z");
        for text in [
            "",
            "d",
            "0d",
            "0s",
            "10ms",
            "-1d",
            "+1d",
            "1.5d",
            "1d12h",
            "soon",
            "36501d",
            "99999999999999999999d",
        ] {
            assert!(text.parse::<KeyLifetime>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_name_is_good_as_the_name_of_an_object() {
        assert_eq!("ci-2".parse::<KeyName>().unwrap().as_str(), "ci-2");
        for text in ["", "-a", "a-", "A", "a/b", "a b", "../a", "ü", &"a".repeat(254)] {
            assert!(text.parse::<KeyName>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_object_holds_the_hash_and_never_the_key() {
        let key = KeyText::of_random([7; 32]);
        let end = "2026-04-01T00:00:00Z".parse().unwrap();
        let object = api_key(&"ci".parse().unwrap(), "agent", Some(end), key.hash());
        let hash = key.hash().to_string();
        assert_eq!(
            serde_json::to_value(&object).unwrap(),
            json!({
                "apiVersion": "skillet.dev/v1alpha1",
                "kind": "ApiKey",
                "metadata": { "name": "ci" },
                "spec": { "hash": hash, "serviceAccountName": "agent", "expiresAt": "2026-04-01T00:00:00Z" },
            })
        );
    }
}
