//! HTTP skills: one request as a template, and its response as an output. Pure.
//!
//! `read` checks templates and paths once, `render` fills them, `response` reads what comes back, `grant` decides which skill
//! and host a Secret is for, and `attempts` when a request is sent again. Nothing here opens a connection or knows an address.

mod attempts;
mod body;
mod encode;
mod filling;
mod grant;
mod json_path;
mod read;
mod render;
mod request;
mod response;
mod template;
mod url;

use skillet_api::{
    http::{HttpMethod, HttpSecret, MissingInputs, ResponseFormat},
    network::Host,
    skill::SecretEnvVar,
};

pub use self::{
    attempts::{TryOutcome, next_try},
    grant::{HOSTS_ANNOTATION, SKILLS_ANNOTATION, check_grant, granted_hosts},
    read::HttpProblem,
    render::{RenderError, SkillRequest},
    request::{RenderedRequest, ResponseError},
    response::HttpResponse,
};
use self::{body::BodyTemplate, json_path::JsonPath, template::Template, url::UrlTemplate};
use crate::skill::ValidNetwork;

/// An HTTP skill whose templates and paths were checked.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpProgram {
    method: HttpMethod,
    url: UrlTemplate,
    headers: Vec<(String, Template)>,
    query: Vec<(String, Template)>,
    body: Option<BodyTemplate>,
    append_inputs: bool,
    missing_inputs: MissingInputs,
    secrets: Vec<HttpSecret>,
    mapping: Vec<(String, JsonPath)>,
    format: ResponseFormat,
    redirects: u32,
}

impl HttpProgram {
    pub fn method(&self) -> HttpMethod {
        self.method
    }

    /// Returns the most redirects that are followed.
    pub fn redirects(&self) -> u32 {
        self.redirects
    }

    /// Returns the host and the port of the URL, which no input can change.
    pub fn host(&self) -> Host {
        Host { name: self.url.host.clone(), ports: vec![self.url.port] }
    }

    /// Returns the hosts of a skill that names none itself: the one of the URL.
    pub fn hosts(&self) -> ValidNetwork {
        ValidNetwork { hosts: vec![self.host()] }
    }

    /// Returns the values from Secrets that its templates name.
    pub fn secrets(&self) -> Vec<SecretEnvVar> {
        let variable = |secret: &HttpSecret| SecretEnvVar {
            name: secret.name.clone(),
            secret: secret.secret.clone(),
            key: secret.key.clone(),
        };
        self.secrets.iter().map(variable).collect()
    }
}
