//! Signatures of service-account tokens: keys of each kind, forgeries, rotation, and how often the cluster is asked.

use futures::future::join_all;
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _},
};
use serde_json::json;
use skillet_kube::testing::FakeApiServer;

use super::*;

// Made once by `openssl genpkey -algorithm RSA` and `openssl dgst -sha256 -sign`; the private key is kept nowhere.
const RSA_MODULUS: &str = "sQ-UiFY6JqeP5-cbsoucs1BtEm3uCwDBnwLP_w9Sxk0yIgQBm5Evk2r6BQ8pBXv0ZkRp7mSVgd2JaR5AXLk4RJvLcEItK88H\
    eb_qNSmhPpwdZxaWRWaAPu9fKZmTYTxufRI8-TmRuhAEWSbdE0SfhAeQlQGW_Ak889iTBZTd7mS5b2fZO8CgEwUdqOzf1Zq9\
    NJrt9Xg-tEMTKtGBxqkkU7vC4TPadzwm7RtKpwoXPkMfD_SgXFRw1TdXLDveqzg117v1uDllENRSB6yN0Gz4_s3YEntE578S\
    mZXVWjcj3SB2zlRRb84Sn2DZIaiaOTg7I36gOSep4lCsHdU3Rb2Eiw";
const RSA_TOKEN: &str = "eyJhbGciOiJSUzI1NiIsImtpZCI6InJzYSJ9.eyJhdWQiOlsic2tpbGxldCJdfQ.\
    WQC-14suX37dPvLACbqopkrwHoZ2t7p2eWFU3SyYvfZF1PNproMEmRY8ZRF2norXfWGUO85tQiOxKitaI8GqsCBC5uI8_jBm\
    KWvEsuOXoXO8fj9T2rFI4DDTHpwg0-YVTr01HXYQPxQCfRgQa543uFK15zD7E8JCjDhK8JYtTFGadbGwoIGYz5UyN2Pb-Bjh\
    OEEsGow-8oBirYTiKiA3of1hkUzuFuiuXW5eC06KWvflwcmfrjWuIlO154U1L6KFf22dxfqCmVWiqaMQlYzt7jBWypfUFBj8\
    oWrxioqdaXGF86uoDTNZ1tRY4oIB3BUWAmgn_NGBsKSvlFxPExpkrA";

struct Signer {
    id: &'static str,
    pair: EcdsaKeyPair,
}

impl Signer {
    fn new(id: &'static str) -> Self {
        let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let key = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        Self { id, pair: EcdsaKeyPair::from_pkcs8(algorithm, key.as_ref(), &random).unwrap() }
    }

    fn public(&self) -> Value {
        let (x, y) = self.pair.public_key().as_ref()[1..].split_at(32);
        json!({ "kty": "EC", "use": "sig", "alg": "ES256", "crv": "P-256", "kid": self.id, "x": encode(x), "y": encode(y) })
    }

