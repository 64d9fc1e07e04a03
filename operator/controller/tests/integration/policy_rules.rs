//! The API server's rules for a SkillPolicy.

use kube::CustomResourceExt as _;
use serde_json::{Value, json};
use skillet_api::{SkillPolicy, SkillPolicySpec};

use crate::{
    cases::{Case, assert_complete, breaks, long, many, with},
    chart,
    eventually::{LIMIT, eventually},
    network_policy_cases::network_policy_cases,
    requests::create,
    server::rules_admin,
};

const NAME_RULE: &str = "the one SkillPolicy is named default";

/// The cases of one block of limits.
macro_rules! limits {
    ($block:literal) => {{
        let change = |fields: &str| format!("{}: {{{fields}}}", $block);
        let ones = "1".repeat(33);
        vec![
            breaks(
                concat!("spec.", $block, ".timeout rule: write a duration like 500ms, 30s, 1m30s or 1h"),
                change("timeout: soon"),
            ),
            breaks(concat!("spec.", $block, ".timeout minLength"), change("timeout: ''")),
            breaks(
                concat!("spec.", $block, ".timeout maxLength"),
                change(&format!("timeout: {}1s", "0".repeat(31))),
            ),
            breaks(concat!("spec.", $block, ".cpu pattern"), change("cpu: much")),
            breaks(concat!("spec.", $block, ".cpu maxLength"), change(&format!("cpu: '{ones}'"))),
            breaks(concat!("spec.", $block, ".memory pattern"), change("memory: much")),
            breaks(concat!("spec.", $block, ".memory maxLength"), change(&format!("memory: '{ones}'"))),
            breaks(concat!("spec.", $block, ".processes minimum"), change("processes: 0")),
            breaks(concat!("spec.", $block, ".processes maximum"), change("processes: 4097")),
            breaks(concat!("spec.", $block, ".outputBytes minimum"), change("outputBytes: 0")),
            breaks(concat!("spec.", $block, ".outputBytes maximum"), change("outputBytes: 524289")),
        ]
    }};
}

