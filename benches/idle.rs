//! What sessions cost that wait for a person: their children are up and silent.

use crate::figure::Figure;
use crate::meter::{Reading, Use, during};
use crate::rig::{App, stand_in};
use omniscio_core::id::SessionId;
use omniscio_core::session::Status;
use std::thread;
use std::time::Duration;

/// As many as a person keeps open.
pub(crate) const SESSIONS: usize = 40;
/// One whole round of everything that the app does by the minute.
const WATCHED: Duration = Duration::from_secs(60);
/// What the last start and the last answer leave to do is done by then.
const SETTLED: Duration = Duration::from_secs(5);
const GOAL_CORES: f64 = 0.001;
const GOAL_WAKEUPS: f64 = 2.0;
const GOAL_BYTES: f64 = 0.5 * 1024.0 * 1024.0;

/// See the file.
pub(crate) fn measure() -> Vec<Figure> {
    let app = App::plain(stand_in());
    thread::sleep(SETTLED);
    let none = during(WATCHED);
    let before = Reading::now();
    let sessions: Vec<SessionId> =
        (0..SESSIONS).map(|_| app.create("[[fake: say Done.]]")).collect();
    app.until(&sessions, Status::NeedsYou);
    thread::sleep(SETTLED);
    let many = during(WATCHED);
    let bytes = Reading::now().rss_bytes.saturating_sub(before.rss_bytes) as f64;
    let each = bytes / SESSIONS as f64;
    vec![cpu(none, many), wakeups(none, many), memory(before, each)]
}

fn cpu(none: Use, many: Use) -> Figure {
    let percent = |cores: f64| format!("{:.3} % of a core", cores * 100.0);
    Figure::new(
        format!("{SESSIONS} idle sessions: processor"),
        percent(many.cores),
        format!("{} without any", percent(none.cores)),
        many.cores / none.cores,
    )
    .goal("<= 0.1 % of a core", many.cores <= GOAL_CORES)
}

fn wakeups(none: Use, many: Use) -> Figure {
    let more = many.wakeups - none.wakeups;
    let each = more / SESSIONS as f64;
    Figure::new(
        format!("{SESSIONS} idle sessions: wake-ups"),
        format!("{more:+.2} a second, {each:+.3} for each"),
        format!("{:.2} a second without any", none.wakeups),
        many.wakeups / none.wakeups,
    )
    .goal("<= 2 a second more", more <= GOAL_WAKEUPS)
}

fn memory(before: Reading, each: f64) -> Figure {
    let mib = |bytes: f64| format!("{:.2} MB", bytes / 1024.0 / 1024.0);
    let before = before.rss_bytes as f64;
    Figure::new(
        format!("{SESSIONS} idle sessions: memory"),
        format!("{} for each", mib(each)),
        format!("{} without any", mib(before)),
        each / before,
    )
    .goal("<= 0.5 MB for each", each <= GOAL_BYTES)
}
