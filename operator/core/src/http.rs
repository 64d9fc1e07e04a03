//! HTTP skills: one request as a template, and its response as an output. Pure.

mod request;

use skillet_api::{http::Http, skill::SecretEnvVar};

pub use self::request::{RenderedRequest, ResponseError};

/// An HTTP skill whose templates and paths were checked.
#[derive(Clone, Debug)]
pub struct HttpProgram {
    pub spec: Http,
}

impl HttpProgram {
    /// Returns the values from Secrets that its templates name.
    pub fn secrets(&self) -> Vec<SecretEnvVar> {
        let variable = |secret: &skillet_api::http::HttpSecret| SecretEnvVar {
            name: secret.name.clone(),
            secret: secret.secret.clone(),
            key: secret.key.clone(),
        };
        self.spec.secrets.iter().map(variable).collect()
    }
}
