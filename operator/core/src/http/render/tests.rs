//! Requests from templates, inputs and Secrets.

use serde_json::json;
use skillet_api::http::Http;

use super::*;

fn program(fields: &str) -> HttpProgram {
    let http: Http = serde_saphyr::from_str(&format!("{{{fields}}}")).unwrap();
    HttpProgram::read(&http, None).unwrap_or_else(|problems| panic!("{fields}: {problems:?}"))
}

fn secrets() -> BTreeMap<String, String> {
    [("KEY", "a/b"), ("LINE", "a\n"), ("EMPTY", "")].map(|(name, value)| (name.into(), value.into())).into()
}

const SECRETS: &str = "secrets: [{name: KEY, secret: s, key: k}, {name: LINE, secret: s, key: l}, {name: EMPTY, secret: s, key: e}, {name: NONE, secret: s, key: n}]";

fn render(fields: &str, input: &Value) -> Result<SkillRequest, RenderError> {
    program(&format!("{fields}, {SECRETS}")).render(input, &secrets())
}

fn body(request: &SkillRequest) -> Value {
    request.request.body.as_ref().map_or(Value::Null, |body| serde_json::from_str(body).unwrap())
}

fn check_url(template: &str, input: &Value, expected: &str) {
    let request = render(&format!("method: GET, url: '{template}'"), input).unwrap();
    assert_eq!(request.request.url, expected, "{template}");
}

fn check_body(template: &str, input: &Value, expected: &Value) {
    let request = render(&format!("url: 'https://up.example/', body: {template}"), input).unwrap();
    assert_eq!(body(&request), *expected, "{template}");
}

fn check_error(fields: &str, input: &Value, reason: Reason, expected: &str) {
    let error = render(fields, input).err().unwrap_or_else(|| panic!("{fields} was rendered"));
    assert_eq!(error.reason, reason, "{error:?}");
    assert!(error.message.contains(expected), "{}", error.message);
}

fn header<'a>(request: &'a SkillRequest, name: &str) -> Option<&'a str> {
    request.request.headers.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
}

#[test]
fn values_in_a_url_are_encoded_and_cannot_leave_their_place() {
    check_url("https://up.example/w/{{city}}", &json!({"city": "Oslo"}), "https://up.example/w/Oslo");
    let hostile = json!({"v": "../a?b=c&d#e\\f:@%2e\r\n"});
    check_url(
        "https://up.example/{{v}}/z",
        &hostile,
        "https://up.example/..%2Fa%3Fb%3Dc%26d%23e%5Cf%3A%40%252e%0D%0A/z",
    );
    check_url("https://up.example/?q={{v}}", &json!({"v": "a&b=c"}), "https://up.example/?q=a%26b%3Dc");
    check_url("https://up.example/?k={{SECRETS.KEY}}", &json!({}), "https://up.example/?k=a%2Fb");
    check_url("https://up.example?q={{v}}", &json!({"v": "é"}), "https://up.example?q=%C3%A9");
    check_url("https://up.example/{{v}}", &json!({"v": ""}), "https://up.example/");
}

#[test]
fn every_type_is_text_in_a_url() {
    for (value, expected) in
        [(json!(null), "null"), (json!(0), "0"), (json!(false), "false"), (json!([1, 2]), "1%2C2")]
    {
        check_url(
            "https://up.example/{{v|d}}",
            &json!({ "v": value }),
            &format!("https://up.example/{expected}"),
        );
    }
    check_url("https://up.example/{{v|d e}}", &json!({}), "https://up.example/d%20e");
    check_url("https://up.example/{{a.b}}", &json!({"a.b": 1, "a": {"b": 2}}), "https://up.example/1");
}

#[test]
fn a_value_is_never_a_template() {
    let input = json!({"a": "{{b}}", "b": "no", "c": "{{SECRETS.KEY}}"});
    check_url(
        "https://up.example/{{a}}?c={{c}}",
        &input,
        "https://up.example/%7B%7Bb%7D%7D?c=%7B%7BSECRETS.KEY%7D%7D",
    );
    check_body("{x: '{{a}}', y: ' {{c}}'}", &input, &json!({"x": "{{b}}", "y": " {{SECRETS.KEY}}"}));
    let all: BTreeMap<String, String> =
        [("KEY".to_owned(), "{{b}}".to_owned()), ("OTHER".to_owned(), "x".to_owned())].into();
    let program = program(
        "url: 'https://up.example/', body: {k: '{{SECRETS.KEY}}'}, secrets: [{name: KEY, secret: s, key: k}]",
    );
    let request = program.render(&input, &all).unwrap();
    assert_eq!((body(&request), request.used_secrets.len()), (json!({"k": "{{b}}"}), 1));
}

