//! The gateway's state in the cluster: ConfigMaps of the operator's namespace.
//!
//! Their names are fixed, because the chart lets the gateway read and change ConfigMaps of these names only. The replicas
//! write without a leader: a write that is based on an old state is repeated on the new one.

use std::collections::BTreeMap;

use k8s_openapi::{ByteString, api::core::v1::ConfigMap};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use skillet_api::names;
use thiserror::Error;

/// Tries to write a ConfigMap that other replicas change at the same time.
const TRIES: usize = 5;

/// The entries of a ConfigMap that are texts.
pub type Entries = BTreeMap<String, String>;

/// The entries of a ConfigMap. No key is in both.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MapContent {
    pub texts: Entries,
    pub bytes: BTreeMap<String, ByteString>,
}

#[derive(Debug, Error)]
pub enum StateError {
    #[error("could not read ConfigMap {name}")]
    Read { name: String, source: Box<kube::Error> },
    #[error("could not write ConfigMap {name}")]
    Write { name: String, source: Box<kube::Error> },
}

/// ConfigMaps with the gateway's state.
#[derive(Clone)]
pub struct StateMaps {
    api: Api<ConfigMap>,
}

impl MapContent {
    fn of(found: &ConfigMap) -> Self {
        let (texts, bytes) = (found.data.clone(), found.binary_data.clone());
        Self { texts: texts.unwrap_or_default(), bytes: bytes.unwrap_or_default() }
    }
}

impl StateMaps {
    /// `namespace` is the operator's.
    pub fn new(client: Client, namespace: &str) -> Self {
        Self { api: Api::namespaced(client, namespace) }
    }

    /// Returns the texts of a ConfigMap after a change, as [`Self::change_content`] does.
    pub async fn change(
        &self,
        name: &str,
        mut change: impl FnMut(&mut Entries) -> bool,
    ) -> Result<Entries, StateError> {
        Ok(self.change_content(name, |content| change(&mut content.texts)).await?.texts)
    }

    /// Returns the entries of a ConfigMap after a change. `change` returns true if it changed something, and may be called
    /// more than once. A ConfigMap that does not exist has no entries.
    pub async fn change_content(
        &self,
        name: &str,
        mut change: impl FnMut(&mut MapContent) -> bool,
    ) -> Result<MapContent, StateError> {
        let mut tries = 1;
        loop {
            let found = self.api.get_opt(name).await;
            let found =
                found.map_err(|source| StateError::Read { name: name.into(), source: Box::new(source) })?;
            let mut content = found.as_ref().map(MapContent::of).unwrap_or_default();
            if !change(&mut content) {
                return Ok(content);
            }
            match self.write(name, found, content.clone()).await {
                Ok(_) => return Ok(content),
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) && tries < TRIES => {
                    tries += 1;
                }
                Err(source) => {
                    return Err(StateError::Write { name: name.into(), source: Box::new(source) });
                }
            }
        }
    }

    async fn write(
        &self,
        name: &str,
        found: Option<ConfigMap>,
        content: MapContent,
    ) -> Result<ConfigMap, kube::Error> {
        let params = PostParams {
            field_manager: Some(names::GATEWAY_FIELD_MANAGER.to_owned()),
            ..PostParams::default()
        };
        if let Some(found) = found {
            let changed = ConfigMap { data: Some(content.texts), binary_data: Some(content.bytes), ..found };
            return self.api.replace(name, &params, &changed).await;
        }
        let label = (names::LABEL_MANAGED_BY.to_owned(), names::MANAGED_BY.to_owned());
        let metadata =
            ObjectMeta { name: Some(name.to_owned()), labels: Some([label].into()), ..ObjectMeta::default() };
        let MapContent { texts, bytes } = content;
        let new = ConfigMap { metadata, data: Some(texts), binary_data: Some(bytes), ..ConfigMap::default() };
        self.api.create(&params, &new).await
    }
}

#[cfg(test)]
mod tests {
    use skillet_kube::testing::FakeApiServer;

    use super::*;

    const AT: &str = "/api/v1/namespaces/skillet-system/configmaps";

    fn add(entries: &mut Entries, key: &str) -> bool {
        entries.insert(key.to_owned(), "v".to_owned()).is_none()
    }

    #[tokio::test]
    async fn a_state_is_created_changed_and_left_alone_if_nothing_changed() {
        let server = FakeApiServer::default();
        let maps = StateMaps::new(server.client(), "skillet-system");
        assert!(maps.change("s", |_| false).await.unwrap().is_empty());
        assert_eq!(server.count("POST"), 0);
        maps.change("s", |entries| add(entries, "a")).await.unwrap();
        let both = maps.change("s", |entries| add(entries, "b")).await.unwrap();
        assert_eq!(both.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert!(!maps.change("s", |entries| add(entries, "b")).await.unwrap().is_empty());
        assert_eq!((server.count("POST"), server.count("PUT")), (1, 1));
    }

    #[tokio::test]
    async fn bytes_and_texts_of_one_map_are_kept_beside_each_other() {
        let server = FakeApiServer::default();
        let maps = StateMaps::new(server.client(), "skillet-system");
        let vector = || ByteString(vec![0, 255, 7]);
        let written =
            maps.change_content("s", |content| content.bytes.insert("v".into(), vector()).is_none());
        assert_eq!(written.await.unwrap().bytes["v"], vector());
        maps.change("s", |entries| add(entries, "a")).await.unwrap();
        let read = maps.change_content("s", |_| false).await.unwrap();
        assert_eq!((read.bytes["v"].clone(), read.texts["a"].as_str()), (vector(), "v"));
        assert_eq!(server.object(&format!("{AT}/s")).unwrap()["binaryData"]["v"], "AP8H");
    }

    #[tokio::test]
    async fn a_write_on_an_old_state_is_repeated_and_an_error_names_the_object() {
        let server = FakeApiServer::default();
        let maps = StateMaps::new(server.client(), "skillet-system");
        maps.change("s", |entries| add(entries, "a")).await.unwrap();
        server.fail_next(&format!("PUT {AT}/s"), 409, "changed");
        let mut calls = 0;
        maps.change("s", |entries| {
            calls += 1;
            add(entries, "b")
        })
        .await
        .unwrap();
        assert_eq!(calls, 2);
        server.fail_next(&format!("GET {AT}/s"), 403, "no right");
        let refused = maps.change("s", |_| true).await.unwrap_err();
        assert_eq!(refused.to_string(), "could not read ConfigMap s");
    }
}
