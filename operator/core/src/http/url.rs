//! The URL of an HTTP skill: scheme, host and port are fixed, path and query are templates.

use super::{
    encode::encode_non_ascii,
    template::{Piece, Template},
};

/// A URL whose host no value can change.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct UrlTemplate {
    pub(super) is_tls: bool,
    pub(super) host: String,
    pub(super) port: u16,
    /// Scheme, host, and the port where the author wrote one.
    pub(super) origin: String,
    /// Path and query. Its texts are ASCII.
    pub(super) rest: Template,
}

impl UrlTemplate {
    /// Reads a URL. The error tells what is wrong and how to write it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| Err(why.to_owned());
        let Some((scheme, rest)) = text.split_once("://") else {
            return wrong("has no scheme; write https://HOST/PATH");
        };
        let (is_tls, scheme) = match scheme.to_ascii_lowercase().as_str() {
            "https" => (true, "https"),
            "http" => (false, "http"),
            _ if scheme.contains("{{") => {
                return wrong("has a placeholder in its scheme; write https://HOST/PATH");
            }
            _ => return wrong("must begin with https:// or http://"),
        };
        let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        if authority.contains("SECRETS.") {
            return wrong("has a Secret in its host; write the host itself");
        }
        if authority.contains(['{', '}']) {
            return wrong(
                "has a placeholder in its host; write the host itself, so that no input chooses it",
            );
        }
        let (name, port) = split_port(authority)?;
        let host = name.to_ascii_lowercase();
        check_host(&host)?;
        let rest = Template::parse(rest)?;
        check_rest(&rest)?;
        let origin = match port {
            Some(port) => format!("{scheme}://{host}:{port}"),
            None => format!("{scheme}://{host}"),
        };
        let port = port.unwrap_or(if is_tls { 443 } else { 80 });
        Ok(Self { is_tls, host, port, origin, rest: encoded(rest) })
    }
}

fn split_port(authority: &str) -> Result<(&str, Option<u16>), String> {
    if authority.contains('@') {
        return Err(
            "has a user in front of its host; give credentials in headers, with {{SECRETS.NAME}}".to_owned()
        );
    }
    if authority.starts_with('[') {
        return Err("has an IPv6 address; write a host by name".to_owned());
    }
    let Some((name, port)) = authority.split_once(':') else { return Ok((authority, None)) };
    match port.parse::<u16>() {
        Ok(number) if number > 0 && port.bytes().all(|b| b.is_ascii_digit()) => Ok((name, Some(number))),
        _ => Err(format!("has the port {port:?}; write a number from 1 to 65535")),
    }
}

/// Takes names only: different clients read the notations of an address differently, and no rule names an address.
fn check_host(host: &str) -> Result<(), String> {
    let is_label = |label: &str| label.len() <= 63 && crate::skill::is_skill_name(label);
    if host.len() > 253 || !host.split('.').all(is_label) {
        return Err(format!(
            "has the host {host:?}; write a name such as api.example.com, with a-z, 0-9, - and ."
        ));
    }
    let last = host.rsplit('.').next().unwrap_or_default();
    if last.bytes().all(|b| b.is_ascii_digit()) || last.starts_with("0x") {
        return Err(format!("has the host {host:?}, an address; write a name such as api.example.com"));
    }
    Ok(())
}

fn check_rest(rest: &Template) -> Result<(), String> {
    let texts = rest.pieces.iter().filter_map(|piece| match piece {
        Piece::Text(text) => Some(text),
        Piece::Placeholder(_) => None,
    });
    for text in texts {
        if text.contains('#') {
            return Err("has a #, which no server gets; remove the part behind it, or write %23".to_owned());
        }
        let is_odd = |c: &char| c.is_control() || c.is_whitespace() || "\"<>\\^`{|}".contains(*c);
        if let Some(odd) = text.chars().find(is_odd) {
            return Err(format!("has the character {odd:?}; percent-encode it"));
        }
    }
    Ok(())
}

fn encoded(template: Template) -> Template {
    let piece = |piece| match piece {
        Piece::Text(text) => Piece::Text(encode_non_ascii(&text)),
        Piece::Placeholder(placeholder) => Piece::Placeholder(placeholder),
    };
    Template { pieces: template.pieces.into_iter().map(piece).collect() }
}

/// Returns the first segment of a path that servers read as this or the upper directory.
pub(super) fn dot_segment(rest: &str) -> Option<&str> {
    let path = rest.split('?').next().unwrap_or_default();
    let is_dots =
        |segment: &&str| matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..");
    path.split('/').find(is_dots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_fixed_host_and_port() {
        for (text, origin, host, port) in [
            ("https://up.example/a/{{b}}?c={{d}}", "https://up.example", "up.example", 443),
            ("HTTP://Up.Example", "http://up.example", "up.example", 80),
            ("https://up.example:8443?a=b", "https://up.example:8443", "up.example", 8443),
            ("http://localhost:9/", "http://localhost:9", "localhost", 9),
            ("https://1password.com/", "https://1password.com", "1password.com", 443),
        ] {
            let url = UrlTemplate::parse(text).unwrap();
            assert_eq!((url.origin.as_str(), url.host.as_str(), url.port), (origin, host, port), "{text}");
            assert_eq!(url.is_tls, origin.starts_with("https"));
        }
    }

    #[test]
    fn a_url_that_could_leave_its_host_is_refused() {
        for (text, expected) in [
            ("up.example/a", "has no scheme"),
            ("file:///etc/passwd", "must begin with https://"),
            ("ftp://up.example/", "must begin with https://"),
            ("{{s}}://up.example/", "a placeholder in its scheme"),
            ("https://{{host}}/x", "a placeholder in its host"),
            ("https://up.example{{x}}", "a placeholder in its host"),
            ("https://{{SECRETS.H}}.example/", "has a Secret in its host"),
            ("https://up.example:{{port}}/", "a placeholder in its host"),
            ("https://user:pw@up.example/", "has a user"),
            ("https://up.example@evil.example/", "has a user"),
            ("https://[::1]/", "has an IPv6 address"),
            ("https://up.example:0/", "has the port \"0\""),
            ("https://up.example:99999/", "has the port"),
            ("https://up.example:+80/", "has the port"),
            ("https:///x", "has the host \"\""),
            ("https://exämple.com/", "has the host"),
            ("https://a_b.example/", "has the host"),
            ("https://up.example./", "has the host"),
            ("https://a..b/", "has the host"),
            ("https://127.0.0.1/", "an address"),
            ("https://2130706433/", "an address"),
            ("https://0x7f000001/", "an address"),
            ("https://0177.0.0.1/", "an address"),
            ("https://127.1/", "an address"),
            ("https://127.0.0.256/", "an address"),
            ("https://up.example/a#b", "has a #"),
            ("https://up.example/a b", "has the character ' '"),
            ("https://up.example\\@evil/", "has the character '\\\\'"),
            ("https://up.example/{a}", "has the character '{'"),
            ("https://up.example/{{a b}}", "is no placeholder"),
            ("https://up.example/\r\nX: y", "has the character '\\r'"),
        ] {
            let error = UrlTemplate::parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn dot_segments_are_found_in_the_path_only() {
        for (rest, expected) in [
            ("/a/../b", Some("..")),
            ("/a/.", Some(".")),
            ("/%2E%2e/a", Some("%2E%2e")),
            ("/.%2e", Some(".%2e")),
            ("/a/...", None),
            ("/a..b/.c", None),
            ("/a?b=../c/..", None),
            ("", None),
        ] {
            assert_eq!(dot_segment(rest), expected, "{rest}");
        }
    }
}
