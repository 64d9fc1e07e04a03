//! Globs over relative paths: `**/` any leading directories, `**` anything, `*` and `?` within one name, all else literally.

/// One step of a pattern.
#[derive(Clone, Copy)]
enum GlobStep {
    Char(char),
    /// `?`
    One,
    /// `*`
    Name,
    /// `**`
    Any,
    /// `**/`, which may be left out.
    Directories,
    /// The inside of `**/`, up to a slash.
    UpToSlash,
}

/// True if the pattern matches the whole path. A pattern without a slash may begin at any name of the path; an empty one matches
/// nothing.
pub fn matches(pattern: &str, path: &str) -> bool {
    if pattern.is_empty() {
        return false;
    }
    let mut steps = parse(if pattern.contains('/') { "" } else { "**/" });
    steps.extend(parse(pattern));
    // All places that the pattern can have reached: time grows with pattern times path, whatever the stars.
    let mut places = vec![false; steps.len() + 1];
    reach(&steps, &mut places, 0);
    for c in path.chars() {
        let mut next = vec![false; steps.len() + 1];
        for (place, step) in steps.iter().enumerate().filter(|(place, _)| places[*place]) {
            match step {
                GlobStep::Char(expected) if *expected == c => reach(&steps, &mut next, place + 1),
                GlobStep::One if c != '/' => reach(&steps, &mut next, place + 1),
                GlobStep::Name if c != '/' => reach(&steps, &mut next, place),
                GlobStep::Any => reach(&steps, &mut next, place),
                GlobStep::UpToSlash => {
                    reach(&steps, &mut next, place);
                    if c == '/' {
                        reach(&steps, &mut next, place + 1);
                    }
                }
                _ => {}
            }
        }
        places = next;
    }
    places[steps.len()]
}

fn parse(pattern: &str) -> Vec<GlobStep> {
    let mut steps = Vec::new();
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        let length = if rest.starts_with("**/") {
            steps.extend([GlobStep::Directories, GlobStep::UpToSlash]);
            3
        } else if rest.starts_with("**") {
            steps.push(GlobStep::Any);
            2
        } else {
            steps.push(match c {
                '*' => GlobStep::Name,
                '?' => GlobStep::One,
                c => GlobStep::Char(c),
            });
            c.len_utf8()
        };
        rest = &rest[length..];
    }
    steps
}

/// Marks a place and those that it reaches without a character.
fn reach(steps: &[GlobStep], places: &mut [bool], mut place: usize) {
    loop {
        places[place] = true;
        match steps.get(place) {
            Some(GlobStep::Name | GlobStep::Any) => place += 1,
            Some(GlobStep::Directories) => {
                places[place + 1] = true;
                place += 2;
            }
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_as_in_gitignore_files() {
        for (pattern, path, expected) in [
            ("*.rs", "a/b/main.rs", true),
            ("src/**/*.rs", "src/main.rs", true),
            ("src/**/*.rs", "src/a/b/main.rs", true),
            ("src/**/*.rs", "xsrc/a.rs", false),
            ("a**b", "x/a/c/b", true),
            ("a**b", "x/ca/b", false),
            ("", "a", false),
            ("**/a.txt", "a.txt", true),
            ("**/a.txt", "x/ba.txt", false),
            ("src/**", "src/a/b", true),
            ("src/**", "src", false),
            ("deploy/*/x", "deploy/a/b/x", false),
            ("a?c", "a/c", false),
            ("a?c", "dir/abc", true),
            ("x[1]", "x1", false),
            ("{a,b}", "a", false),
            ("Dockerfile", "a/dockerfile", false),
            ("/a/b", "a/b", false),
            ("a/", "a", false),
            ("*", "", true),
            ("", "x", false),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
        }
    }

    #[test]
    fn many_stars_take_little_time() {
        assert!(!matches(&"*a".repeat(200), &format!("{}b", "a".repeat(2000))));
    }
}
