//! Reads what a look at a source needs of the cluster: its credentials, and the Skills of its namespace.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, Resource, ResourceExt as _, api::ListParams, core::NamespaceResourceScope};
use reqwest::header::HeaderValue;
use skillet_api::{Skill, SkillSource};
use skillet_kube::list_pages;

use crate::{
    failure::{Failure, Place},
    http_client::Credentials,
    oci::docker_config,
    plan::{Present, PresentSkill},
};

/// Key of a Secret of type kubernetes.io/dockerconfigjson.
const DOCKER_CONFIG: &str = ".dockerconfigjson";

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

/// Reads the credentials that the source names. `registry` is the host of an artifact.
pub(crate) async fn credentials(
    client: &Client,
    source: &SkillSource,
    place: Place,
    registry: &str,
) -> Result<Credentials, Error> {
    let spec = &source.spec;
    let reference = match place {
        Place::Git => spec.git.as_ref().and_then(|git| git.secret_ref.as_ref()),
        Place::Oci => spec.oci.as_ref().and_then(|oci| oci.secret_ref.as_ref()),
    };
    let Some(reference) = reference else { return Ok(Credentials::default()) };
    let api: Api<Secret> = in_namespace_of(client, source);
    let secret = api.get_opt(&reference.name).await;
    let secret = secret.map_err(|error| Error::Secret(reference.name.clone(), Box::new(error)))?;
    let missing = || Failure::Secret(place, format!("there is no Secret {}", reference.name));
    let secret = secret.ok_or_else(missing)?;
    Ok(read_credentials(place, registry, &reference.name, &secret)?)
}

fn read_credentials(
    place: Place,
    registry: &str,
    name: &str,
    secret: &Secret,
) -> Result<Credentials, Failure> {
    let failed = |problem: String| Failure::Secret(place, format!("Secret {name} {problem}"));
    let value = |key: &str| {
        let bytes = &secret.data.as_ref()?.get(key)?.0;
        // Editors end a file with a line feed that is no part of the value.
        Some(String::from_utf8_lossy(bytes).trim_end_matches(['\r', '\n']).to_owned())
    };
    let basic =
        |user: &str, password: &str| format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
    let docker = if place == Place::Oci { value(DOCKER_CONFIG) } else { None };
    let authorization = match (value("username"), value("password"), value("bearerToken"), docker) {
        (_, _, Some(token), _) => Some(format!("Bearer {token}")),
        (user, Some(password), None, _) => Some(basic(user.as_deref().unwrap_or("git"), &password)),
        (Some(_), None, None, _) => return Err(failed("has username and no password".to_owned())),
        (None, None, None, Some(config)) => {
            Some(docker_config::authorization(&config, registry).map_err(failed)?)
        }
        (None, None, None, None) => None,
    };
    let authorities = value("ca.crt").unwrap_or_default().into_bytes();
    if authorization.is_none() && authorities.is_empty() {
        let docker = if place == Place::Oci { ", .dockerconfigjson" } else { "" };
        return Err(failed(format!("has none of the keys password, bearerToken{docker} and ca.crt")));
    }
    let authorization = authorization
        .map(|text| {
            let value = HeaderValue::from_str(&text);
            let mut value = value.map_err(|_| failed("has characters that no header takes".to_owned()))?;
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

    fn read_at(place: Place, data: &[(&str, &str)]) -> Result<Credentials, Failure> {
        let data = data.iter().map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec())));
        let secret = Secret { data: Some(data.collect()), ..Secret::default() };
        read_credentials(place, "registry.example.com", "git", &secret)
    }

    fn read(data: &[(&str, &str)]) -> Result<Credentials, Failure> {
        read_at(Place::Git, data)
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

    #[test]
    fn a_secret_of_a_registry_may_be_that_of_image_pulls() {
        let config = r#"{"auths":{"registry.example.com":{"username":"a","password":"b"}}}"#;
        let found = read_at(Place::Oci, &[(DOCKER_CONFIG, config)]).unwrap_or_default().authorization;
        assert_eq!(found.unwrap().to_str().unwrap(), "Basic YTpi");
        let error = read_at(Place::Oci, &[(DOCKER_CONFIG, "{}")]).err().map(|error| error.to_string());
        let message =
            "spec.oci.secretRef: Secret git has no credentials for registry.example.com in .dockerconfigjson";
        assert_eq!(error.as_deref(), Some(message));
        assert!(read(&[(DOCKER_CONFIG, config)]).is_err(), "a git server has no use for it");
    }
}
