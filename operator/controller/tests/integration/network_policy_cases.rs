//! Invalid settings of a SkillPolicy for hosts, built-ins and the search engine.

use crate::cases::{Case, breaks, long, many};

/// Cases over an empty spec.
pub fn network_policy_cases() -> Vec<Case> {
    let mut cases = vec![
        breaks("spec.builtins maxItems", format!("builtins: {}", many(17, |_| "web_fetch".into()))),
        breaks("spec.builtins[] enum", "builtins: [send_mail]"),
        breaks("spec.network.connections minimum", network("connections: 0")),
        breaks("spec.network.connections maximum", network("connections: 257")),
        breaks("spec.network.transferMiB minimum", network("transferMiB: 0")),
        breaks("spec.network.transferMiB maximum", network("transferMiB: 1048577")),
    ];
    cases.extend(host_cases("allowedHosts", 256, |hosts| network(&format!("allowedHosts: {hosts}"))));
    cases.extend(range_cases("deniedRanges", |ranges| network(&format!("deniedRanges: {ranges}"))));
    cases.extend(namespace_cases());
    cases.extend(internal_host_cases());
    cases.extend(search_cases());
    cases
}

fn network(fields: &str) -> String {
    format!("network: {{{fields}}}")
}

/// The bound of a field below `network`.
fn bound(path: &str) -> &'static str {
    Box::leak(format!("spec.network.{path}").into_boxed_str())
}

/// The cases of a list of hosts; `write` makes a spec of it.
fn host_cases(at: &str, most: usize, write: impl Fn(&str) -> String) -> Vec<Case> {
    let rule = bound(&format!(
        "{at}[] rule: write a host in lower case, such as api.example.com, *.example.com for all below it, or * for every public host"
    ));
    let mut cases = vec![
        breaks(bound(&format!("{at} maxItems")), write(&many(most + 1, |n| format!("h{n}.example.com")))),
        breaks(bound(&format!("{at}[] minLength")), write("['']")),
        breaks(bound(&format!("{at}[] maxLength")), write(&format!("[{}]", long(254)))),
    ];
    for host in ["API.example.com", "**", "a.*.example.com", "https://a.example.com", "a.example.com:443"] {
        cases.push(breaks(rule, write(&format!("['{host}']"))));
    }
    cases
}

/// The cases of a list of ranges; `write` makes a spec of it.
fn range_cases(at: &str, write: impl Fn(&str) -> String) -> Vec<Case> {
    let rule = bound(&format!("{at}[] rule: write a range of addresses, such as 198.51.100.0/24"));
    let mut cases = vec![
        breaks(bound(&format!("{at} maxItems")), write(&many(65, |n| format!("198.51.{n}.0/24")))),
        breaks(bound(&format!("{at}[] minLength")), write("['']")),
        breaks(bound(&format!("{at}[] maxLength")), write(&format!("['198.51.100.0/{}']", "2".repeat(52)))),
    ];
    for range in ["198.51.100.0", "198.51.100.0/33", "198.51.100/24", "example.com"] {
        cases.push(breaks(rule, write(&format!("['{range}']"))));
    }
    cases
}

fn namespace_cases() -> Vec<Case> {
    let namespaces = |list: &str| network(&format!("namespaces: {list}"));
    let one = |fields: &str| namespaces(&format!("[{{{fields}}}]"));
    let names = |list: &str| one(&format!("hosts: [], namespaces: {list}"));
    let mut cases = vec![
        breaks(
            bound("namespaces maxItems"),
            namespaces(&many(33, |n| format!("{{namespaces: [n{n}], hosts: []}}"))),
        ),
        breaks(bound("namespaces[].namespaces required"), one("hosts: ['*']")),
        breaks(bound("namespaces[].namespaces maxItems"), names(&many(33, |n| format!("n{n}")))),
        breaks(bound("namespaces[].namespaces[] minLength"), names("['']")),
        breaks(bound("namespaces[].namespaces[] maxLength"), names(&format!("[{}]", long(64)))),
        breaks(
            bound("namespaces[].namespaces[] rule: write the name of a namespace: a-z, 0-9 and -"),
            names("['*']"),
        ),
        breaks(bound("namespaces[].hosts required"), one("namespaces: [ns]")),
    ];
    let hosts = |list: &str| one(&format!("namespaces: [ns], hosts: {list}"));
    cases.extend(host_cases("namespaces[].hosts", 64, hosts));
    cases
}

