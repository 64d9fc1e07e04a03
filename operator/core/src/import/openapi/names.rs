//! Names: of Skills, each once, and of inputs and Secrets in the letters that templates take.

use std::collections::BTreeSet;

use super::super::manifest::object_name;

/// Longest name of a Skill.
const MAX_NAME: usize = 63;

/// The names so far.
#[derive(Debug)]
pub(super) struct Names {
    prefix: String,
    used: BTreeSet<String>,
}

impl Names {
    pub(super) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.to_owned(), used: BTreeSet::new() }
    }

    /// Returns the name of an operation: of its id, else of method and path. A repeated one gets a number.
    pub(super) fn of(&mut self, id: Option<&str>, method: &str, path: &str) -> String {
        let place = format!("{method} {path}");
        let id = id.filter(|id| !id.trim().is_empty()).unwrap_or(&place);
        let name = object_name(&self.prefix, &with_hyphens(id), &with_hyphens(&place));
        let mut unique = name.clone();
        let mut number = 2;
        while !self.used.insert(unique.clone()) {
            let end = format!("-{number}");
            let head: String = name.chars().take(MAX_NAME - end.len()).collect();
            unique = head.trim_end_matches('-').to_owned() + &end;
            number += 1;
        }
        unique
    }
}

/// Sets a hyphen before each word of a name such as `listPets`.
fn with_hyphens(name: &str) -> String {
    let mut text = String::new();
    let mut is_after_small = false;
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && is_after_small {
            text.push('-');
        }
        is_after_small = letter.is_ascii_lowercase() || letter.is_ascii_digit();
        text.push(letter);
    }
    text
}

/// Returns a name for a placeholder: letters, digits, `.`, `_` and `-`, others as `_`.
pub(super) fn placeholder_name(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' };
    let name: String = name.chars().map(letter).collect();
    let name = name.trim_matches('_');
    // A name like that of a Secret would be read as one.
    let name = name.strip_prefix("SECRETS.").unwrap_or(name);
    if name.is_empty() { "value".to_owned() } else { name.chars().take(64).collect() }
}

/// Returns a name for a Secret in a template: `api_key` is `API_KEY`.
pub(super) fn secret_name(scheme: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let name: String = with_hyphens(scheme).chars().map(letter).take(64).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) || name.is_empty() {
        format!("KEY_{name}")
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_legal_and_come_once() {
        let mut names = Names::new("");
        let mut name = |id: Option<&str>, path: &str| names.of(id, "get", path);
        assert_eq!(name(Some("listPets"), "/pets"), "list-pets");
        assert_eq!(name(Some("list_pets"), "/pets"), "list-pets-2");
        assert_eq!(name(Some("LIST PETS!"), "/pets"), "list-pets-3");
        assert_eq!(name(None, "/pets/{petId}"), "get-pets-pet-id");
        assert_eq!(name(Some(" "), "/"), "get");
        assert_eq!(name(Some("获取"), "/a"), "get-a");
        let long = "x".repeat(80);
        let (first, second) = (name(Some(&long), "/"), name(Some(&long), "/"));
        assert!(first.len() == 63 && second.len() <= 63 && first != second);
        assert_eq!(Names::new("acme-").of(Some("a"), "get", "/"), "acme-a");
    }

    #[test]
    fn inputs_and_secrets_have_names_that_templates_take() {
        assert_eq!(placeholder_name("filter[name]"), "filter_name");
        assert_eq!(placeholder_name("$top"), "top");
        assert_eq!(placeholder_name("X-Request-Id"), "X-Request-Id");
        assert_eq!(placeholder_name("SECRETS.a"), "a");
        assert_eq!(placeholder_name("日本"), "value");
        assert_eq!(secret_name("petstore_auth"), "PETSTORE_AUTH");
        assert_eq!(secret_name("bearerAuth"), "BEARER_AUTH");
        assert_eq!(secret_name("2fa key"), "KEY_2FA_KEY");
    }
}
