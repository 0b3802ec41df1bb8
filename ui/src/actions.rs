//! What the person can do from more than one place: one function per act, whatever called it. Each
//! only translates into a command; whether it is allowed is the backend's answer.

use crate::bridge::{self, Answer};
use crate::composer;
use crate::dom;
use crate::keys::COMPOSER_ID;
use crate::model::{Store, Toast};
use leptos::prelude::*;
use leptos::task::spawn_local;
use omniscio_core::attention::{Pill, Tone};
use omniscio_core::id::SessionId;
use omniscio_core::ipc::{Reply, RowView};
use omniscio_core::supervisor::Command;

/// Whether a restart is under way, so that the pill is inert. One that waits for its time is hurried.
pub fn is_under_way(view: &RowView) -> bool {
    // rule: A-14
    let waits = view.live.relaunch.as_ref().is_some_and(|relaunch| relaunch.next.is_some());
    view.live.restart_under_way && !waits
}

/// Presses the pill that the session shows now, if any. The click and `C` both come here (RT-13).
pub fn press_pill(store: Store, session: SessionId) {
    // rule: RT-13, RT-15
    let Some(entry) = store.entry(session) else {
        return;
    };
    let inert =
        entry.view.with_untracked(is_under_way) || store.pressed.get_untracked() == Some(session);
    let Some(pill) = entry.attention.get_untracked().pill.filter(|_| !inert) else {
        return;
    };
    store.pressed.set(Some(session));
    spawn_local(async move {
        let answer = match pill {
            Pill::Retry => bridge::retry_aborted_response(session).await,
            Pill::Continue => bridge::command(Command::Continue { session }).await,
        };
        if let Err(error) = answer {
            store.pressed.set(None);
            store.failed(error.message);
        }
    });
}

/// Gives a command; a failure is told to the person.
pub fn give(store: Store, command: Command) {
    give_then(store, command, |_| {});
}

/// Gives a command that takes its time, and holds `busy` meanwhile: a second one is not given.
pub fn give_once(store: Store, busy: RwSignal<bool>, command: Command) {
    give_once_then(store, busy, command, |_| {});
}

fn give_once_then(
    store: Store,
    busy: RwSignal<bool>,
    command: Command,
    then: impl FnOnce(Reply) + 'static,
) {
    if busy.get_untracked() {
        return;
    }
    busy.set(true);
    spawn_local(async move {
        let answer = bridge::command(command).await;
        // the panel may be another one by now
        busy.try_set(false);
        match answer {
            Ok(reply) => then(reply),
            Err(error) => store.failed(error.message),
        }
    });
}

/// Gives a command and goes on with its reply; a failure is told to the person.
pub fn give_then(store: Store, command: Command, then: impl FnOnce(Reply) + 'static) {
    spawn_local(async move {
        let answer: Answer<Reply> = bridge::command(command).await;
        match answer {
            Ok(reply) => then(reply),
            Err(error) => store.failed(error.message),
        }
    });
}

/// Stops the open turn of the session, if one is open.
pub fn stop(store: Store, session: SessionId) {
    if store.entry(session).is_some_and(|entry| entry.attention.get_untracked().turn_open) {
        give(store, Command::Stop { session });
    }
}

/// Whether the session failed, so that starting over in another model is offered (OD-64).
pub fn may_switch(store: Store, session: SessionId) -> bool {
    // rule: RT-17
    store.attention(session).is_some_and(|seen| seen.tone == Tone::Red)
}

/// Asks which other model to start over in, where that is offered. The click and `M` both come here.
pub fn ask_model(store: Store, session: SessionId) {
    if untrack(|| may_switch(store, session)) {
        store.switching.set(Some(session));
    }
}

/// Starts over in the same model with what was said so far, and opens the new session.
pub fn start_fresh(store: Store, busy: RwSignal<bool>, session: SessionId) {
    let Some(entry) = store.entry(session) else {
        return;
    };
    let model = entry.view.with_untracked(|view| view.row.model.clone());
    give_once_then(store, busy, Command::SwitchModel { session, model }, move |reply| {
        if let Reply::Created(session) = reply {
            store.open(session);
        }
    });
}

/// Opens a copy of the session, with what the person said last in its composer.
pub fn fork(store: Store, busy: RwSignal<bool>, session: SessionId) {
    give_once_then(store, busy, Command::Fork { session }, move |reply| {
        if let Reply::Forked { session, draft } = reply {
            composer::begin_with(session, &draft.unwrap_or_default());
            store.open(session);
            // once its panel is there
            request_animation_frame(|| dom::focus(COMPOSER_ID));
        }
    });
}

/// Archives the session and opens `next`, its neighbour in the list.
pub fn archive(store: Store, session: SessionId, next: Option<SessionId>) {
    let title = store.entry(session).map(|e| e.view.with_untracked(|view| view.row.title.clone()));
    let was_open = store.open.get_untracked() == Some(session);
    give_then(store, Command::Archive { session }, move |_| {
        if was_open {
            store.open.set(next);
        }
        let text = format!("Archived “{}”", title.unwrap_or_default());
        store.toast.set(Some(Toast { text, undo: Some(session) }));
    });
}

/// Undoes what the toast offers to undo.
pub fn undo(store: Store) {
    let session = store.toast.get_untracked().and_then(|toast| toast.undo);
    if let Some(session) = session {
        store.toast.set(None);
        give(store, Command::Unarchive { session });
    }
}
