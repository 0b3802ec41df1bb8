//! One row of the list. Full where a person is waited for, slim elsewhere; never a control inside.

use super::{project, row_id, use_inbox};
use crate::icons::StateShape;
use crate::model::{Entry, use_store};
use crate::now::{age, clock_time, spoken_age};
use crate::session::percent;
use leptos::prelude::*;
use omniscio_core::attention::{self, Attention, Pill, RowState, Section};
use omniscio_core::context::ContextLevel;
use omniscio_core::id::SessionId;
use omniscio_core::ipc::RowView;
use omniscio_core::session::Status;
use omniscio_core::time::Wall;

/// A row, drawn in `section`, `position` of `size` there (from 1).
#[component]
pub fn Row(
    session: SessionId,
    section: Section,
    #[prop(into)] position: Signal<usize>,
    #[prop(into)] size: Signal<usize>,
) -> impl IntoView {
    let (store, inbox) = (use_store(), use_inbox());
    store.entry(session).map(|Entry { view: facts, attention }| {
        let facts = RwSignal::from(facts);
        let attention = Memo::from(attention);
        let seen = Signal::derive(move || attention.get());
        let selected = move || store.open.get() == Some(session);
        let unread = move || facts.with(|view| view.row.unread);
        let time = Memo::new(move |_| {
            let pulse = store.clock.pulse();
            seen.get().since.map(|since| age(since, pulse))
        });
        let phrase =
            Memo::new(move |_| facts.with(|view| spoken(view, &seen.get(), store.clock.pulse())));
        let full = section.needs_person();
        view! {
            <div
                id=row_id(session)
                role="option"
                class="row"
                class:full=full
                class:slim=!full
                class:unread=unread
                class:ghost=move || seen.get().section != section
                data-testid="row"
                data-session=session.to_string()
                data-section=move || seen.get().section.title()
                data-state=move || seen.get().state.as_str()
                data-cursor=move || (inbox.cursor.get() == Some(session)).then_some("true")
                aria-selected=move || selected().to_string()
                aria-posinset=move || position.get().to_string()
                aria-setsize=move || size.get().to_string()
                aria-label=phrase
                title=move || seen.get().row_tooltip
            >
                <StateShape of=Signal::derive(move || Some(seen.get())) />
                {if full {
                    view! {
                        <FullText facts=facts.into() seen=seen time=time.into() />
                    }
                    .into_any()
                } else {
                    view! {
                        <SlimText
                            facts=facts.into()
                            seen=seen
                            time=time.into()
                            section=section
                        />
                    }
                    .into_any()
                }}
                <span class="archive" aria-hidden="true" title="Archive" data-act="archive">
                    <crate::icons::Symbol icon=crate::icons::Icon::Archive />
                </span>
            </div>
        }
    })
}

#[component]
fn FullText(
    facts: Signal<RowView>,
    seen: Signal<Attention>,
    time: Signal<Option<String>>,
) -> impl IntoView {
    view! {
        <span class="line first">
            <span class="title">{move || facts.with(|view| view.row.title.clone())}</span>
            <Tag facts=facts />
            <span class="age">{move || time.get()}</span>
        </span>
        <span class="line second">
            <span class="what">
                <span class="label" data-testid="label">{move || seen.get().label}</span>
                <Reason seen=seen />
            </span>
            <span class="project">
                {move || facts.with(|view| project(&view.row.folder).to_owned())}
            </span>
        </span>
    }
}

#[component]
fn SlimText(
    facts: Signal<RowView>,
    seen: Signal<Attention>,
    time: Signal<Option<String>>,
    section: Section,
) -> impl IntoView {
    // a label equal to the header's name is for speech and tests only, and so is that of a session
    // that says what it waits for instead
    let spoken = move || {
        let seen = seen.get();
        let waits = seen.state == RowState::ComingBack && seen.reason != attention::Reason::None;
        waits || seen.label == section.title()
    };
    view! {
        <span class="title">{move || facts.with(|view| view.row.title.clone())}</span>
        <Tag facts=facts />
        <span class="project">
            {move || facts.with(|view| project(&view.row.folder).to_owned())}
        </span>
        <span class="what">
            <span class="label" class:spoken=spoken data-testid="label">
                {move || seen.get().label}
            </span>
            <Reason seen=seen />
        </span>
        <span class="age">{move || time.get()}</span>
    }
}

#[component]
fn Reason(seen: Signal<Attention>) -> impl IntoView {
    move || reason(&seen.get()).map(|words| view! { <span class="reason">{words}</span> })
}

