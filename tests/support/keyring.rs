//! A secret store for one test: GNOME Keyring on a session bus of its own, with an empty keyring below the
//! given home. It touches no other bus and no other keyring.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const MISSING: &str = "is missing: run `cargo xtask setup --test`";
/// Beyond this the test hangs.
const LONG: Duration = Duration::from_secs(60);

/// Ends with this value; and with the test, should that be killed.
pub(crate) struct Keyring {
    /// What `DBUS_SESSION_BUS_ADDRESS` is to be.
    pub(crate) address: String,
    bus: Child,
    pub(crate) daemon: Child,
}

impl Keyring {
    /// Starts a bus and an unlocked keyring on it.
    ///
    /// # Panics
    /// If the machine lacks either: such a test is never skipped.
    pub(crate) fn start(home: &Path) -> Keyring {
        let run = home.join("keyring-run");
        fs::create_dir(&run).unwrap();
        fs::set_permissions(&run, fs::Permissions::from_mode(0o700)).unwrap();
        let mut bus = with_us("dbus-daemon")
            .args(["--session", "--nofork", "--nopidfile", "--print-address=1"])
            .env("XDG_RUNTIME_DIR", &run)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("`setpriv` (util-linux) is missing");
        let mut address = String::new();
        BufReader::new(bus.stdout.take().unwrap()).read_line(&mut address).unwrap();
        let address = address.trim().to_owned();
        assert!(!address.is_empty(), "`dbus-daemon` {MISSING}");
        let mut daemon = with_us("gnome-keyring-daemon")
            .args(["--foreground", "--components=secrets", "--unlock"])
            .env("DBUS_SESSION_BUS_ADDRESS", &address)
            .env("XDG_RUNTIME_DIR", &run)
            .env("XDG_DATA_HOME", home.join("keyring-share"))
            .env("HOME", home)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // the password of the new keyring, ended by the pipe's end
        daemon.stdin.take().unwrap().write_all(b"of the test").ok();
        let mut keyring = Keyring { address, bus, daemon };
        keyring.until_there();
        keyring
    }

    fn until_there(&mut self) {
        let call = [
            "--dest=org.freedesktop.DBus",
            "/",
            "org.freedesktop.DBus.NameHasOwner",
            "string:org.freedesktop.secrets",
        ];
        let until = Instant::now() + LONG;
        while !self.send(&call).is_some_and(|answer| answer.contains("true")) {
            let ended = self.daemon.try_wait().unwrap();
            assert!(ended.is_none(), "`gnome-keyring-daemon` {MISSING}");
            assert!(Instant::now() < until, "the keyring does not come");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Calls a method on its bus; gives the answer, if there is one.
    pub(crate) fn send(&self, call: &[&str]) -> Option<String> {
        let sent = Command::new("dbus-send")
            .args(["--session", "--print-reply"])
            .args(call)
            .env("DBUS_SESSION_BUS_ADDRESS", &self.address)
            .output()
            .unwrap_or_else(|_| panic!("`dbus-send` {MISSING}"));
        sent.status.success().then(|| String::from_utf8_lossy(&sent.stdout).into_owned())
    }
}

impl Drop for Keyring {
    fn drop(&mut self) {
        for child in [&mut self.daemon, &mut self.bus] {
            // a stopped one hears no other signal
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// A program that ends with us.
fn with_us(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", program]);
    command
}
