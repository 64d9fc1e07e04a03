//! A program of a few hundred bytes that only exits with 42. The probe tries to execute it from scratch.
//!
//! It has a dynamic section, so that the dynamic loader accepts it too. A copy of a real program would take megabytes, and
//! an image may have none.

/// Exit code of the program; no refusal has this code.
pub(crate) const EXIT_CODE: i32 = 42;

const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const DYNAMIC_AT: usize = HEADER + 4 * PROGRAM_HEADER;
const DYNAMIC_ENTRIES: usize = 5;
const STRINGS_AT: usize = DYNAMIC_AT + 16 * DYNAMIC_ENTRIES;
/// An empty string, and an empty symbol.
const INTERPRETER_AT: usize = STRINGS_AT + 32;
const CODE_AT: usize = INTERPRETER_AT + 64;

#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = 62;
/// mov edi, 42; mov eax, 231 (`exit_group`); syscall.
#[cfg(target_arch = "x86_64")]
const CODE: &[u8] = &[0xbf, 42, 0, 0, 0, 0xb8, 231, 0, 0, 0, 0x0f, 0x05];

#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = 183;
/// mov x0, 42; mov x8, 94 (`exit_group`); svc 0.
#[cfg(target_arch = "aarch64")]
const CODE: &[u8] = &[0x40, 0x05, 0x80, 0xd2, 0xc8, 0x0b, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4];

/// Returns the bytes of the file: a position-independent program with one segment.
///
/// Without an interpreter the kernel runs it alone. With one, the loader runs it itself; glibc's loader would otherwise
/// hand it back to the kernel and prove nothing.
pub(crate) fn program(interpreter: Option<&str>) -> Vec<u8> {
    let length = (CODE_AT + CODE.len()) as u64;
    let mut file = Vec::new();
    // 64 bit, little-endian, version 1.
    file.extend([0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    half(&mut file, [3, MACHINE]); // ET_DYN
    word(&mut file, 1);
    long(&mut file, [CODE_AT as u64, HEADER as u64, 0]);
    word(&mut file, 0);
    half(&mut file, [64, 56, 4, 64, 0, 0]);

    // All rights at once: the loader writes into the dynamic section.
    program_header(&mut file, 1, 7, 0, length);
    program_header(&mut file, 2, 6, DYNAMIC_AT as u64, 16 * DYNAMIC_ENTRIES as u64);
    // Without this the loader would want an executable stack.
    program_header(&mut file, 0x6474_e551, 6, 0, 0);

    let (kind, length) = interpreter.map_or((0, 0), |path| (3, path.len() as u64 + 1));
    program_header(&mut file, kind, 4, INTERPRETER_AT as u64, length);

    // DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SYMENT, DT_NULL: the least a loader accepts.
    let strings = STRINGS_AT as u64;
    for (tag, value) in [(5, strings), (6, strings), (10, 1), (11, 24), (0, 0)] {
        long(&mut file, [tag, value]);
    }
    file.resize(INTERPRETER_AT, 0);
    file.extend(interpreter.unwrap_or_default().as_bytes());
    file.resize(CODE_AT, 0);
    file.extend(CODE);
    file
}

fn program_header(file: &mut Vec<u8>, kind: u32, flags: u32, offset: u64, length: u64) {
    word(file, kind);
    word(file, flags);
    long(file, [offset, offset, offset, length, length, 4096]);
}

fn half<const N: usize>(file: &mut Vec<u8>, values: [u16; N]) {
    file.extend(values.iter().flat_map(|value| value.to_le_bytes()));
}

fn word(file: &mut Vec<u8>, value: u32) {
    file.extend(value.to_le_bytes());
}

fn long<const N: usize>(file: &mut Vec<u8>, values: [u64; N]) {
    file.extend(values.iter().flat_map(|value| value.to_le_bytes()));
}

/// Paths of dynamic loaders, if the image has one.
pub(crate) const LOADERS: [&str; 6] = [
    "/lib64/ld-linux-x86-64.so.2",
    "/lib/ld-linux-x86-64.so.2",
    "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
    "/lib/ld-linux-aarch64.so.1",
    "/lib/ld-musl-x86_64.so.1",
    "/lib/ld-musl-aarch64.so.1",
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::Command;

    /// A probe that cannot work would report every sandbox as safe.
    #[test]
    fn the_program_runs_directly_and_through_the_loader_without_rules() {
        let folder = std::env::temp_dir().join(format!("skillet-elf-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let alone = folder.join("alone");
        std::fs::write(&alone, program(None)).unwrap();
        std::fs::set_permissions(&alone, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(Command::new(&alone).status().unwrap().code(), Some(EXIT_CODE));
        let mut tried = 0;
        for loader in LOADERS.iter().filter(|loader| std::fs::metadata(loader).is_ok()) {
            let interpreted = folder.join("interpreted");
            // Not executable: only the loader can run it.
            std::fs::write(&interpreted, program(Some(loader))).unwrap();
            let status = Command::new(loader).arg(&interpreted).status().unwrap();
            assert_eq!(status.code(), Some(EXIT_CODE), "{loader}");
            tried += 1;
        }
        assert!(tried > 0, "this machine has a dynamic loader");
        std::fs::remove_dir_all(folder).unwrap();
    }
}
