//! The person of a world: creates sessions, writes, waits, clicks what is shown, changes their mind.

use crate::clock::SECOND;
use crate::world::{Event, World};
use omniscio_core::attention::{Pill, attention};
use omniscio_core::card::{CardKind, CardReply};
use omniscio_core::id::SessionId;
use omniscio_core::ipc::RowView;
use omniscio_core::session::Status;
use omniscio_core::settings::SettingChange;
use omniscio_core::supervisor::{Command, Input, ReplyTo};

const SESSIONS_MAX: usize = 6;
const FOLDERS: [&str; 3] = ["/home/a/project", "/home/a/other", "/srv/third"];

#[derive(Clone, Copy)]
enum Deed {
    Create,
    Send,
    SendNow,
    LocalCommand,
    Unqueue,
    Stop,
    Pill,
    Retry,
    Continue,
    Card,
    End,
    Archive,
    Unarchive,
    Delete,
    Rename,
    MarkRead,
    Toggle,
    PlainSpeak,
    SwitchModel,
    Look,
    Explain,
    TakeOver,
    ForkHeld,
    Fork,
}

const DEEDS: [(u64, Deed); 24] = [
    (6, Deed::Create),
    (30, Deed::Send),
    (4, Deed::SendNow),
    (3, Deed::LocalCommand),
    (3, Deed::Unqueue),
    (6, Deed::Stop),
    (25, Deed::Pill),
    (3, Deed::Retry),
    (2, Deed::Continue),
    (25, Deed::Card),
    (1, Deed::End),
    (2, Deed::Archive),
    (3, Deed::Unarchive),
    (1, Deed::Delete),
    (1, Deed::Rename),
    (2, Deed::MarkRead),
    (3, Deed::Toggle),
    (1, Deed::PlainSpeak),
    (1, Deed::SwitchModel),
    (5, Deed::Look),
    (2, Deed::Explain),
    (15, Deed::TakeOver),
    (8, Deed::ForkHeld),
    (15, Deed::Fork),
];

/// What a person does who sees everything hang at its launch.
const RUSH: [(u64, Deed); 12] = [
    (5, Deed::Create),
    (12, Deed::Send),
    (5, Deed::SendNow),
    (8, Deed::Stop),
    (20, Deed::Pill),
    (12, Deed::Retry),
    (6, Deed::Card),
    (8, Deed::End),
    (4, Deed::Archive),
    (4, Deed::Delete),
    (4, Deed::Toggle),
    (8, Deed::Look),
];

impl World {
    /// The person does something, and something else later.
    pub(crate) fn person(&mut self) {
        if self.faults.person_ms == 0 {
            return;
        }
        let mean = self.faults.person_ms;
        let next = self.dice.between(mean / 10, mean * 2);
        self.after(next, Event::Person);
        if self.clock.at < self.faults.away_until {
            return;
        }
        let views: Vec<RowView> =
            self.state.as_ref().map(|state| state.views().collect()).unwrap_or_default();
        let deed = if views.is_empty() {
            Deed::Create
        } else if self.faults.rush {
            self.dice.weighted(&RUSH)
        } else {
            self.dice.weighted(&DEEDS)
        };
        let Some(command) = self.command(deed, &views) else { return };
        let again = self.dice.chance(80);
        self.say(command.clone());
        if again {
            self.say(command);
        }
    }

    pub(crate) fn say(&mut self, command: Command) {
        self.replies += 1;
        let reply = ReplyTo(self.replies);
        self.feed(Input::Command { reply, command });
    }