fn internal_host_cases() -> Vec<Case> {
    let hosts = |list: &str| network(&format!("internalHosts: {list}"));
    let host = |fields: &str| hosts(&format!("[{{{fields}}}]"));
    let name = |name: &str| host(&format!("name: '{name}', ranges: []"));
    let ports = |ports: &str| host(&format!("name: a, ranges: [], ports: {ports}"));
    let mut cases = vec![
        breaks(bound("internalHosts maxItems"), hosts(&many(65, |n| format!("{{name: h{n}, ranges: []}}")))),
        breaks(bound("internalHosts[] unique"), hosts("[{name: a, ranges: []}, {name: a, ranges: []}]")),
        breaks(bound("internalHosts[].name required"), host("ranges: []")),
        breaks(bound("internalHosts[].name minLength"), name("")),
        breaks(bound("internalHosts[].name maxLength"), name(&long(254))),
        breaks(
            bound(
                "internalHosts[].name rule: write a host in lower case, such as api.example.com, or *.example.com for all below it",
            ),
            name("*"),
        ),
        breaks(bound("internalHosts[].ports maxItems"), ports(&many(17, |n| format!("{}", 8000 + n)))),
        breaks(bound("internalHosts[].ports[] minimum"), ports("[0]")),
        breaks(bound("internalHosts[].ports[] maximum"), ports("[65536]")),
        breaks(bound("internalHosts[].ranges required"), host("name: a")),
    ];
    let ranges = |list: &str| host(&format!("name: a, ranges: {list}"));
    cases.extend(range_cases("internalHosts[].ranges", ranges));
    cases
}

fn search_cases() -> Vec<Case> {
    let search = |fields: &str| format!("webSearch: {{{fields}}}");
    // Its engine is complete, so that nothing else is wrong.
    let with = |fields: &str| search(&format!("provider: SearXNG, url: 'https://s.example.com', {fields}"));
    let url = |url: &str| search(&format!("provider: SearXNG, url: '{url}'"));
    let secret = |fields: &str| with(&format!("keySecret: {{{fields}}}"));
    let time = |time: &str| with(&format!("cacheTtl: {time}"));
    let no_url = "spec.webSearch rule: set url for SearXNG and Json: the address of the engine";
    let no_key = "spec.webSearch rule: set keySecret for Brave and Tavily: the Secret with the key";
    let mut cases = vec![
        breaks("spec.webSearch.provider required", search("url: 'https://s.example.com'")),
        breaks("spec.webSearch.provider enum", search("provider: Other, url: 'https://s.example.com'")),
        breaks(no_url, search("provider: SearXNG")),
        breaks(no_url, search("provider: Json, results: {}")),
        breaks(
            "spec.webSearch rule: set results for Json: the place of the results in the response",
            search("provider: Json, url: 'https://s.example.com'"),
        ),
        breaks(no_key, search("provider: Brave")),
        breaks(no_key, search("provider: Tavily")),
        breaks("spec.webSearch.url minLength", url("")),
        breaks("spec.webSearch.url maxLength", url(&format!("https://{}", long(2_041)))),
        breaks("spec.webSearch.url pattern", url("ftp://s.example.com")),
        breaks("spec.webSearch.keySecret.name required", secret("key: k")),
        breaks("spec.webSearch.keySecret.name minLength", secret("name: ''")),
        breaks("spec.webSearch.keySecret.name maxLength", secret(&format!("name: {}", long(254)))),
        breaks("spec.webSearch.keySecret.key minLength", secret("name: s, key: ''")),
        breaks("spec.webSearch.keySecret.key maxLength", secret(&format!("name: s, key: {}", long(254)))),
        breaks("spec.webSearch.keyHeader minLength", with("keyHeader: ''")),
        breaks("spec.webSearch.keyHeader maxLength", with(&format!("keyHeader: {}", long(129)))),
        breaks("spec.webSearch.keyHeader pattern", with("keyHeader: 'X Key'")),
        breaks("spec.webSearch.cacheTtl rule: write a duration like 500ms, 30s, 1m30s or 1h", time("soon")),
        breaks("spec.webSearch.cacheTtl rule: write a duration above zero, such as 30s", time("0s")),
        breaks("spec.webSearch.cacheTtl minLength", time("''")),
        breaks("spec.webSearch.cacheTtl maxLength", time(&format!("{}1s", "0".repeat(31)))),
    ];
    for field in ["list", "title", "url", "snippet"] {
        let bound = |keyword: &str| -> &'static str {
            Box::leak(format!("spec.webSearch.results.{field} {keyword}").into_boxed_str())
        };
        let results = |value: &str| with(&format!("results: {{{field}: {value}}}"));
        cases.push(breaks(bound("minLength"), results("''")));
        cases.push(breaks(bound("maxLength"), results(&long(129))));
    }
    cases
}
