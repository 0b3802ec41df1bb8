//! What the window knows: rows keyed by id, settings, the open session; and how a batch of events
//! changes it. Facts only: what they mean for a person is asked of `core::attention`.

use crate::bridge;
use crate::now::Clock;
use leptos::prelude::*;
use omniscio_core::attention::{Attention, attention, next_flip};
use omniscio_core::block::Block;
use omniscio_core::id::{MessageId, SessionId};
use omniscio_core::ipc::{AccountView, CliState, Event, RowView, Snapshot};
use omniscio_core::limits::Limits;
use omniscio_core::settings::{KillSwitches, Policy, Settings};
use omniscio_core::time::{Now, Wall};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One session: its facts, and what a person sees of it.
#[derive(Clone)]
pub struct Entry {
    /// The facts, as the backend sent them last.
    pub view: ArcRwSignal<RowView>,
    /// What a person sees now.
    pub attention: ArcMemo<Attention>,
}

/// News for the transcript of the open session.
#[derive(Clone, Debug)]
pub enum TranscriptNews {
    /// A block is new or replaced.
    Block(Block),
    /// Text for an open block.
    Delta {
        /// The block.
        seq: u64,
        /// The piece.
        text: String,
    },
}

/// What fills the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// The list and the open session.
    Sessions,
    /// Settings.
    Settings,
}

/// What the backend told once, when the window opened.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// The accounts.
    pub accounts: Vec<AccountView>,
    /// Folders used before, newest first.
    pub recent_folders: Vec<String>,
    /// The user's home folder, for `~`.
    pub home: Option<String>,
    /// Runs on the bundled stand-in.
    pub fake: bool,
}

/// The failure of an act of the person, or an act that can be undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toast {
    /// Its words.
    pub text: String,
    /// The session to bring back from the archive on Undo.
    pub undo: Option<SessionId>,
}

type Listener = Arc<dyn Fn(TranscriptNews) + Send + Sync>;

/// The store. Copied around freely; there is one, in the context.
#[derive(Clone, Copy)]
pub struct Store {
    /// Every listed session.
    pub entries: RwSignal<BTreeMap<SessionId, Entry>>,
    /// The clock.
    pub clock: Clock,
    /// The settings.
    pub settings: RwSignal<Settings>,
    /// The switches of the environment.
    pub switches: RwSignal<KillSwitches>,
    /// The limits the rules of the window read.
    pub limits: RwSignal<Limits>,
    /// Whether a CLI is there; `None` until the backend has answered.
    pub cli: RwSignal<Option<CliState>>,
    /// What was told once.
    pub facts: RwSignal<Facts>,
    /// The session whose panel is open.
    pub open: RwSignal<Option<SessionId>>,
    /// What fills the window.
    pub page: RwSignal<Page>,
    /// The new-session dialog is open.
    pub new_session: RwSignal<bool>,
    /// The session whose other model is being chosen.
    pub switching: RwSignal<Option<SessionId>>,
    /// The store cannot write: why, and what to do.
    pub trouble: RwSignal<Option<String>>,
    /// How busy the machine is, in per cent.
    pub load: RwSignal<Option<u8>>,
    /// The last message that the backend finished sending.
    pub sent: RwSignal<Option<MessageId>>,
    /// What the person is told of an act of their own.
    pub toast: RwSignal<Option<Toast>>,
    /// Retry or Continue was pressed here; cleared by the session's next event.
    pub pressed: RwSignal<Option<SessionId>>,
    transcript: StoredValue<Option<(SessionId, Listener)>>,
    /// Events that came before the snapshot; `None` once it is here.
    early: StoredValue<Option<Vec<Event>>>,
}

/// The store of the window.
pub fn use_store() -> Store {
    expect_context::<Store>()
}

impl Store {
    /// An empty store with a running clock, put into the context.
    pub fn provide() -> Store {
        let entries = RwSignal::new(BTreeMap::<SessionId, Entry>::new());
        let settings = RwSignal::new(Settings::default());
        let switches = RwSignal::new(KillSwitches::default());
        let limits = RwSignal::new(Limits::default());
        let flip = move |now: Now| -> Option<Wall> {
            let policy = Policy { settings: settings.get(), switches: switches.get() };
            limits.with(|limits| {
                entries.with(|entries| {
                    let flips = entries
                        .values()
                        .map(|entry| entry.view.with(|view| next_flip(view, &policy, limits, now)));
                    flips.flatten().min()
                })
            })
        };
        let store = Store {
            entries,
            clock: Clock::start(flip),
            settings,
            switches,
            limits,
            cli: RwSignal::new(None),
            facts: RwSignal::default(),
            open: RwSignal::new(None),
            page: RwSignal::new(Page::Sessions),
            new_session: RwSignal::new(false),
            switching: RwSignal::new(None),
            trouble: RwSignal::new(None),
            load: RwSignal::new(None),
            sent: RwSignal::new(None),
            toast: RwSignal::new(None),
            pressed: RwSignal::new(None),
            transcript: StoredValue::new(None),
            early: StoredValue::new(Some(Vec::new())),
        };
        provide_context(store);
        store
    }

    /// Settings and switches joined, tracked.
    pub fn policy(self) -> Policy {
        Policy { settings: self.settings.get(), switches: self.switches.get() }
    }

    /// The session's entry, tracked on its coming and going only.
    pub fn entry(self, session: SessionId) -> Option<Entry> {
        self.entries.with(|entries| entries.get(&session).cloned())
    }

