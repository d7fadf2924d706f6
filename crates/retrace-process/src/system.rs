//! What differs between operating systems: groups, death signals, and waiting for an end without reaping.

use std::process::Child;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

pub(crate) use imp::{Signal, die_with_this_thread, lead_group, signal_group};

/// Between two looks at a child, where the system cannot tell of its end without reaping it.
const POLL: Duration = Duration::from_millis(10);

/// Blocks until the child has ended, but does not reap it, so that its id, and that of its group, stay its own.
pub(crate) fn wait_unreaped(child: &Mutex<Option<Child>>, id: u32) {
    if imp::wait_unreaped(id) {
        return;
    }
    let has_ended = || {
        let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
        child.as_mut().is_none_or(|child| !matches!(child.try_wait(), Ok(None)))
    };
    while !has_ended() {
        std::thread::sleep(POLL);
    }
}

#[cfg(unix)]
mod imp {
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    pub(crate) use rustix::process::Signal;
    use rustix::process::{Pid, kill_process_group};

    /// Has the program lead a process group of its own.
    pub(crate) fn lead_group(command: &mut Command) {
        command.process_group(0);
    }

    #[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
    pub(crate) fn die_with_this_thread(_: &mut Command) {}

    /// Has the program killed when the thread that starts it ends.
    #[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
    #[expect(unsafe_code, reason = "only what runs between fork and exec can ask for the signal of the child itself")]
    pub(crate) fn die_with_this_thread(command: &mut Command) {
        use rustix::process::{getpid, getppid, set_parent_process_death_signal};

        let parent = getpid();
        let before_exec = move || {
            set_parent_process_death_signal(Some(Signal::KILL))?;
            // The parent may have died before the signal was asked for.
            if getppid() == Some(parent) { Ok(()) } else { Err(std::io::ErrorKind::BrokenPipe.into()) }
        };
        // SAFETY: the closure makes two system calls and neither allocates nor locks.
        unsafe { command.pre_exec(before_exec) };
    }

    /// Sends a signal to all of the group that the child leads. The child must not have been reaped.
    pub(crate) fn signal_group(child: &mut Child, signal: Signal) {
        if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            // It fails where there is nobody left.
            let _ = kill_process_group(group, signal);
        }
    }

    /// Whether the system can wait so; then the child has ended.
    #[cfg(not(any(target_os = "openbsd", target_os = "redox", target_os = "cygwin")))]
    pub(super) fn wait_unreaped(id: u32) -> bool {
        use rustix::process::{WaitId, WaitIdOptions, waitid};

        let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) else { return false };
        loop {
            match waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
                Ok(_) => return true,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    #[cfg(any(target_os = "openbsd", target_os = "redox", target_os = "cygwin"))]
    pub(super) fn wait_unreaped(_: u32) -> bool {
        false
    }
}

#[cfg(not(unix))]
mod imp {
    use std::process::{Child, Command};

    /// What a process is told.
    #[derive(Clone, Copy, PartialEq, Eq)]
    pub(crate) struct Signal(bool);

    impl Signal {
        pub(crate) const TERM: Self = Self(false);
        pub(crate) const KILL: Self = Self(true);
    }

    pub(crate) fn lead_group(_: &mut Command) {}

    pub(crate) fn die_with_this_thread(_: &mut Command) {}

    /// There are no groups here: ends the child alone.
    pub(crate) fn signal_group(child: &mut Child, signal: Signal) {
        if signal == Signal::KILL {
            let _ = child.kill();
        }
    }

    pub(super) fn wait_unreaped(_: u32) -> bool {
        false
    }
}
