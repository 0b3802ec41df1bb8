//! One switch of Settings. The whole row is the target, a change applies at once, and a switch that
//! the environment holds off can be read but not moved.

use super::rows::{Row, marked};
use crate::actions;
use crate::model::use_store;
use leptos::ev::KeyboardEvent;
use leptos::prelude::*;
use omniscio_core::supervisor::Command;

/// The row of one switch.
#[component]
pub(super) fn SwitchRow(
    row: &'static Row,
    /// What was searched for; empty for nothing.
    query: String,
) -> impl IntoView {
    let store = use_store();
    let disabled = move || store.switches.with(|switches| (row.disabled_by)(switches));
    let on = move || disabled().is_none() && store.settings.with(|settings| (row.value)(settings));
    // the switch moves when the backend says that the setting is stored
    let toggle = move || {
        if disabled().is_some() {
            return;
        }
        let wanted = !untrack(on);
        actions::give(store, Command::SetSetting { change: (row.change)(wanted) });
    };
    let on_key = move |event: KeyboardEvent| {
        if matches!(event.key().as_str(), " " | "Enter") && !event.repeat() {
            event.prevent_default();
            event.stop_propagation();
            toggle();
        }
    };
    let (before, hit, after) = marked(row.label, &query);
    let hit = (!hit.is_empty()).then(|| view! { <mark>{hit}</mark> });
    let (label_id, helper_id) = (format!("{}-label", row.key), format!("{}-helper", row.key));
    view! {
        <div class="setting" class:held=move || disabled().is_some() on:click=move |_| toggle()>
            <div class="setting-text">
                <span class="setting-label" id=label_id.clone()>{before}{hit}{after}</span>
                <span class="setting-helper" id=helper_id.clone()>{row.helper}</span>
                {move || {
                    disabled()
                        .map(|name| view! { <span class="setting-variable">{format!("{name}=1")}</span> })
                }}
            </div>
            <div class="setting-end">
                {move || {
                    disabled().map(|_| view! { <span class="setting-held">"Disabled by environment"</span> })
                }}
                <span
                    class="switch"
                    role="switch"
                    tabindex="0"
                    aria-checked=move || on().to_string()
                    aria-disabled=move || disabled().is_some().to_string()
                    aria-labelledby=label_id
                    aria-describedby=helper_id
                    data-testid=format!("setting-{}", row.key)
                    on:keydown=on_key
                />
            </div>
        </div>
    }
}
