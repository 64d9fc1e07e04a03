//! The seccomp filter for programs, as BPF instructions.
//!
//! Pure: this module makes the instructions, `confine` installs them. The filter refuses the calls that are named here,
//! because the runtime's profile and Landlock permit them or because the rule must hold without those two. All other
//! calls are allowed. For a program with named egress, `sockets` hands the calls of inet sockets to the runner.

mod sockets;

use libc::sock_filter;

#[cfg(target_arch = "x86_64")]
const ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const ARCHITECTURE: u32 = 0xc000_00b7;

/// The x32 calls of an x86-64 kernel carry this bit; they would slip past every number below.
#[cfg(target_arch = "x86_64")]
const X32_BIT: u32 = 0x4000_0000;

const LOAD: u16 = 0x20;
const JUMP_EQUAL: u16 = 0x15;
const JUMP_AT_LEAST: u16 = 0x35;
const JUMP_ABOVE: u16 = 0x25;
const JUMP_ANY_BIT: u16 = 0x45;
const AND: u16 = 0x54;
const RETURN: u16 = 0x06;

const ALLOW: u32 = 0x7fff_0000;
const KILL_PROCESS: u32 = 0x8000_0000;
const ERRNO: u32 = 0x0005_0000;

const OFFSET_NUMBER: u32 = 0;
const OFFSET_ARCHITECTURE: u32 = 4;

/// All flags that make a namespace; `CLONE_NEWTIME` shares its bit with the exit signal of clone and is for unshare only.
const NEW_NAMESPACE: u32 = 0x7e02_0000;
const CLONE_NEWTIME: u32 = 0x80;

/// A condition on the low half of an argument. The kernel takes these as 32-bit numbers.
#[derive(Clone, Copy, Debug)]
enum When {
    Equal(u8, u32),
    NotEqual(u8, u32),
    AnyBit(u8, u32),
    Within(u8, u32, u32),
    NoneOf(u8, &'static [u32]),
    OneOf(u8, &'static [u32]),
    /// None of the values under a mask.
    MaskedNoneOf(u8, u32, &'static [u32]),
    /// A pointer that is not null: the whole argument counts.
    NotNull(u8),
}

/// Calls that are refused with any arguments.
const REFUSED: &[libc::c_long] = &[
    // Programs from memory, not from the image.
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
    // Other processes' memory, descriptors and secrets.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Ways to do calls that this filter does not see, and large kernel surfaces.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    // Namespaces, mounts, roots.
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    SYS_OPEN_TREE_ATTR,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    // The machine.
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_lookup_dcookie,
];

/// Not in libc yet; new calls have one number on every architecture.
const SYS_OPEN_TREE_ATTR: libc::c_long = 467;

#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[libc::c_long] = &[
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS_ustat,
    libc::SYS_sysfs,
    libc::SYS__sysctl,
    libc::SYS_nfsservctl,
];
#[cfg(target_arch = "aarch64")]
const REFUSED_HERE: &[libc::c_long] = &[];

/// Sockets that a program may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sockets {
    /// Local ones only.
    Local,
    /// Those and inet sockets, whose calls the runner answers.
    Answered,
}

/// Returns the filter for programs of the runner with the process id `runner`.
pub(crate) fn instructions(runner: u32, sockets: Sockets) -> Vec<sock_filter> {
    let mut program = Filter::default();
    program.check_architecture();
    for number in REFUSED.iter().chain(REFUSED_HERE) {
        program.refuse(*number, libc::EPERM);
    }
    // Its flags are in memory, out of a filter's sight. The C libraries fall back to clone on ENOSYS.
    program.refuse(libc::SYS_clone3, libc::ENOSYS);
    program.refuse_when(libc::SYS_clone, &[When::AnyBit(0, NEW_NAMESPACE)]);
    program.refuse_when(libc::SYS_unshare, &[When::AnyBit(0, NEW_NAMESPACE | CLONE_NEWTIME)]);

    let not_unix = [When::NotEqual(0, libc::AF_UNIX.cast_unsigned())];
    match sockets {
        Sockets::Local => program.refuse_when(libc::SYS_socket, &not_unix),
        Sockets::Answered => sockets::notify(&mut program),
    }
    program.refuse_when(libc::SYS_socketpair, &not_unix);

    // An empty path executes what a descriptor holds: a memory file, or a file that was deleted.
    program.refuse_when(libc::SYS_execveat, &[When::AnyBit(4, libc::AT_EMPTY_PATH.cast_unsigned())]);

    program.refuse_when(
        libc::SYS_ioctl,
        &[
            // Typing into a terminal that someone else reads.
            When::Equal(1, 0x5412), // TIOCSTI
            When::Equal(1, 0x541c), // TIOCLINUX
            // The socket range: even an AF_UNIX socket reveals the pod's addresses through it.
            When::Within(1, 0x8900, 0x89ff),
        ],
    );
    // Linux, Linux with a 2.6 version number, the same for 32 bit, and asking. Not: a readable, fixed address space.
    let usual = &[0x0, 0x2_0000, 0x8, 0x2_0008, 0xffff_ffff];
    program.refuse_when(libc::SYS_personality, &[When::NoneOf(0, usual)]);

    // A process of the same uid may set limits and priority of the runner: out of files or of time, it could not
    // end the program. The runner is one thread, so one number names it.
    for number in [
        libc::SYS_prlimit64,
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setscheduler,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setattr,
        libc::SYS_migrate_pages,
        libc::SYS_move_pages,
    ] {
        program.refuse_when(number, &[When::Equal(0, runner)]);
    }
    let of_one = |process| [When::NotEqual(0, process), When::Equal(1, runner)];
    program.refuse_when(libc::SYS_setpriority, &of_one(libc::PRIO_PROCESS));
    program.refuse_when(libc::SYS_ioprio_set, &of_one(1)); // IOPRIO_WHO_PROCESS

    program.push(RETURN, ALLOW);
    program.0
}

#[derive(Default)]
struct Filter(Vec<sock_filter>);

impl Filter {
    fn push(&mut self, code: u16, k: u32) {
        self.0.push(sock_filter { code, jt: 0, jf: 0, k });
    }

