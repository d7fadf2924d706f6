//! The guard: a shell that kills the groups that are left when this process is gone, however it went.

use std::io::Write;
use std::process::{ChildStdin, Command, Stdio};

use crate::system;

/// Reads `+GROUP` and `-GROUP` until its input is closed, then kills the groups that are left.
const SCRIPT: &str = r#"
trap '' HUP INT TERM QUIT
groups=' '
while read -r line; do
  id=${line#?}
  case $line in
    +*) groups="$groups$id " ;;
    -*) case $groups in *" $id "*) groups="${groups%%" $id "*} ${groups#*" $id "}" ;; esac ;;
  esac
done
for id in $groups; do kill -s KILL -- "-$id"; done
"#;

/// The guard, as long as it lives. Where there is no shell, there is none.
pub(crate) struct Guard(Option<ChildStdin>);

impl Guard {
    /// Starts it, in a group of its own, so that what a terminal sends to this one does not end it.
    pub(crate) fn start() -> Self {
        if cfg!(not(unix)) {
            return Self(None);
        }
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", SCRIPT, "retrace-guard"]).env_clear().current_dir("/");
        shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        system::lead_group(&mut shell);
        // It ends right after this process, so nobody here waits for it.
        Self(shell.spawn().ok().and_then(|mut guard| guard.stdin.take()))
    }

    /// A group that is to be killed if this process ends.
    pub(crate) fn watch(&mut self, group: u32) {
        self.tell(&format!("+{group}\n"));
    }

    /// A group that has ended.
    pub(crate) fn forget(&mut self, group: u32) {
        self.tell(&format!("-{group}\n"));
    }

    fn tell(&mut self, line: &str) {
        // A guard that was killed can guard nothing more.
        if let Some(stdin) = &mut self.0
            && stdin.write_all(line.as_bytes()).is_err()
        {
            self.0 = None;
        }
    }
}
