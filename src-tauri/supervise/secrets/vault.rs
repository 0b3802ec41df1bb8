//! The system's secret store: the Secret Service on the session bus. One thread talks to it, in the
//! order in which it is asked; who asks waits no longer than the limit. It never falls back to a file.

use super::Secret;
use crate::supervise::store::paths::IDENTIFIER;
use omniscio_core::endpoint::Endpoint;
use secret_service::blocking::SecretService;
use secret_service::{EncryptionType, Error};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Questions that may wait; one more finds no store that answers.
const WAITING_MAX: usize = 16;
/// What a keyring is called where there was none.
const FIRST_KEYRING: &str = "Default keyring";
const PLAIN_TEXT: &str = "text/plain";

/// Why the store gives nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::supervise) enum Trouble {
    /// None answers in time.
    None,
    /// It refused, or broke off.
    Failed,
    /// The system asks for the password of the keyring; it can be asked again then.
    Locked,
    /// It holds no secret for this endpoint and server.
    Missing,
}

/// What the store keeps an endpoint's secret under. The server is part of it: a secret is never sent
/// to another than the one it was given for.
struct Place {
    endpoint: String,
    server: String,
    label: String,
}

impl Place {
    fn of(endpoint: &Endpoint) -> Place {
        let label = format!("Omniscio: {} ({})", endpoint.name, endpoint.server());
        Place { endpoint: endpoint.id.clone(), server: endpoint.server(), label }
    }

    fn attributes<'a>(&'a self, data: &'a str) -> HashMap<&'a str, &'a str> {
        HashMap::from([
            ("application", IDENTIFIER),
            ("data", data),
            ("endpoint", &self.endpoint),
            ("server", &self.server),
        ])
    }
}

enum Wish {
    Get(Place),
    Has(Place),
    Put(Place, Secret),
    Forget(String),
    Look,
}

struct Job {
    wish: Wish,
    reply: SyncSender<Answer>,
    /// Nobody waits any more: not done then.
    given_up: Arc<AtomicBool>,
}

/// See the file.
pub(in crate::supervise) struct Vault {
    data: String,
    limit: Duration,
    jobs: Mutex<Option<SyncSender<Job>>>,
    /// The system asks the person for a password now.
    asking: Arc<AtomicBool>,
}

impl Vault {
    /// The store, for the app on this data folder. Asked only when it is needed.
    pub(in crate::supervise) fn new(data: &str, limit: Duration) -> Vault {
        let (data, asking) = (data.to_string(), Arc::default());
        Vault { data, limit, jobs: Mutex::new(None), asking }
    }

    /// The secret of an endpoint.
    pub(in crate::supervise) fn get(&self, endpoint: &Endpoint) -> Result<Secret, Trouble> {
        self.ask(Wish::Get(Place::of(endpoint)))?.ok_or(Trouble::Missing)
    }

    /// Whether there is one; says so of a locked one too.
    pub(in crate::supervise) fn has(&self, endpoint: &Endpoint) -> Result<(), Trouble> {
        self.ask(Wish::Has(Place::of(endpoint))).map(drop)
    }

    /// Keeps the secret of an endpoint, in the place of the one before.
    pub(in crate::supervise) fn put(
        &self,
        endpoint: &Endpoint,
        secret: Secret,
    ) -> Result<(), Trouble> {
        self.ask(Wish::Put(Place::of(endpoint), secret)).map(drop)
    }

    /// Whether a store answers.
    pub(in crate::supervise) fn look(&self) -> Result<(), Trouble> {
        self.ask(Wish::Look).map(drop)
    }

    /// Forgets what is kept for the endpoint with this id. Nobody waits for it; what is asked later is
    /// done later.
    pub(in crate::supervise) fn forget(&self, endpoint: String) {
        let (reply, _) = sync_channel(1);
        if self.send(Job { wish: Wish::Forget(endpoint), reply, given_up: Arc::default() }).is_err()
        {
            tracing::warn!("the secret of an endpoint that was removed is still in the store");
        }
    }

    fn ask(&self, wish: Wish) -> Answer {
        let (reply, answer) = sync_channel(1);
        let given_up = Arc::new(AtomicBool::new(false));
        self.send(Job { wish, reply, given_up: Arc::clone(&given_up) })?;
        answer.recv_timeout(self.limit).unwrap_or_else(|_| {
            given_up.store(true, Ordering::Relaxed);
            let asking = self.asking.load(Ordering::Relaxed);
            Err(if asking { Trouble::Locked } else { Trouble::None })
        })
    }

