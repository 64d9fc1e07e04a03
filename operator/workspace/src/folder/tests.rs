//! Attacks from inside a folder: whoever can change the files by hand leads the store nowhere.

use std::{
    fs,
    os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink},
    sync::atomic::AtomicBool,
};

use rustix::fs::{CWD, FileType};
use tempfile::TempDir;

use super::*;
use crate::testing::id;

struct Attacked {
    outside: TempDir,
    root: TempDir,
    folder: Folder,
}

impl Attacked {
    /// A workspace with the file `own`, and a secret outside of it.
    async fn new() -> Self {
        let (outside, root) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        fs::write(outside.path().join("secret"), "secret").unwrap();
        let folder = Folder::open(root.path()).unwrap();
        let attacked = Self { outside, root, folder };
        attacked.write("own", WriteMode::Create).await.unwrap();
        attacked
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.path().join("files").join(id("a").as_str()).join(path)
    }

    async fn write(&self, path: &str, mode: WriteMode) -> Result<u64, WorkspaceError> {
        let path = StorePath::parse(path)?;
        self.folder.write(&id("a"), &path, Bytes::from_static(b"changed"), mode, 1000).await
    }

    async fn read(&self, path: &str) -> Result<Bytes, WorkspaceError> {
        self.folder.read(&id("a"), &StorePath::parse(path)?, 1000).await
    }

    async fn remove(&self, path: &str) -> Result<(), WorkspaceError> {
        self.folder.remove(&id("a"), Some(&StorePath::parse(path)?)).await
    }

    async fn listed(&self) -> Vec<String> {
        let files = self.folder.files(&id("a"), None, 1000).await.unwrap();
        files.into_iter().map(|file| file.path).collect()
    }

    async fn assert_refused(&self, path: &str, cause: &str) {
        let mut refusals = vec![("read", self.read(path).await.map(drop))];
        for mode in [WriteMode::Create, WriteMode::Overwrite, WriteMode::Append] {
            refusals.push(("write", self.write(path, mode).await.map(drop)));
        }
        for (operation, refused) in refusals {
            let refused = refused.unwrap_err().to_string();
            assert!(
                refused.contains("is refused") && refused.contains(cause),
                "{operation} {path}: {refused}"
            );
        }
        self.assert_intact().await;
    }

    async fn assert_intact(&self) {
        assert_eq!(fs::read_to_string(self.outside.path().join("secret")).unwrap(), "secret");
        assert_eq!(fs::read_dir(self.outside.path()).unwrap().count(), 1);
        assert_eq!(self.listed().await, ["own"]);
    }
}

#[tokio::test]
async fn a_link_to_a_file_is_neither_read_nor_written_nor_listed() {
    let attacked = Attacked::new().await;
    for (name, target) in [
        ("passwd", PathBuf::from("/etc/passwd")),
        ("secret", attacked.outside.path().join("secret")),
        ("inside", PathBuf::from("own")),
        ("dangling", attacked.outside.path().join("new")),
        ("self", PathBuf::from("self")),
        ("magic", PathBuf::from("/proc/self/environ")),
        ("fd", PathBuf::from("/proc/self/fd/0")),
    ] {
        symlink(target, attacked.at(name)).unwrap();
        attacked.assert_refused(name, "a link").await;
    }
}

#[tokio::test]
async fn a_link_on_the_way_is_not_followed() {
    let attacked = Attacked::new().await;
    for (name, target) in [
        ("out", attacked.outside.path().to_owned()),
        ("up", PathBuf::from("..")),
        ("here", PathBuf::from(".")),
        ("root", PathBuf::from("/")),
        ("proc", PathBuf::from("/proc/self/root")),
    ] {
        symlink(target, attacked.at(name)).unwrap();
        let path = format!("{name}/secret");
        let read = attacked.read(&path).await.unwrap_err();
        assert!(
            matches!(read, WorkspaceError::PathRefused { .. } | WorkspaceError::NotFound { .. }),
            "{read}"
        );
        for mode in [WriteMode::Create, WriteMode::Overwrite, WriteMode::Append] {
            let refused = attacked.write(&path, mode).await.unwrap_err().to_string();
            assert!(refused.contains("is refused"), "{path}: {refused}");
        }
        let removed = attacked.remove(&path).await.unwrap_err();
        assert!(
            matches!(removed, WorkspaceError::PathRefused { .. } | WorkspaceError::NotFound { .. }),
            "{removed}"
        );
        attacked.assert_intact().await;
    }
}