    fn command(&mut self, deed: Deed, views: &[RowView]) -> Option<Command> {
        let ids: Vec<SessionId> = views.iter().map(|view| view.row.id).collect();
        let launching = views.iter().filter(|view| view.row.status == Status::Starting);
        let launching: Vec<SessionId> = launching.map(|view| view.row.id).collect();
        let any = self.dice.pick(&launching).filter(|_| self.dice.chance(400));
        let any = any.or_else(|| self.dice.pick(&ids));
        let text = format!("message {}", self.dice.raw() % 100_000);
        Some(match deed {
            Deed::Create => return self.create(views.len(), text),
            Deed::Send => Command::Send { session: any?, text, now: false },
            Deed::SendNow => Command::Send { session: any?, text, now: true },
            Deed::LocalCommand => Command::Send { session: any?, text: "/cost".into(), now: false },
            Deed::Unqueue => {
                let view = views.iter().find(|view| !view.live.queue.is_empty())?;
                let message = view.live.queue.first()?.id;
                Command::Unqueue { session: view.row.id, message }
            }
            Deed::Stop => {
                let open = views.iter().filter(|view| view.row.turn.is_some());
                let open: Vec<SessionId> = open.map(|view| view.row.id).collect();
                Command::Stop { session: self.dice.pick(&open).or(any)? }
            }
            Deed::Pill => return self.pill(views),
            Deed::Retry => Command::Retry { session: any? },
            Deed::Continue => Command::Continue { session: any? },
            Deed::Card => return self.card(views),
            Deed::End => Command::End { session: any? },
            Deed::Archive => Command::Archive { session: any? },
            Deed::Unarchive => {
                let away = self.store.listed().find(|row| row.status == Status::Archived)?;
                Command::Unarchive { session: away.id }
            }
            Deed::Delete => Command::Delete { session: any? },
            Deed::Rename => Command::Rename { session: any?, title: text },
            Deed::MarkRead => Command::MarkRead { session: any?, read: self.dice.chance(700) },
            Deed::Toggle => {
                let on = self.dice.chance(600);
                let change: fn(bool) -> SettingChange = self.dice.weighted(&[
                    (3, SettingChange::AbortedResponseRecoveryEnabled as fn(bool) -> _),
                    (5, SettingChange::RelentlessSessionRelaunch),
                    (2, SettingChange::ContextStallAutoRecoverEnabled),
                    (3, SettingChange::AutoContinueMidTaskEnabled),
                ]);
                let change = change(on);
                Command::SetSetting { change }
            }
            Deed::PlainSpeak => {
                let on = self.dice.chance(500);
                Command::SetSetting { change: SettingChange::PlainSpeakEnabled(on) }
            }
            Deed::SwitchModel if views.len() < SESSIONS_MAX => {
                Command::SwitchModel { session: any?, model: Some("other".into()) }
            }
            Deed::SwitchModel => return None,
            Deed::Look => {
                let open = any.filter(|_| self.dice.chance(700));
                let focused = self.dice.chance(500);
                self.feed(Input::Window { focused, open });
                return None;
            }
            Deed::Explain => Command::Explain { session: any? },
            Deed::TakeOver => {
                let view = views.iter().find(|view| view.live.held.is_some())?;
                let shown = view.live.held.as_ref()?.mark();
                Command::TakeOver { session: view.row.id, shown }
            }
            Deed::ForkHeld => Command::ForkHeld { session: held(views)? },
            Deed::Fork if views.len() < SESSIONS_MAX => {
                Command::Fork { session: self.dice.pick(&given_up(views))? }
            }
            Deed::Fork => return None,
        })
    }

    fn create(&mut self, listed: usize, text: String) -> Option<Command> {
        if listed >= SESSIONS_MAX {
            return None;
        }
        Some(Command::Create {
            folder: self.dice.pick(&FOLDERS)?.into(),
            text,
            model: self.dice.weighted(&[(3, None), (1, Some("gpt-5.1"))]).map(Into::into),
            permission_mode: None,
            account: None,
            endpoint: None,
            user_settings_only: false,
        })
    }

    /// Presses what a row offers.
    fn pill(&mut self, views: &[RowView]) -> Option<Command> {
        let limits = omniscio_core::limits::Limits::default();
        let policy = self.oracle.policy.clone();
        let now = self.clock.now();
        let shown: Vec<(SessionId, Pill)> = views
            .iter()
            .filter_map(|view| Some((view.row.id, attention(view, &policy, &limits, now).pill?)))
            .collect();
        let (session, pill) = self.dice.pick(&shown)?;
        Some(match pill {
            Pill::Retry => Command::Retry { session },
            Pill::Continue => Command::Continue { session },
        })
    }

    fn card(&mut self, views: &[RowView]) -> Option<Command> {
        let open: Vec<&RowView> = views.iter().filter(|view| view.row.card.is_some()).collect();
        let view = self.dice.pick(&open)?;
        let card = view.row.card.as_ref()?;
        let yes = self.dice.chance(700);
        let reply = match (card.kind, yes) {
            (CardKind::Permission, true) => CardReply::Allow,
            (CardKind::Permission | CardKind::Question, false) => CardReply::Deny { message: None },
            (CardKind::Question, true) => CardReply::Answers { answers: [].into() },
            (CardKind::Plan, true) => CardReply::ApprovePlan { ask_each_edit: true },
            (CardKind::Plan, false) => CardReply::KeepPlanning { message: None },
        };
        Some(Command::ReplyCard { session: view.row.id, request: card.request.clone(), reply })
    }

    /// Nothing goes wrong from here on; what was switched off is switched on again.
    pub(crate) fn calm_down(&mut self) {
        self.note("from here on nothing goes wrong");
        self.faults = crate::faults::Faults::none();
        for folder in std::mem::take(&mut self.gone_folders) {
            self.oracle.folder(&folder, None);
        }
        self.holders.clear();
        self.launches.settle();
        for _ in 0..self.oracle.waiting() {
            self.report.hit("in the wait: the weather clears");
        }
        let pinned = self.dice.chance(300);
        self.load.settle(pinned);
        self.oracle.settling(self.clock.at, pinned);
        self.switches.aborted_response_recovery = false;
        if self.state.is_some() {
            let change = SettingChange::AbortedResponseRecoveryEnabled(true);
            self.say(Command::SetSetting { change });
        } else {
            self.store.settings.aborted_response_recovery_enabled = true;
        }
        if self.oracle.policy.switches.aborted_response_recovery {
            // a switch of the environment is read at a start
            self.die(SECOND);
        }
    }
}

/// A row that says it is open in another program.
fn held(views: &[RowView]) -> Option<SessionId> {
    views.iter().find(|view| view.live.held.is_some()).map(|view| view.row.id)
}

/// The rows that were given up at a full context.
fn given_up(views: &[RowView]) -> Vec<SessionId> {
    let rows = views.iter().map(|view| &view.row);
    let given_up = rows.filter(|row| row.context_gave_up && row.status == Status::NeedsYou);
    given_up.map(|row| row.id).collect()
}
