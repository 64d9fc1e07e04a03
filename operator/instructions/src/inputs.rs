//! Inputs of a skill: puts the values of a call into its body.
//!
//! `${name}` stands for a declared input, `$ARGUMENTS` for the whole text behind a slash name, `$1` for its first word. All are
//! replaced in one pass, so that a value brings in no other placeholder. Anything else with a dollar stays as it is.

use std::{collections::BTreeMap, fmt};

/// A declared input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Input {
    pub name: String,
    pub description: String,
    pub value_type: InputType,
    pub is_required: bool,
    pub default: Option<String>,
}

/// The type of an input's value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InputType {
    #[default]
    String,
    Integer,
    Number,
    Boolean,
}

/// The values of one call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallValues {
    /// Values by the name of an input.
    pub named: BTreeMap<String, String>,
    /// The text behind a slash name: `name=value` and words in the order of the inputs.
    pub text: String,
}

/// The inputs that a call leaves open. Its text asks for them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingInput {
    pub inputs: Vec<Input>,
}

impl fmt::Display for MissingInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wanted: Vec<String> = self.inputs.iter().map(describe).collect();
        write!(f, "Ask the user for {} before you continue.", wanted.join(", "))
    }
}

impl std::error::Error for MissingInput {}

/// Returns the body with the call's values. An input without a value of its type takes its default, or is missing if required.
pub fn substitute(body: &str, inputs: &[Input], arguments: &CallValues) -> Result<String, MissingInput> {
    let mut placeholders = Placeholders::new(inputs, arguments)?;
    let mut output = placeholders.fill(body);
    placeholders.finish(&mut output);
    Ok(output)
}

/// The values of a call as a shell gets them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShellValues {
    /// The words of the text behind a slash name: `$1`, `$2` and so on.
    pub words: Vec<String>,
    /// Variables: each input under its name, and the whole text as `ARGUMENTS`.
    pub variables: BTreeMap<String, String>,
}

/// Name of the variable with the whole text behind a slash name.
pub const ARGUMENTS: &str = "ARGUMENTS";

/// Returns the values that stand for the placeholders of a command. The command itself is never changed, so that no value
/// becomes a part of it.
pub fn shell_values(inputs: &[Input], arguments: &CallValues) -> Result<ShellValues, MissingInput> {
    let words = split_words(&arguments.text);
    let resolved = resolve(inputs, arguments, &words)?;
    let mut variables: BTreeMap<String, String> =
        resolved.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    variables.insert(ARGUMENTS.to_owned(), arguments.text.trim().to_owned());
    Ok(ShellValues { words, variables })
}

/// The values of one call, for the placeholders of a body.
pub(crate) struct Placeholders<'a> {
    text: &'a str,
    words: Vec<String>,
    values: BTreeMap<&'a str, String>,
    has_inputs: bool,
    /// True once a placeholder stood for the text behind a slash name, or for a word of it.
    has_arguments: bool,
}

impl<'a> Placeholders<'a> {
    pub(crate) fn new(inputs: &'a [Input], arguments: &'a CallValues) -> Result<Self, MissingInput> {
        let words = split_words(&arguments.text);
        let values = resolve(inputs, arguments, &words)?;
        let text = arguments.text.trim();
        Ok(Self { text, words, values, has_inputs: !inputs.is_empty(), has_arguments: false })
    }

    /// Returns the text with the values in the places of its placeholders.
    pub(crate) fn fill(&mut self, text: &str) -> String {
        let mut output = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            output.push_str(&rest[..at]);
            rest = &rest[at..];
            let (value, length) = if let Some(name) = variable(rest) {
                (self.values.get(name).map(String::as_str), name.len() + 3)
            } else if let Some(length) = whole_arguments(rest) {
                self.has_arguments = true;
                (Some(self.text), length)
            } else {
                let digits = rest[1..].bytes().take_while(u8::is_ascii_digit).count();
                let number = rest[1..=digits].parse::<usize>().ok();
                let word = number.and_then(|n| self.words.get(n.checked_sub(1)?));
                self.has_arguments |= word.is_some();
                (word.map(String::as_str), digits + 1)
            };
            output.push_str(value.unwrap_or(&rest[..length]));
            rest = &rest[length..];
        }
        output.push_str(rest);
        output
    }

    /// Adds the text behind a slash name if no placeholder stands for it.
    pub(crate) fn finish(&self, output: &mut String) {
        if !self.has_inputs && !self.has_arguments && !self.words.is_empty() {
            output.push_str("\n\nARGUMENTS: ");
            output.push_str(self.text);
        }
    }
}

