//! Replacement of placeholders by arguments: the tests.

use super::*;

fn input(name: &str) -> Input {
    Input { name: name.to_owned(), is_required: true, ..Input::default() }
}

fn check(body: &str, inputs: &[Input], text: &str, expected: &str) {
    let arguments = CallValues { text: text.to_owned(), ..CallValues::default() };
    let found = substitute(body, inputs, &arguments).unwrap_or_else(|missing| missing.to_string());
    assert_eq!(found, expected, "{body} with {text}");
}

fn named(values: &[(&str, &str)]) -> CallValues {
    let named = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    CallValues { named, text: String::new() }
}

#[test]
fn declared_inputs_are_replaced_and_other_dollars_stay() {
    let values = named(&[("a", "1"), ("undeclared", "x")]);
    let body = "${a} $a ${a:-d} ${HOME} ${1a} {{a}} ${undeclared} $5 $";
    let found = substitute(body, &[input("a")], &values).unwrap();
    assert_eq!(found, "1 $a ${a:-d} ${HOME} ${1a} {{a}} ${undeclared} $5 $");
    check("${über} ${", &[], "", "${über} ${");
}

#[test]
fn a_value_brings_in_no_other_placeholder() {
    let values = named(&[("a", "${b} $ARGUMENTS $1"), ("b", "secret")]);
    let found = substitute("${a}", &[input("a"), input("b")], &values).unwrap();
    assert_eq!(found, "${b} $ARGUMENTS $1");
}

#[test]
fn words_behind_a_slash_name_fill_inputs_in_their_order() {
    let inputs = [input("repo"), input("title")];
    check("${repo}: ${title}", &inputs, "acme a long title", "acme: a long title");
    check("${repo}: ${title}", &inputs, "title=\"two words\" acme", "acme: two words");
    check("${repo}", &[input("repo")], "x=y z", "x=y z");
}

#[test]
fn arguments_are_replaced_whole_and_by_number() {
    check("[$ARGUMENTS] [$1] [$2] [$3]", &[], " a 'b c' ", "[a 'b c'] [a] [b c] [$3]");
    check("Costs $100; awk '{print $1}'", &[], "", "Costs $100; awk '{print $1}'");
    check("[$ARGUMENTS]", &[], "", "[]");
    check("$ARGUMENTS_FILE $0 $1x", &[], "a", "$ARGUMENTS_FILE $0 ax");
    check("It's", &[], "don't stop", "It's\n\nARGUMENTS: don't stop");
}

#[test]
fn one_sentence_asks_for_the_missing_inputs() {
    let described = Input { description: "The ticket".into(), ..input("id") };
    let count = Input { value_type: InputType::Integer, ..input("count") };
    check(
        "${id}",
        &[described, count],
        "",
        "Ask the user for `id` (The ticket), `count` (an integer) before you continue.",
    );
}

#[test]
fn defaults_optional_inputs_and_types_are_honored() {
    let with_default = Input { default: Some("main".into()), ..input("branch") };
    check("${branch}", std::slice::from_ref(&with_default), "", "main");
    check("${branch}", &[with_default], "dev", "dev");
    check("[${x}]", &[Input { is_required: false, ..input("x") }], "", "[]");
    let number = Input { value_type: InputType::Number, default: Some("1".into()), ..input("n") };
    check("${n}", std::slice::from_ref(&number), "2.5", "2.5");
    check("${n}", &[number], "many", "Ask the user for `n` (a number) before you continue.");
    assert!(is_of_type("true", InputType::Boolean) && !is_of_type("yes", InputType::Boolean));
    assert!(!is_of_type("NaN", InputType::Number) && !is_of_type("1.0", InputType::Integer));
}

#[test]
fn variables_are_found_in_order_with_repeats() {
    assert_eq!(variables("${b} ${a} $c ${b} ${a:-x} ${}"), ["b", "a", "b"]);
}

#[test]
fn a_shell_gets_words_and_variables_and_no_value_changes_a_command() {
    let values = CallValues { text: " v1 \"a b; id\" ".into(), ..CallValues::default() };
    let shell = shell_values(&[input("tag"), input("rest")], &values).unwrap();
    assert_eq!(shell.words, ["v1", "a b; id"]);
    let expected = [("ARGUMENTS", "v1 \"a b; id\""), ("rest", "a b; id"), ("tag", "v1")];
    assert_eq!(shell.variables, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    assert!(shell_values(&[input("tag")], &CallValues::default()).is_err());
}
