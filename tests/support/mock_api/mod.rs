//! A Messages API on loopback for the real CLI: threads, HTTP/1.1, streams, and every fault a test can ask for.
//! The test scripts each answer; nothing is read out of the message's text. It never opens a port to the outside,
//! never keeps credentials, and ends all its handlers when it is dropped.

mod gate;
mod http;
mod reply;
mod request;
mod serve;

pub use gate::Gate;
pub use reply::{Ending, Reply};
use request::fingerprint;
pub use request::{Kind, Request, ToolResult};

use http::{RawRequest, Responder};
use serde_json::{Value, json};
use serve::After;
use std::collections::VecDeque;
use std::io::{self, BufReader};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::panic;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

type Script = Box<dyn FnMut(&Request, usize) -> Reply + Send>;

#[derive(Default)]
struct Scripts {
    queue: VecDeque<Reply>,
    main: Option<Script>,
    side: Option<Script>,
    side_asked: usize,
    unscripted: usize,
}

#[derive(Default)]
struct Shared {
    log: Mutex<Vec<Request>>,
    logged: Condvar,
    scripts: Mutex<Scripts>,
    open: Mutex<Vec<Weak<TcpStream>>>,
    handlers: Mutex<Vec<JoinHandle<()>>>,
    stop: AtomicBool,
    ids: AtomicUsize,
    hanging: AtomicUsize,
}

/// The mock. Several CLIs may talk to it at once; dropping it ends every answer that hangs.
///
/// Each main request takes the next reply of the queue ([`MockApi::push`]); with an empty queue the script
/// ([`MockApi::script`]) is asked; without a script the CLI gets a 403 that it does not retry.
pub struct MockApi {
    shared: Arc<Shared>,
    address: SocketAddr,
    acceptor: Option<JoinHandle<()>>,
}

impl MockApi {
    /// Listens on a free port of the loopback interface.
    pub fn start() -> Self {
        let listener =
            TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("the loopback interface is up");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(Shared::default());
        let for_acceptor = Arc::clone(&shared);
        let acceptor = thread::spawn(move || accept(&listener, &for_acceptor));
        Self { shared, address, acceptor: Some(acceptor) }
    }

    /// For `ANTHROPIC_BASE_URL`.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Queues the reply to one main request, behind those queued before.
    pub fn push(&self, reply: Reply) {
        lock(&self.shared.scripts).queue.push_back(reply);
    }

    /// Answers every main request for which nothing is queued. `n` is the request's place among all main requests,
    /// from 0. Replaces an earlier script. An assertion in a script fails the test when the mock is dropped. A script
    /// must not call the mock itself: requests wait for each other while one is being answered.
    pub fn script(&self, script: impl FnMut(&Request, usize) -> Reply + Send + 'static) {
        lock(&self.shared.scripts).main = Some(Box::new(script));
    }

    /// Answers the model calls that are no step of the main conversation ([`Kind::Compact`], [`Kind::Subagent`],
    /// [`Kind::Side`]); `n` counts these. Without it they get a short text.
    pub fn script_side(&self, script: impl FnMut(&Request, usize) -> Reply + Send + 'static) {
        lock(&self.shared.scripts).side = Some(Box::new(script));
    }

    /// Every request so far, of all kinds, in the order of arrival.
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.shared.log).clone()
    }

    /// The steps of conversations so far, retries and fallbacks included.
    pub fn main_requests(&self) -> Vec<Request> {
        let mut all = self.requests();
        all.retain(|request| request.kind == Kind::Main);
        all
    }

    /// Waits until `count` main requests have come, and returns them all.
    ///
    /// # Panics
    /// When they did not come within `timeout`.
    #[track_caller]
    pub fn wait_main_requests(&self, count: usize, timeout: Duration) -> Vec<Request> {
        let deadline = Instant::now() + timeout;
        let mut log = lock(&self.shared.log);
        loop {
            let seen = log.iter().filter(|request| request.kind == Kind::Main).count();
            if seen >= count {
                break;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(
                !left.is_zero(),
                "only {seen} of {count} main requests came within {timeout:?}"
            );
            let waited = self.shared.logged.wait_timeout(log, left);
            log = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(log);
        self.main_requests()
    }

    /// How many answers hang at this moment.
    pub fn hanging(&self) -> usize {
        self.shared.hanging.load(Ordering::SeqCst)
    }

    /// How many main requests came for which the test had no reply.
    pub fn unscripted(&self) -> usize {
        lock(&self.shared.scripts).unscripted
    }

    /// How many queued replies no request has taken yet.
    pub fn queued(&self) -> usize {
        lock(&self.shared.scripts).queue.len()
    }
}

impl Drop for MockApi {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        // wakes the acceptor, which then sees the flag; if it is gone already there is nobody to wake
        TcpStream::connect(self.address).ok();
        let mut broken = self.acceptor.take().and_then(|thread| thread.join().err());
        for stream in lock(&self.shared.open).drain(..).filter_map(|open| open.upgrade()) {
            stream.shutdown(Shutdown::Both).ok();
        }
        let handlers: Vec<_> = lock(&self.shared.handlers).drain(..).collect();
        for handler in handlers {
            broken = handler.join().err().or(broken);
        }
        // an assertion that failed inside a script fails the test
        if let Some(payload) = broken.filter(|_| !thread::panicking()) {
            panic::resume_unwind(payload);
        }
    }
}

