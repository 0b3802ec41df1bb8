//! A private X display and a private session bus for a machine that has none.
//!
//! Both end with the [`Server`] value, and also when this program is killed (the kernel's
//! parent-death signal, set through util-linux's `setpriv`); not by a Ctrl+C, which is for the app
//! that they serve. Never touches a display it did not start.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use crate::sh;

/// A helper process that has said on its first line of output where it can be reached.
pub(crate) struct Server {
    child: Child,
    /// What it said: the display's number, or the bus's address.
    pub(crate) address: String,
}

impl Server {
    fn start(program: &str, args: &[&str]) -> Result<Self, String> {
        let hint = format!("cannot start `{program}`; run `cargo xtask setup --test`");
        let mut child = tied(program, args)
            // the terminal's signals go to the group of this program
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("{hint}: {e}"))?;
        let mut address = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut address).map_err(|e| format!("{hint}: {e}"))?;
        }
        let server = Self { child, address: address.trim().to_owned() };
        if server.address.is_empty() { Err(hint) } else { Ok(server) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGTERM, not Child::kill: the X server removes its lock file and socket then
        let stopped = Command::new("sh")
            .args(["-c", "kill -TERM \"$0\"", &self.child.id().to_string()])
            .status()
            .is_ok_and(|status| status.success());
        if !stopped && let Err(e) = self.child.kill() {
            eprintln!("xtask: cannot stop the helper process {}: {e}", self.child.id());
        }
        if let Err(e) = self.child.wait() {
            eprintln!("xtask: cannot wait for the helper process {}: {e}", self.child.id());
        }
    }
}

/// An X server on the first free display; its address is the display's number.
pub(crate) fn x_server() -> Result<Server, String> {
    Server::start("Xvfb", &["-displayfd", "1", "-screen", "0", "1280x900x24", "-nolisten", "tcp"])
}

/// A session bus of its own; its address is what DBUS_SESSION_BUS_ADDRESS wants.
pub(crate) fn session_bus() -> Result<Server, String> {
    Server::start("dbus-daemon", &["--session", "--nofork", "--nopidfile", "--print-address=1"])
}

/// `program` with `args`, ended by the kernel when this program dies.
pub(crate) fn tied(program: &str, args: &[&str]) -> Command {
    let mut words = vec!["--pdeathsig", "TERM", "--", program];
    words.extend_from_slice(args);
    sh::command("setpriv", &words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_out_of_reach_of_the_terminals_signals() {
        let server = Server::start("sh", &["-c", "cut -d' ' -f5 /proc/$$/stat; sleep 60"]).unwrap();
        assert_eq!(server.address, server.child.id().to_string());
    }
}
