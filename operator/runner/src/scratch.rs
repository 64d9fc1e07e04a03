//! The folders that a program may write: a fresh working directory with its files, and one for temporary files.
//!
//! Only the runner has written there before, so no link can lead it astray; an existing folder is an error.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use skillet_protocol::{Program, Run, WORK_FOLDER};

/// A program with its files in place, ready to start.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Prepared {
    pub(crate) argv: Vec<String>,
    pub(crate) work: PathBuf,
    pub(crate) temporary: PathBuf,
}

/// Creates the folders beneath `scratch` and writes the run's files.
pub(crate) fn prepare(scratch: &Path, run: &Run) -> Result<Prepared, String> {
    let [work, temporary] = folders(scratch);
    for folder in [&work, &temporary] {
        rustix::fs::mkdir(folder, Mode::RWXU)
            .map_err(|error| format!("could not create {}: {error}", folder.display()))?;
    }
    for file in &run.files {
        write(&work, &file.path, file.content.as_bytes())?;
    }
    let Program::Command { argv } = &run.program;
    Ok(Prepared { argv: argv.clone(), work, temporary })
}

/// Removes the folders, to free their memory. Call it only with no process left that could place a link there.
pub(crate) fn clear(scratch: &Path) {
    for folder in folders(scratch) {
        drop(std::fs::remove_dir_all(folder));
    }
}

/// The working directory, and the one for temporary files.
fn folders(scratch: &Path) -> [PathBuf; 2] {
    [scratch.join(WORK_FOLDER), scratch.join("tmp")]
}

/// The handshake has checked that `name` is relative and without `..`.
fn write(work: &Path, name: &str, content: &[u8]) -> Result<(), String> {
    create(work, name, content).map_err(|error| format!("could not write file {name:?}: {error}"))
}

fn create(work: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let path = work.join(name);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR)?;
    io::Write::write_all(&mut std::fs::File::from(file), content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use skillet_protocol::{FileContent, RunFile};

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("skillet-scratch-{}-{name}", std::process::id()));
            std::fs::create_dir(&path).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn run(files: &[(&str, &str)]) -> Run {
        let mut run: Run = serde_json::from_str(
            r#"{"executionUid":"u","attempt":1,"epoch":0,"input":"",
                "program":{"command":{"argv":["/bin/sh","-eu","bin/main.sh"]}},
                "limits":{"timeoutMs":1,"graceMs":0,"processes":1,"outputBytes":0,"fileBytes":0,"openFiles":9}}"#,
        )
        .unwrap();
        run.files = files
            .iter()
            .map(|(path, content)| RunFile { path: (*path).to_owned(), content: FileContent::from(*content) })
            .collect();
        run
    }

    #[test]
    fn files_are_in_place_and_the_program_is_left_as_it_is() {
        let folder = Folder::new("place");
        let prepared = prepare(&folder.0, &run(&[("bin/main.sh", "cat"), ("deep/b.txt", "B")])).unwrap();
        assert_eq!(prepared.argv, ["/bin/sh", "-eu", "bin/main.sh"]);
        assert_eq!(std::fs::read_to_string(prepared.work.join("bin/main.sh")).unwrap(), "cat");
        assert_eq!(std::fs::read_to_string(prepared.work.join("deep/b.txt")).unwrap(), "B");
        assert!(prepared.temporary.is_dir());
        clear(&folder.0);
        assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 0);
    }

    #[test]
    fn folders_are_for_this_user_alone_and_files_are_no_programs() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = Folder::new("mode");
        let prepared = prepare(&folder.0, &run(&[("a.txt", "A")])).unwrap();
        let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(prepared.work.clone()), 0o700);
        assert_eq!(mode(prepared.work.join("a.txt")), 0o600);
    }

    #[test]
    fn a_folder_that_exists_is_refused_link_or_not() {
        let folder = Folder::new("exists");
        std::os::unix::fs::symlink("/tmp", folder.0.join("work")).unwrap();
        let message = prepare(&folder.0, &run(&[])).unwrap_err();
        assert!(message.starts_with("could not create") && message.contains("File exists"), "{message}");
    }

    #[test]
    fn files_that_cannot_be_together_are_refused() {
        let folder = Folder::new("both");
        let message = prepare(&folder.0, &run(&[("a", "A"), ("a/b", "B")])).unwrap_err();
        assert!(message.starts_with("could not write file \"a/b\""), "{message}");
    }
}
