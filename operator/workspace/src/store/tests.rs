//! The rules of workspaces, over a folder and over a bucket alike.

use std::sync::Arc;

use futures::future::join_all;

use super::*;
use crate::testing::{LIMITS, id, with_each};

async fn write(
    store: &Store,
    owner: &str,
    path: &str,
    content: &str,
    mode: WriteMode,
) -> Result<u64, String> {
    let content = Bytes::from(content.to_owned());
    store.write(&id(owner), path, content, mode).await.map_err(|error| error.to_string())
}

async fn read(store: &Store, owner: &str, path: &str) -> Result<String, String> {
    let content = store.read(&id(owner), path, 1 << 20).await.map_err(|error| error.to_string())?;
    Ok(String::from_utf8(content.to_vec()).unwrap())
}

async fn list(store: &Store, owner: &str, folder: &str) -> Result<String, String> {
    let entries = store.list(&id(owner), folder).await.map_err(|error| error.to_string())?;
    let show =
        |entry: &Entry| format!("{}{}={}", entry.path, if entry.is_folder { "/" } else { "" }, entry.bytes);
    Ok(entries.iter().map(show).collect::<Vec<_>>().join(" "))
}

async fn remove(store: &Store, owner: &str, path: &str) -> Result<(), String> {
    store.remove(&id(owner), path).await.map_err(|error| error.to_string())
}

use WriteMode::{Append, Create, Overwrite};

#[tokio::test]
async fn each_mode_of_writing_does_what_it_says() {
    with_each(LIMITS, async |place, store| {
        assert_eq!(write(&store, "a", "notes/a.txt", "one", Create).await, Ok(3), "{place}");
        let exists = write(&store, "a", "notes/a.txt", "two", Create).await.unwrap_err();
        assert_eq!(exists, "notes/a.txt exists already; write with overwrite, or to another path", "{place}");
        assert_eq!(write(&store, "a", "notes/a.txt", ", two", Append).await, Ok(8), "{place}");
        assert_eq!(read(&store, "a", "notes/a.txt").await, Ok("one, two".into()), "{place}");
        assert_eq!(write(&store, "a", "notes/a.txt", "", Overwrite).await, Ok(0), "{place}");
        assert_eq!(read(&store, "a", "notes/a.txt").await, Ok(String::new()), "{place}");
        assert_eq!(write(&store, "a", "new", "x", Append).await, Ok(1), "{place}");
        assert_eq!(write(&store, "a", "new2", "x", Overwrite).await, Ok(1), "{place}");
    })
    .await;
}

#[tokio::test]
async fn names_of_every_script_and_sign_come_back_as_they_were() {
    with_each(LIMITS, async |place, store| {
        let names = [
            "a b",
            "ä/漢字",
            "100%",
            "%2e%2e",
            "a+b&c=d?e#f",
            "..a",
            "...",
            "back\\slash",
            "a~[]{}^`|<>\"'*",
        ];
        for name in names {
            assert_eq!(write(&store, "a", name, name, Create).await, Ok(name.len() as u64), "{place} {name}");
            assert_eq!(read(&store, "a", name).await, Ok(name.into()), "{place} {name}");
        }
        let listed = store.list(&id("a"), "").await.unwrap();
        for name in names {
            assert!(listed.iter().any(|entry| entry.path == name), "{place} {name} in {listed:?}");
            assert_eq!(remove(&store, "a", name).await, Ok(()), "{place} {name}");
        }
        assert_eq!(list(&store, "a", "").await, Ok(String::new()), "{place}");
    })
    .await;
}

