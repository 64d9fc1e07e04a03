//! The own names of built-in programs, by which models and OmniRoute's conversations call them whatever their skills are named.

use std::collections::HashMap;

/// OmniRoute's prefix for those of its tools that stand in the place of a provider's.
const PREFIX: &str = "omniroute_";
const PREFIXED: [&str; 2] = ["web_search", "web_fetch"];

/// Returns the name of the built-in that a tool name means: without a version, and without OmniRoute's prefix. Any other name
/// is as it was, up to an `@`.
pub fn canonical(tool_name: &str) -> &str {
    let name = tool_name.split_once('@').map_or(tool_name, |(name, _)| name);
    name.strip_prefix(PREFIX).filter(|name| PREFIXED.contains(name)).unwrap_or(name)
}

/// Returns the value of the built-in that a tool name means.
pub(super) fn resolve<'a, T>(builtins: &'a HashMap<&'static str, T>, tool_name: &str) -> Option<&'a T> {
    builtins.get(canonical(tool_name))
}

/// Returns true if a text may be the beginning of a name of this built-in.
pub(crate) fn may_become(builtin: &str, begin: &str) -> bool {
    let has_prefix = PREFIXED.contains(&builtin)
        && begin
            .strip_prefix(PREFIX)
            .map_or_else(|| PREFIX.starts_with(begin), |rest| builtin.starts_with(rest));
    builtin.starts_with(begin) || has_prefix || (begin.contains('@') && canonical(begin) == builtin)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_a_built_in_without_version_and_prefix() {
        for (name, expected) in [
            ("web_search", "web_search"),
            ("omniroute_web_search", "web_search"),
            ("omniroute_web_fetch@1.0.0", "web_fetch"),
            ("http_request@2", "http_request"),
            ("omniroute_http_request", "omniroute_http_request"),
            ("Web_Search", "Web_Search"),
            ("omniroute_omniroute_web_search", "omniroute_omniroute_web_search"),
            ("", ""),
        ] {
            assert_eq!(canonical(name), expected, "{name}");
        }
    }

    #[test]
    fn a_beginning_of_any_own_name_may_become_one() {
        for begin in [
            "",
            "w",
            "web_search",
            "omni",
            "omniroute_",
            "omniroute_web",
            "web_search@1.",
            "omniroute_web_search@",
        ] {
            assert!(may_become("web_search", begin), "{begin}");
        }
        for begin in ["web_fetch", "omniroute_x", "web_search2", "Web", "@", "web_fetch@1"] {
            assert!(!may_become("web_search", begin), "{begin}");
        }
        assert!(may_become("http_request", "http") && !may_become("http_request", "omniroute_"));
    }
}