#[test]
fn dot_segments_by_an_input_are_refused() {
    for (template, value) in [
        ("https://up.example/a/{{v}}/b", ".."),
        ("https://up.example/{{v}}", "."),
        ("https://up.example/.{{v}}", "."),
        ("https://up.example/%2e{{v}}/", "."),
    ] {
        let fields = format!("method: GET, url: '{template}'");
        check_error(&fields, &json!({ "v": value }), Reason::InputInvalid, "would lead to another path");
    }
    check_url(
        "https://up.example/{{v}}?p={{w}}",
        &json!({"v": "..a", "w": "../"}),
        "https://up.example/..a?p=..%2F",
    );
}

#[test]
fn an_input_without_a_value_is_left_out_or_refused_in_the_url() {
    let fields = "url: 'https://up.example/', headers: {X-A: 'v {{a}}', X-B: '{{b|c}}'}, query: {q: '{{a}}', r: s}, body: {k: '{{a}}', l: ['{{a}}', 1, {m: '{{a}}x', n: 2}], o: '{{b|d}}'}";
    let request = render(fields, &json!({})).unwrap();
    assert_eq!(request.request.url, "https://up.example/?r=s");
    assert_eq!((header(&request, "X-A"), header(&request, "X-B")), (None, Some("c")));
    assert_eq!(body(&request), json!({"l": [1, {"n": 2}], "o": "d"}));
    let missing = "input city has no value, and the URL needs one";
    check_error("url: 'https://up.example/{{city}}'", &json!({}), Reason::InputInvalid, missing);
    check_error("url: 'https://up.example/?c={{city}}'", &json!({}), Reason::InputInvalid, missing);
}

#[test]
fn placeholders_without_a_value_are_kept_if_the_skill_says_so() {
    let fields = "url: 'https://up.example/{{a}}', headers: {X-A: 'v {{a}}'}, query: {q: '{{a}}'}, body: {k: '{{a}}', l: 'x{{a}}', m: 1}, missingInputs: Keep";
    let request = render(fields, &json!({})).unwrap();
    assert_eq!(request.request.url, "https://up.example/{{a}}?q={{a}}");
    assert_eq!(header(&request, "X-A"), Some("v {{a}}"));
    assert_eq!(body(&request), json!({"m": 1}));
}

#[test]
fn headers_are_verbatim_and_one_line() {
    let fields = "url: 'https://up.example/', headers: {X-A: 'v {{a}}', X-B: 'Bearer {{SECRETS.KEY}}'}";
    let request = render(fields, &json!({"a": "b c/d é"})).unwrap();
    assert_eq!((header(&request, "X-A"), header(&request, "X-B")), (Some("v b c/d é"), Some("Bearer a/b")));
    for value in ["a\r\nX-Evil: 1", "a\nb", "a\u{0}b", "a\u{7f}"] {
        check_error(fields, &json!({ "a": value }), Reason::InputInvalid, "input a has a line break");
    }
    let long = json!({"a": "x".repeat(MAX_HEADER)});
    check_error(fields, &long, Reason::InputInvalid, "header X-A has 16386 bytes");
    let fields = "url: 'https://up.example/', headers: {X: '{{SECRETS.LINE}}'}";
    check_error(fields, &json!({}), Reason::SecretMissing, "the value of Secret LINE has a line break");
}

#[test]
fn default_headers_are_those_that_the_skill_does_not_set() {
    let request = render("url: 'https://up.example/'", &json!({"a": 1})).unwrap();
    let names: Vec<&str> = request.request.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["User-Agent", "Accept", "Content-Type"]);
    assert_eq!(header(&request, "Content-Type"), Some("application/json"));
    let fields = "url: 'https://up.example/', headers: {content-type: text/xml, USER-AGENT: x}, body: '<a/>'";
    let request = render(fields, &json!({})).unwrap();
    assert_eq!(request.request.headers.len(), 3);
    assert_eq!(
        (header(&request, "content-type"), header(&request, "USER-AGENT")),
        (Some("text/xml"), Some("x"))
    );
    assert_eq!(render("url: 'https://up.example/'", &json!({})).unwrap().request.headers.len(), 2);
}

#[test]
fn bodies_are_rendered_at_every_depth_with_their_types() {
    let input = json!({"q": "hi", "n": 5, "b": true, "z": null, "l": [1, {"x": 2}], "o": {"y": [3]}});
    check_body("{q: '{{q}}', fixed: f, n: 3}", &input, &json!({"q": "hi", "fixed": "f", "n": 3}));
    check_body(
        "{n: '{{n}}', b: '{{b}}', z: '{{z}}', deep: [{l: '{{l}}', o: '{{o}}'}]}",
        &input,
        &json!({"n": 5, "b": true, "z": null, "deep": [{"l": [1, {"x": 2}], "o": {"y": [3]}}]}),
    );
    check_body("{t: '{{n}} of {{l}} {{b}}'}", &input, &json!({"t": "5 of [1,{\"x\":2}] true"}));
    check_body("'{{o}}'", &input, &json!({"y": [3]}));
    check_body("['{{n}}', '{{gone}}', null]", &input, &json!([5, null]));
    check_body("{k: '{{SECRETS.KEY}}', d: '{{d|10}}'}", &input, &json!({"k": "a/b", "d": "10"}));
}