fn cases() -> Vec<Case> {
    let mut cases = vec![
        breaks("spec.isolation enum", "isolation: None"),
        breaks(
            "spec.gateway.conversation.allowedTools enum",
            "gateway: {conversation: {allowedTools: Never}}",
        ),
        breaks("spec.allowedImages maxItems", format!("allowedImages: {}", many(257, |n| format!("i{n}")))),
        breaks("spec.allowedImages[] minLength", "allowedImages: ['']"),
        breaks("spec.allowedImages[] maxLength", format!("allowedImages: [{}]", long(513))),
        breaks(
            "spec.allowedImages[] rule: only a * at the end has a meaning; write an image, or a prefix with / or * at its end",
            "allowedImages: ['docker.io/*/x']",
        ),
        breaks(
            "spec.sources.allowedHosts maxItems",
            format!("sources: {{allowedHosts: {}}}", many(65, |n| format!("h{n}"))),
        ),
        breaks("spec.sources.allowedHosts[] minLength", "sources: {allowedHosts: ['']}"),
        breaks(
            "spec.sources.allowedHosts[] maxLength",
            format!("sources: {{allowedHosts: [{}]}}", long(257)),
        ),
        breaks(
            "spec.sources.allowedHosts[] rule: write a host in lower case, such as git.example.com or git.example.com:8443, without a scheme and a path",
            "sources: {allowedHosts: ['https://github.com']}",
        ),
        breaks(
            "spec.dynamicContent.namespaces maxItems",
            format!("dynamicContent: {{namespaces: {}}}", many(33, |n| format!("n{n}"))),
        ),
        breaks("spec.dynamicContent.namespaces[] minLength", "dynamicContent: {namespaces: ['']}"),
        breaks(
            "spec.dynamicContent.namespaces[] maxLength",
            format!("dynamicContent: {{namespaces: [{}]}}", long(64)),
        ),
        breaks(
            "spec.dynamicContent.namespaces[] rule: write the name of a namespace: a-z, 0-9 and -",
            "dynamicContent: {namespaces: ['*']}",
        ),
        breaks(
            "spec.dynamicContent.timeout rule: write a duration like 500ms, 30s, 1m30s or 1h",
            "dynamicContent: {timeout: soon}",
        ),
        breaks("spec.dynamicContent.timeout minLength", "dynamicContent: {timeout: ''}"),
        breaks(
            "spec.dynamicContent.timeout rule: write a duration above zero, such as 30s",
            "dynamicContent: {timeout: 0s}",
        ),
        breaks(
            "spec.dynamicContent.timeout maxLength",
            format!("dynamicContent: {{timeout: {}1s}}", "0".repeat(31)),
        ),
        breaks(
            "spec.dynamicContent.cacheTtl rule: write a duration like 500ms, 30s, 1m30s or 1h",
            "dynamicContent: {cacheTtl: soon}",
        ),
        breaks("spec.dynamicContent.cacheTtl minLength", "dynamicContent: {cacheTtl: ''}"),
        breaks(
            "spec.dynamicContent.cacheTtl rule: write a duration above zero, such as 30s",
            "dynamicContent: {cacheTtl: 0s}",
        ),
        breaks(
            "spec.dynamicContent.cacheTtl maxLength",
            format!("dynamicContent: {{cacheTtl: {}1s}}", "0".repeat(31)),
        ),
        breaks("spec.scriptImages.shell minLength", "scriptImages: {shell: ''}"),
        breaks("spec.scriptImages.shell maxLength", format!("scriptImages: {{shell: {}}}", long(513))),
        breaks("spec.scriptImages.python minLength", "scriptImages: {python: ''}"),
        breaks("spec.scriptImages.python maxLength", format!("scriptImages: {{python: {}}}", long(513))),
        breaks("spec.scriptImages.node minLength", "scriptImages: {node: ''}"),
        breaks("spec.scriptImages.node maxLength", format!("scriptImages: {{node: {}}}", long(513))),
        breaks("spec.memoryRequestToLimitPercent minimum", "memoryRequestToLimitPercent: 0"),
        breaks("spec.memoryRequestToLimitPercent maximum", "memoryRequestToLimitPercent: 101"),
        breaks("spec.startTimeout rule: write a duration like 500ms, 30s, 1m30s or 1h", "startTimeout: soon"),
        breaks("spec.startTimeout minLength", "startTimeout: ''"),
        breaks("spec.startTimeout rule: write a duration above zero, such as 30s", "startTimeout: 0m0s"),
        breaks("spec.startTimeout maxLength", format!("startTimeout: {}1s", "0".repeat(31))),
        breaks(
            "spec.retention.ttl rule: write a duration like 500ms, 30s, 1m30s or 1h",
            "retention: {ttl: 1d}",
        ),
        breaks("spec.retention.ttl minLength", "retention: {ttl: ''}"),
        breaks("spec.retention.ttl rule: write a duration above zero, such as 30s", "retention: {ttl: 0s}"),
        breaks("spec.retention.ttl maxLength", format!("retention: {{ttl: {}1s}}", "0".repeat(31))),
        breaks("spec.retention.perNamespace minimum", "retention: {perNamespace: -1}"),
        breaks("spec.retention.perNamespace maximum", "retention: {perNamespace: 100001}"),
        breaks("spec.concurrency.total minimum", "concurrency: {total: 0}"),
        breaks("spec.concurrency.total maximum", "concurrency: {total: 10001}"),
        breaks("spec.concurrency.perNamespace minimum", "concurrency: {perNamespace: 0}"),
        breaks("spec.concurrency.perNamespace maximum", "concurrency: {perNamespace: 10001}"),
        breaks("spec.concurrency.cpu pattern", "concurrency: {cpu: much}"),
        breaks("spec.concurrency.cpu maxLength", format!("concurrency: {{cpu: '{}'}}", "1".repeat(33))),
        breaks("spec.concurrency.memory pattern", "concurrency: {memory: much}"),
        breaks("spec.concurrency.memory maxLength", format!("concurrency: {{memory: '{}'}}", "1".repeat(33))),
        breaks("spec.versionHistory minimum", "versionHistory: 0"),
        breaks("spec.versionHistory maximum", "versionHistory: 1001"),
    ];
    cases.extend(gateway_cases());
    cases.extend(network_policy_cases());
    cases.extend(limits!("defaults"));
    cases.extend(limits!("maximums"));
    cases
}

fn gateway(fields: &str) -> String {
    format!("gateway: {{{fields}}}")
}

