//! Credentials for a registry in the form of Docker's configuration, as Secrets for image pulls have them. Pure.

use std::collections::BTreeMap;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;

#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    auths: BTreeMap<String, Account>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Account {
    username: String,
    password: String,
    /// `USER:PASSWORD` in base64.
    auth: String,
    registrytoken: String,
}

/// Returns the header for a registry, or the problem of the configuration.
pub(crate) fn authorization(config: &str, registry: &str) -> Result<String, String> {
    let config: Config =
        serde_json::from_str(config).map_err(|error| format!("has no JSON in .dockerconfigjson: {error}"))?;
    let found = config.auths.into_iter().find(|(name, _)| host(name) == registry).map(|(_, auth)| auth);
    match found {
        Some(Account { registrytoken, .. }) if !registrytoken.is_empty() => {
            Ok(format!("Bearer {registrytoken}"))
        }
        Some(Account { auth, .. }) if !auth.is_empty() => Ok(format!("Basic {auth}")),
        Some(Account { username, password, .. }) if !username.is_empty() => {
            Ok(format!("Basic {}", STANDARD.encode(format!("{username}:{password}"))))
        }
        Some(_) | None => Err(format!("has no credentials for {registry} in .dockerconfigjson")),
    }
}

/// The host of an entry, which may be an address with a path.
fn host(name: &str) -> &str {
    let name = name.strip_prefix("https://").or(name.strip_prefix("http://")).unwrap_or(name);
    name.split('/').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_of_credentials_is_read_for_its_own_registry() {
        let config = r#"{"auths":{
            "a.example.com":{"username":"u","password":"p"},
            "https://b.example.com:5000/v1/":{"auth":"dTpw"},
            "c.example.com":{"registrytoken":"t"},
            "d.example.com":{"identitytoken":"x"}}}"#;
        for (registry, header) in [
            ("a.example.com", "Basic dTpw"),
            ("b.example.com:5000", "Basic dTpw"),
            ("c.example.com", "Bearer t"),
        ] {
            assert_eq!(authorization(config, registry).as_deref(), Ok(header));
        }
        for registry in ["d.example.com", "b.example.com", "evil.example.com"] {
            let problem = format!("has no credentials for {registry} in .dockerconfigjson");
            assert_eq!(authorization(config, registry), Err(problem));
        }
        assert!(authorization("auths", "a").unwrap_err().starts_with("has no JSON in .dockerconfigjson"));
    }
}
