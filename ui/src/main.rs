//! The window of Omniscio: shows what the backend tells and passes on what the person wants. Holds
//! no rule of its own: what a row means is asked of `omniscio_core::attention`.
#![allow(unreachable_pub, reason = "a component's props are made public by its macro")]

mod actions;
mod app;
mod bridge;
mod cards;
mod composer;
#[cfg(test)]
mod contrast;
mod dialogs;
mod dom;
mod first_run;
mod icons;
mod inbox;
mod keys;
mod model;
mod now;
mod session;
mod settings;
mod toast;
mod transcript;

fn main() {
    console_error_panic_hook::set_once();
    leptos::mount::mount_to_body(app::App);
}