#[tokio::test]
async fn a_listing_has_files_and_their_folders_below_a_folder() {
    with_each(LIMITS, async |place, store| {
        for path in ["a/x/1", "a/2", "ab", "b"] {
            write(&store, "a", path, "1234", Create).await.unwrap();
        }
        assert_eq!(list(&store, "a", "").await.unwrap(), "a/=8 a/2=4 a/x/=4 a/x/1=4 ab=4 b=4", "{place}");
        assert_eq!(list(&store, "a", "a").await.unwrap(), "a/2=4 a/x/=4 a/x/1=4", "{place}");
        assert_eq!(list(&store, "a", "a/2").await.unwrap(), "a/2=4", "{place}");
        assert_eq!(list(&store, "a", "none").await.unwrap_err(), "the workspace has no none", "{place}");
        assert_eq!(list(&store, "nobody", "").await.unwrap(), "", "{place}");
        let entry = store.list(&id("a"), "b").await.unwrap().remove(0);
        let age = Timestamp::now().duration_since(entry.modified);
        assert!(age.abs() < SignedDuration::from_mins(2), "{place}: {age}");
    })
    .await;
}

#[tokio::test]
async fn files_and_folders_do_not_stand_for_each_other() {
    with_each(LIMITS, async |place, store| {
        write(&store, "a", "folder/file", "1", Create).await.unwrap();
        let folder = "folder is a folder and not a file";
        assert_eq!(read(&store, "a", "folder").await.unwrap_err(), folder, "{place}");
        for mode in [Create, Overwrite, Append] {
            assert_eq!(write(&store, "a", "folder", "1", mode).await.unwrap_err(), folder, "{place}");
            let below = write(&store, "a", "folder/file/x", "1", mode).await.unwrap_err();
            assert!(below.contains("file is a file and no folder"), "{place}: {below}");
        }
        let below = read(&store, "a", "folder/file/x").await.unwrap_err();
        assert_eq!(below, "the workspace has no folder/file/x", "{place}");
        assert_eq!(list(&store, "a", "").await.unwrap(), "folder/=1 folder/file=1", "{place}");
    })
    .await;
}

#[tokio::test]
async fn what_is_removed_is_gone_with_the_folders_that_are_empty() {
    with_each(LIMITS, async |place, store| {
        for path in ["a/b/c/1", "a/2", "d/3", "d/4"] {
            write(&store, "a", path, "1", Create).await.unwrap();
        }
        assert_eq!(remove(&store, "a", "a/b/c/1").await, Ok(()), "{place}");
        assert_eq!(list(&store, "a", "").await.unwrap(), "a/=1 a/2=1 d/=2 d/3=1 d/4=1", "{place}");
        let again = remove(&store, "a", "a/b/c/1").await.unwrap_err();
        assert_eq!(again, "the workspace has no a/b/c/1", "{place}");
        assert_eq!(remove(&store, "a", "d").await, Ok(()), "{place}");
        assert_eq!(list(&store, "a", "").await.unwrap(), "a/=1 a/2=1", "{place}");
        write(&store, "b", "other", "1", Create).await.unwrap();
        assert_eq!(remove(&store, "a", "").await, Ok(()), "{place}");
        assert_eq!(remove(&store, "a", "").await, Ok(()), "{place}: a second time");
        assert_eq!(list(&store, "a", "").await.unwrap(), "", "{place}");
        assert_eq!(read(&store, "b", "other").await.unwrap(), "1", "{place}");
    })
    .await;
}

#[tokio::test]
async fn every_operation_refuses_a_path_that_leads_elsewhere() {
    with_each(LIMITS, async |place, store| {
        write(&store, "b", "secret", "1", Create).await.unwrap();
        let other = format!("../{}/secret", id("b"));
        for path in [other.as_str(), "/etc/passwd", "a/../../x", "..", ".", "a//b", "a\0b", &"x".repeat(5000)]
        {
            for refused in [
                write(&store, "a", path, "1", Overwrite).await.map(drop),
                read(&store, "a", path).await.map(drop),
                list(&store, "a", path).await.map(drop),
                remove(&store, "a", path).await,
            ] {
                let refused = refused.unwrap_err();
                assert!(
                    refused.starts_with("the path \"") && refused.contains("is refused"),
                    "{place}: {refused}"
                );
            }
        }
        assert_eq!(list(&store, "b", "").await.unwrap(), "secret=1", "{place}");
    })
    .await;
}

