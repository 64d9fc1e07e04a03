//! Lists objects page by page, so that no more than one page of them is in memory.

use kube::{Api, Resource, ResourceExt as _, api::ListParams, core::PartialObjectMeta};
use serde::de::DeserializeOwned;

use crate::PAGE_SIZE;

/// Metadata in one page of a list: some kilobytes each.
const METADATA_PAGE_SIZE: u32 = 500;

/// Lists the objects of `api`, and returns what `read` keeps of each.
pub async fn list_pages<K, T>(
    api: &Api<K>,
    params: &ListParams,
    mut read: impl FnMut(K) -> Option<T>,
) -> kube::Result<Vec<T>>
where
    K: Resource + Clone + std::fmt::Debug + DeserializeOwned,
{
    let mut kept = Vec::new();
    let mut params = params.clone().limit(PAGE_SIZE);
    loop {
        let page = api.list(&params).await?;
        let next = page.metadata.continue_;
        kept.extend(page.items.into_iter().filter_map(&mut read));
        match next_page(params, next) {
            Some(next) => params = next,
            None => return Ok(kept),
        }
    }
}

/// Lists the metadata of the objects of `api` without their managed fields, and returns what `read` keeps of each.
pub async fn list_metadata_pages<K, T>(
    api: &Api<K>,
    params: &ListParams,
    mut read: impl FnMut(PartialObjectMeta<K>) -> Option<T>,
) -> kube::Result<Vec<T>>
where
    K: Resource + Clone + std::fmt::Debug + DeserializeOwned,
{
    let mut kept = Vec::new();
    let mut params = params.clone().limit(METADATA_PAGE_SIZE);
    loop {
        let page = api.list_metadata(&params).await?;
        let next = page.metadata.continue_;
        kept.extend(page.items.into_iter().filter_map(|mut object| {
            object.managed_fields_mut().clear();
            read(object)
        }));
        match next_page(params, next) {
            Some(next) => params = next,
            None => return Ok(kept),
        }
    }
}

/// Returns the parameters of the next page. Its version is that of the first page, so it may name none.
fn next_page(params: ListParams, token: Option<String>) -> Option<ListParams> {
    let token = token.filter(|token| !token.is_empty())?;
    Some(ListParams { version_match: None, resource_version: None, ..params }.continue_token(&token))
}
