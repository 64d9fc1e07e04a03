//! Sizes of list pages: more objects while they are small, [`PAGE_SIZE`] again as soon as they are not.
//!
//! A page is in memory as a whole, so its bytes are bounded and not its objects. A list that asks for [`PAGE_SIZE`] objects a
//! page gets pages that double up to [`MAX_OBJECTS`], kind by kind. A page that grows over [`MAX_BYTES`] is dropped while it
//! arrives. The watch then lists again, with smaller pages from there on.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, ready},
};

use http::{Request, Response, Uri};
use http_body::{Body as HttpBody, Frame, SizeHint};
use kube::client::Body;
use tower::{BoxError, Service};
use tracing::info;

use crate::{PAGE_SIZE, lock};

/// Most objects in one page.
const MAX_OBJECTS: u32 = 500;
/// A page of at most this size is followed by one of twice as many objects.
const SMALL_BYTES: usize = 1 << 20;
/// A page of more than this size is followed by one of half as many objects.
const LARGE_BYTES: usize = 2 << 20;
/// Most bytes of one page: as many as [`PAGE_SIZE`] objects take that are as large as the API server accepts them.
const MAX_BYTES: usize = 16 << 20;

/// Returns the objects of the page after one of `objects` objects and `bytes` bytes.
fn next_size(objects: u32, bytes: usize) -> u32 {
    let next = if bytes <= SMALL_BYTES {
        objects.saturating_mul(2)
    } else if bytes <= LARGE_BYTES {
        objects
    } else {
        objects / 2
    };
    next.clamp(PAGE_SIZE, MAX_OBJECTS)
}

/// The size of one kind's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PageSize {
    /// Objects of the next page.
    objects: u32,
    /// Most objects of any page. A dropped page lowers it: some objects are much larger than the others.
    ceiling: u32,
}

impl Default for PageSize {
    fn default() -> Self {
        Self { objects: PAGE_SIZE, ceiling: MAX_OBJECTS }
    }
}

impl PageSize {
    /// Returns the size after a page of `objects` objects, of which `bytes` bytes arrived.
    fn after(self, objects: u32, bytes: usize) -> Self {
        if is_dropped(objects, bytes) {
            // Few drops are left until the smallest page.
            let ceiling = (objects / 8).clamp(PAGE_SIZE, self.ceiling);
            return Self { objects: PAGE_SIZE, ceiling };
        }
        Self { objects: next_size(objects, bytes).min(self.ceiling), ..self }
    }
}

/// Tells if a page has too many bytes. The smallest page never has.
fn is_dropped(objects: u32, bytes: usize) -> bool {
    bytes > MAX_BYTES && objects > PAGE_SIZE
}

/// The sizes of all kinds, by the path of their lists without a namespace.
type PageSizes = Arc<Mutex<HashMap<String, PageSize>>>;

/// The error of a page that was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a page of {objects} objects has more than {MAX_BYTES} bytes; the next list has smaller pages")]
struct PageTooLarge {
    objects: u32,
}

/// Changes the page size of lists, and counts the bytes of each page.
#[derive(Debug)]
pub(crate) struct AdaptPageSize<S> {
    service: S,
    sizes: PageSizes,
}

impl<S> AdaptPageSize<S> {
    pub(crate) fn new(service: S) -> Self {
        Self { service, sizes: PageSizes::default() }
    }
}

impl<S, B> Service<Request<Body>> for AdaptPageSize<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = Response<PageBody<B>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, task: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.service.poll_ready(task)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let path = without_namespace(request.uri().path());
        let objects = lock(&self.sizes).get(&path).copied().unwrap_or_default().objects;
        let page = with_page_size(request.uri(), objects).map(|uri| {
            *request.uri_mut() = uri;
            Page { sizes: self.sizes.clone(), path, objects, bytes: 0 }
        });
        let response = self.service.call(request);
        Box::pin(async move {
            let response = response.await?;
            // An error is no page.
            let page = if response.status().is_success() { page } else { None };
            Ok(response.map(|body| PageBody { body, page }))
        })
    }
}

/// Returns the address of a list with another page size; `None` for a request that is no list of [`PAGE_SIZE`] objects a page.
fn with_page_size(uri: &Uri, objects: u32) -> Option<Uri> {
    let (query, asked) = (uri.query()?, format!("limit={PAGE_SIZE}"));
    if !query.split('&').any(|part| part == asked) {
        return None;
    }
    let query: Vec<String> = query
        .split('&')
        .map(|part| if part == asked { format!("limit={objects}") } else { part.to_owned() })
        .collect();
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(format!("{}?{}", uri.path(), query.join("&")).parse().ok()?);
    Uri::from_parts(parts).ok()
}

/// Returns the path of a kind's list in all namespaces.
fn without_namespace(path: &str) -> String {
    let in_namespace = path.split_once("/namespaces/");
    match in_namespace.and_then(|(before, rest)| Some((before, rest.split_once('/')?.1))) {
        Some((before, kind)) => format!("{before}/{kind}"),
        None => path.to_owned(),
    }
}

/// A page that arrives.
#[derive(Debug)]
struct Page {
    sizes: PageSizes,
    path: String,
    objects: u32,
    bytes: usize,
}

impl Page {
    /// Counts bytes that arrived. Fails if they are too many.
    fn count(&mut self, bytes: usize) -> Result<(), PageTooLarge> {
        self.bytes += bytes;
        if !is_dropped(self.objects, self.bytes) {
            return Ok(());
        }
        info!(path = self.path, objects = self.objects, "A page of a list is too large");
        self.end();
        Err(PageTooLarge { objects: self.objects })
    }

    /// Decides the size of the next page.
    fn end(&self) {
        let mut sizes = lock(&self.sizes);
        let size = sizes.entry(self.path.clone()).or_default();
        *size = size.after(self.objects, self.bytes);
    }
}

/// The body of a response, with its page if it is one of a list.
#[derive(Debug)]
pub(crate) struct PageBody<B> {
    body: B,
    page: Option<Page>,
}

impl<B> HttpBody for PageBody<B>
where
    B: HttpBody + Unpin,
    B::Data: AsRef<[u8]>,
    B::Error: Into<BoxError>,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let frame =
            ready!(Pin::new(&mut self.body).poll_frame(task)).transpose().map_err(Into::<BoxError>::into)?;
        if let Some(page) = &mut self.page {
            let bytes = frame.as_ref().and_then(Frame::data_ref).map_or(0, |data| data.as_ref().len());
            page.count(bytes)?;
            if frame.is_none() {
                page.end();
            }
        }
        Poll::Ready(frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        // A page is decided at its end, which must be read.
        self.page.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