#[tokio::test]
async fn a_write_over_the_quota_of_bytes_changes_nothing() {
    let limits = Limits { quota_bytes: 10, ..LIMITS };
    with_each(limits, async |place, store| {
        write(&store, "a", "one", "123456", Create).await.unwrap();
        let error = write(&store, "a", "new/two", "12345", Create).await.unwrap_err();
        let full = "writing new/two would fill the workspace with 11 bytes, and its quota is 10; remove files of the workspace";
        assert_eq!(error, full, "{place}");
        assert!(write(&store, "a", "one", "12345", Append).await.unwrap_err().contains("11 bytes"), "{place}");
        assert_eq!(list(&store, "a", "").await.unwrap(), "one=6", "{place}");
        assert_eq!(write(&store, "a", "one", "1234567890", Overwrite).await, Ok(10), "{place}");
        assert_eq!(write(&store, "b", "one", "1234567890", Create).await, Ok(10), "{place}: another workspace");
        remove(&store, "a", "one").await.unwrap();
        assert_eq!(write(&store, "a", "two", "1234567890", Create).await, Ok(10), "{place}");
    })
    .await;
}

#[tokio::test]
async fn a_write_over_the_quota_of_files_changes_nothing() {
    let limits = Limits { quota_files: 2, ..LIMITS };
    with_each(limits, async |place, store| {
        for path in ["1", "2"] {
            write(&store, "a", path, "", Create).await.unwrap();
        }
        let error = write(&store, "a", "3", "", Create).await.unwrap_err();
        assert!(error.contains("fill the workspace with 3 files, and its quota is 2"), "{place}: {error}");
        assert_eq!(write(&store, "a", "2", "x", Append).await, Ok(1), "{place}");
        assert_eq!(list(&store, "a", "").await.unwrap(), "1=0 2=1", "{place}");
    })
    .await;
}

#[tokio::test]
async fn the_quota_counts_what_was_there_before_the_process() {
    let folder = tempfile::TempDir::new().unwrap();
    let limits = Limits { quota_bytes: 10, ..LIMITS };
    for (path, fits) in [("one", true), ("two", false)] {
        let backend = Arc::new(crate::Folder::open(folder.path()).unwrap());
        let store = crate::testing::store_over(backend, limits);
        assert_eq!(write(&store, "a", path, "123456", Create).await.is_ok(), fits, "{path}");
    }
}

#[tokio::test]
async fn a_file_does_not_grow_past_its_limit() {
    let limits = Limits { file_bytes: 8, ..LIMITS };
    with_each(limits, async |place, store| {
        write(&store, "a", "log", "12345", Append).await.unwrap();
        let error = write(&store, "a", "log", "6789", Append).await.unwrap_err();
        assert_eq!(error, "log would have 9 bytes, and at most 8 are allowed", "{place}");
        assert_eq!(write(&store, "a", "log", "678", Append).await, Ok(8), "{place}");
        let error = store.read(&id("a"), "log", 7).await.unwrap_err();
        assert_eq!(error, WorkspaceError::TooLarge { path: "log".into(), bytes: 8, most: 7 }, "{place}");
    })
    .await;
}

