//! `format_helper` and `resolve`: keys of callers, and how a caller is found by one.

use serde_json::json;
use skillet_core::api_key::KeyText;

use crate::{case::Case, judge::Answer};

/// The product's keys have another prefix, and a checksum that finds a mistyped one without a look-up.
// Every replay has this type.
#[allow(clippy::unnecessary_wraps)]
pub(super) fn format_helper(case: &Case) -> Result<Answer, String> {
    let value = json!({ "valid": KeyText::parse(case.text("key")).is_some() });
    let difference =
        Some("an API key is `skillet_` with a checksum: docs/reference/gateway-identity.md".to_owned());
    Ok(Answer { difference, ..Answer::exact(case, value) })
}

/// The gateway watches the ApiKeys of the cluster: there is one place for an identity, and nothing is moved or written back.
pub(super) fn resolve(_case: &Case) -> Result<Answer, String> {
    Err("identities have one place, the ApiKey with the hash of the key, and no caches that are written back: docs/reference/apikey.md".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::judged;

    #[test]
    fn only_keys_of_the_product_are_valid() {
        let key = KeyText::of_random([7; 32]).text().to_owned();
        let check = |key: &str, valid: bool, result: &str| {
            let case = json!({"kind": "format_helper", "input": {"key": key}, "expected": {"valid": valid}});
            let judged = judged("uniskill", case);
            assert!(judged.starts_with(result), "{key}: {judged}");
        };
        check(&key, true, "passed");
        check(&key[..key.len() - 1], false, "passed");
        check("", false, "passed");
        check("us-abc", true, "an API key is `skillet_`");
    }
}