    /// The session's facts, tracked; `None` when it is gone from the lists.
    pub fn view(self, session: SessionId) -> Option<RowView> {
        self.entry(session).map(|entry| entry.view.get())
    }

    /// What a person sees of the session, tracked; `None` when it is gone from the lists.
    pub fn attention(self, session: SessionId) -> Option<Attention> {
        self.entry(session).map(|entry| entry.attention.get())
    }

    /// Opens a session's panel.
    pub fn open(self, session: SessionId) {
        self.page.set(Page::Sessions);
        if self.open.get_untracked() != Some(session) {
            self.open.set(Some(session));
        }
    }

    /// Tells the person that an act of theirs failed.
    pub fn failed(self, text: String) {
        self.toast.set(Some(Toast { text, undo: None }));
    }

    /// Hands the news of one session's transcript to `listener` until the calling owner goes. Only
    /// one session is open, so a new listener takes the place of the old one.
    pub fn on_transcript(
        self,
        session: SessionId,
        listener: impl Fn(TranscriptNews) + Send + Sync + 'static,
    ) {
        let listener: Listener = Arc::new(listener);
        self.transcript.set_value(Some((session, listener.clone())));
        on_cleanup(move || {
            self.transcript.update_value(|current| {
                if current.as_ref().is_some_and(|(_, now)| Arc::ptr_eq(now, &listener)) {
                    *current = None;
                }
            });
        });
    }

    /// Takes what the backend tells when the window opens.
    pub fn begin(self, snapshot: Snapshot) {
        let Snapshot {
            rows,
            settings,
            switches,
            accounts,
            cli,
            hide_max_ms,
            hide_future_tolerance_ms,
            fake,
            recent_folders,
            home,
        } = snapshot;
        self.settings.set(settings);
        self.switches.set(switches);
        self.limits.set(Limits { hide_max_ms, hide_future_tolerance_ms, ..Limits::default() });
        self.facts.set(Facts { accounts, recent_folders, home, fake });
        let entries = rows.into_iter().map(|view| (view.row.id, self.new_entry(view)));
        self.entries.set(entries.collect());
        self.cli.set(Some(cli));
        let early = self.early.try_update_value(Option::take).flatten();
        self.apply(early.unwrap_or_default());
    }

    /// Applies a batch of events, in order. What comes before the snapshot waits for it: the
    /// snapshot may be older than the last of them.
    pub fn apply(self, events: Vec<Event>) {
        let waiting = self.early.try_update_value(|early| match early {
            Some(early) => {
                early.extend(events.iter().cloned());
                true
            }
            None => false,
        });
        if waiting != Some(true) {
            self.clock.news();
            for event in events {
                self.apply_one(event);
            }
        }
    }

    fn apply_one(self, event: Event) {
        match event {
            Event::Row(view) => self.row(*view),
            Event::Gone(session) => self.gone(session),
            Event::Block { session, block } => self.news(session, TranscriptNews::Block(block)),
            Event::Delta { session, seq, text } => {
                self.news(session, TranscriptNews::Delta { seq, text });
            }
            Event::Settings(settings) => self.settings.set(settings),
            Event::Cli(state) => self.cli.set(Some(state)),
            Event::StoreTrouble(words) => self.trouble.set(words),
            Event::Load(busy) => self.load.set(busy),
            Event::Open(session) => self.open(session),
            Event::Sent(message) => self.sent.set(Some(message)),
        }
    }

    fn row(self, view: RowView) {
        let session = view.row.id;
        if self.pressed.get_untracked() == Some(session) {
            self.pressed.set(None);
        }
        if view.row.is_gone() {
            return self.gone(session);
        }
        let known = self.entries.with_untracked(|entries| entries.get(&session).cloned());
        match known {
            Some(entry) => {
                // an event may tell what is already so
                if entry.view.with_untracked(|old| *old != view) {
                    entry.view.set(view);
                }
            }
            None => {
                let entry = self.new_entry(view);
                self.entries.update(|entries| {
                    entries.insert(session, entry);
                });
            }
        }
    }

    fn gone(self, session: SessionId) {
        if self.entries.with_untracked(|entries| entries.contains_key(&session)) {
            self.entries.update(|entries| {
                entries.remove(&session);
            });
        }
        if self.open.get_untracked() == Some(session) {
            self.open.set(None);
        }
    }

    fn news(self, session: SessionId, news: TranscriptNews) {
        let listener = self.transcript.with_value(|current| {
            current.as_ref().filter(|(of, _)| *of == session).map(|(_, listener)| listener.clone())
        });
        if let Some(listener) = listener {
            listener(news);
        }
    }

    fn new_entry(self, view: RowView) -> Entry {
        let view = ArcRwSignal::new(view);
        let facts = view.clone();
        let attention = ArcMemo::new(move |_| {
            let (policy, now) = (self.policy(), self.clock.get());
            facts.with(|view| self.limits.with(|limits| attention(view, &policy, limits, now)))
        });
        Entry { view, attention }
    }
}

/// Connects the store with the backend: first the events, then the snapshot, so that nothing is
/// missed in between.
pub fn connect(store: Store) {
    leptos::task::spawn_local(async move {
        let subscribed = bridge::subscribe(move |events| store.apply(events)).await;
        let snapshot = match subscribed {
            Ok(()) => bridge::snapshot().await,
            Err(error) => Err(error),
        };
        match snapshot {
            Ok(snapshot) => store.begin(snapshot),
            Err(error) => store.trouble.set(Some(error.message)),
        }
    });
}
