//! Creates a sandbox's Job, with retries until the API server's response is final.

use std::time::Duration;

use k8s_openapi::api::batch::v1::Job;
use kube::{Api, ResourceExt as _, api::PostParams};
use skillet_kube::Backoff;
use thiserror::Error;
use tokio::time::Instant;
use tracing::warn;

const BACKOFF: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(1));

/// The error of a Job that was not created.
#[derive(Debug, Error)]
pub(crate) enum CreateError {
    /// Created before: by another operator, or by an own request whose response was lost.
    #[error("the sandbox already exists")]
    AlreadyExists,
    #[error("the cluster refuses the sandbox: {0}")]
    Refused(String),
    #[error("the sandbox could not be created within {limit:?}: {message}")]
    Timeout { limit: Duration, message: String },
}

/// Creates `job`. Waits for an API server that cannot be reached, as no status could be written either. Retries an error of
/// the API server for at most `limit`.
pub(crate) async fn create(jobs: &Api<Job>, job: &Job, limit: Duration) -> Result<(), CreateError> {
    let (begun, mut backoff) = (Instant::now(), BACKOFF);
    loop {
        let error = match jobs.create(&PostParams::default(), job).await {
            Ok(_) => return Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 => return Err(CreateError::AlreadyExists),
            Err(kube::Error::Api(status)) if (400..500).contains(&status.code) && status.code != 429 => {
                return Err(CreateError::Refused(status.message.clone()));
            }
            Err(kube::Error::Api(status)) if begun.elapsed() >= limit => {
                return Err(CreateError::Timeout { limit, message: status.message.clone() });
            }
            Err(error) => error,
        };
        warn!(job = job.name_any(), %error, "Sandbox could not be created yet");
        backoff.pause().await;
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use http::{Request, Response};
    use kube::{Client, client::Body};
    use serde_json::json;
    use tower::service_fn;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    /// Responds with one status after the other, and repeats the last. `None` is a broken connection.
    fn answering(answers: &[Option<u16>]) -> Api<Job> {
        let mut left: Vec<Option<u16>> = answers.to_vec();
        left.reverse();
        let left = Arc::new(Mutex::new(left));
        let service = service_fn(move |_: Request<Body>| {
            let mut left = left.lock().unwrap();
            let answer = if left.len() > 1 { left.pop().flatten() } else { left[0] };
            async move {
                let code = answer.ok_or_else(|| io::Error::other("connection closed"))?;
                let body = match code {
                    201 => json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "a" } }),
                    code => {
                        json!({ "kind": "Status", "code": code, "message": "no", "reason": "", "status": "Failure" })
                    }
                };
                let body = Body::from(serde_json::to_vec(&body).unwrap());
                Ok::<_, io::Error>(Response::builder().status(code).body(body).unwrap())
            }
        });
        Api::namespaced(Client::new(service, "default"), "default")
    }

    async fn made_after(answers: &[Option<u16>]) -> (Result<(), String>, Duration) {
        let jobs = answering(answers);
        let begun = Instant::now();
        let made = create(&jobs, &Job::default(), LIMIT).await.map_err(|error| error.to_string());
        (made, begun.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn conflict_and_refusals_are_returned_without_retry() {
        let there = Err("the sandbox already exists".to_owned());
        for (code, expected) in [
            (201, Ok(())),
            (409, there),
            (403, Err("the cluster refuses the sandbox: no".to_owned())),
            (422, Err("the cluster refuses the sandbox: no".to_owned())),
        ] {
            assert_eq!(made_after(&[Some(code)]).await, (expected, Duration::ZERO), "{code}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_unreachable_api_server_is_waited_for() {
        let mut answers = vec![None; 300];
        answers.push(Some(201));
        let (made, took) = made_after(&answers).await;
        assert_eq!(made, Ok(()));
        assert!(took > 4 * LIMIT, "{took:?}");
        // The request before it had come through.
        assert_eq!(made_after(&[None, Some(409)]).await.0, Err("the sandbox already exists".to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_of_the_api_server_is_retried_until_the_limit() {
        assert_eq!(made_after(&[Some(500), Some(429), Some(503), Some(201)]).await.0, Ok(()));
        let (made, took) = made_after(&[Some(500)]).await;
        assert_eq!(made, Err("the sandbox could not be created within 60s: no".to_owned()));
        assert!(took >= LIMIT && took < LIMIT + Duration::from_secs(2), "{took:?}");
    }
}
