//! Texts that are not sent yet, by session, for as long as the window lives; and the whole text of
//! messages sent from here, so that a queued one can be taken back for editing.

use omniscio_core::id::{MessageId, SessionId};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};

/// Texts of sent messages that are remembered.
const SENT_MAX: usize = 64;

thread_local! {
    static DRAFTS: RefCell<BTreeMap<SessionId, String>> = const { RefCell::new(BTreeMap::new()) };
    static SENT: RefCell<VecDeque<(MessageId, String)>> = const { RefCell::new(VecDeque::new()) };
}

/// The draft of a session.
pub(super) fn of(session: SessionId) -> String {
    DRAFTS.with_borrow(|drafts| drafts.get(&session).cloned().unwrap_or_default())
}

/// Keeps the draft of a session.
pub(super) fn keep(session: SessionId, text: &str) {
    DRAFTS.with_borrow_mut(|drafts| {
        if text.is_empty() {
            drafts.remove(&session);
        } else {
            drafts.insert(session, text.to_owned());
        }
    });
}

/// Drops the draft if it is still what was sent.
pub(super) fn clear(session: SessionId, sent: &str) {
    if of(session) == sent {
        keep(session, "");
    }
}

/// Remembers the whole text of a message that was accepted.
pub(super) fn remember(message: MessageId, text: &str) {
    SENT.with_borrow_mut(|sent| {
        if sent.len() == SENT_MAX {
            sent.pop_front();
        }
        sent.push_back((message, text.to_owned()));
    });
}

/// The whole text of a message, if it was sent from here and not too long ago.
pub(super) fn recall(message: MessageId) -> Option<String> {
    SENT.with_borrow(|sent| {
        sent.iter().find(|(id, _)| *id == message).map(|(_, text)| text.clone())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use omniscio_core::id::Uuid;

    #[test]
    fn drafts_are_kept_by_session_and_cleared_only_by_what_was_sent() {
        let (a, b) = (Uuid(1), Uuid(2));
        keep(a, "one");
        keep(b, "two");
        clear(a, "one");
        clear(b, "something older");
        assert_eq!((of(a).as_str(), of(b).as_str()), ("", "two"));
    }

    #[test]
    fn only_the_latest_texts_are_remembered() {
        for n in 0..=SENT_MAX as u128 {
            remember(Uuid(n), &n.to_string());
        }
        assert_eq!(recall(Uuid(0)), None);
        assert_eq!(recall(Uuid(1)).as_deref(), Some("1"));
        assert_eq!(recall(Uuid(SENT_MAX as u128)).as_deref(), Some("64"));
    }
}
