//! Callers and rights against a small API server: who is known, for how long, and what is asked how often.

use std::sync::Mutex;

use futures::future::join_all;
use serde_json::{Value, json};
use skillet_core::api_key::KeyText;

use skillet_kube::testing::{FakeApiServer, eventually, token};

use super::*;

struct Scene {
    api: FakeApiServer,
    auth: Arc<Auth>,
    passed: Arc<Mutex<Duration>>,
}

fn start() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn scene() -> Scene {
    let (api, passed, began) =
        (FakeApiServer::default(), Arc::new(Mutex::new(Duration::ZERO)), Instant::now());
    let clock = Arc::clone(&passed);
    let now = move || {
        let passed = *clock.lock().unwrap();
        Now { instant: began + passed, timestamp: start() + passed }
    };
    let auth = Arc::new(Auth::with_clock(api.client(), Box::new(now)));
    Scene { api, auth, passed }
}

/// A token for the gateway that ends so many seconds after the start.
fn token_until(name: &str, seconds: i64) -> String {
    token(name, &json!({ "aud": ["skillet"], "exp": start().as_second() + seconds }))
}

impl Scene {
    fn pass(&self, seconds: u64) {
        *self.passed.lock().unwrap() += Duration::from_secs(seconds);
    }

    async fn user(&self, token: &str) -> Result<String, AuthError> {
        let headers = HeaderMap::from_iter([(http::header::AUTHORIZATION, bearer(token))]);
        self.auth.authenticate(&headers, None).await.map(|found| found.caller.user.to_string())
    }

    fn reviews(&self) -> usize {
        self.api.count_reviews("tokenreviews")
    }

    async fn may(&self, user: &Caller, verb: Verb, skill: Option<&str>) -> Result<(), AuthError> {
        self.auth.authorize(user, verb, "team-a", skill).await
    }

    async fn watch_keys(&self) {
        tokio::spawn(Arc::clone(&self.auth).watch_keys());
        eventually("the keys are in", || self.auth.is_synced()).await;
    }
}

fn bearer(token: &str) -> http::HeaderValue {
    format!("Bearer {token}").parse().unwrap()
}

const AGENT: &str = "system:serviceaccount:team-a:agent";

#[tokio::test]
async fn a_service_account_is_known_for_half_a_minute_by_one_review() {
    let scene = scene();
    let token = token_until("t", 3600);
    scene.api.add_token(&token, "team-a", "agent");
    for _ in 0..3 {
        assert_eq!(scene.user(&token).await.as_deref(), Ok(AGENT));
    }
    scene.pass(29);
    scene.api.remove_token(&token);
    assert_eq!(scene.user(&token).await.as_deref(), Ok(AGENT));
    assert_eq!(scene.reviews(), 1);
    scene.pass(1);
    assert_eq!(scene.user(&token).await, Err(AuthError::Unknown));
    assert_eq!(scene.reviews(), 2);
}

#[tokio::test]
async fn a_token_is_not_known_past_its_own_end() {
    let scene = scene();
    let (short, ended) = (token_until("a", 10), token_until("b", -1));
    scene.api.add_token(&short, "team-a", "agent");
    scene.api.add_token(&ended, "team-a", "agent");
    assert!(scene.user(&short).await.is_ok());
    scene.pass(9);
    assert!(scene.user(&short).await.is_ok());
    assert_eq!(scene.reviews(), 1);
    scene.pass(1);
    assert!(scene.user(&short).await.is_ok(), "the API server decides, its clock may be behind");
    assert_eq!(scene.reviews(), 2);
    for reviews in [3, 4] {
        assert!(scene.user(&ended).await.is_ok());
        assert_eq!(scene.reviews(), reviews);
    }
}

