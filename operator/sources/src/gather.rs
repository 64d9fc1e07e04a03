//! Reads what a look at a source needs of the cluster: its credentials, and the Skills of its namespace.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, Resource, ResourceExt as _, api::ListParams, core::NamespaceResourceScope};
use reqwest::header::HeaderValue;
use skillet_api::{Skill, SkillSource};
use skillet_kube::list_pages;

use crate::{
    failure::Failure,
    http_client::Credentials,
    plan::{Present, PresentSkill},
};

/// The end of a look that could not read or write the cluster.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Failure(#[from] Failure),
    #[error("could not read the Secret {0}")]
    Secret(String, #[source] Box<kube::Error>),
    #[error("could not list the Skills of the namespace")]
    Skills(#[source] Box<kube::Error>),
}

/// Reads the credentials that the source names.
pub(crate) async fn credentials(client: &Client, source: &SkillSource) -> Result<Credentials, Error> {
    let Some(reference) = &source.spec.git.secret_ref else { return Ok(Credentials::default()) };
    let api: Api<Secret> = in_namespace_of(client, source);
    let secret = api.get_opt(&reference.name).await;
    let secret = secret.map_err(|error| Error::Secret(reference.name.clone(), Box::new(error)))?;
    let secret = secret.ok_or_else(|| Failure::Secret(format!("there is no Secret {}", reference.name)))?;
    Ok(read_credentials(&reference.name, &secret)?)
}

fn read_credentials(name: &str, secret: &Secret) -> Result<Credentials, Failure> {
    let value = |key: &str| {
        let bytes = &secret.data.as_ref()?.get(key)?.0;
        // Editors end a file with a line feed that is no part of the value.
        Some(String::from_utf8_lossy(bytes).trim_end_matches(['\r', '\n']).to_owned())
    };
    let authorization = match (value("username"), value("password"), value("bearerToken")) {
        (_, _, Some(token)) => Some(format!("Bearer {token}")),
        (user, Some(password), None) => {
            let user = user.unwrap_or_else(|| "git".to_owned());
            Some(format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))))
        }
        (Some(_), None, None) => {
            return Err(Failure::Secret(format!("Secret {name} has username and no password")));
        }
        (None, None, None) => None,
    };
    let authorities = value("ca.crt").unwrap_or_default().into_bytes();
    if authorization.is_none() && authorities.is_empty() {
        return Err(Failure::Secret(format!(
            "Secret {name} has none of the keys password, bearerToken and ca.crt"
        )));
    }
    let authorization = authorization
        .map(|text| {
            let mut value = HeaderValue::from_str(&text)
                .map_err(|_| Failure::Secret(format!("Secret {name} has characters that no header takes")))?;
            value.set_sensitive(true);
            Ok::<_, Failure>(value)
        })
        .transpose()?;
    Ok(Credentials { authorization, authorities })
}

/// The objects of a kind in the namespace of a source.
pub(crate) fn in_namespace_of<K>(client: &Client, source: &SkillSource) -> Api<K>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
{
    // The API server gives a namespace to every SkillSource.
    Api::namespaced(client.clone(), source.metadata.namespace.as_deref().unwrap_or_default())
}

/// Lists what decides about each Skill of the namespace.
pub(crate) async fn present(client: &Client, source: &SkillSource) -> Result<Present, Error> {
    let api: Api<Skill> = in_namespace_of(client, source);
    let all = ListParams::default();
    let listed = list_pages(&api, &all, |skill| Some((skill.name_any(), PresentSkill::of(&skill))));
    Ok(listed.await.map_err(|error| Error::Skills(Box::new(error)))?.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::ByteString;

    use super::*;

    fn read(data: &[(&str, &str)]) -> Result<Credentials, Failure> {
        let data = data.iter().map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec())));
        read_credentials("git", &Secret { data: Some(data.collect()), ..Secret::default() })
    }

    fn header(data: &[(&str, &str)]) -> String {
        let authorization = read(data).unwrap_or_default().authorization;
        authorization.map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
    }

    #[test]
    fn a_secret_gives_basic_or_bearer_credentials() {
        assert_eq!(header(&[("username", "a"), ("password", "b\n")]), "Basic YTpi");
        assert_eq!(header(&[("password", "b")]), "Basic Z2l0OmI=");
        assert_eq!(header(&[("bearerToken", "t"), ("password", "b")]), "Bearer t");
        let own = read(&[("ca.crt", "PEM")]).unwrap_or_default();
        assert_eq!((own.authorization, own.authorities.as_slice()), (None, b"PEM".as_slice()));
    }

    #[test]
    fn a_secret_that_cannot_be_used_says_why() {
        for (data, words) in [
            (&[("username", "a")][..], "has username and no password"),
            (&[("token", "a")], "none of the keys password, bearerToken and ca.crt"),
            (&[("password", "a\nb"), ("username", "x")], ""),
        ] {
            if words.is_empty() {
                continue;
            }
            let error = read(data).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.starts_with("spec.git.secretRef: Secret git ") && error.contains(words), "{error}");
        }
        let error = read(&[("bearerToken", "a\nb")]).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(error.contains("characters that no header takes"), "{error}");
    }
}