    fn send(&self, job: Job) -> Result<(), Trouble> {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if jobs.is_none() {
            let (sender, waiting) = sync_channel(WAITING_MAX);
            let (data, asking) = (self.data.clone(), Arc::clone(&self.asking));
            let started = thread::Builder::new()
                .name("secret-store".to_string())
                .spawn(move || serve(&data, &asking, &waiting));
            if let Err(error) = started {
                tracing::error!(%error, "no thread to ask the secret store on");
                return Err(Trouble::Failed);
            }
            *jobs = Some(sender);
        }
        let sent = jobs.as_ref().map(|sender| sender.try_send(job).is_ok());
        sent.filter(|sent| *sent).map(drop).ok_or(Trouble::None)
    }
}

type Answer = Result<Option<Secret>, Trouble>;

fn serve(data: &str, asking: &AtomicBool, jobs: &Receiver<Job>) {
    while let Ok(Job { wish, reply, given_up }) = jobs.recv() {
        if given_up.load(Ordering::Relaxed) {
            continue;
        }
        // who waits is told at once; the system asks the person meanwhile
        let locked = || {
            asking.store(true, Ordering::Relaxed);
            reply.try_send(Err(Trouble::Locked)).ok();
        };
        let done = SecretService::connect(EncryptionType::Dh)
            .and_then(|service| act(&service, data, &wish, locked));
        asking.store(false, Ordering::Relaxed);
        let answer = done.unwrap_or_else(|error| Err(trouble(&error)));
        // an error means that nobody waits any more, or that it was answered above
        reply.try_send(answer).ok();
    }
}

fn act(
    service: &SecretService<'_>,
    data: &str,
    wish: &Wish,
    locked: impl FnOnce(),
) -> Result<Answer, Error> {
    match wish {
        Wish::Get(place) => {
            let found = service.search_items(place.attributes(data))?;
            if let Some(item) = found.unlocked.first() {
                return Ok(secret_of(&item.get_secret()?).map(Some));
            }
            let Some(item) = found.locked.first() else {
                return Ok(Err(Trouble::Missing));
            };
            locked();
            item.unlock()?;
            Ok(Err(Trouble::Locked))
        }
        Wish::Has(place) => {
            let found = service.search_items(place.attributes(data))?;
            let some = !found.unlocked.is_empty() || !found.locked.is_empty();
            Ok(if some { Ok(None) } else { Err(Trouble::Missing) })
        }
        Wish::Put(place, secret) => {
            let keyring = match service.get_default_collection() {
                Err(Error::NoResult) => {
                    // a new desktop: the system asks for the password of its first keyring
                    locked();
                    service.create_collection(FIRST_KEYRING, "default")?;
                    return Ok(Err(Trouble::Locked));
                }
                found => found?,
            };
            if keyring.is_locked()? {
                locked();
                keyring.unlock()?;
                return Ok(Err(Trouble::Locked));
            }
            let secret = secret.expose().as_bytes();
            keyring.create_item(&place.label, place.attributes(data), secret, true, PLAIN_TEXT)?;
            Ok(Ok(None))
        }
        Wish::Forget(endpoint) => {
            let of_endpoint = [("application", IDENTIFIER), ("data", data), ("endpoint", endpoint)];
            let found = service.search_items(HashMap::from(of_endpoint))?;
            for item in &found.unlocked {
                item.delete()?;
            }
            if !found.locked.is_empty() {
                // nobody is asked for a password to forget something: it is of no use to anyone else
                tracing::warn!("a secret in a locked keyring stays there");
            }
            Ok(Ok(None))
        }
        // it has answered the greeting
        Wish::Look => Ok(Ok(None)),
    }
}

/// What an item holds, if it can be sent.
fn secret_of(bytes: &[u8]) -> Result<Secret, Trouble> {
    let text = std::str::from_utf8(bytes).map_err(|_| Trouble::Missing)?;
    Secret::new(text).map_err(|_| Trouble::Missing)
}

/// No words of the store's reach a log: nobody knows what they quote.
fn trouble(error: &Error) -> Trouble {
    let (kind, trouble) = match error {
        Error::Unavailable => ("no secret store", Trouble::None),
        Error::NoResult => ("no such thing", Trouble::Failed),
        Error::Locked => ("locked", Trouble::Locked),
        Error::Prompt | Error::PromptDisconnected => ("not unlocked", Trouble::Locked),
        Error::Crypto(_) => ("a broken exchange", Trouble::Failed),
        Error::Zbus(_) | Error::ZbusFdo(_) | Error::Zvariant(_) | _ => {
            ("an error of the bus", Trouble::Failed)
        }
    };
    tracing::warn!(kind, "the secret store gives nothing");
    trouble
}
