//! Names of skills by the standard: 1 to 64 characters of a-z, 0-9 and single hyphens inside, equal to the directory's name.

/// Longest name, in characters.
pub const LENGTH_LIMIT: usize = 64;

/// A rule that a name breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameError {
    Empty,
    TooLong,
    BadPattern,
    DirectoryMismatch,
}

impl NameError {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::TooLong => "too_long",
            Self::BadPattern => "bad_pattern",
            Self::DirectoryMismatch => "directory_mismatch",
        }
    }

    /// Returns a sentence for users.
    pub fn message(self) -> &'static str {
        match self {
            Self::Empty => "name is empty",
            Self::TooLong => "name is longer than 64 characters",
            Self::BadPattern => "name has other characters than a-z, 0-9 and single hyphens between them",
            Self::DirectoryMismatch => "name differs from the name of the directory",
        }
    }
}

/// Returns the rules that a name breaks. Without a directory, or in the root of its files, it is not compared.
pub fn check(name: &str, directory: Option<&str>) -> Vec<NameError> {
    if name.is_empty() {
        return vec![NameError::Empty];
    }
    let mut errors = Vec::new();
    if name.chars().count() > LENGTH_LIMIT {
        errors.push(NameError::TooLong);
    }
    if !is_kebab_case(name) {
        errors.push(NameError::BadPattern);
    }
    if directory.is_some_and(|directory| !directory.is_empty() && directory != name) {
        errors.push(NameError::DirectoryMismatch);
    }
    errors
}

/// True for words of a-z and 0-9, joined by single hyphens.
pub fn is_kebab_case(name: &str) -> bool {
    let is_word =
        |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    name.split('-').all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kebab_case_and_equal_to_their_directory() {
        let codes = |name: &str, directory: Option<&str>| -> Vec<&str> {
            check(name, directory).into_iter().map(NameError::as_str).collect()
        };
        assert_eq!(codes("3d-print", Some("3d-print")), [""; 0]);
        assert_eq!(codes("Bad_Name", Some("other")), ["bad_pattern", "directory_mismatch"]);
        assert_eq!(codes("", None), ["empty"]);
        assert_eq!(codes("", Some("other")), ["empty"]);
        assert_eq!(codes("a", Some("")), [""; 0]);
        assert_eq!(codes(&"a".repeat(65), None), ["too_long"]);
        for bad in ["a--b", "-a", "a-", "größe", "a/b", "..", "a b"] {
            assert_eq!(codes(bad, None), ["bad_pattern"], "{bad}");
        }
    }
}
