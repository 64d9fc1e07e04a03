//! The program's side of a call: its descriptors and its memory, read once and through /proc.
//!
//! The runner's own filter refuses `process_vm_readv`. What is read may be of another process once the caller is dead, so
//! it counts only while the call still waits; `Listener` asks for that after reading.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt as _;

use super::address::{MAX_ADDRESS, parse};
use std::net::SocketAddr;

/// A descriptor of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProgramFile {
    /// Number of the open socket or pipe, the same for every copy of the descriptor.
    pub(crate) inode: u64,
    pub(crate) is_nonblocking: bool,
    pub(crate) is_closed_on_exec: bool,
}

/// Returns the descriptor that the low half of an argument names.
pub(crate) fn file(task: u32, argument: u64) -> Option<ProgramFile> {
    let number = argument & 0xffff_ffff;
    let mut text = [0; 512];
    let length = File::open(format!("/proc/{task}/fdinfo/{number}")).ok()?.read(&mut text).ok()?;
    read_file(std::str::from_utf8(text.get(..length)?).ok()?)
}

/// Reads `flags` (octal) and `ino` of a fdinfo file.
fn read_file(text: &str) -> Option<ProgramFile> {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let flags = i32::from_str_radix(field("flags:")?, 8).ok()?;
    Some(ProgramFile {
        inode: field("ino:")?.parse().ok()?,
        is_nonblocking: flags & libc::O_NONBLOCK != 0,
        is_closed_on_exec: flags & libc::O_CLOEXEC != 0,
    })
}

/// Memory of the program.
pub(crate) struct Memory(File);

impl Memory {
    pub(crate) fn of(task: u32) -> io::Result<Self> {
        std::fs::OpenOptions::new().read(true).write(true).open(format!("/proc/{task}/mem")).map(Self)
    }

    pub(crate) fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(bytes, at)
    }

    pub(crate) fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, at)
    }

    fn read_u32(&self, at: u64) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.read(at, &mut bytes)?;
        Ok(u32::from_ne_bytes(bytes))
    }

    pub(crate) fn read_u64(&self, at: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.read(at, &mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    /// Reads an address that the program gave, once. The error is the number for the program.
    pub(crate) fn address(&self, at: u64, length: u64) -> Result<Given, i32> {
        // The kernel takes the length as a signed number of 32 bits.
        let length = usize::try_from(length & 0xffff_ffff).map_err(|_| libc::EINVAL)?;
        if !(2..=MAX_ADDRESS).contains(&length) {
            return Err(libc::EINVAL);
        }
        let mut bytes = [0; MAX_ADDRESS];
        let bytes = bytes.get_mut(..length).ok_or(libc::EINVAL)?;
        self.read(at, bytes).map_err(|_| libc::EFAULT)?;
        parse(bytes)
    }

    /// Writes a value where the program wants it, as far as its room goes, and its whole length, like the kernel.
    pub(crate) fn write_sized(&self, at: u64, length_at: u64, value: &[u8]) -> Result<(), i32> {
        let room = self.read_u32(length_at).map_err(|_| libc::EFAULT)?;
        if i32::try_from(room).is_err() {
            return Err(libc::EINVAL);
        }
        let room = usize::try_from(room).unwrap_or(usize::MAX).min(value.len());
        let length = u32::try_from(value.len()).map_err(|_| libc::EINVAL)?;
        self.write(at, &value[..room]).map_err(|_| libc::EFAULT)?;
        self.write(length_at, &length.to_ne_bytes()).map_err(|_| libc::EFAULT)
    }

    /// Like `write_sized`, for options: the length is that of what was written.
    pub(crate) fn write_option(&self, at: u64, length_at: u64, value: &[u8]) -> Result<(), i32> {
        let room = self.read_u32(length_at).map_err(|_| libc::EFAULT)?;
        if i32::try_from(room).is_err() {
            return Err(libc::EINVAL);
        }
        let room = usize::try_from(room).unwrap_or(usize::MAX).min(value.len());
        self.write_sized(at, length_at, &value[..room])
    }
}

/// An address that a program gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    Inet(SocketAddr),
    /// The family of no address: the connection of a socket ends.
    Unspecified,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd as _;

    #[test]
    fn descriptors_are_known_by_inode_and_flags() {
        let text = "pos:\t0\nflags:\t02004002\nmnt_id:\t10\nino:\t4711\nscm_fds: 0\n";
        let expected = ProgramFile { inode: 4711, is_nonblocking: true, is_closed_on_exec: true };
        assert_eq!(read_file(text), Some(expected));
        let plain = ProgramFile { inode: 4711, is_nonblocking: false, is_closed_on_exec: false };
        assert_eq!(read_file(&text.replace("02004002", "02")), Some(plain));
        for nonsense in ["", "flags:\t2\n", "ino:\t7\n", "flags:\tx\nino:\t7\n"] {
            assert_eq!(read_file(nonsense), None, "{nonsense}");
        }
    }

    #[test]
    fn a_live_descriptor_has_the_inode_that_stat_shows() {
        use std::os::unix::fs::MetadataExt as _;
        let (left, _right) = std::os::unix::net::UnixStream::pair().unwrap();
        let inode = std::fs::metadata(format!("/proc/self/fd/{}", left.as_raw_fd())).unwrap().ino();
        let number = u64::try_from(left.as_raw_fd()).unwrap();
        let file = file(std::process::id(), number | 0xdead_0000_0000).unwrap();
        assert_eq!((file.inode, file.is_nonblocking), (inode, false));
        assert_eq!(super::file(std::process::id(), 0xffff_ffff), None);
    }

    #[test]
    fn memory_is_read_and_written_within_its_room() {
        let memory = Memory::of(std::process::id()).unwrap();
        let mut value = [0u8; 8];
        let mut length = 4u32;
        let at = |pointer: *const u8| pointer as u64;
        let (value_at, length_at) =
            (at(value.as_mut_ptr()), at(std::ptr::from_mut(&mut length).cast::<u8>()));
        memory.write_sized(value_at, length_at, b"abcdefgh").unwrap();
        assert_eq!(
            (std::hint::black_box(&value)[..5].to_vec(), std::hint::black_box(length)),
            (b"abcd\0".to_vec(), 8)
        );
        length = 3;
        memory.write_option(value_at, at(std::ptr::from_mut(&mut length).cast::<u8>()), b"xyzw").unwrap();
        assert_eq!(
            (std::hint::black_box(&value)[..4].to_vec(), std::hint::black_box(length)),
            (b"xyzd".to_vec(), 3)
        );
        length = u32::MAX;
        assert_eq!(
            memory.write_sized(value_at, at(std::ptr::from_mut(&mut length).cast::<u8>()), b"x"),
            Err(libc::EINVAL)
        );
        assert_eq!(memory.write_sized(8, 8, b"x"), Err(libc::EFAULT));
        assert_eq!(memory.address(8, 16), Err(libc::EFAULT));
        for length in [0, 1, 129, 0xffff_ffff] {
            assert_eq!(memory.address(value_at, length), Err(libc::EINVAL), "{length}");
        }
    }
}
