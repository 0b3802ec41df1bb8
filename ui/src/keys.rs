//! The keys that act everywhere: one key, one act. Which act a key means is a function of values
//! ([`meaning`]); it never fires while text is typed, a dialog is open, or a key repeats.

use crate::actions;
use crate::inbox::{Inbox, LIST_ID, focus_list, focus_search};
use crate::model::{Page, Store};
use crate::{dom, inbox};
use leptos::ev::{self, KeyboardEvent};
use leptos::leptos_dom::helpers::{set_timeout, window_event_listener};
use leptos::prelude::*;
use omniscio_core::supervisor::Command;
use std::time::Duration;

/// The composer's field. The composer gives its field this id.
pub const COMPOSER_ID: &str = "composer-text";
/// The second S must come within this.
const STOP_WINDOW: Duration = Duration::from_secs(2);

/// A key as it was pressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Press<'a> {
    /// The key's value, in lower case.
    pub key: &'a str,
    /// Ctrl, or Cmd.
    pub command: bool,
    /// Shift.
    pub shift: bool,
    /// Alt.
    pub alt: bool,
    /// The key is held down.
    pub repeat: bool,
}

/// Where it was pressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The focus is in a text field.
    pub in_text: bool,
    /// The focus is in the list.
    pub in_list: bool,
    /// A dialog is open.
    pub in_dialog: bool,
    /// A session's panel is open.
    pub panel: bool,
}

/// What a key means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// The pill that shows, else nothing.
    Pill,
    /// Start over in another model, where that is offered.
    SwitchModel,
    /// The next session that needs the person.
    NextWaiting,
    /// The previous one.
    PreviousWaiting,
    /// So many rows on, or back.
    Step(isize),
    /// Fold (or unfold) the section.
    Fold(bool),
    /// Into the composer.
    Enter,
    /// Archive the open session.
    Archive,
    /// Mark it unread.
    Unread,
    /// Stop, at the second press.
    Stop,
    /// Into the search field.
    Search,
    /// The new-session dialog.
    New,
    /// The list on or off.
    ToggleList,
    /// Settings.
    Settings,
    /// Undo what the toast offers.
    Undo,
    /// Back to the list.
    Back,
}

/// The act a key means in a place, if any.
pub fn meaning(press: Press<'_>, place: Place) -> Option<Act> {
    // rule: RT-21
    if place.in_dialog || press.alt {
        return None;
    }
    if press.command {
        return match press.key {
            "n" if !press.shift => Some(Act::New),
            "b" if !press.shift => Some(Act::ToggleList),
            "," => Some(Act::Settings),
            "z" if !press.shift && !place.in_text => Some(Act::Undo),
            _ => None,
        };
    }
    if press.key == "escape" {
        return Some(Act::Back);
    }
    if place.in_text {
        return None;
    }
    // moving may repeat, acting may not
    let moves = match press.key {
        "arrowdown" if place.in_list => Some(Act::Step(1)),
        "arrowup" if place.in_list => Some(Act::Step(-1)),
        "j" if place.in_list || !place.panel => Some(Act::Step(1)),
        "k" if place.in_list || !place.panel => Some(Act::Step(-1)),
        _ => None,
    };
    if moves.is_some() {
        return moves;
    }
    if press.repeat {
        return None;
    }
    match (press.key, press.shift) {
        ("n", false) => Some(Act::NextWaiting),
        ("n", true) => Some(Act::PreviousWaiting),
        ("/", false) => Some(Act::Search),
        ("home", false) if place.in_list => Some(Act::Step(isize::MIN)),
        ("end", false) if place.in_list => Some(Act::Step(isize::MAX)),
        ("arrowleft", false) if place.in_list => Some(Act::Fold(true)),
        ("arrowright", false) if place.in_list => Some(Act::Fold(false)),
        ("c", false) if place.panel => Some(Act::Pill),
        ("m", false) if place.panel => Some(Act::SwitchModel),
        ("e", false) if place.panel => Some(Act::Archive),
        ("u", false) if place.panel => Some(Act::Unread),
        ("s", false) if place.panel => Some(Act::Stop),
        ("enter", false) if place.panel && place.in_list => Some(Act::Enter),
        _ => None,
    }
}

/// Listens for keys on the whole window, for as long as it lives.
pub fn listen(store: Store, inbox: Inbox, list_shown: RwSignal<bool>) {
    let stop_armed = RwSignal::new(false);
    let handle = window_event_listener(ev::keydown, move |event: KeyboardEvent| {
        if event.is_composing() || event.default_prevented() {
            return;
        }
        let key = event.key().to_lowercase();
        let press = Press {
            key: &key,
            command: event.ctrl_key() || event.meta_key(),
            shift: event.shift_key(),
            alt: event.alt_key(),
            repeat: event.repeat(),
        };
        let place = Place {
            in_text: dom::types_text(),
            in_list: dom::focus_is_in(LIST_ID),
            in_dialog: dom::dialog_is_open(),
            panel: store.open.get_untracked().is_some()
                && store.page.get_untracked() == Page::Sessions,
        };
        if let Some(act) = meaning(press, place) {
            event.prevent_default();
            perform(store, inbox, list_shown, stop_armed, act);
        }
    });
    on_cleanup(move || handle.remove());
}