#[tokio::test]
async fn a_link_is_removed_and_its_target_stays() {
    let attacked = Attacked::new().await;
    symlink(attacked.outside.path(), attacked.at("out")).unwrap();
    fs::create_dir(attacked.at("folder")).unwrap();
    symlink(attacked.outside.path(), attacked.at("folder/out")).unwrap();
    attacked.remove("out").await.unwrap();
    attacked.remove("folder").await.unwrap();
    assert!(!attacked.at("out").exists() && !attacked.at("folder").exists());
    attacked.assert_intact().await;
}

#[tokio::test]
async fn a_workspace_that_is_a_link_is_not_entered() {
    let attacked = Attacked::new().await;
    let victim = id("victim");
    symlink(attacked.outside.path(), attacked.root.path().join("files").join(victim.as_str())).unwrap();
    let path = StorePath::parse("secret").unwrap();
    attacked.folder.read(&victim, &path, 1000).await.unwrap_err();
    let content = Bytes::from_static(b"x");
    attacked.folder.write(&victim, &path, content, WriteMode::Overwrite, 1000).await.unwrap_err();
    attacked.folder.usage(&victim).await.unwrap_err();
    attacked.folder.remove(&victim, None).await.unwrap();
    attacked.assert_intact().await;
}

#[tokio::test]
async fn a_pipe_a_socket_and_a_hard_link_are_refused_at_once() {
    let attacked = Attacked::new().await;
    rustix::fs::mknodat(CWD, attacked.at("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    assert!(fs::metadata(attacked.at("pipe")).unwrap().file_type().is_fifo());
    attacked.assert_refused("pipe", "no regular file").await;
    let _socket = std::os::unix::net::UnixListener::bind(attacked.at("socket")).unwrap();
    attacked.assert_refused("socket", "no regular file").await;
    if fs::hard_link(attacked.outside.path().join("secret"), attacked.at("hard")).is_ok() {
        let refused = attacked.read("hard").await.unwrap_err().to_string();
        assert!(refused.contains("another name"), "{refused}");
        attacked.write("hard", WriteMode::Append).await.unwrap_err();
        attacked.write("hard", WriteMode::Overwrite).await.unwrap_err();
        fs::remove_file(attacked.at("hard")).unwrap();
    }
    attacked.assert_intact().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_becomes_a_link_during_calls_leads_nowhere() {
    let attacked = Attacked::new().await;
    let (place, out, kept) = (attacked.at("swap"), attacked.outside.path().to_owned(), attacked.at("kept"));
    fs::create_dir(&place).unwrap();
    fs::write(place.join("secret"), "mine").unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let swapper = std::thread::spawn({
        let (stop, place) = (Arc::clone(&stop), place.clone());
        move || {
            let mut swaps = 0;
            while !stop.load(Ordering::Relaxed) {
                fs::rename(&place, &kept).unwrap();
                symlink(&out, &place).unwrap();
                fs::remove_file(&place).unwrap();
                fs::rename(&kept, &place).unwrap();
                swaps += 1;
            }
            swaps
        }
    });
    let (mut mine, mut tried) = (0, 0);
    while tried < 2000 || (mine == 0 && tried < 1_000_000) {
        tried += 1;
        if let Ok(content) = attacked.read("swap/secret").await {
            assert_ne!(content, "secret", "read through the link");
            mine += 1;
        }
        for path in attacked.listed().await {
            assert!(["own", "swap/secret", "kept/secret"].contains(&path.as_str()), "{path}");
        }
    }
    stop.store(true, Ordering::Relaxed);
    let swaps = swapper.join().unwrap();
    assert!(mine > 0 && swaps > 100, "{mine} reads, {swaps} swaps");
    assert_eq!(fs::read_to_string(attacked.outside.path().join("secret")).unwrap(), "secret");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_into_a_folder_that_becomes_a_link_stays_inside() {
    let attacked = Attacked::new().await;
    let (place, out) = (attacked.at("swap"), attacked.outside.path().to_owned());
    let stop = Arc::new(AtomicBool::new(false));
    let swapper = std::thread::spawn({
        let stop = Arc::clone(&stop);
        move || {
            while !stop.load(Ordering::Relaxed) {
                // The store makes the folder anew between these, so that each may fail.
                fs::remove_dir_all(&place).ok();
                symlink(&out, &place).ok();
                fs::remove_file(&place).ok();
            }
        }
    });
    let (mut written, mut tried) = (0, 0);
    // Beside other programs the folder may be a link for long; some writes must find it.
    while tried < 1000 || (written == 0 && tried < 1_000_000) {
        written += usize::from(attacked.write("swap/secret", WriteMode::Overwrite).await.is_ok());
        tried += 1;
    }
    stop.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    assert!(written > 0);
    assert_eq!(fs::read_to_string(attacked.outside.path().join("secret")).unwrap(), "secret");
    assert_eq!(fs::read_dir(attacked.outside.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn what_a_process_left_incomplete_is_removed_at_the_next_start() {
    let attacked = Attacked::new().await;
    let left = attacked.root.path().join("tmp/7");
    fs::write(&left, "half").unwrap();
    let Attacked { root, folder, .. } = attacked;
    drop(folder);
    Folder::open(root.path()).unwrap();
    assert!(!left.exists());
}

#[tokio::test]
async fn a_write_that_fails_leaves_the_file_and_nothing_else() {
    let attacked = Attacked::new().await;
    let path = StorePath::parse("own").unwrap();
    let too_large =
        attacked.folder.write(&id("a"), &path, Bytes::from_static(b"1234"), WriteMode::Append, 9).await;
    assert_eq!(too_large, Err(WorkspaceError::TooLarge { path: "own".into(), bytes: 11, most: 9 }));
    assert_eq!(attacked.read("own").await.unwrap(), "changed");
    assert_eq!(fs::read_dir(attacked.root.path().join("tmp")).unwrap().count(), 0);
}

#[tokio::test]
async fn files_are_readable_by_the_process_alone() {
    let attacked = Attacked::new().await;
    attacked.write("folder/x", WriteMode::Create).await.unwrap();
    for (path, mode) in [("", 0o700), ("folder", 0o700), ("folder/x", 0o600)] {
        let found = fs::metadata(attacked.at(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!(found & !mode, 0, "{path} {found:o}");
    }
}

#[test]
fn a_place_that_is_no_folder_is_named() {
    let root = TempDir::new().unwrap();
    fs::write(root.path().join("files"), "").unwrap();
    let error = Folder::open(root.path()).unwrap_err().to_string();
    assert!(error.contains("could not use") && error.contains("/files"), "{error}");
}

#[test]
fn a_move_to_a_new_name_never_replaces_a_file() {
    let root = TempDir::new().unwrap();
    fs::write(root.path().join("there"), "old").unwrap();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(root.path(), flags, Mode::empty()).unwrap();
    for (move_new, free) in
        [(beneath::move_new as fn(&_, &_, &_, &_) -> _, "free"), (beneath::link_new, "free2")]
    {
        fs::write(root.path().join("from"), "new").unwrap();
        assert_eq!(move_new(&folder, "from", &folder, "there"), Err(Errno::EXIST));
        assert_eq!(fs::read_to_string(root.path().join("there")).unwrap(), "old");
        assert_eq!(move_new(&folder, "from", &folder, free), Ok(()));
        assert!(!root.path().join("from").exists());
        assert_eq!(fs::read_to_string(root.path().join(free)).unwrap(), "new");
    }
}
