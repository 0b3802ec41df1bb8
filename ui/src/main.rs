//! The window of Omniscio: shows what the backend tells and passes on what the person wants. Holds
//! no rule of its own: what a row means is asked of `omniscio_core::attention`.

mod actions;
mod app;
mod bridge;
mod dom;
mod icons;
mod inbox;
mod keys;
mod model;
mod now;
mod session;
mod toast;

fn main() {
    console_error_panic_hook::set_once();
    leptos::mount::mount_to_body(app::App);
}