impl Shared {
    fn stopping(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    fn next_id(&self) -> usize {
        self.ids.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn count_hanging(&self) -> Hanging<'_> {
        self.hanging.fetch_add(1, Ordering::SeqCst);
        Hanging(self)
    }

    fn record(&self, raw: RawRequest) -> Request {
        let mut headers = raw.headers;
        let secret = |name: &str| name == "authorization" || name == "x-api-key";
        let credentials = headers.iter().filter(|(name, _)| secret(name));
        let credentials =
            credentials.map(|(name, value)| (name.clone(), fingerprint(value))).collect();
        headers.retain(|(name, _)| !secret(name));
        let mut request = Request {
            number: 0,
            main_index: None,
            kind: Kind::Unknown,
            method: raw.method,
            path: raw.path,
            headers,
            credentials,
            body: serde_json::from_slice(&raw.body).unwrap_or(Value::Null),
        };
        request.classify();
        let mut log = lock(&self.log);
        request.number = log.len();
        if request.kind == Kind::Main {
            request.main_index = Some(log.iter().filter(|r| r.kind == Kind::Main).count());
        }
        log.push(request.clone());
        drop(log);
        self.logged.notify_all();
        request
    }

    fn reply_to(&self, request: &Request) -> Reply {
        let mut scripts = lock(&self.scripts);
        let Some(n) = request.main_index else {
            let n = scripts.side_asked;
            scripts.side_asked += 1;
            let summary = || Reply::new().text("<summary>A summary by the mock.</summary>");
            return scripts.side.as_mut().map_or_else(summary, |script| script(request, n));
        };
        if let Some(reply) = scripts.queue.pop_front() {
            return reply;
        }
        if let Some(script) = scripts.main.as_mut() {
            return script(request, n);
        }
        scripts.unscripted += 1;
        Reply::new().error(
            403,
            "permission_error",
            "The test has scripted no reply for this request.",
        )
    }
}

/// Counts one hanging answer for as long as it lives.
struct Hanging<'a>(&'a Shared);

impl Drop for Hanging<'_> {
    fn drop(&mut self) {
        self.0.hanging.fetch_sub(1, Ordering::SeqCst);
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.stopping() {
            return;
        }
        let Ok(stream) = stream else { continue };
        // only the handler owns the stream, so that its end closes (or resets) the connection at once
        let stream = Arc::new(stream);
        lock(&shared.open).push(Arc::downgrade(&stream));
        let for_handler = Arc::clone(shared);
        let handler = thread::spawn(move || {
            // an error here is a client that went away: the CLI was killed, or the test wanted that
            serve_connection(&for_handler, &stream).ok();
        });
        lock(&shared.handlers).push(handler);
    }
}

fn serve_connection(shared: &Shared, stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    while let Some(raw) = http::read_request(&mut reader)? {
        let request = shared.record(raw);
        let mut out = Responder(stream);
        let after = match request.kind {
            Kind::Main | Kind::Compact | Kind::Subagent | Kind::Side => {
                let reply = shared.reply_to(&request);
                serve::play(shared, &request, &reply, &mut out)?
            }
            Kind::CountTokens => {
                // roughly four characters a token, as good as any figure here
                let tokens = request.body.to_string().len() / 4;
                out.json(&request.method, 200, &[], &json!({"input_tokens": tokens}))?;
                After::Keep
            }
            Kind::Unknown => {
                let body = serve::error_body("not_found_error", "The mock knows no such path.");
                out.json(&request.method, 404, &[], &body)?;
                After::Keep
            }
        };
        if after == After::Close {
            return Ok(());
        }
    }
    Ok(())
}

/// A panic of a script must not hide the log from the test that reports it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
