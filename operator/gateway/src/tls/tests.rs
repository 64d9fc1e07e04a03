//! Certificates that are mounted, renewed and refused.

use std::{
    env,
    sync::atomic::{AtomicU32, Ordering},
};

use super::*;

pub(crate) const LOOK_OFTEN: Duration = Duration::from_millis(10);
static FOLDERS: AtomicU32 = AtomicU32::new(0);

/// Pairs for localhost, good for a hundred years. Each was made by
/// `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout first.key -out first.crt -days 36500
/// -subj /CN=localhost -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE`.
pub(crate) const FIRST: (&str, &str) = (include_str!("tests/first.crt"), include_str!("tests/first.key"));
pub(crate) const SECOND: (&str, &str) = (include_str!("tests/second.crt"), include_str!("tests/second.key"));

/// A folder with a certificate and its key, removed at the end.
pub(crate) struct Mount(PathBuf);

impl Mount {
    pub(crate) fn with(pair: (&str, &str)) -> Self {
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("skillet-tls-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mount = Self(folder);
        mount.put(pair);
        mount
    }

    pub(crate) fn files(&self) -> Files {
        Files { certificate: self.0.join("tls.crt"), key: self.0.join("tls.key") }
    }

    pub(crate) fn put(&self, (certificate, key): (&str, &str)) {
        fs::write(self.files().certificate, certificate).unwrap();
        fs::write(self.files().key, key).unwrap();
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

#[test]
fn a_pair_that_cannot_be_used_is_refused_and_named() {
    let mount = Mount::with(FIRST);
    let before = Mounted::read(&mount.files()).unwrap();
    let refused = || look(&mount.files(), &before).err().unwrap().to_string();
    assert!(look(&mount.files(), &before).unwrap().is_none());
    for ((certificate, key), said) in [
        ((FIRST.0, SECOND.1), "do not go together"),
        (("", FIRST.1), "tls.crt has no certificate"),
        (("-----BEGIN CERTIFICATE-----\n", FIRST.1), "tls.crt is not PEM"),
        ((FIRST.0, "-----BEGIN "), "tls.key is not PEM"),
    ] {
        mount.put((certificate, key));
        assert!(refused().contains(said), "{}", refused());
    }
    fs::remove_file(mount.files().certificate).unwrap();
    assert!(refused().contains("could not read"), "{}", refused());
}