    fn token(&self, subject: &str) -> String {
        let header = encode(json!({ "alg": "ES256", "kid": self.id }).to_string());
        let text = format!("{header}.{}", encode(json!({ "aud": "skillet", "sub": subject }).to_string()));
        let signature = self.pair.sign(&SystemRandom::new(), text.as_bytes()).unwrap();
        format!("{text}.{}", encode(signature))
    }
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A cluster with these keys, and a gateway that has not read them yet.
fn scene(keys: &[Value]) -> (FakeApiServer, IssuerKeys, Instant) {
    let api = FakeApiServer::default();
    api.put_jwks(json!({ "keys": keys }));
    (api, IssuerKeys::default(), Instant::now())
}

fn fetches(api: &FakeApiServer) -> usize {
    api.count("GET /openid/v1/jwks")
}

#[tokio::test]
async fn a_token_that_the_cluster_signed_is_valid_and_a_changed_one_is_forged() {
    let signer = Signer::new("a");
    let (api, keys, now) = scene(&[signer.public()]);
    let check = async |token: &str| keys.check(&api.client(), token, now).await;
    let token = signer.token("agent");
    assert_eq!(check(&token).await, Signature::Valid);
    let (other, impostor) = (signer.token("admin"), Signer::new("a").token("agent"));
    let part = |token: &str, at: usize| token.split('.').nth(at).unwrap().to_owned();
    let mixed = format!("{}.{}.{}", part(&token, 0), part(&other, 1), part(&token, 2));
    let longer = format!("{token}A");
    for forged in [mixed.as_str(), &impostor, &longer, "a.b.c", &token[..token.len() - 4]] {
        assert_eq!(check(forged).await, Signature::Forged, "{forged}");
    }
    assert_eq!(fetches(&api), 1);
}

#[tokio::test]
async fn a_token_may_be_signed_by_rsa() {
    let (api, keys, now) = scene(&[json!({ "kty": "RSA", "kid": "rsa", "n": RSA_MODULUS, "e": "AQAB" })]);
    assert_eq!(keys.check(&api.client(), RSA_TOKEN, now).await, Signature::Valid);
    let forged = RSA_TOKEN.replace(".eyJhdWQ", ".eyJhdWR");
    assert_eq!(keys.check(&api.client(), &forged, now).await, Signature::Forged);
}

#[tokio::test]
async fn a_rotated_key_is_found_some_seconds_after_the_last_look() {
    let (old, new) = (Signer::new("old"), Signer::new("new"));
    let (api, keys, now) = scene(&[old.public()]);
    let check = async |signer: &Signer, seconds: u64| {
        keys.check(&api.client(), &signer.token("agent"), now + Duration::from_secs(seconds)).await
    };
    assert_eq!(check(&old, 0).await, Signature::Valid);
    api.put_jwks(json!({ "keys": [old.public(), new.public()] }));
    assert_eq!(check(&new, 4).await, Signature::Forged);
    assert_eq!(check(&new, 5).await, Signature::Valid);
    assert_eq!(check(&old, 5).await, Signature::Valid);
    assert_eq!(fetches(&api), 2);
}

#[tokio::test]
async fn a_flood_of_tokens_of_unknown_keys_makes_one_fetch() {
    let (api, keys, now) = scene(&[Signer::new("a").public()]);
    let forger = Signer::new("b");
    let client = api.client();
    let tokens: Vec<String> = (0..50).map(|number| forger.token(&number.to_string())).collect();
    let verdicts = join_all(tokens.iter().map(|token| keys.check(&client, token, now))).await;
    assert!(verdicts.iter().all(|verdict| *verdict == Signature::Forged), "{verdicts:?}");
    assert_eq!(fetches(&api), 1);
}

#[tokio::test]
async fn without_the_clusters_keys_nothing_is_checked_and_they_are_read_again() {
    let signer = Signer::new("a");
    let (api, keys, now) = scene(&[signer.public()]);
    let check = async |seconds: u64| {
        keys.check(&api.client(), &signer.token("agent"), now + Duration::from_secs(seconds)).await
    };
    api.fail_next("GET /openid/v1/jwks", 403, "no");
    assert_eq!([check(0).await, check(4).await], [Signature::Unchecked; 2]);
    assert_eq!(fetches(&api), 1);
    assert_eq!(check(5).await, Signature::Valid);
}

#[tokio::test]
async fn keys_of_another_kind_and_an_empty_set_leave_the_verdict_to_the_review() {
    let signer = Signer::new("a");
    let mut longer = signer.public();
    longer["crv"] = json!("P-521");
    for key in [longer, json!({ "kty": "OKP", "kid": "a", "crv": "Ed25519", "x": "AA" })] {
        let (api, keys, now) = scene(std::slice::from_ref(&key));
        assert_eq!(
            keys.check(&api.client(), &signer.token("agent"), now).await,
            Signature::Unchecked,
            "{key}"
        );
    }
    let (api, keys, now) = scene(&[]);
    assert_eq!(keys.check(&api.client(), &signer.token("agent"), now).await, Signature::Unchecked);
}

#[tokio::test]
async fn one_key_that_does_not_parse_leaves_the_others() {
    let signer = Signer::new("a");
    let (api, keys, now) = scene(&[json!({ "kty": "RSA", "kid": "odd" }), signer.public()]);
    assert_eq!(keys.check(&api.client(), &signer.token("agent"), now).await, Signature::Valid);
}
