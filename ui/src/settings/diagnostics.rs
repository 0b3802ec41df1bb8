//! Diagnostics: the audit log ("why was this restarted") and the switches of the environment. Reads
//! only.

use super::PageHead;
use super::rows::{PageName, environment};
use crate::bridge;
use crate::model::use_store;
use crate::now::clock_time;
use leptos::prelude::*;
use leptos::task::spawn_local;
use omniscio_core::id::SessionId;
use omniscio_core::ipc::AuditLine;
use omniscio_core::time::Day;

/// Lines that are drawn.
const LINES_MAX: usize = 500;
const DAY_MILLIS: i64 = 86_400_000;

/// The page.
#[component]
pub(super) fn Diagnostics() -> impl IntoView {
    let store = use_store();
    let only = RwSignal::new(None::<SessionId>);
    let lines = RwSignal::new(None::<Result<Vec<AuditLine>, String>>);
    let load = move || {
        let asked = only.get_untracked();
        spawn_local(async move {
            let answer = bridge::audit(asked).await.map_err(|error| error.message);
            // an answer for another choice comes too late
            if only.try_get_untracked() == Some(asked) {
                lines.set(Some(answer));
            }
        });
    };
    Effect::new(move |_| {
        only.track();
        load();
    });
    let sessions = move || {
        store.entries.with(|entries| {
            let named = entries
                .iter()
                .map(|(id, entry)| (*id, entry.view.with(|view| view.row.title.clone())));
            named.collect::<Vec<_>>()
        })
    };
    view! {
        <PageHead name=PageName::Diagnostics />
        <section class="settings-group">
            <div class="audit-head">
                <h2>"What was done, newest first"</h2>
                <span class="select"><select
                    class="field"
                    aria-label="Session"
                    data-testid="audit-session"
                    on:change=move |event| only.set(event_target_value(&event).parse().ok())
                >
                    <option value="">"All sessions"</option>
                    <For each=sessions key=|(id, title)| (*id, title.clone()) let:session>
                        <option value=session.0.to_string()>{session.1}</option>
                    </For>
                </select></span>
                <button class="button" on:click=move |_| load()>"Refresh"</button>
            </div>
            {move || match lines.get() {
                None => ().into_any(),
                Some(Err(words)) => view! { <p class="field-error" role="alert">{words}</p> }.into_any(),
                Some(Ok(lines)) if lines.is_empty() => {
                    view! { <p class="settings-about">"Nothing was done yet."</p> }.into_any()
                }
                Some(Ok(lines)) => view! { <AuditTable lines=lines /> }.into_any(),
            }}
        </section>
        <section class="settings-group">
            <h2>"Switches of the environment"</h2>
            <p class="settings-about">"Read when Omniscio starts. A switch that is set turns its recovery off."</p>
            <div class="settings-rows">
                {move || {
                    environment(&store.switches.get())
                        .into_iter()
                        .map(|(name, on)| {
                            view! {
                                <div class="setting env" data-testid="env-switch">
                                    <span class="setting-variable">{name}</span>
                                    <span>{if on { "set" } else { "not set" }}</span>
                                </div>
                            }
                        })
                        .collect_view()
                }}
            </div>
        </section>
    }
}

#[component]
fn AuditTable(lines: Vec<AuditLine>) -> impl IntoView {
    let over = lines.len().saturating_sub(LINES_MAX);
    let line = |line: AuditLine| {
        // the date is that of the machine's clock in UTC, the time is local
        let day = i32::try_from(line.at.0.div_euclid(DAY_MILLIS)).map(Day).unwrap_or_default();
        view! {
            <tr data-testid="audit-line">
                <td class="audit-time" title=day.to_iso()>{clock_time(line.at)}</td>
                <td>{line.title}</td>
                <td>{line.actor}</td>
                <td>{line.reason}</td>
                <td>{line.outcome}</td>
            </tr>
        }
    };
    view! {
        <div class="audit" tabindex="0">
            <table>
                <thead>
                    <tr>
                        <th>"Time"</th>
                        <th>"Session"</th>
                        <th>"Actor"</th>
                        <th>"Reason"</th>
                        <th>"Outcome"</th>
                    </tr>
                </thead>
                <tbody>{lines.into_iter().take(LINES_MAX).map(line).collect_view()}</tbody>
            </table>
        </div>
        {(over > 0)
            .then(|| view! { <p class="settings-about">{format!("{over} older lines are not shown.")}</p> })}
    }
}