/// Returns the names in `${name}`, in their order and with repeats.
pub fn variables(body: &str) -> Vec<&str> {
    body.match_indices('$').filter_map(|(at, _)| variable(&body[at..])).collect()
}

/// True if the text is a value of the type.
pub fn is_of_type(value: &str, value_type: InputType) -> bool {
    match value_type {
        InputType::String => true,
        InputType::Integer => value.parse::<i64>().is_ok(),
        InputType::Number => value.parse::<f64>().is_ok_and(f64::is_finite),
        InputType::Boolean => matches!(value, "true" | "false"),
    }
}

fn resolve<'a>(
    inputs: &'a [Input],
    arguments: &CallValues,
    words: &[String],
) -> Result<BTreeMap<&'a str, String>, MissingInput> {
    let mut given = arguments.named.clone();
    let mut unnamed = Vec::new();
    for word in words {
        match word.split_once('=') {
            Some((name, value)) if inputs.iter().any(|input| input.name == name) => {
                given.entry(name.to_owned()).or_insert_with(|| value.to_owned());
            }
            _ => unnamed.push(word.as_str()),
        }
    }
    let open: Vec<&Input> = inputs.iter().filter(|input| !given.contains_key(&input.name)).collect();
    for (place, input) in open.iter().enumerate().take(unnamed.len()) {
        // The last input takes the words that are left.
        let value =
            if place + 1 == open.len() { unnamed[place..].join(" ") } else { unnamed[place].to_owned() };
        given.insert(input.name.clone(), value);
    }
    let mut values = BTreeMap::new();
    let mut missing = Vec::new();
    for input in inputs {
        let value = given.get(&input.name).filter(|value| is_of_type(value, input.value_type));
        let is_wrong = value.is_none() && given.contains_key(&input.name);
        match value.or(input.default.as_ref()) {
            Some(value) if !is_wrong => {
                values.insert(input.name.as_str(), value.clone());
            }
            None if !is_wrong && !input.is_required => {
                values.insert(input.name.as_str(), String::new());
            }
            _ => missing.push(input.clone()),
        }
    }
    if missing.is_empty() { Ok(values) } else { Err(MissingInput { inputs: missing }) }
}

fn describe(input: &Input) -> String {
    let value_type = match input.value_type {
        InputType::String => "",
        InputType::Integer => "an integer",
        InputType::Number => "a number",
        InputType::Boolean => "true or false",
    };
    let parts: Vec<&str> =
        [input.description.trim(), value_type].into_iter().filter(|p| !p.is_empty()).collect();
    if parts.is_empty() {
        format!("`{}`", input.name)
    } else {
        format!("`{}` ({})", input.name, parts.join("; "))
    }
}

/// The name in `${name}` at the start of the text.
fn variable(text: &str) -> Option<&str> {
    let (name, _) = text.strip_prefix("${")?.split_once('}')?;
    let mut bytes = name.bytes();
    let is_start = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    (is_start && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')).then_some(name)
}

/// The length of `$ARGUMENTS` at the start of the text, if it is no longer word.
fn whole_arguments(text: &str) -> Option<usize> {
    const NAME: &str = "$ARGUMENTS";
    let rest = text.strip_prefix(NAME)?;
    (!rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')).then_some(NAME.len())
}

/// Splits at white space. Quotes keep words together; a quote that stays open ends with the text.
fn split_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in text.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            None if word.as_ref().is_none_or(|w| w.ends_with('=')) && matches!(c, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests;