    fn jump(&mut self, code: u16, k: u32, jt: u8, jf: u8) {
        self.0.push(sock_filter { code, jt, jf, k });
    }

    /// Another architecture's numbers mean other calls. The accumulator holds the call's number afterwards.
    fn check_architecture(&mut self) {
        self.push(LOAD, OFFSET_ARCHITECTURE);
        self.jump(JUMP_EQUAL, ARCHITECTURE, 1, 0);
        self.push(RETURN, KILL_PROCESS);
        self.push(LOAD, OFFSET_NUMBER);
        #[cfg(target_arch = "x86_64")]
        {
            self.jump(JUMP_AT_LEAST, X32_BIT, 0, 1);
            self.push(RETURN, errno(libc::ENOSYS));
        }
    }

    fn refuse(&mut self, number: libc::c_long, error: i32) {
        self.jump(JUMP_EQUAL, call(number), 0, 1);
        self.push(RETURN, errno(error));
    }

    fn refuse_when(&mut self, number: libc::c_long, conditions: &[When]) {
        let refusals: Vec<_> = conditions.iter().map(|when| (*when, errno(libc::EPERM))).collect();
        self.decide(number, &refusals, ALLOW);
    }

    /// Returns the action of the first condition that holds, or `otherwise`.
    ///
    /// The block of one call always returns, so what it loads disturbs no later block.
    fn decide(&mut self, number: libc::c_long, rules: &[(When, u32)], otherwise: u32) {
        let mut block = Self::default();
        for (when, action) in rules {
            block.rule(*when, *action);
        }
        block.push(RETURN, otherwise);
        let length = u8::try_from(block.0.len()).expect("a block has a few conditions of a few instructions");
        self.jump(JUMP_EQUAL, call(number), 0, length);
        self.0.extend(block.0);
    }

    fn rule(&mut self, when: When, action: u32) {
        let load = |program: &mut Self, argument: u8| program.push(LOAD, 16 + 8 * u32::from(argument));
        match when {
            When::Equal(argument, value) => {
                load(self, argument);
                self.jump(JUMP_EQUAL, value, 0, 1);
            }
            When::NotEqual(argument, value) => {
                load(self, argument);
                self.jump(JUMP_EQUAL, value, 1, 0);
            }
            When::AnyBit(argument, bits) => {
                load(self, argument);
                self.jump(JUMP_ANY_BIT, bits, 0, 1);
            }
            When::Within(argument, low, high) => {
                load(self, argument);
                self.jump(JUMP_AT_LEAST, low, 0, 2);
                self.jump(JUMP_ABOVE, high, 1, 0);
            }
            When::NoneOf(argument, values) => {
                load(self, argument);
                self.jump_past_the_return(values);
            }
            When::MaskedNoneOf(argument, mask, values) => {
                load(self, argument);
                self.push(AND, mask);
                self.jump_past_the_return(values);
            }
            When::OneOf(argument, values) => {
                load(self, argument);
                for (at, value) in values.iter().enumerate() {
                    let (to_the_return, last) = (distance(values, at) - 1, at + 1 == values.len());
                    self.jump(JUMP_EQUAL, *value, to_the_return, u8::from(last));
                }
            }
            When::NotNull(argument) => {
                load(self, argument);
                self.jump(JUMP_EQUAL, 0, 0, 2);
                self.push(LOAD, 20 + 8 * u32::from(argument));
                self.jump(JUMP_EQUAL, 0, 1, 0);
            }
        }
        self.push(RETURN, action);
    }

    fn jump_past_the_return(&mut self, values: &[u32]) {
        for (at, value) in values.iter().enumerate() {
            self.jump(JUMP_EQUAL, *value, distance(values, at), 0);
        }
    }
}

/// Instructions from the one of a value to that after the last value's.
fn distance(values: &[u32], at: usize) -> u8 {
    u8::try_from(values.len() - at).expect("a handful of values")
}

fn call(number: libc::c_long) -> u32 {
    u32::try_from(number).expect("call numbers are small")
}

fn errno(error: i32) -> u32 {
    ERRNO | error.cast_unsigned()
}

#[cfg(test)]
mod tests;
