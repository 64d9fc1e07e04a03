//! Sources of skills: repositories and directories, as users write them.

/// A source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// `github:owner/repository`, as the address of its repository.
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
    if let Some(repository) = text.strip_prefix("github:") {
        let is_pair = repository.split('/').count() == 2 && repository.split('/').all(is_name);
        return if is_pair {
            Ok(Source::GitHub(format!("https://github.com/{repository}.git")))
        } else {
            refused()
        };
    }
    if text.starts_with("https://") || text.starts_with("http://") {
        let address = text.trim_end_matches('/');
        let suffix =
            if address.rsplit_once('.').is_some_and(|(_, ending)| ending == "git") { "" } else { ".git" };
        return Ok(Source::Git(format!("{address}{suffix}")));
    }
    let is_scp = text.starts_with("git@") && text.contains(':');
    if is_scp || text.starts_with("git://") || text.starts_with("file://") {
        return Ok(Source::Git(text.to_owned()));
    }
    let is_path = text.starts_with(['/', '~', '.']) || text.contains('/');
    if is_path && !text.contains("://") { Ok(Source::Local(text.to_owned())) } else { refused() }
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
        for path in ["./a", "../a", "~/a", "/a", "a/b"] {
            assert_eq!(parse(path), Ok(Source::Local(path.to_owned())));
        }
        for text in ["", "ssh://git@x/a", "github:acme", "github:a/b/c", "github:/b", "name"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