/// The cases of one provider's settings; `write` makes a spec of its fields.
fn settings_cases(at: &'static str, write: impl Fn(&str) -> String) -> Vec<Case> {
    let bound = |path: &str| -> &'static str {
        Box::leak(format!("spec.gateway.providers.{at}.{path}").into_boxed_str())
    };
    let secret = |fields: &str| write(&format!("keySecret: {{{fields}}}"));
    let rule = |fields: &str| write(&format!("modelTools: [{{{fields}}}]"));
    let many_rules = many(65, |n| format!("{{model: m{n}, tools: Auto}}"));
    vec![
        breaks(bound("baseUrl pattern"), write("baseUrl: 'ftp://x'")),
        breaks(bound("baseUrl maxLength"), write(&format!("baseUrl: 'http://{}'", "x".repeat(506)))),
        breaks(bound("storedObjects enum"), write("storedObjects: Maybe")),
        breaks(bound("tools enum"), write("tools: Sometimes")),
        breaks(bound("nativeWebSearch enum"), write("nativeWebSearch: Never")),
        breaks(bound("nativeWebFetch enum"), write("nativeWebFetch: Never")),
        breaks(
            bound("modelTools[].nativeWebSearch enum"),
            rule("model: m, tools: Auto, nativeWebSearch: Never"),
        ),
        breaks(
            bound("modelTools[].nativeWebFetch enum"),
            rule("model: m, tools: Auto, nativeWebFetch: Never"),
        ),
        breaks(bound("models maxItems"), write(&format!("models: {}", many(65, |n| format!("m{n}"))))),
        breaks(bound("models[] minLength"), write("models: ['']")),
        breaks(bound("models[] maxLength"), write(&format!("models: [{}]", long(257)))),
        breaks(bound("modelTools maxItems"), write(&format!("modelTools: {many_rules}"))),
        breaks(bound("modelTools[].model required"), rule("tools: Auto")),
        breaks(bound("modelTools[].model minLength"), rule("model: '', tools: Auto")),
        breaks(bound("modelTools[].model maxLength"), rule(&format!("model: {}, tools: Auto", long(257)))),
        breaks(bound("modelTools[].tools required"), rule("model: m")),
        breaks(bound("modelTools[].tools enum"), rule("model: m, tools: Sometimes")),
        breaks(bound("azure.apiVersion pattern"), write("azure: {apiVersion: '2024/10'}")),
        breaks(bound("azure.apiVersion maxLength"), write(&format!("azure: {{apiVersion: {}}}", long(33)))),
        breaks(bound("keySecret.name required"), secret("key: k")),
        breaks(bound("keySecret.name minLength"), secret("name: ''")),
        breaks(bound("keySecret.name maxLength"), secret(&format!("name: {}", long(254)))),
        breaks(bound("keySecret.key minLength"), secret("name: n, key: ''")),
        breaks(bound("keySecret.key maxLength"), secret(&format!("name: n, key: {}", long(254)))),
    ]
}

fn embeddings_cases() -> Vec<Case> {
    let provider =
        |fields: &str| gateway(&format!("offer: {{embeddings: {{provider: {{model: m, {fields}}}}}}}"));
    let bound = |path: &str| -> &'static str {
        Box::leak(format!("spec.gateway.offer.embeddings.provider.{path}").into_boxed_str())
    };
    let secret = |fields: &str| provider(&format!("keySecret: {{{fields}}}"));
    vec![
        breaks(bound("model required"), gateway("offer: {embeddings: {provider: {}}}")),
        breaks(bound("model minLength"), provider("model: ''").replacen("model: m, ", "", 1)),
        breaks(
            bound("model maxLength"),
            provider(&format!("model: {}", long(257))).replacen("model: m, ", "", 1),
        ),
        breaks(bound("baseUrl pattern"), provider("baseUrl: 'ftp://x'")),
        breaks(bound("baseUrl maxLength"), provider(&format!("baseUrl: 'http://{}'", "x".repeat(506)))),
        breaks(bound("azure.apiVersion pattern"), provider("azure: {apiVersion: '2024/10'}")),
        breaks(
            bound("azure.apiVersion maxLength"),
            provider(&format!("azure: {{apiVersion: {}}}", long(33))),
        ),
        breaks(bound("keySecret.name required"), secret("key: k")),
        breaks(bound("keySecret.name minLength"), secret("name: ''")),
        breaks(bound("keySecret.name maxLength"), secret(&format!("name: {}", long(254)))),
        breaks(bound("keySecret.key minLength"), secret("name: n, key: ''")),
        breaks(bound("keySecret.key maxLength"), secret(&format!("name: n, key: {}", long(254)))),
        breaks(bound("dimensions minimum"), provider("dimensions: 7")),
        breaks(bound("dimensions maximum"), provider("dimensions: 4097")),
        breaks(
            bound("timeout rule: write a duration like 500ms, 30s, 1m30s or 1h"),
            provider("timeout: soon"),
        ),
        breaks(bound("timeout rule: write a duration above zero, such as 30s"), provider("timeout: 0s")),
        breaks(bound("timeout rule: write a duration up to 5s, such as 300ms"), provider("timeout: 5s1ms")),
        breaks(bound("timeout minLength"), provider("timeout: ''")),
        breaks(bound("timeout maxLength"), provider(&format!("timeout: {}1s", "0".repeat(31)))),
    ]
}