/// The reason in words. The core formats no clock time: a row that waits for one gets it here.
fn reason(seen: &Attention) -> Option<String> {
    // rule: WD-01
    let until = seen.until.filter(|_| seen.state == RowState::Holding);
    seen.reason.words().or_else(|| until.map(|at| format!("until {}", clock_time(at))))
}

/// At most one tag: a nearly full context first, then queued messages, then what runs behind a finished
/// turn.
#[component]
fn Tag(facts: Signal<RowView>) -> impl IntoView {
    move || {
        facts.with(tag).map(|(text, what)| {
            view! { <span class="tag" data-tag=what>{text}</span> }
        })
    }
}

fn tag(view: &RowView) -> Option<(String, &'static str)> {
    let full = view.live.context.filter(|usage| usage.level() == ContextLevel::Red);
    let queued = view.live.queue.len();
    // rule: A-16
    let finished = (view.row.status, view.row.pending) == (Status::NeedsYou, None);
    let tasks = Some(view.live.background).filter(|tasks| finished && *tasks > 0);
    match (full, queued) {
        (Some(usage), _) => Some((format!("{} %", percent(usage)), "context")),
        (None, 0) => tasks.map(|tasks| match tasks {
            1 => ("1 task".to_owned(), "tasks"),
            tasks => (format!("{tasks} tasks"), "tasks"),
        }),
        (None, queued) => Some((format!("+{queued}"), "queued")),
    }
}

/// What a row says: title, label, reason, project, age, then unread, queued and the key.
fn spoken(view: &RowView, seen: &Attention, now: Wall) -> String {
    let mut state = vec![seen.label.to_owned()];
    // a countdown is read out in full
    state.extend(reason(seen).map(|words| match words.strip_suffix(" min") {
        Some(count) => format!("{count} minutes"),
        None => words,
    }));
    let mut parts = vec![view.row.title.clone(), state.join(", ")];
    parts.push(format!("Project {}", project(&view.row.folder)));
    parts.extend(seen.since.map(|since| spoken_age(since, now)));
    if view.row.unread {
        parts.push("Unread".into());
    }
    match view.live.queue.len() {
        0 => {}
        queued => parts.push(format!("{queued} queued")),
    }
    parts.extend(seen.pill.map(|pill| match pill {
        Pill::Retry => "C retries".to_owned(),
        Pill::Continue => "C continues".to_owned(),
    }));
    parts.join(". ") + "."
}

#[cfg(test)]
mod tests {
    use super::*;
    use omniscio_core::context::ContextUsage;
    use omniscio_core::id::Uuid;
    use omniscio_core::ipc::LiveView;
    use omniscio_core::limits::Limits;
    use omniscio_core::session::{PendingAction, SessionRow};
    use omniscio_core::settings::Policy;
    use omniscio_core::time::Now;

    #[test]
    fn a_row_is_spoken_in_the_order_of_the_design() {
        let title = "Fix token refresh race".into();
        let mut row =
            SessionRow::new(Uuid(1), "/src/billing-api".into(), title, "a".into(), Wall(0));
        (row.status, row.pending) = (Status::Error, Some(PendingAction::RecoveryFailed));
        row.ladder.due = Some(Wall(10_800_000 + 330_000));
        row.unread = true;
        let mut view = RowView { row, live: LiveView::default() };
        let now = Now { wall: Wall(10_800_000), ..Now::default() };
        let seen = attention::attention(&view, &Policy::default(), &Limits::default(), now);
        assert_eq!(
            spoken(&view, &seen, now.wall),
            "Fix token refresh race. Recovery failed, next try in 6 minutes. Project billing-api. \
             3 hours. Unread. C retries."
        );
        assert_eq!(tag(&view), None);
        view.live.context = Some(ContextUsage { tokens: 187_999, window: 200_000 });
        assert_eq!(tag(&view), Some(("93 %".into(), "context")));
        view.live.context = Some(ContextUsage { tokens: 179_999, window: 200_000 });
        assert_eq!(tag(&view), None);
    }

    // proves: A-16
    #[test]
    fn what_runs_behind_a_finished_turn_is_a_tag_and_behind_no_other() {
        let row = SessionRow::new(Uuid(1), "/p".into(), "t".into(), "a".into(), Wall(0));
        let mut view = RowView { row, live: LiveView::default() };
        view.live.background = 1;
        assert_eq!(tag(&view), None, "it is starting");
        view.row.status = Status::NeedsYou;
        assert_eq!(tag(&view), Some(("1 task".into(), "tasks")));
        view.live.background = 3;
        assert_eq!(tag(&view), Some(("3 tasks".into(), "tasks")));
        view.row.pending = Some(PendingAction::Question);
        assert_eq!(tag(&view), None);
    }
}
