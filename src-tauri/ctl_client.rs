//! `omniscio ctl …`: asks the running app and prints its answer. Starts nothing, and touches neither
//! the store nor a session itself.

use crate::supervise::children::{MARKER_DATA, MARKER_SESSION};
use crate::supervise::ctl::{Request, Response, SOCKET_VARIABLE, socket_path};
use crate::supervise::store::paths;
use anyhow::{Context, Result, anyhow};
use omniscio_core::id::SessionId;
use omniscio_core::supervisor::AgentTool;
use std::env;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The app answers sooner, with what it can say by then.
const ANSWER_WAIT: Duration = Duration::from_secs(20);
/// No answer is longer, in bytes.
const ANSWER_MAX_BYTES: u64 = 16 * 1024 * 1024;
/// An app that could not make its socket runs without.
const NOT_THERE: &str = "Omniscio does not run, or has no socket (then its log says why)";
/// A longer task would be refused, in bytes.
const TASK_MAX_BYTES: u64 = 1024 * 1024;

/// What can be asked.
#[derive(Debug, clap::Subcommand)]
pub enum Ask {
    /// Start a worker of this session; its final message comes back as a message
    SpawnWorker {
        /// What it is to do; `-` reads it from the standard input
        task: String,
        /// What the list calls it
        #[arg(long)]
        title: Option<String>,
    },
    /// Print this session's workers as JSON
    ListWorkers,
    /// Declare a check: nothing restarts this session by itself while it is open
    OpenGate {
        /// What you call the check
        name: String,
    },
    /// Declare that the check is over
    CloseGate {
        /// What you called it
        name: String,
    },
    /// Print the sessions that need a person, as JSON
    Poll,
}

/// Asks, and gives the answer's text.
///
/// # Errors
/// A sentence for who called it: the app does not run, or says no.
pub fn run(ask: Ask, data_dir: Option<&Path>) -> Result<String> {
    let request = request(ask)?;
    put(&request, &socket(data_dir)?, ANSWER_WAIT)
}

/// Puts the request to the app that listens there. One that takes nothing in, or says nothing, is
/// waited for no longer than this.
fn put(request: &Request, path: &Path, wait: Duration) -> Result<String> {
    let mut stream = UnixStream::connect(path).context(NOT_THERE)?;
    stream.set_read_timeout(Some(wait))?;
    stream.set_write_timeout(Some(wait))?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    let sent = stream.write_all(&line).and_then(|()| stream.shutdown(Shutdown::Write));
    let mut answer = String::new();
    // one that refuses closes before it has read everything: its words say more than the pipe's
    let read = stream.take(ANSWER_MAX_BYTES).read_to_string(&mut answer);
    if answer.is_empty() {
        sent.and(read.map(|_| ())).context("Omniscio did not answer")?;
    }
    let response: Response = serde_json::from_str(&answer).context("Omniscio did not answer")?;
    response.map_err(|words| anyhow!(words))
}

fn request(ask: Ask) -> Result<Request> {
    let call = match ask {
        Ask::Poll => return Ok(Request::Poll),
        Ask::SpawnWorker { task, title } => {
            let task = if task == "-" { from_stdin()? } else { task };
            AgentTool::SpawnWorker { task, title }
        }
        Ask::ListWorkers => AgentTool::ListWorkers,
        Ask::OpenGate { name } => AgentTool::OpenGate { name },
        Ask::CloseGate { name } => AgentTool::CloseGate { name },
    };
    Ok(Request::Agent { session: session()?, call })
}

/// The session whose child this is, by the marker that every child carries.
fn session() -> Result<SessionId> {
    let named = env::var(MARKER_SESSION).ok().and_then(|id| id.parse().ok());
    named.with_context(|| {
        format!("{MARKER_SESSION} names no session: this works inside of a session only")
    })
}

/// The socket that the marker names; outside of a session that of the data folder.
fn socket(data_dir: Option<&Path>) -> Result<PathBuf> {
    let named = |name| env::var_os(name).map(PathBuf::from);
    if data_dir.is_none()
        && let Some(path) = named(SOCKET_VARIABLE)
    {
        return Ok(path);
    }
    let data = match (data_dir, named(MARKER_DATA)) {
        (None, Some(data)) => data,
        (given, _) => paths::data_dir(given)?,
    };
    Ok(socket_path(&data.canonicalize().context(NOT_THERE)?))
}

fn from_stdin() -> Result<String> {
    let mut task = String::new();
    io::stdin().take(TASK_MAX_BYTES).read_to_string(&mut task)?;
    Ok(task)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn an_app_that_stands_still_is_not_waited_for_without_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ctl.sock");
        // it takes nothing in: what is asked fills the pipe, or no answer comes
        let _still = UnixListener::bind(&path).unwrap();
        let long = AgentTool::SpawnWorker { task: "x".repeat(8 * 1024 * 1024), title: None };
        let long = Request::Agent { session: omniscio_core::id::Uuid(1), call: long };
        for request in [long, Request::Poll] {
            let words = put(&request, &path, Duration::from_millis(1)).unwrap_err().to_string();
            assert_eq!(words, "Omniscio did not answer");
        }
    }
}
