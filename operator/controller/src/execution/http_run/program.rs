//! The program of a run that is requests, and the request that an operator which is gone has sent for it. Pure.

use std::sync::Arc;

use skillet_api::network::Host;
use skillet_core::{builtin::BuiltinProgram, http::HttpProgram};

use super::record::OpenRequest;

/// A program whose run is requests.
pub(crate) enum RequestProgram {
    Http(Arc<HttpProgram>),
    Builtin(BuiltinProgram),
}

impl RequestProgram {
    /// Returns the request that the program makes of an input, if it is not safe to send it again.
    pub(super) fn unsafe_request(&self, input: &str) -> Option<OpenRequest> {
        let (method, host_and_port) = match self {
            Self::Http(program) => {
                let Host { name, ports } = program.host();
                (program.method(), ports.first().map(|port| (name, *port)))
            }
            Self::Builtin(program) => {
                let request = program.render(&serde_json::from_str(input).ok()?, None).ok()?.request;
                (request.method, request.host_and_port())
            }
        };
        (!method.is_safe()).then_some(OpenRequest { method, host_and_port, sent_at: None })
    }
}

#[cfg(test)]
mod tests {
    use skillet_api::{SkillPolicySpec, SkillSpec, http::HttpMethod};
    use skillet_core::skill::{Handler, validate_content};

    use super::*;

    fn http(method: &str) -> RequestProgram {
        let yaml =
            format!("{{version: 1.0.0, run: {{http: {{url: 'https://a.dev:8443/x', method: {method}}}}}}}");
        let spec: SkillSpec = serde_saphyr::from_str(&yaml).unwrap();
        match validate_content(&spec, &SkillPolicySpec::default()).unwrap().handler {
            Handler::Http(program) => RequestProgram::Http(program),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_lost_request_names_the_host_of_its_program() {
        let sent = |host: &str, port| {
            let host_and_port = Some((host.to_owned(), port));
            Some(OpenRequest { method: HttpMethod::Post, host_and_port, sent_at: None })
        };
        let input = r#"{"url": "https://b.dev/y", "method": "post"}"#;
        let builtin = RequestProgram::Builtin(BuiltinProgram::HttpRequest);
        assert_eq!(http("POST").unsafe_request("{}"), sent("a.dev", 8443));
        assert_eq!(builtin.unsafe_request(input), sent("b.dev", 443));
        assert_eq!(http("GET").unsafe_request("{}"), None, "it is sent again");
        assert_eq!(builtin.unsafe_request(r#"{"url": "https://b.dev/y"}"#), None);
        assert_eq!(builtin.unsafe_request("no input"), None);
    }
}
