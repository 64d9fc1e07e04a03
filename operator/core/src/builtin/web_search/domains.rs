//! The domains that a search is limited to, or leaves out. Results of others are dropped, whatever the engine makes of it.

use std::fmt::Write as _;

use serde_json::Value;
use url::Url;

/// Most domains of one list.
const MAX_DOMAINS: usize = 32;
/// Longest name of a domain.
const MAX_NAME: usize = 253;

/// Domains with their subdomains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Domains {
    pub(super) included: Vec<String>,
    pub(super) excluded: Vec<String>,
}

impl Domains {
    /// Reads `filters` of an input.
    pub(super) fn read(input: &Value) -> Self {
        let list = |name: &str| {
            let names = input["filters"][name].as_array().into_iter().flatten().filter_map(Value::as_str);
            let names = names.map(|name| name.trim().trim_start_matches('.').to_lowercase());
            names.filter(|name| is_domain(name)).take(MAX_DOMAINS).collect()
        };
        Self { included: list("include_domains"), excluded: list("exclude_domains") }
    }

    pub(super) fn allows(&self, url: &Url) -> bool {
        let Some(host) = url.host_str() else { return false };
        let is_under = |domain: &String| {
            host.strip_suffix(domain.as_str())
                .is_some_and(|before| before.is_empty() || before.ends_with('.'))
        };
        (self.included.is_empty() || self.included.iter().any(is_under))
            && !self.excluded.iter().any(is_under)
    }

    /// Returns a query with the words by which engines limit a search.
    pub(super) fn query(&self, text: &str) -> String {
        let sites: Vec<String> = self.included.iter().map(|domain| format!("site:{domain}")).collect();
        let mut query = text.to_owned();
        if !sites.is_empty() {
            let _ = write!(query, " {}", sites.join(" OR "));
        }
        for domain in &self.excluded {
            let _ = write!(query, " -site:{domain}");
        }
        query
    }
}

fn is_domain(name: &str) -> bool {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(is_legal)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn results_are_of_the_domains_and_their_subdomains() {
        let filters = json!({"include_domains": [" Example.com ", ".b.org", "a b", 5, ""], "exclude_domains": ["old.example.com"]});
        let domains = Domains::read(&json!({ "filters": filters }));
        assert_eq!(domains.included, ["example.com", "b.org"]);
        for (url, is_allowed) in [
            ("https://example.com/x", true),
            ("https://docs.example.com/", true),
            ("https://old.example.com/", false),
            ("https://notexample.com/", false),
            ("https://example.com.evil.net/", false),
            ("https://b.org/", true),
        ] {
            assert_eq!(domains.allows(&Url::parse(url).unwrap()), is_allowed, "{url}");
        }
        let all = Domains::read(&json!({"filters": "example.com"}));
        assert!(all == Domains::default() && all.allows(&Url::parse("https://any.net").unwrap()));
    }

    #[test]
    fn a_query_says_the_domains_in_the_words_of_engines() {
        let of = |filters| Domains::read(&json!({ "filters": filters })).query("q");
        assert_eq!(of(json!({"include_domains": ["a.com", "b.com"]})), "q site:a.com OR site:b.com");
        assert_eq!(of(json!({"exclude_domains": ["a.com", "b.com"]})), "q -site:a.com -site:b.com");
        assert_eq!(of(json!(null)), "q");
    }
}