fn provider_cases() -> Vec<Case> {
    let additional = |fields: &str| gateway(&format!("providers: {{additional: [{{{fields}}}]}}"));
    let of_list = |fields: &str| additional(&format!("name: n, dialect: OpenAI, {fields}"));
    let mut cases = settings_cases("additional[]", of_list);
    for own in ["openai", "anthropic", "gemini"] {
        cases.extend(settings_cases(own, |fields| gateway(&format!("providers: {{{own}: {{{fields}}}}}"))));
    }
    cases.extend(embeddings_cases());
    let many_providers = many(33, |n| format!("{{name: n{n}, dialect: OpenAI}}"));
    let long_name = format!("name: {}, dialect: OpenAI", long(64));
    cases.extend([
        breaks(
            "spec.gateway.providers.additional maxItems",
            gateway(&format!("providers: {{additional: {many_providers}}}")),
        ),
        breaks(
            "spec.gateway.providers.additional[] unique",
            gateway("providers: {additional: [{name: n, dialect: OpenAI}, {name: n, dialect: Gemini}]}"),
        ),
        breaks("spec.gateway.providers.additional[].name required", additional("dialect: OpenAI")),
        breaks("spec.gateway.providers.additional[].name pattern", additional("name: A, dialect: OpenAI")),
        breaks("spec.gateway.providers.additional[].name maxLength", additional(&long_name)),
        breaks("spec.gateway.providers.additional[].dialect required", additional("name: n")),
        breaks("spec.gateway.providers.additional[].dialect enum", additional("name: n, dialect: Other")),
    ]);
    cases
}

fn namespace_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for list in ["platformNamespaces", "catalogNamespaces"] {
        let bound =
            |path: &str| -> &'static str { Box::leak(format!("spec.gateway.{list}{path}").into_boxed_str()) };
        cases.extend([
            breaks(bound(" maxItems"), gateway(&format!("{list}: {}", many(33, |n| format!("n{n}"))))),
            breaks(bound("[] minLength"), gateway(&format!("{list}: ['']"))),
            breaks(bound("[] maxLength"), gateway(&format!("{list}: [{}]", long(64)))),
            breaks(
                bound("[] rule: write the name of a namespace: a-z, 0-9 and -"),
                gateway(&format!("{list}: [Bad NS]")),
            ),
        ]);
    }
    let learning = |list: &str| gateway(&format!("offer: {{learning: {{namespaces: {list}}}}}"));
    cases.extend([
        breaks("spec.gateway.offer.learning.namespaces maxItems", learning(&many(65, |n| format!("n{n}")))),
        breaks("spec.gateway.offer.learning.namespaces[] minLength", learning("['']")),
        breaks("spec.gateway.offer.learning.namespaces[] maxLength", learning(&format!("[{}]", long(64)))),
    ]);
    cases
}

fn gateway_cases() -> Vec<Case> {
    let mut cases = provider_cases();
    cases.extend(namespace_cases());
    let ranges = [
        ("offer.maxAutoSkills", Some(-1), 129),
        ("offer.maxConversationSkills", Some(-1), 129),
        ("offer.minAutoScore", Some(0), 1001),
        ("offer.tokenBudget", Some(-1), 1_000_001),
        ("conversation.maxRounds", Some(-1), 65),
        ("conversation.resultBytes", Some(63), 1_048_577),
        ("conversation.totalResultBytes", Some(63), 8_388_609),
        ("conversation.maxParallelCalls", Some(0), 65),
        ("conversation.maxRetries", Some(-1), 11),
        ("rateLimits.requestsPerMinute", Some(0), 1_000_001),
        ("rateLimits.tokensPerMinute", Some(0), 1_000_000_001),
    ];
    for (path, below, above) in ranges {
        let (block, field) = path.split_once('.').unwrap();
        let bound = |bound: &str| -> &'static str {
            Box::leak(format!("spec.gateway.{path} {bound}").into_boxed_str())
        };
        let change = |value: i64| gateway(&format!("{block}: {{{field}: {value}}}"));
        cases.extend(below.map(|value| breaks(bound("minimum"), change(value))));
        cases.push(breaks(bound("maximum"), change(above)));
    }
    cases.push(breaks("spec.gateway.offer.matching enum", gateway("offer: {matching: None}")));
    cases.push(breaks("spec.gateway.offer.mode enum", gateway("offer: {mode: None}")));
    for tool in ["find", "run", "runWithConfirmation"] {
        let bound = |bound: &str| -> &'static str {
            Box::leak(format!("spec.gateway.offer.searchTools.{tool} {bound}").into_boxed_str())
        };
        let name = |name: &str| gateway(&format!("offer: {{searchTools: {{{tool}: {name}}}}}"));
        cases.push(breaks(bound("pattern"), name("'find skills'")));
        cases.push(breaks(bound("maxLength"), name(&long(65))));
    }
    for field in ["timeout", "responseTimeout", "idleTimeout"] {
        let bound = |bound: &str| -> &'static str {
            Box::leak(format!("spec.gateway.conversation.{field} {bound}").into_boxed_str())
        };
        let timeout = |value: &str| gateway(&format!("conversation: {{{field}: {value}}}"));
        cases.extend([
            breaks(bound("rule: write a duration like 500ms, 30s, 1m30s or 1h"), timeout("soon")),
            breaks(bound("minLength"), timeout("''")),
            breaks(bound("maxLength"), timeout(&format!("{}1s", "0".repeat(31)))),
        ]);
    }
    cases
}