#[tokio::test]
async fn an_unknown_token_is_reviewed_again_after_five_seconds() {
    let scene = scene();
    let token = token_until("t", 3600);
    for _ in 0..2 {
        assert_eq!(scene.user(&token).await, Err(AuthError::Unknown));
    }
    scene.api.add_token(&token, "team-a", "agent");
    scene.pass(4);
    assert_eq!(scene.user(&token).await, Err(AuthError::Unknown));
    assert_eq!(scene.reviews(), 1);
    scene.pass(1);
    assert_eq!(scene.user(&token).await.as_deref(), Ok(AGENT));
}

#[tokio::test]
async fn many_requests_with_one_new_token_make_one_review() {
    let scene = scene();
    let token = token_until("t", 3600);
    scene.api.add_token(&token, "team-a", "agent");
    scene.api.hold_reviews(true);
    let release = async {
        eventually("the API server gets a review", || scene.reviews() == 1).await;
        scene.api.hold_reviews(false);
    };
    let (users, ()) = futures::join!(join_all((0..20).map(|_| scene.user(&token))), release);
    assert!(users.iter().all(Result::is_ok), "{users:?}");
    assert_eq!(scene.reviews(), 1);
}

#[tokio::test]
async fn a_providers_key_is_never_shown_to_the_api_server() {
    let scene = scene();
    let foreign = token("t", &json!({ "aud": "https://accounts.google.com" }));
    for text in ["sk-proj-abc", "AIzaSyExample", "sk_tooshort"] {
        assert_eq!(scene.user(text).await, Err(AuthError::Unknown), "{text}");
    }
    let refused = scene.user(&foreign).await.unwrap_err();
    assert_eq!(refused.to_string(), "the token is for another audience; create it with --audience skillet");
    assert_eq!(scene.reviews(), 0);
}

#[tokio::test]
async fn a_token_that_the_cluster_did_not_sign_makes_no_review() {
    let scene = scene();
    let key = json!({ "kty": "EC", "crv": "P-256", "kid": "a", "x": "AA", "y": "AA" });
    scene.api.put_jwks(json!({ "keys": [key] }));
    for number in 0..20 {
        let forged = token_until(&number.to_string(), 3600);
        scene.api.add_token(&forged, "team-a", "agent");
        assert_eq!(scene.user(&forged).await, Err(AuthError::Unknown));
    }
    assert_eq!(scene.reviews(), 0);
}

