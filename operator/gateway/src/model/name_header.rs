//! A response header with a list of names.

use http::{HeaderMap, HeaderValue};

/// Most bytes of names in one header: proxies refuse responses with long ones.
const MAX_HEADER: usize = 2048;

/// Sets a response header to these names. Further names than fit are counted: `a,b,+3`.
pub(super) fn set_header<'a>(
    headers: &mut HeaderMap,
    name: &'static str,
    names: impl Iterator<Item = &'a str>,
) {
    let (mut text, mut more) = (String::new(), 0);
    for name in names {
        if more > 0 || text.len() + name.len() >= MAX_HEADER {
            more += 1;
            continue;
        }
        text += if text.is_empty() { "" } else { "," };
        text += name;
    }
    if more > 0 {
        text += ",+";
        text += &more.to_string();
    }
    if let Ok(value) = HeaderValue::try_from(text) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RAN: &str = "x-skillet-ran";

    #[test]
    fn a_header_has_no_more_names_than_proxies_take() {
        let mut headers = HeaderMap::new();
        set_header(&mut headers, RAN, ["a", "b"].into_iter());
        assert_eq!(headers[RAN], "a,b");
        let name = "x".repeat(64);
        set_header(&mut headers, RAN, std::iter::repeat_n(&*name, 512));
        let value = headers[RAN].to_str().unwrap();
        let (names, more) = value.rsplit_once(",+").unwrap();
        assert!(value.len() < MAX_HEADER + 8, "{}", value.len());
        assert_eq!(names.split(',').count() + more.parse::<usize>().unwrap(), 512);
    }
}
