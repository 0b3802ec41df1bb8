//! The one reducer. Dispatch only; the rules are elsewhere.

mod surface;

pub use surface::*;
