//! The limits over a server inside the test, with time that the tests move.

use std::{
    convert::Infallible,
    sync::atomic::{AtomicUsize, Ordering},
};

use futures::future::{join_all, pending};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Pod};
use kube::{
    Api, Client,
    api::{ListParams, WatchParams},
    client::Body,
};
use prometheus_client::{encoding::text::encode, registry::Registry};
use tokio::sync::watch;
use tower::service_fn;

use super::*;

/// A server that responds once `release` is set. Counts the requests that it has now, and the most that it had.
struct Server {
    client: Client,
    metrics: ApiMetrics,
    release: watch::Sender<bool>,
    now: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

fn serve() -> Server {
    let (release, released) = watch::channel(false);
    let (now, most) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let counters = (now.clone(), most.clone());
    let service = service_fn(move |request: Request<Body>| {
        let ((now, most), mut released) = (counters.clone(), released.clone());
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            if request.uri().path().contains("silent") {
                pending::<()>().await;
            }
            if !request.uri().path().contains("leases") {
                released.wait_for(|is_released| *is_released).await.ok();
            }
            now.fetch_sub(1, Ordering::Relaxed);
            let code = if request.uri().path().contains("busy") { 429 } else { 200 };
            let body = if code == 200 { r#"{"metadata":{},"items":[]}"# } else { "{}" };
            Ok::<_, Infallible>(
                Response::builder().status(code).body(Body::from(body.as_bytes().to_vec())).unwrap(),
            )
        }
    });
    let metrics = ApiMetrics::default();
    let client = Client::new(LimitRequests::new(service, metrics.clone()), "default");
    Server { client, metrics, release, now, most }
}

impl Server {
    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), "ns")
    }

    fn metrics(&self) -> String {
        let (mut registry, mut text) = (Registry::default(), String::new());
        self.metrics.register(&mut registry);
        encode(&mut text, &registry).unwrap();
        text
    }
}

#[tokio::test(start_paused = true)]
async fn a_burst_is_in_flight_up_to_the_limit_and_every_request_is_answered() {
    let server = serve();
    let pods = server.pods();
    let all = tokio::spawn(join_all((0..1000).map(|_| {
        let pods = pods.clone();
        async move { pods.list(&ListParams::default()).await.is_ok() }
    })));
    sleep(Duration::from_millis(10)).await;
    assert_eq!(server.now.load(Ordering::Relaxed), PLACES);
    let text = server.metrics();
    assert!(text.contains("api_requests_in_flight 64\n"), "{text}");
    assert!(text.contains(&format!("api_requests_waiting {}\n", 1000 - PLACES)), "{text}");
    server.release.send_replace(true);
    assert!(all.await.unwrap().into_iter().all(|is_ok| is_ok));
    assert_eq!(server.most.load(Ordering::Relaxed), PLACES);
    assert!(server.metrics().contains("api_requests_in_flight 0\n"), "{}", server.metrics());
}

#[tokio::test(start_paused = true)]
async fn a_request_for_the_lease_passes_and_watches_take_no_place() {
    let server = serve();
    let pods = server.pods();
    for _ in 0..PLACES {
        let pods = pods.clone();
        tokio::spawn(async move { pods.watch(&WatchParams::default(), "1").await.map(drop) });
    }
    sleep(Duration::from_millis(10)).await;
    assert_eq!(server.now.load(Ordering::Relaxed), PLACES);
    for _ in 0..=PLACES {
        let pods = pods.clone();
        tokio::spawn(async move { pods.list(&ListParams::default()).await.map(drop) });
    }
    sleep(Duration::from_millis(10)).await;
    assert_eq!(server.now.load(Ordering::Relaxed), 2 * PLACES, "watches take no place");
    let leases: Api<Lease> = Api::namespaced(server.client.clone(), "ns");
    assert!(timeout(Duration::from_secs(1), leases.list(&ListParams::default())).await.unwrap().is_ok());
    assert!(server.metrics().contains("api_watches_total{resource=\"pods\"} 64"), "{}", server.metrics());
}

#[tokio::test(start_paused = true)]
async fn a_request_without_a_response_fails_and_gives_its_place_back() {
    let server = serve();
    server.release.send_replace(true);
    let pods: Api<Pod> = Api::namespaced(server.client.clone(), "silent");
    let before = Instant::now();
    let all = join_all((0..=PLACES).map(|_| pods.get("a"))).await;
    let error = all.into_iter().next().unwrap().unwrap_err().to_string();
    assert!(error.contains("the API server did not respond within 15s"), "{error}");
    assert_eq!(before.elapsed().as_secs(), 30, "the last one got a place after the first ones");
    let busy: Api<Pod> = Api::namespaced(server.client.clone(), "busy");
    busy.get("a").await.unwrap_err();
    let text = server.metrics();
    assert!(text.contains("api_errors_total{error=\"timeout\"} 65"), "{text}");
    assert!(text.contains("api_errors_total{error=\"throttled\"} 1"), "{text}");
}

/// A body whose second part never comes.
struct Stalled(Option<Bytes>);

impl HttpBody for Stalled {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.take().map_or(Poll::Pending, |part| Poll::Ready(Some(Ok(Frame::data(part)))))
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_stalls_fails_unless_it_is_a_watch() {
    let service = service_fn(|_: Request<Body>| async {
        Ok::<_, Infallible>(Response::new(Stalled(Some(Bytes::from_static(b"{")))))
    });
    let client = Client::new(LimitRequests::new(service, ApiMetrics::default()), "default");
    let pods: Api<Pod> = Api::namespaced(client, "ns");
    let error = timeout(Duration::from_secs(20), pods.get("a")).await.unwrap().unwrap_err();
    assert!(format!("{error:?}").contains("NoResponse"), "{error:?}");
    let mut events = Box::pin(pods.watch(&WatchParams::default(), "1").await.unwrap());
    let next = futures::StreamExt::next(&mut events);
    assert!(timeout(Duration::from_secs(600), next).await.is_err(), "a watch may be silent");
}
