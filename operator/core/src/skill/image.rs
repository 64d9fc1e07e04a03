//! Image references, and the list of images that a policy allows.

/// True if one of `allowed` allows `image`.
///
/// An entry is an exact reference, tag and digest included, or a prefix. A prefix that ends in `/` allows everything below
/// it. A prefix that ends in `*` allows the rest of that path segment, tag and digest, and no further segment:
/// `registry.example/team*` allows `registry.example/team-a:1` and nothing of another registry or folder. A lone `*` allows
/// every image. Names are compared as written: `python` is not `docker.io/library/python`.
pub(super) fn is_image_allowed(image: &str, allowed: &[String]) -> bool {
    // Prefixes are compared as text, which is sound only if the whole text is a reference.
    is_image_reference(image) && allowed.iter().any(|entry| is_allowed_by(image, entry.trim()))
}

fn is_allowed_by(image: &str, entry: &str) -> bool {
    if entry == "*" {
        return true;
    }
    if let Some(beginning) = entry.strip_suffix('*') {
        let rest = image.strip_prefix(beginning);
        return rest.is_some_and(|rest| beginning.ends_with('/') || !rest.contains('/'));
    }
    if entry.ends_with('/') {
        return image.starts_with(entry);
    }
    image == entry
}

/// True for an image reference: `[registry[:port]/]path[:tag][@algorithm:hex]`.
pub fn is_image_reference(text: &str) -> bool {
    let (name_and_tag, digest) = match text.split_once('@') {
        Some((before, digest)) => (before, Some(digest)),
        None => (text, None),
    };
    if !digest.is_none_or(is_digest) {
        return false;
    }
    // A colon behind the last slash begins the tag; one before it, the registry's port.
    let last_segment = name_and_tag.rfind('/').map_or(0, |slash| slash + 1);
    let (name, tag) = match name_and_tag[last_segment..].split_once(':') {
        Some((before, tag)) => (&name_and_tag[..last_segment + before.len()], Some(tag)),
        None => (name_and_tag, None),
    };
    tag.is_none_or(is_tag) && is_name(name)
}

fn is_name(name: &str) -> bool {
    if name.len() > 255 {
        return false;
    }
    let path = match name.split_once('/') {
        Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => {
            if !is_registry(first) {
                return false;
            }
            rest
        }
        Some(_) | None => name,
    };
    path.split('/').all(is_path_segment)
}

