//! Errors as one line of text.

/// Returns an error with its causes, outermost first.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // A transparent error says what its cause says.
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_written_with_each_cause_once() {
        #[derive(Debug, thiserror::Error)]
        enum Outer {
            #[error("could not seal x")]
            Seal(#[source] std::io::Error),
            #[error(transparent)]
            Same(std::io::Error),
        }
        let denied = || std::io::Error::other("denied");
        assert_eq!(chain(&Outer::Seal(denied())), "could not seal x: denied");
        assert_eq!(chain(&Outer::Same(denied())), "denied");
    }
}
