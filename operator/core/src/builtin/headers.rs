//! The headers that a call may send.
//!
//! A model writes them, so those are left out that carry credentials, frame the message, claim another sender or open
//! metadata services.

use serde_json::Value;

use super::{arguments::scalar_text, error::BuiltinError};

/// Headers that are never sent: of credentials, of the connection, of proxies and of metadata services.
const DROPPED: [&str; 23] = [
    "host",
    "connection",
    "content-length",
    "cookie",
    "set-cookie",
    "authorization",
    "proxy-authorization",
    "proxy-authenticate",
    "proxy-connection",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "expect",
    "forwarded",
    "via",
    "x-real-ip",
    "true-client-ip",
    "cf-connecting-ip",
    "metadata",
    "metadata-flavor",
    "metadata-token",
];
/// Begins of further headers of proxies and metadata services.
const DROPPED_BEGINS: [&str; 4] = ["x-forwarded-", "x-original-", "x-aws-ec2-metadata-", "x-metadata-"];
/// Most bytes of all names and values.
const MAX_BYTES: usize = 32 * 1024;

/// Returns the headers that are sent, in their order, names trimmed. Of names that are the same, the last value is taken.
///
/// Values that are no string, number or boolean are left out. A value with a line end is refused: it would be a header of
/// its own.
pub(super) fn filter(headers: Option<&Value>) -> Result<Vec<(String, String)>, BuiltinError> {
    let Some(Value::Object(headers)) = headers else { return Ok(Vec::new()) };
    let mut sent: Vec<(String, String)> = Vec::new();
    for (name, value) in headers {
        let name = name.trim();
        if name.is_empty() || is_dropped(name) {
            continue;
        }
        let Some(value) = scalar_text(value) else { continue };
        if value.contains(['\r', '\n', '\0']) {
            let message = format!("headers.{name}: has a line end or a NUL; write the value in one line");
            return Err(BuiltinError::input(message));
        }
        sent.retain(|(earlier, _)| earlier != name);
        sent.push((name.to_owned(), value));
    }
    Ok(sent)
}

/// Refuses headers that HTTP cannot carry.
pub(super) fn check(headers: &[(String, String)]) -> Result<(), BuiltinError> {
    if headers.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>() > MAX_BYTES {
        return Err(BuiltinError::input(format!("headers: have more than {MAX_BYTES} bytes")));
    }
    for (name, value) in headers {
        if !name.bytes().all(is_token_byte) {
            return Err(BuiltinError::input(format!("headers: {name:?} is not the name of a header")));
        }
        if value.bytes().any(|byte| (byte < b' ' && byte != b'\t') || byte == 0x7f) {
            return Err(BuiltinError::input(format!("headers.{name}: has a control character")));
        }
    }
    Ok(())
}

fn is_dropped(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    DROPPED.contains(&name.as_str()) || DROPPED_BEGINS.iter().any(|begin| name.starts_with(begin))
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sent(headers: &Value) -> Value {
        filter(Some(headers)).unwrap().into_iter().map(|(name, value)| (name, json!(value))).collect()
    }

    #[test]
    fn headers_of_credentials_connections_proxies_and_metadata_are_left_out() {
        for name in ["HOST", "CoOkIe", " authorization ", "Content-Length", "Transfer-Encoding", "TE", "Via"]
        {
            assert_eq!(sent(&json!({name: "x"})), json!({}), "{name}");
        }
        for name in
            ["X-Forwarded-For", "Metadata-Flavor", "X-aws-ec2-metadata-token", "Forwarded", "Metadata"]
        {
            assert_eq!(sent(&json!({name: "x"})), json!({}), "{name}");
        }
        assert_eq!(sent(&json!({" X-A ": "1", "": "2", " ": "3"})), json!({"X-A": "1"}));
        assert_eq!(
            sent(&json!({"Accept": "a/b", "X-Api-Key": "k"})),
            json!({"Accept": "a/b", "X-Api-Key": "k"})
        );
    }

    #[test]
    fn values_are_strings_numbers_and_booleans() {
        let headers = json!({"N": 5, "F": 1.5, "B": true, "E": "", "L": ["a"], "O": {}, "Z": null});
        assert_eq!(sent(&headers), json!({"N": "5", "F": "1.5", "B": "true", "E": ""}));
        for none in [json!(["a"]), json!("a: b"), json!(null), json!(5)] {
            assert_eq!(sent(&none), json!({}));
        }
        assert_eq!(filter(None).unwrap(), []);
    }

    #[test]
    fn a_value_with_a_line_end_is_refused() {
        for value in ["a\r\nHost: evil", "a\nb", "a\rb", "a\0"] {
            let error = filter(Some(&json!({"X-C": value}))).unwrap_err();
            assert_eq!(
                error.to_string(),
                "headers.X-C: has a line end or a NUL; write the value in one line"
            );
        }
        assert_eq!(sent(&json!({"Cookie": "a\nb"})), json!({}));
    }

    #[test]
    fn headers_that_http_cannot_carry_are_refused() {
        let refused = |name: &str, value: &str| check(&[(name.to_owned(), value.to_owned())]).unwrap_err();
        assert_eq!(refused("a b", "x").to_string(), r#"headers: "a b" is not the name of a header"#);
        assert_eq!(refused("a:", "x").to_string(), r#"headers: "a:" is not the name of a header"#);
        assert_eq!(refused("a", "x\u{1}").to_string(), "headers.a: has a control character");
        assert!(refused("a", &"x".repeat(33_000)).to_string().contains("more than 32768 bytes"));
        check(&[("X-A".to_owned(), "tab\tand é".to_owned())]).unwrap();
    }
}