fn is_registry(text: &str) -> bool {
    let (host, port) = match text.split_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (text, None),
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
    let is_label = |label: &str| {
        let is_edge_plain = !label.starts_with('-') && !label.ends_with('-');
        !label.is_empty() && is_edge_plain && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    port.is_none_or(is_port) && host.split('.').all(is_label)
}

/// Lower-case letters and digits, parted by one `.`, one or two `_`, or any number of `-`.
fn is_path_segment(segment: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let (Some(first), Some(last)) = (segment.chars().next(), segment.chars().next_back()) else {
        return false;
    };
    let are_separators_legal = segment
        .split(is_plain)
        .all(|part| matches!(part, "" | "." | "_" | "__") || part.bytes().all(|b| b == b'-'));
    is_plain(first) && is_plain(last) && are_separators_legal
}

fn is_tag(tag: &str) -> bool {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let is_first_legal = tag.bytes().next().is_some_and(is_word);
    is_first_legal && tag.len() <= 128 && tag.bytes().all(|b| is_word(b) || matches!(b, b'.' | b'-'))
}

fn is_digest(digest: &str) -> bool {
    digest.split_once(':').is_some_and(|(algorithm, hex)| {
        let is_algorithm =
            !algorithm.is_empty() && algorithm.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        let is_hex = hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        is_algorithm && is_hex && (32..=128).contains(&hex.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

    fn check(image: &str, allowed: &str, expected: bool) {
        assert_eq!(is_image_allowed(image, &[allowed.to_owned()]), expected, "{image} by {allowed}");
    }

    #[test]
    fn an_exact_entry_allows_that_reference_only() {
        check("python:3.12", "python:3.12", true);
        check("python:3.12", "  python:3.12 ", true);
        check("python:3.13", "python:3.12", false);
        check("python", "python:3.12", false);
        check("docker.io/library/python:3.12", "python:3.12", false);
        check(&format!("python:3.12@{DIGEST}"), "python:3.12", false);
        check(&format!("python:3.12@{DIGEST}"), &format!("python:3.12@{DIGEST}"), true);
        check("python:3.12", &format!("python:3.12@{DIGEST}"), false);
        check("python:3.12", "Python:3.12", false);
        check("python:3.12", "", false);
        assert!(!is_image_allowed("python:3.12", &[]));
    }

    #[test]
    fn a_slash_at_the_end_allows_everything_below() {
        check("ghcr.io/acme/a:1", "ghcr.io/acme/", true);
        check("ghcr.io/acme/deep/b", "ghcr.io/acme/", true);
        check(&format!("ghcr.io/acme/a@{DIGEST}"), "ghcr.io/acme/", true);
        check("ghcr.io/acme-evil/a:1", "ghcr.io/acme/", false);
        check("ghcr.io:5000/acme/a:1", "ghcr.io/", false);
        check("ghcr.io.evil.example/a", "ghcr.io/", false);
        check("python", "docker.io/", false);
        check("docker.io/evil/../library/python", "docker.io/library/", false);
    }

    #[test]
    fn a_star_at_the_end_stays_within_its_segment() {
        check("registry.example/team-a:1", "registry.example/team*", true);
        check("registry.example/team-evil/a:1", "registry.example/team*", false);
        check("registry.example.evil.example/a", "registry.example*", false);
        check("python:3.12-slim", "python:*", true);
        check("python-evil:1", "python:*", false);
        check(&format!("python:3.12@{DIGEST}"), "python:3.12@*", true);
        check("ghcr.io/acme/deep/b", "ghcr.io/acme/*", true);
        check("anything/at/all:1", "*", true);
        check("not an image", "*", false);
    }

    #[test]
    fn only_legal_image_references_are_accepted() {
        let long = "a".repeat(256);
        for good in [
            "a",
            "python:3.12",
            "localhost/a",
            "localhost:5000/a/b:c",
            "registry.example:5000/a__b/c-d.e---f:V_1.0-x",
            "Registry.Example/a",
        ] {
            assert!(is_image_reference(good), "{good}");
        }
        for bad in [
            "",
            "A",
            "a/",
            "/a",
            "a//b",
            "a/../b",
            "a/./b",
            "a:",
            "a:-x",
            "a b",
            "a\n",
            "a@",
            "a@sha256:",
            "a@sha256:00",
            "user@host/a",
            "a..b",
            "a___b",
            "-a",
            "a-",
            "https://a/b",
            "a:b:c",
            "reg.example:x/a",
            "reg..example/a",
            "-reg.example/a",
            "a*",
            "é",
            &long,
        ] {
            assert!(!is_image_reference(bad), "{bad}");
        }
        assert!(!is_image_reference(&format!("a@SHA256:{}", "0".repeat(64))));
        assert!(!is_image_reference(&format!("a@{}", DIGEST.to_uppercase())));
        assert!(!is_image_reference(&format!("a:{}", "t".repeat(129))));
    }

    #[test]
    fn a_beginning_never_allows_what_leads_elsewhere() {
        let mut rng = crate::test_rng::TestRng::new(4);
        let mut allowed = 0;
        for _ in 0..50_000 {
            let image = format!("ghcr.io/acme/{}", rng.text("a./-:@_A*é", 8));
            if is_image_allowed(&image, &["ghcr.io/acme/".to_owned()]) {
                allowed += 1;
                let segments: Vec<&str> = image.split('/').collect();
                assert!(
                    segments.iter().all(|segment| segment.starts_with(|c: char| c.is_ascii_alphanumeric())),
                    "{image}"
                );
                assert!(!image.contains("..") && image.is_ascii(), "{image}");
            }
        }
        assert!(allowed > 100, "{allowed}");
    }
}
