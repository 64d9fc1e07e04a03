//! Host names as programs and URLs give them, in the one form in which they are compared.

#[cfg(test)]
mod tests;

use std::fmt;

use url::Host;

/// Longest name, without a dot at its end.
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

/// A name in lower case ASCII without a dot at its end. Never an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostName(String);

impl HostName {
    /// Reads a name; `None` for an address in any notation and for whatever is no name.
    pub fn parse(text: &str) -> Option<Self> {
        // Percent signs, user names, zones, brackets, ports and control characters are no part of a name. The URL parser
        // would decode or refuse them, each in its own way.
        let is_expected =
            |letter: char| !letter.is_ascii() || letter.is_ascii_alphanumeric() || "-._".contains(letter);
        if text.is_empty() || text.len() > 4 * MAX_NAME || !text.chars().all(is_expected) {
            return None;
        }
        // Maps IDNA to ASCII, and takes a name whose last label is a number for an IPv4 address, as browsers do.
        let Ok(Host::Domain(ascii)) = Host::parse(text) else { return None };
        let name = ascii.strip_suffix('.').unwrap_or(&ascii);
        let is_name = name.len() <= MAX_NAME && name.split('.').all(is_label);
        // A name with a number at its end is an address to some client library, whatever its other labels are.
        let last = name.rsplit('.').next().unwrap_or_default();
        (is_name && !is_number(last)).then(|| Self(name.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_label(label: &str) -> bool {
    (1..=MAX_LABEL).contains(&label.len())
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_'))
}

fn is_number(label: &str) -> bool {
    let digits = label.strip_prefix("0x").unwrap_or(label);
    let is_hex = digits.len() != label.len();
    digits.bytes().all(|byte| byte.is_ascii_digit() || (is_hex && byte.is_ascii_hexdigit()))
}

/// A name, all names below one, or every name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HostPattern {
    Every,
    Name(HostName),
    Below(HostName),
}

impl HostPattern {
    /// Reads `name`, `*.parent`, or the `*` of a built-in, whose input names the host.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match (text, text.strip_prefix("*.")) {
            ("*", _) => Some(Self::Every),
            (_, Some(parent)) => HostName::parse(parent).map(Self::Below),
            (_, None) => HostName::parse(text).map(Self::Name),
        }
    }

    pub(crate) fn matches(&self, host: &HostName) -> bool {
        match self {
            Self::Every => true,
            Self::Name(name) => name == host,
            Self::Below(parent) => {
                host.0.strip_suffix(&parent.0).is_some_and(|below| below.len() > 1 && below.ends_with('.'))
            }
        }
    }
}
