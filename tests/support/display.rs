//! A private X display for one test: an `Xvfb` of its own, so that no test takes the focus from
//! another and nothing appears on anybody's screen. It touches no other display.

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// Ends with this value; and with the test, should that be killed.
pub(crate) struct Display {
    server: Child,
    /// What `DISPLAY` is to be.
    pub(crate) name: String,
}

impl Display {
    /// Starts a display.
    ///
    /// # Panics
    /// If the machine lacks `Xvfb`: a window test is never skipped.
    pub(crate) fn start() -> Display {
        let mut server = Command::new("setpriv")
            .args(["--pdeathsig", "TERM", "--", "Xvfb", "-displayfd", "1"])
            .args(["-screen", "0", "1280x900x24", "-nolisten", "tcp"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("`setpriv` (util-linux) is missing: run `cargo xtask setup --test`");
        let mut number = String::new();
        let out = server.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut number).expect("text");
        let number = number.trim();
        assert!(
            !number.is_empty(),
            "no virtual display: `Xvfb` is missing or does not start; run `cargo xtask setup --test`"
        );
        let name = format!(":{number}");
        Display { server, name }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        // not `Child::kill`: on SIGTERM the server removes its lock file and socket
        let pid = i32::try_from(self.server.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            kill_process(pid, Signal::TERM).ok();
        }
        self.server.wait().ok();
    }
}