#[tokio::test]
async fn an_api_server_that_fails_makes_nobody_known_and_is_asked_again() {
    let scene = scene();
    let token = token_until("t", 3600);
    scene.api.add_token(&token, "team-a", "agent");
    scene.api.fail_reviews(true);
    let refused = scene.user(&token).await.unwrap_err();
    assert_eq!(refused.to_string(), "the cluster could not be asked: a TokenReview had no answer");
    assert_eq!(ApiError::from(refused).status, 503);
    let caller = reviews::service_account("team-a", "agent");
    assert!(matches!(scene.may(&caller, Verb::Get, None).await, Err(AuthError::Unreachable(_))));
    scene.api.fail_reviews(false);
    assert!(scene.user(&token).await.is_ok());
    assert!(matches!(scene.may(&caller, Verb::Get, None).await, Err(AuthError::Forbidden { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_review_that_is_never_answered_ends() {
    let scene = scene();
    scene.api.hold_reviews(true);
    let refused = scene.user(&token_until("t", 3600)).await;
    assert!(matches!(refused, Err(AuthError::Unreachable(_))), "{refused:?}");
}

#[tokio::test]
async fn the_place_of_the_token_is_returned() {
    let scene = scene();
    let token = token_until("t", 3600);
    scene.api.add_token(&token, "team-a", "agent");
    let mut headers = HeaderMap::from_iter([(http::header::AUTHORIZATION, bearer("sk-provider"))]);
    let query = format!("key={token}");
    let found = scene.auth.authenticate(&headers, Some(&query)).await;
    assert_eq!(found, Err(AuthError::Unknown), "a valid token elsewhere does not replace an unknown token");
    headers.insert(SKILLET_TOKEN, token.parse().unwrap());
    assert_eq!(scene.auth.authenticate(&headers, None).await.unwrap().token_header, SKILLET_TOKEN);
    let found = scene.auth.authenticate(&HeaderMap::new(), Some(&query)).await.unwrap();
    assert_eq!(found.token_header, QUERY_PARAMETER);
    assert_eq!(scene.auth.authenticate(&HeaderMap::new(), None).await, Err(AuthError::Missing));
}

#[tokio::test]
async fn a_right_is_asked_once_in_five_seconds_whether_held_or_not() {
    let scene = scene();
    let caller = reviews::service_account("team-a", "agent");
    scene.api.allow(AGENT, "execute", "team-a", Some("word-count"));
    for _ in 0..3 {
        assert_eq!(scene.may(&caller, Verb::Execute, Some("word-count")).await, Ok(()));
    }
    let forbidden = |verb| Err(AuthError::Forbidden { verb, namespace: "team-a".into() });
    for _ in 0..3 {
        assert_eq!(scene.may(&caller, Verb::Execute, Some("other")).await, forbidden(Verb::Execute));
    }
    assert_eq!(scene.may(&caller, Verb::Execute, None).await, forbidden(Verb::Execute));
    assert_eq!(scene.may(&caller, Verb::Patch, Some("word-count")).await, forbidden(Verb::Patch));
    assert_eq!(scene.api.count_reviews("subjectaccessreviews"), 4);
    scene.api.remove_rights();
    scene.api.allow(AGENT, "execute", "team-a", Some("other"));
    scene.pass(5);
    assert_eq!(scene.may(&caller, Verb::Execute, Some("word-count")).await, forbidden(Verb::Execute));
    assert_eq!(scene.may(&caller, Verb::Execute, Some("other")).await, Ok(()));
}

#[tokio::test]
async fn rights_to_several_namespaces_keep_their_order() {
    let scene = scene();
    let caller = reviews::service_account("team-a", "agent");
    for (verb, namespace) in [("get", "c"), ("execute", "c"), ("get", "b"), ("get", "a"), ("execute", "a")] {
        scene.api.allow(AGENT, verb, namespace, None);
    }
    let namespaces = || ["d", "c", "b", "a"].map(Arc::from).to_vec();
    let allowed = scene.auth.allowed(&caller, &[Verb::Get, Verb::Execute], namespaces(), None).await;
    assert_eq!(allowed, Ok(vec!["c".into(), "a".into()]));
    scene.pass(5);
    scene.api.fail_reviews(true);
    let failed = scene.auth.allowed(&caller, &[Verb::Get], namespaces(), None).await;
    assert!(matches!(failed, Err(AuthError::Unreachable(_))));
}

#[tokio::test]
async fn a_name_that_no_skill_can_have_is_neither_asked_for_nor_kept() {
    let scene = scene();
    let caller = reviews::service_account("team-a", "agent");
    for first in ["a", "b"] {
        let name = first.repeat(1 << 20);
        let refused = scene.may(&caller, Verb::Execute, Some(&name)).await;
        assert_eq!(refused, Err(AuthError::Forbidden { verb: Verb::Execute, namespace: "team-a".into() }));
    }
    assert_eq!(scene.api.count_reviews("subjectaccessreviews"), 1, "one review of the namespace");
    scene.pass(5);
    // Who may do it with every skill learns as before that there is none of that name.
    scene.api.allow(AGENT, "execute", "team-a", None);
    assert_eq!(scene.may(&caller, Verb::Execute, Some("No Name")).await, Ok(()));
}

#[tokio::test]
async fn the_right_of_one_caller_is_not_anothers() {
    let scene = scene();
    scene.api.allow(AGENT, "get", "team-a", None);
    let check = async |account: &str| {
        scene.may(&reviews::service_account("team-a", account), Verb::Get, None).await.is_ok()
    };
    assert!(check("agent").await);
    assert!(!check("other").await);
}

/// An ApiKey of the default account that ends an hour after the start.
fn api_key(key: &KeyText, name: &str) -> Value {
    let spec = json!({ "hash": key.hash().to_string(), "expiresAt": "2026-01-01T01:00:00Z" });
    json!({ "apiVersion": "skillet.dev/v1alpha1", "kind": "ApiKey",
        "metadata": { "name": name, "namespace": "team-b" }, "spec": spec })
}

#[tokio::test]
async fn a_key_is_known_as_long_as_its_object_is_there() {
    let scene = scene();
    let (listed, made) = (KeyText::of_random([1; 32]), KeyText::of_random([2; 32]));
    let early = scene.user(listed.text()).await;
    assert!(matches!(early, Err(AuthError::Unreachable(_))), "{early:?}");
    scene.api.put("apikeys", api_key(&listed, "ci"));
    scene.watch_keys().await;
    let user = Ok("system:serviceaccount:team-b:default");
    assert_eq!(scene.user(listed.text()).await.as_deref(), user);
    assert_eq!(scene.user(made.text()).await, Err(AuthError::Unknown));

    let known = |key: &KeyText| scene.auth.keys.caller(key.hash(), start()).is_ok();
    scene.api.put("apikeys", api_key(&made, "ci"));
    eventually("the key is another", || known(&made)).await;
    assert_eq!(scene.user(made.text()).await.as_deref(), user);
    let revoked = Err(AuthError::Revoked { key: "team-b/ci".into() });
    assert_eq!(scene.user(listed.text()).await, revoked);

    scene.api.delete(&skillet_kube::testing::path("team-b", "apikeys", "ci"));
    eventually("the key is revoked", || !known(&made)).await;
    assert_eq!(scene.user(made.text()).await, revoked);
    assert_eq!(scene.reviews(), 0, "no key is shown to the API server");
}

#[tokio::test]
async fn a_key_ends_at_its_time() {
    let scene = scene();
    let key = KeyText::of_random([1; 32]);
    scene.api.put("apikeys", api_key(&key, "ci"));
    scene.watch_keys().await;
    scene.pass(3599);
    assert!(scene.user(key.text()).await.is_ok());
    scene.pass(1);
    let refused = scene.user(key.text()).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the API key team-b/ci expired at 2026-01-01T01:00:00Z; make another one"
    );
}

#[tokio::test]
async fn a_mistyped_key_is_refused_without_a_look_up() {
    let scene = scene();
    let mistyped = KeyText::of_random([1; 32]).text().replace('E', "F");
    let refused = scene.user(&mistyped).await.unwrap_err();
    assert_eq!(refused, AuthError::Mistyped, "even before the keys have been listed");
    assert_eq!(ApiError::from(refused).status, 401);
    assert_eq!(scene.api.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn what_could_not_be_asked_is_neither_allowed_nor_forbidden() {
    let scene = scene();
    let caller = reviews::service_account("team-a", "agent");
    scene.api.allow(AGENT, "execute", "team-a", Some("sum"));
    let may = async |skill: &str| scene.auth.may(&caller, Verb::Execute, "team-a", Some(skill)).await;
    assert_eq!((may("sum").await, may("other").await), (Ok(true), Ok(false)));
    scene.api.fail_reviews(true);
    assert!(matches!(may("third").await, Err(AuthError::Unreachable(_))));
}

#[test]
fn nobody_is_401_not_allowed_is_403_and_no_cluster_is_503() {
    let status = |error: AuthError| ApiError::from(error).status.as_u16();
    assert_eq!(status(AuthError::Missing), 401);
    assert_eq!(status(AuthError::Unknown), 401);
    assert_eq!(status(AuthError::Unreachable(String::new())), 503);
    let forbidden = AuthError::Forbidden { verb: Verb::Execute, namespace: "team-a".into() };
    assert_eq!(forbidden.to_string(), "the caller may not execute skills in namespace team-a");
    assert_eq!(status(forbidden), 403);
}