#[tokio::test]
async fn one_of_many_creators_wins_and_no_append_is_lost() {
    with_each(LIMITS, async |place, store| {
        let creators = (0..8).map(|_| write(&store, "a", "lock", "x", Create));
        let won = join_all(creators).await.into_iter().flatten().count();
        assert_eq!(won, 1, "{place}");
        let appends = (0..8).map(|_| write(&store, "a", "log", "line\n", Append));
        assert!(join_all(appends).await.into_iter().all(|written| written.is_ok()), "{place}");
        assert_eq!(read(&store, "a", "log").await.unwrap(), "line\n".repeat(8), "{place}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_sees_the_old_file_or_the_new_one_while_it_is_replaced() {
    with_each(LIMITS, async |place, store| {
        write(&store, "a", "f", "1", Create).await.unwrap();
        let store = Arc::new(store);
        let writer = tokio::spawn({
            let store = Arc::clone(&store);
            async move {
                for length in (1..60).chain((1..60).rev()) {
                    write(&store, "a", "f", &"x".repeat(length), Overwrite).await.unwrap();
                }
            }
        });
        let mut reads = 0;
        while !writer.is_finished() {
            match read(&store, "a", "f").await {
                Ok(content) => assert!(!content.is_empty(), "{place}"),
                Err(error) => assert!(error.contains("was replaced while it was read"), "{place}: {error}"),
            }
            reads += 1;
        }
        writer.await.unwrap();
        assert!(reads > 10, "{place}: {reads}");
    })
    .await;
}

#[tokio::test]
async fn many_writers_do_not_pass_the_quota_together() {
    let limits = Limits { quota_bytes: 25, ..LIMITS };
    with_each(limits, async |place, store| {
        let paths: Vec<_> = (0..10).map(|number| number.to_string()).collect();
        let writes = paths.iter().map(|path| write(&store, "a", path, "1234567890", Create));
        let written = join_all(writes).await.into_iter().flatten().count();
        assert_eq!(written, 2, "{place}");
    })
    .await;
}

#[tokio::test]
async fn workspaces_expire_when_nobody_used_them() {
    with_each(LIMITS, async |place, store| {
        write(&store, "a", "f", "1", Create).await.unwrap();
        let expiry = SignedDuration::from_hours(30 * 24);
        let now = Timestamp::now();
        assert_eq!(store.expire(now + expiry - SignedDuration::from_mins(5)).await, Ok(0), "{place}");
        assert_eq!(read(&store, "a", "f").await.unwrap(), "1", "{place}");
        assert_eq!(store.expire(now + expiry + SignedDuration::from_mins(5)).await, Ok(1), "{place}");
        assert_eq!(list(&store, "a", "").await.unwrap(), "", "{place}");
        assert_eq!(store.expire(now + expiry + SignedDuration::from_mins(5)).await, Ok(0), "{place}");
        assert_eq!(store.backend.workspaces().await, Ok(Vec::new()), "{place}");
    })
    .await;
}

#[tokio::test]
async fn a_workspace_that_is_used_between_listing_and_removal_stays() {
    with_each(LIMITS, async |place, store| {
        write(&store, "a", "f", "1", Create).await.unwrap();
        assert_eq!(store.expire_one(&id("a"), Timestamp::now()).await, Ok(false), "{place}");
        assert_eq!(read(&store, "a", "f").await.unwrap(), "1", "{place}");
    })
    .await;
}

#[tokio::test]
async fn without_a_time_of_expiry_nothing_expires() {
    let limits = Limits { expire_after: None, ..LIMITS };
    with_each(limits, async |place, store| {
        write(&store, "a", "f", "1", Create).await.unwrap();
        let later = Timestamp::now() + SignedDuration::from_hours(10_000 * 24);
        assert_eq!(store.expire(later).await, Ok(0), "{place}");
        assert_eq!(read(&store, "a", "f").await.unwrap(), "1", "{place}");
    })
    .await;
}

#[tokio::test]
async fn reading_is_a_use() {
    let folder = tempfile::TempDir::new().unwrap();
    let open = || crate::testing::store_over(Arc::new(crate::Folder::open(folder.path()).unwrap()), LIMITS);
    write(&open(), "a", "f", "1", Create).await.unwrap();
    let mark = folder.path().join("used").join(id("a").as_str());
    for is_listed in [false, true] {
        std::fs::File::open(&mark).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        let store = open();
        if is_listed {
            list(&store, "a", "").await.map(drop)
        } else {
            read(&store, "a", "f").await.map(drop)
        }
        .unwrap();
        assert_ne!(std::fs::metadata(&mark).unwrap().modified().unwrap(), std::time::UNIX_EPOCH);
    }
}
