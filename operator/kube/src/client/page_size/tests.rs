//! Sizes of pages by their bytes, and pages that are dropped while they arrive.

use std::future::ready;

use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api,
    api::ListParams,
    client::{Body, ClientBuilder},
};

use super::*;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

#[test]
fn pages_of_small_objects_double_and_those_of_large_ones_halve() {
    for (objects, bytes, expected) in [
        (10, 0, 20),
        (10, 10 * KIB, 20),
        (320, 320 * KIB, 500),
        (500, MIB, 500),
        (80, MIB, 160),
        (80, MIB + 1, 80),
        (80, 2 * MIB, 80),
        (80, 2 * MIB + 1, 40),
        (80, 15 * MIB, 40),
        (10, 15 * MIB, 10),
        (15, 3 * MIB, 10),
    ] {
        assert_eq!(next_size(objects, bytes), expected, "{objects} objects of {bytes} bytes");
    }
}

#[test]
fn ten_thousand_objects_of_two_kibibytes_take_few_pages() {
    let (mut size, mut left, mut pages) = (PageSize::default(), 10_000_u32, 0);
    while left > 0 {
        let page = size.objects.min(left);
        size = size.after(size.objects, page as usize * 2 * KIB);
        (left, pages) = (left - page, pages + 1);
    }
    assert!(pages <= 30, "{pages} pages");
}

#[test]
fn after_a_dropped_page_all_pages_stay_smaller() {
    let mut size = PageSize::default().after(500, MAX_BYTES + 1);
    assert_eq!(size, PageSize { objects: PAGE_SIZE, ceiling: 62 });
    for expected in [20, 40, 62, 62] {
        size = size.after(size.objects, KIB);
        assert_eq!(size.objects, expected);
    }
    size = size.after(62, MAX_BYTES + 1);
    assert_eq!(size, PageSize { objects: PAGE_SIZE, ceiling: PAGE_SIZE });
    assert_eq!(size.after(PAGE_SIZE, KIB), size);
    assert_eq!(size.after(PAGE_SIZE, MAX_BYTES + 1), size, "the smallest page is never dropped");
}

#[test]
fn the_lists_of_a_kind_have_one_size_in_all_namespaces() {
    for (path, expected) in [
        ("/apis/skillet.dev/v1alpha1/skills", "/apis/skillet.dev/v1alpha1/skills"),
        ("/apis/skillet.dev/v1alpha1/namespaces/a/skills", "/apis/skillet.dev/v1alpha1/skills"),
        ("/api/v1/namespaces/a/pods", "/api/v1/pods"),
        ("/api/v1/namespaces", "/api/v1/namespaces"),
    ] {
        assert_eq!(without_namespace(path), expected);
    }
}

fn check_uri(uri: &str, expected: Option<&str>) {
    let changed = with_page_size(&uri.parse().unwrap(), 80);
    assert_eq!(changed.map(|uri| uri.to_string()).as_deref(), expected, "{uri}");
}

#[test]
fn only_lists_of_the_common_page_size_are_changed() {
    check_uri("/apis/a/skills?&limit=10", Some("/apis/a/skills?&limit=80"));
    check_uri("/apis/a/skills?limit=10&continue=abc%3D", Some("/apis/a/skills?limit=80&continue=abc%3D"));
    for other in ["/apis/a/skills", "/apis/a/skills?limit=100", "/apis/a/skills?watch=true"] {
        check_uri(other, None);
    }
}

/// A page of `objects` objects that arrives in pieces of a MiB: the pieces read before its end or its error.
fn pieces(objects: u32, mib: usize) -> (usize, PageSize) {
    let sizes = PageSizes::default();
    let mut page = Page { sizes: sizes.clone(), path: "p".into(), objects, bytes: 0 };
    let read = (0..mib).take_while(|_| page.count(MIB).is_ok()).count();
    if read == mib {
        page.end();
    }
    let size = lock(&sizes).get("p").copied().unwrap();
    (read, size)
}

#[test]
fn a_page_is_dropped_while_it_arrives() {
    let of = |objects, ceiling| PageSize { objects, ceiling };
    assert_eq!(pieces(500, 1), (1, of(500, 500)));
    assert_eq!(pieces(500, 16), (16, of(250, 500)));
    assert_eq!(pieces(500, 600), (16, of(PAGE_SIZE, 62)));
    assert_eq!(pieces(PAGE_SIZE, 20), (20, of(PAGE_SIZE, 500)));
}

#[tokio::test]
async fn the_pages_of_one_list_grow_and_those_of_others_stay() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = asked.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        lock(&seen).push(request.uri().query().unwrap_or_default().to_owned());
        let list = r#"{"kind":"PodList","apiVersion":"v1","metadata":{},"items":[]}"#;
        ready(Ok::<_, BoxError>(Response::new(Body::from(list.as_bytes().to_vec()))))
    });
    let pods: Api<Pod> = Api::all(ClientBuilder::new(AdaptPageSize::new(service), "default").build());
    for limit in [PAGE_SIZE, PAGE_SIZE, 7, PAGE_SIZE] {
        pods.list(&ListParams::default().limit(limit)).await.unwrap();
    }
    assert_eq!(*lock(&asked), ["&limit=10", "&limit=20", "&limit=7", "&limit=40"]);
}
