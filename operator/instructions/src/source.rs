//! Sources of skills: repositories and directories, as users write them.

/// A source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// `github:owner/repository`, also with a path behind it, as the address of its repository.
    GitHub(String),
    /// The address of a git repository.
    Git(String),
    /// A directory.
    Local(String),
}

/// Reads a source. The error is a sentence for users.
pub fn parse(text: &str) -> Result<Source, String> {
    let text = text.trim();
    let refused =
        || Err(format!("{text:?} is no source; write github:owner/repository, a git address or a path"));
    if let Some(place) = text.strip_prefix("github:") {
        let mut names = place.split('/');
        return match (names.next(), names.next()) {
            (Some(owner), Some(repository)) if is_name(owner) && is_name(repository) => {
                Ok(Source::GitHub(format!("https://github.com/{owner}/{repository}.git")))
            }
            _ => refused(),
        };
    }
    if text.starts_with("https://") || text.starts_with("http://") {
        let address = text.trim_end_matches('/');
        let suffix =
            if address.rsplit_once('.').is_some_and(|(_, ending)| ending == "git") { "" } else { ".git" };
        return Ok(Source::Git(format!("{address}{suffix}")));
    }
    if is_scp(text) || text.starts_with("git://") || text.starts_with("file://") {
        return Ok(Source::Git(text.to_owned()));
    }
    let is_path = text.contains(['/', '\\']) && !text.contains("://");
    if is_path || text.starts_with(['/', '~', '.']) { Ok(Source::Local(text.to_owned())) } else { refused() }
}

/// True for `user@host:path`.
fn is_scp(text: &str) -> bool {
    let is_word = |word: &str| {
        !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-'))
    };
    text.split_once(':')
        .and_then(|(place, _)| place.split_once('@'))
        .is_some_and(|(user, host)| is_word(user) && is_word(host))
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_recognized_by_their_form() {
        let git = |address: &str| Ok(Source::Git(address.to_owned()));
        assert_eq!(
            parse(" github:acme/skills "),
            Ok(Source::GitHub("https://github.com/acme/skills.git".into()))
        );
        assert_eq!(parse("https://git.example/a/b/"), git("https://git.example/a/b.git"));
        assert_eq!(parse("https://git.example/a/b.git"), git("https://git.example/a/b.git"));
        assert_eq!(parse("git@git.example:a/b.git"), git("git@git.example:a/b.git"));
        assert_eq!(parse("file:///srv/a"), git("file:///srv/a"));
        assert_eq!(parse("github:a/b/c/d/"), Ok(Source::GitHub("https://github.com/a/b.git".into())));
        assert_eq!(parse("deploy@git.example:a"), git("deploy@git.example:a"));
        for path in ["./a", "../a", "~/a", "/a", "a/b", r"C:\a", r"\\host\a", "git@host/a", "./a://b"] {
            assert_eq!(parse(path), Ok(Source::Local(path.to_owned())));
        }
        for text in ["", "ssh://git@x/a", "github:acme", "github:a/", "github:/b", r"ftp://a\b", "name"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