fn object(name: &str, spec: &Value) -> Value {
    json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "SkillPolicy", "metadata": { "name": name }, "spec": spec })
}

#[test]
fn every_bound_of_a_policy_has_a_case_that_breaks_it() {
    assert_complete(&SkillPolicy::crd(), &cases(), &[&format!("metadata rule: {NAME_RULE}")]);
}

#[tokio::test]
async fn the_api_server_refuses_each_broken_bound_of_a_policy_and_names_the_field() {
    let Some(client) = rules_admin().await else { return };
    for case in cases() {
        create(&client, &object("default", &case.spec("{}"))).await.assert_refused(&case);
    }
}

#[tokio::test]
async fn the_one_policy_is_named_default() {
    let Some(client) = rules_admin().await else { return };
    create(&client, &object("default", &json!({}))).await.assert_accepted("default");
    for name in ["other", "default2", "skillet"] {
        create(&client, &object(name, &json!({}))).await.assert_names("", NAME_RULE);
    }
}

#[tokio::test]
async fn an_empty_policy_becomes_the_one_that_is_described() {
    let Some(client) = rules_admin().await else { return };
    let stored = create(&client, &object("default", &json!({}))).await.assert_accepted("an empty policy");
    let parsed: SkillPolicy = serde_json::from_value(stored.clone()).unwrap();
    assert_eq!(parsed.spec, SkillPolicySpec::default());
    assert_eq!(stored["spec"], with("{}", &serde_json::to_string(&SkillPolicySpec::default()).unwrap()));
}

#[tokio::test]
async fn whoever_applies_a_default_above_its_maximum_is_warned() {
    let Some(client) = rules_admin().await else { return };
    chart::apply(&client, "templates/admission.yaml", &[]).await;
    let warnings =
        async |spec: &str| create(&client, &object("default", &with("{}", spec))).await.warnings.join("\n");
    eventually("the rules are in force", LIMIT, async || {
        (!warnings("maximums: {processes: 1}").await.is_empty()).then_some(())
    })
    .await;
    for (field, maximum) in [
        ("timeout", "29s"),
        ("cpu", "'0.5'"),
        ("memory", "255Mi"),
        ("processes", "99"),
        ("outputBytes", "99999"),
    ] {
        let expected = format!("spec.defaults.{field} is above spec.maximums.{field}, which counts");
        let found = warnings(&format!("maximums: {{{field}: {maximum}}}")).await;
        assert!(found.contains(&expected), "{field}: {found}");
    }
    assert_eq!(warnings("{maximums: {timeout: 1m, cpu: 1000m, memory: 1G}}").await, "");
}

#[tokio::test]
async fn a_part_of_a_block_leaves_the_rest_at_its_defaults() {
    let Some(client) = rules_admin().await else { return };
    let spec = json!({ "defaults": { "timeout": "5s" }, "retention": { "perNamespace": 0 }, "concurrency": { "total": 1 } });
    let stored = create(&client, &object("default", &spec)).await.assert_accepted("a part");
    let parsed: SkillPolicy = serde_json::from_value(stored).unwrap();
    let wanted: SkillPolicySpec = serde_json::from_value(spec).unwrap();
    assert_eq!(parsed.spec, wanted);
    assert_eq!(wanted.defaults.memory, "256Mi");
    assert_eq!(wanted.retention.ttl.to_string(), "24h");
}
