//! What the supervisor tells: events to the page, the badge, notices to the desktop, the end.

use super::desk::Desk;
use super::{MAIN, logged, notify, quit};
use crate::supervise::listener::Listener;
use omniscio_core::id::SessionId;
use omniscio_core::ipc::Event;
use tauri::{AppHandle, Manager};

/// A message up to this long goes to the page directly; a longer one is fetched by it, which takes
/// several times as long (Tauri's limit is 8192 bytes).
const MESSAGE_MAX_BYTES: usize = 8_000;

/// What the person reads who finds the window gone.
const ENDED: &str = "Omniscio cannot go on and ends. Its log, in the folder `logs` of the data folder, \
    says why. All sessions are kept; start it again to bring them back.";

/// The supervisor's listener of the window.
pub(super) struct Ears {
    app: AppHandle,
    desk: Desk,
}

impl Ears {
    /// Listens for this app.
    pub(super) fn new(app: AppHandle, desk: Desk) -> Ears {
        Ears { app, desk }
    }
}

impl Listener for Ears {
    fn events(&self, batch: Vec<Event>) {
        for message in messages(&batch) {
            self.desk.tell(message);
        }
    }

    fn notify(&self, _session: SessionId, title: &str, body: &str) {
        notify::show(&self.app, title, body);
    }

    fn badge(&self, count: usize) {
        let count = i64::try_from(count).ok().filter(|count| *count > 0);
        if let Some(window) = self.app.get_webview_window(MAIN) {
            logged("show the badge", window.set_badge_count(count));
        }
    }

    fn exited(&self) {
        if quit::begun() {
            self.app.exit(0);
        } else {
            // nobody asked for it: the loop could not go on, and its log says why
            tracing::error!("the app ends: it cannot go on");
            eprintln!("omniscio: {ENDED}");
            self.app.exit(1);
        }
    }
}

/// The events in order as JSON lists, each below the limit unless one event alone is longer.
fn messages(batch: &[Event]) -> Vec<String> {
    let mut messages: Vec<String> = Vec::new();
    for event in batch {
        let event = match serde_json::to_string(event) {
            Ok(event) => event,
            Err(error) => {
                tracing::error!(%error, "an event cannot be told");
                continue;
            }
        };
        match messages.last_mut() {
            Some(last) if last.len() + event.len() < MESSAGE_MAX_BYTES => {
                last.push(',');
                last.push_str(&event);
            }
            Some(_) | None => messages.push(format!("[{event}")),
        }
    }
    for message in &mut messages {
        message.push(']');
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;
    use omniscio_core::id::Uuid;

    #[test]
    fn messages_stay_short_and_keep_the_order() {
        let text = |seq: u64, length: usize| Event::Delta {
            session: Uuid(1),
            seq,
            text: "x".repeat(length),
        };
        let batch: Vec<Event> =
            (0..200).map(|seq| text(seq, if seq == 100 { 20_000 } else { 50 })).collect();
        let messages = messages(&batch);
        let long = messages.iter().filter(|message| message.len() > 8_191);
        assert_eq!(long.count(), 1);
        assert!(messages.len() > 3 && messages.len() < 10, "{}", messages.len());
        let read = messages
            .iter()
            .flat_map(|message| serde_json::from_str::<Vec<Event>>(message).unwrap());
        assert_eq!(read.collect::<Vec<_>>(), batch);
        assert!(super::messages(&[]).is_empty());
    }
}
