//! Settings of a bucket, and the reasons for which they cannot be used.

use std::path::PathBuf;

use object_store::Error as ObjectError;
use skillet_egress::TlsError;
use thiserror::Error;
use url::{Host, Url};

/// Settings of a bucket. Credentials come from the variables of AWS, a web identity or the machine's role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketSettings {
    pub bucket: String,
    /// Start of every key.
    pub prefix: String,
    /// URL of a service other than that of AWS.
    pub endpoint: Option<String>,
    pub region: Option<String>,
    /// True if the bucket is in the path of the URL, false if it is in the host.
    pub is_path_style: bool,
    /// PEM file of authorities that are trusted beside the public ones.
    pub ca_bundle: Option<PathBuf>,
}

#[derive(Debug, Error)]
pub enum BucketError {
    #[error("could not set up TLS for the bucket")]
    Tls(#[source] TlsError),
    #[error("could not set up the client of the bucket")]
    Client(#[source] ObjectError),
    #[error(
        "{endpoint} has no host that the bucket {bucket} could be a part of; name the bucket in the path"
    )]
    Endpoint { bucket: String, endpoint: String },
    #[error("the prefix {prefix:?} is no start of a key")]
    Prefix { prefix: String, source: object_store::path::Error },
}

/// Returns the URL of a bucket at a service. A service without a name has no such URL.
pub(super) fn url_of_bucket(endpoint: &str, bucket: &str) -> Option<String> {
    let mut url = Url::parse(endpoint).ok()?;
    let Host::Domain(domain) = url.host()? else { return None };
    let host = format!("{bucket}.{domain}");
    url.set_host(Some(&host)).ok()?;
    Some(url.as_str().trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bucket_is_the_first_label_of_the_host() {
        let url = url_of_bucket("https://s3.storage.example:9000", "files");
        assert_eq!(url.as_deref(), Some("https://files.s3.storage.example:9000"));
        let url = url_of_bucket("http://minio/", "files");
        assert_eq!(url.as_deref(), Some("http://files.minio"));
    }

    #[test]
    fn an_address_and_a_text_that_is_no_url_have_no_such_host() {
        for endpoint in ["http://10.0.0.1:9000", "http://[::1]:9000", "minio:9000", ""] {
            assert_eq!(url_of_bucket(endpoint, "files"), None, "{endpoint}");
        }
    }
}