fn perform(
    store: Store,
    inbox: Inbox,
    list_shown: RwSignal<bool>,
    stop_armed: RwSignal<bool>,
    act: Act,
) {
    let open = store.open.get_untracked();
    match (act, open) {
        (Act::Pill, Some(session)) => actions::press_pill(store, session),
        (Act::SwitchModel, Some(session)) => actions::ask_model(store, session),
        (Act::Archive, Some(session)) => inbox.archive(session),
        (Act::Unread, Some(session)) => {
            actions::give(store, Command::MarkRead { session, read: false });
        }
        (Act::Stop, Some(session)) if stop_armed.get_untracked() => {
            stop_armed.set(false);
            actions::stop(store, session);
        }
        (Act::Stop, Some(session)) => arm_stop(store, session, stop_armed),
        (Act::Enter, Some(_)) => dom::focus(COMPOSER_ID),
        (
            Act::Pill | Act::SwitchModel | Act::Archive | Act::Unread | Act::Stop | Act::Enter,
            None,
        ) => {}
        (Act::NextWaiting, _) => inbox.next_waiting(false),
        (Act::PreviousWaiting, _) => inbox.next_waiting(true),
        (Act::Step(by), _) => inbox.step(by),
        (Act::Fold(folded), _) => inbox.fold_here(folded),
        (Act::Search, _) => {
            list_shown.set(true);
            focus_search();
        }
        (Act::New, _) => store.new_session.set(true),
        (Act::ToggleList, _) => list_shown.update(|shown| *shown = !*shown),
        (Act::Settings, _) => store.page.set(Page::Settings),
        (Act::Undo, _) => actions::undo(store),
        (Act::Back, _) => back(store),
    }
}

/// The first S says what the second one does.
fn arm_stop(store: Store, session: omniscio_core::id::SessionId, armed: RwSignal<bool>) {
    if store.entry(session).is_some_and(|entry| entry.attention.get_untracked().turn_open) {
        armed.set(true);
        store.failed("Press S again to stop".into());
        set_timeout(move || armed.set(false), STOP_WINDOW);
    }
}

/// Escape goes one step back: out of Settings, out of a text field, out of the panel of a narrow
/// window.
fn back(store: Store) {
    if store.page.get_untracked() == Page::Settings {
        store.page.set(Page::Sessions);
    } else if inbox::is_narrow() && !dom::types_text() {
        store.open.set(None);
    }
    focus_list();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(key: &str) -> Press<'_> {
        Press { key, ..Press::default() }
    }

    // proves: RT-21
    #[test]
    fn c_acts_only_on_an_open_panel_outside_text_alone_and_once() {
        let panel = Place { panel: true, ..Place::default() };
        let c = press("c");
        assert_eq!(meaning(c, panel), Some(Act::Pill));
        assert_eq!(meaning(c, Place { in_list: true, ..panel }), Some(Act::Pill));
        assert_eq!(meaning(c, Place::default()), None);
        assert_eq!(meaning(c, Place { in_text: true, ..panel }), None);
        assert_eq!(meaning(c, Place { in_dialog: true, ..panel }), None);
        for modified in [
            Press { command: true, ..c },
            Press { alt: true, ..c },
            Press { shift: true, ..c },
            Press { repeat: true, ..c },
        ] {
            assert_eq!(meaning(modified, panel), None, "{modified:?}");
        }
    }

    #[test]
    fn no_letter_fires_in_text_or_under_a_dialog() {
        let text = Place { in_text: true, panel: true, ..Place::default() };
        let dialog = Place { in_dialog: true, panel: true, in_list: true, in_text: false };
        for letter in "abcdefghijklmnopqrstuvwxyz/".chars().map(String::from) {
            assert_eq!(meaning(press(&letter), text), None);
            assert_eq!(meaning(press(&letter), dialog), None);
        }
        assert_eq!(meaning(press("escape"), text), Some(Act::Back));
        let new = Press { command: true, ..press("n") };
        assert_eq!(meaning(new, text), Some(Act::New));
    }

    #[test]
    fn keys_of_the_list_act_in_the_list_and_may_repeat() {
        let list = Place { in_list: true, panel: true, ..Place::default() };
        let held = Press { repeat: true, ..press("arrowdown") };
        assert_eq!(meaning(held, list), Some(Act::Step(1)));
        assert_eq!(meaning(held, Place { in_list: false, ..list }), None);
        assert_eq!(meaning(press("k"), list), Some(Act::Step(-1)));
        assert_eq!(meaning(Press { shift: true, ..press("n") }, list), Some(Act::PreviousWaiting));
        assert_eq!(meaning(press("arrowleft"), list), Some(Act::Fold(true)));
        assert_eq!(meaning(Press { repeat: true, ..press("n") }, list), None);
    }
}
