//! The way to the gateway: through the API server to its Service, or by a URL; and a token that it accepts.

use http::{HeaderValue, Method, Request, Uri};
use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::{Service, ServiceAccount},
};
use kube::{
    Api, Client, Config, ResourceExt as _,
    api::{ListParams, PostParams},
    client::Body,
};
use serde::de::DeserializeOwned;
use skillet_api::names;

use crate::{
    arguments::GatewayArgs, connection::ClusterClient, error::CliError, gateway_error::GatewayError,
};

const SERVICE_LABELS: &str = "app.kubernetes.io/part-of=skillet,app.kubernetes.io/component=gateway";
/// Names of the Service's port, of which it has one.
const PORTS: [&str; 2] = ["http", "https"];
/// The API server gives no token a shorter life.
const TOKEN_SECONDS: i64 = 600;

/// A client, the path of the gateway's routes on its server, and the caller's token.
pub(crate) struct Gateway {
    client: Client,
    path: String,
    place: String,
    token: String,
}

impl Gateway {
    pub(crate) async fn find(connection: &ClusterClient, args: &GatewayArgs) -> Result<Self, CliError> {
        let mut gateway = match &args.gateway {
            Some(url) => Self::at(url)?,
            None => Self::behind(&connection.client).await?,
        };
        gateway.token = match &args.api_key {
            Some(key) => key.clone(),
            None => token(connection, &args.service_account).await?,
        };
        Ok(gateway)
    }

    fn at(url: &Uri) -> Result<Self, CliError> {
        let client = Client::try_from(Config::new(url.clone()));
        let client = client.map_err(|error| GatewayError::Unreachable {
            place: url.to_string(),
            message: error.to_string(),
        })?;
        Ok(Self { client, path: String::new(), place: url.to_string(), token: String::new() })
    }

    /// The gateway's Service, through the API server.
    async fn behind(client: &Client) -> Result<Self, CliError> {
        let services: Api<Service> = Api::all(client.clone());
        let listed = services
            .list(&ListParams::default().labels(SERVICE_LABELS))
            .await
            .map_err(|error| CliError::from_api("find the gateway's Service", &error))?;
        let found = only_one(listed.items.iter().filter_map(proxy_path).collect())?;
        Ok(Self { client: client.clone(), place: found.clone(), path: found, token: String::new() })
    }

    /// Sends a request, and returns the body of a success. `target` is a path with its query, both escaped.
    pub(crate) async fn send(
        &self,
        method: Method,
        target: &str,
        content_type: &'static str,
        body: Vec<u8>,
    ) -> Result<Vec<u8>, GatewayError> {
        let unreachable = |message: String| GatewayError::Unreachable { place: self.place.clone(), message };
        let mut request = Request::new(Body::from(body));
        *request.method_mut() = method;
        let uri: Result<Uri, _> = format!("{}{target}", self.path).parse();
        *request.uri_mut() = uri.map_err(|error| unreachable(error.to_string()))?;
        let headers = request.headers_mut();
        headers.insert("content-type", HeaderValue::from_static(content_type));
        // The token stands in a header of the gateway's own: the API server's proxy removes `Authorization`.
        if let Ok(token) = HeaderValue::from_str(&self.token) {
            headers.insert("x-skillet-token", token);
        }
        let response = self.client.send(request).await.map_err(|error| unreachable(error.to_string()))?;
        let status = response.status();
        let body =
            response.into_body().collect_bytes().await.map_err(|error| unreachable(error.to_string()))?;
        if !status.is_success() {
            return Err(GatewayError::Refused { status: status.as_u16(), message: message_of(&body) });
        }
        Ok(body.to_vec())
    }
}

/// Reads the body of a response.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, GatewayError> {
    serde_json::from_slice(body).map_err(|error| GatewayError::Unreadable { message: error.to_string() })
}

/// Path of a Service's proxy; none for the Service of the metrics.
/// Whoever may make a Service may give it the gateway's labels, so that none is chosen of several.
fn only_one(mut places: Vec<String>) -> Result<String, GatewayError> {
    if places.len() > 1 {
        return Err(GatewayError::ManyServices { places });
    }
    places.pop().ok_or(GatewayError::NoService)
}

fn proxy_path(service: &Service) -> Option<String> {
    let ports = service.spec.as_ref()?.ports.as_ref()?;
    let port = ports.iter().filter_map(|port| port.name.as_deref()).find(|name| PORTS.contains(name))?;
    let scheme = if port == "https" { "https:" } else { "" };
    let namespace = service.metadata.namespace.as_deref()?;
    let name = service.name_any();
    Some(format!("/api/v1/namespaces/{namespace}/services/{scheme}{name}:{port}/proxy"))
}

/// The message of an error, in the gateway's form or in the API server's.
fn message_of(body: &[u8]) -> String {
    let value: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let message = [&value["error"]["message"], &value["message"], &value["error"]]
        .into_iter()
        .find_map(serde_json::Value::as_str);
    message.map_or_else(|| String::from_utf8_lossy(body).trim().to_owned(), ToOwned::to_owned)
}

/// Creates a token of a service account for the gateway, which lives ten minutes.
async fn token(connection: &ClusterClient, account: &str) -> Result<String, CliError> {
    let ClusterClient { client, namespace } = connection;
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    let spec = TokenRequestSpec {
        audiences: Some(vec![names::GATEWAY_AUDIENCE.to_owned()]),
        expiration_seconds: Some(TOKEN_SECONDS),
        ..TokenRequestSpec::default()
    };
    let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
    match accounts.create_token_request(account, &PostParams::default(), &request).await {
        Ok(created) => Ok(created.status.and_then(|status| status.token).unwrap_or_default()),
        Err(kube::Error::Api(status)) if status.code == 404 => {
            Err(CliError::NoServiceAccount { namespace: namespace.clone(), name: account.to_owned() })
        }
        Err(error) => {
            Err(CliError::from_api(format!("create a token of ServiceAccount {namespace}/{account}"), &error))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_service_is_chosen_of_several() {
        let places = |names: &[&str]| only_one(names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(places(&["a"]).unwrap(), "a");
        assert!(matches!(places(&[]), Err(GatewayError::NoService)));
        let error = places(&["a", "b"]).unwrap_err();
        assert_eq!(error.to_string(), "more than one Service calls itself Skillet's gateway: a, b");
        assert!(error.advice().unwrap_or_default().contains("--gateway URL"));
    }
}