#[test]
fn a_text_body_is_sent_as_it_is() {
    let request = render("url: 'https://up.example/', body: 'a={{a}}'", &json!({"a": "b c"})).unwrap();
    assert_eq!(request.request.body.as_deref(), Some("a=b c"));
    assert_eq!(header(&request, "Content-Type"), Some("text/plain; charset=utf-8"));
    let request = render("url: 'https://up.example/', body: '{{a}}'", &json!({})).unwrap();
    assert_eq!((request.request.body.as_deref(), header(&request, "Content-Type")), (None, None));
}

#[test]
fn inputs_that_no_template_uses_are_appended() {
    let input = json!({"b": "x y", "a": 1, "l": [1, 2], "o": {"p": "é"}});
    let request = render("method: GET, url: 'https://up.example/?z=1'", &input).unwrap();
    assert_eq!(
        request.request.url,
        "https://up.example/?z=1&a=1&b=x+y&l=1%2C2&o=%7B%22p%22%3A%22%C3%A9%22%7D"
    );
    assert_eq!(request.request.body, None);
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        let request = render(&format!("method: {method}, url: 'https://up.example/'"), &input).unwrap();
        assert_eq!(
            (body(&request), request.request.url.as_str()),
            (input.clone(), "https://up.example/"),
            "{method}"
        );
    }
    let fields = "url: 'https://up.example/{{a}}', body: {b: own}, appendInputs: true";
    let request = render(fields, &input).unwrap();
    assert_eq!(body(&request), json!({"b": "own", "l": [1, 2], "o": {"p": "é"}}));
    let request = render("url: 'https://up.example/{{a}}'", &input).unwrap();
    assert_eq!(request.request.body, None);
    let request = render("method: GET, url: 'https://up.example/'", &json!(null)).unwrap();
    assert_eq!(request.request.url, "https://up.example/");
}

#[test]
fn parameters_go_behind_the_question_mark() {
    let fields =
        "method: GET, url: 'https://up.example/p?', query: {'a b': '{{x}}', l: '{{l}}', m: '<{{l}}>'}";
    let request = render(fields, &json!({"x": "1&2", "l": ["p q", 2]})).unwrap();
    assert_eq!(request.request.url, "https://up.example/p?a%20b=1%262&l=p%20q&l=2&m=<p%20q%2C2>");
    let request = render(fields, &json!({"x": "", "l": []})).unwrap();
    assert_eq!(request.request.url, "https://up.example/p?a%20b=&m=<>");
}

#[test]
fn missing_secrets_are_named_once_and_nothing_is_rendered() {
    let fields = "url: 'https://up.example/{{SECRETS.NONE}}', headers: {X: '{{SECRETS.NONE}}{{SECRETS.KEY}}'}, body: {a: [{b: '{{SECRETS.EMPTY}}'}]}";
    let input = json!({"SECRETS.NONE": "mine", "NONE": "mine"});
    let error = render(fields, &input).unwrap_err();
    assert_eq!(
        (error.reason, error.missing_secrets),
        (Reason::SecretMissing, vec!["NONE".into(), "EMPTY".into()])
    );
    assert!(error.message.starts_with("NONE, EMPTY of spec.run.http.secrets has no value; nothing was sent"));
}

#[test]
fn a_request_names_its_secrets_and_the_texts_to_mask() {
    let fields = "url: 'https://up.example/?k={{SECRETS.KEY}}', body: {a: '{{SECRETS.LINE}}'}";
    let request = render(fields, &json!({})).unwrap();
    assert_eq!(request.used_secrets.iter().map(String::as_str).collect::<Vec<_>>(), ["KEY", "LINE"]);
    let texts: Vec<&str> = request.secret_texts.iter().map(String::as_str).collect();
    assert_eq!(texts, ["a\n", "a%0A", "a%2Fb", "a/b", "a\\n"]);
}

#[test]
fn a_request_has_a_largest_size() {
    let long = json!({"a": "x".repeat(MAX_URL)});
    check_error(
        "method: GET, url: 'https://up.example/{{a}}'",
        &long,
        Reason::InputInvalid,
        "the URL has 16403 bytes",
    );
    let many = format!("url: 'https://up.example/', body: ['{{{{a}}}}'{}]", ", '{{a}}'".repeat(20));
    let large = json!({"a": "x".repeat(512 << 10)});
    check_error(&many, &large, Reason::InputInvalid, "more than 8388608 bytes together");
    check_error(
        "url: 'https://up.example/'",
        &json!([1]),
        Reason::InputInvalid,
        "the input must be an object",
    );
}
