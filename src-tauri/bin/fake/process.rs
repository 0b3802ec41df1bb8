//! What the stand-in does to processes: itself, the `sleep` of its Bash tool, a daemon. It never signals a process
//! that it did not start, apart from itself.

use crate::limits;
use std::process::{Child, Command, Stdio};

/// Whether a process with this id runs. A zombie does not.
pub(crate) fn alive(pid: u64) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with(['Z', 'X'])
}

/// Field 22 of this process' `stat`: when it started, in clock ticks since boot. Empty off Linux.
pub(crate) fn start_ticks() -> String {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let behind_name = stat.rsplit(')').next().unwrap_or_default();
    behind_name.split_whitespace().nth(19).unwrap_or_default().to_owned()
}

/// Ends this process the way a crash does: at once, without a word.
pub(crate) fn kill_self() -> ! {
    #[cfg(unix)]
    Command::new("sh").args(["-c", "kill -KILL $PPID"]).status().ok();
    std::process::abort()
}

/// Starts `sleep SECONDS` as the CLI starts a Bash tool: in a session of its own, without a terminal, with
/// the marks of the CLI in its environment.
pub(crate) fn spawn_sleep(seconds: u64, session_id: &str) -> std::io::Result<Child> {
    let seconds = seconds.to_string();
    let started = prepared("setsid", &["sleep", &seconds], session_id).spawn();
    started.or_else(|_| prepared("sleep", &[&seconds], session_id).spawn())
}

/// Starts `sleep SECONDS` as a daemon that a tool leaves behind: forked twice, in a session of its own, deaf
/// to SIGTERM. Nobody waits for it.
pub(crate) fn spawn_daemon(seconds: u64, session_id: &str) -> std::io::Result<()> {
    let twice = format!("setsid sh -c \"trap '' TERM HUP; exec sleep {seconds}\" &");
    prepared("sh", &["-c", &twice], session_id).status().map(drop)
}

fn prepared(program: &str, args: &[&str], session_id: &str) -> Command {
    let mut command = Command::new(program);
    command.args(args).env("CLAUDECODE", "1").env("CLAUDE_CODE_SESSION_ID", session_id);
    command.env("CLAUDE_PID", std::process::id().to_string());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Ends a tool and waits for it.
pub(crate) fn end(child: &mut Child) {
    child.kill().and_then(|()| child.wait()).ok();
}

/// The process that started this one; it changes when that one dies.
#[cfg(unix)]
pub(crate) fn parent() -> u32 {
    std::os::unix::process::parent_id()
}

/// Off Unix the parent cannot be read; a constant means "still there".
#[cfg(not(unix))]
pub(crate) fn parent() -> u32 {
    0
}

/// Reads and writes nothing for as long as the parent lives: when it dies, nobody is left who could end
/// this process.
pub(crate) fn wait_for_parents_death() {
    let first = parent();
    while parent() == first {
        std::thread::sleep(limits::PARENT_POLL);
    }
}

/// Closes stdout and stays: the process becomes one that only waits for the end of stdin.
pub(crate) fn close_stdout() -> ! {
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt;
        let failed = Command::new("cat").stdout(Stdio::null()).exec();
        eprintln!("omniscio-fake-claude: cannot close stdout: {failed}");
    }
    std::process::abort()
}

/// Starts this program again in the same process, with SIGTERM ignored: a shell sets it, and an ignored
/// signal stays ignored across `exec`.
pub(crate) fn again_ignoring_term(args: &[String], handover: &std::path::Path) -> std::io::Error {
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt;
        match std::env::current_exe() {
            Ok(program) => Command::new("sh")
                .args(["-c", "trap '' TERM; exec \"$0\" \"$@\""])
                .arg(program)
                .args(args)
                .env("OMNISCIO_FAKE_HANDOVER", handover)
                .exec(),
            Err(error) => error,
        }
    }
    #[cfg(not(unix))]
    {
        let _unused = (args, handover);
        std::io::Error::from(std::io::ErrorKind::Unsupported)
    }
}
