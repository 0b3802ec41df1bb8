//! `cargo xtask rules`: writes RULES.md from the marks in the sources. `tests/tidy.rs` fails while the
//! two differ; both read the marks with `tests/tidy/marks.rs`.

use std::fs;

use crate::{marks, sh};

/// The page, at the root of the checkout.
const PAGE: &str = "RULES.md";

/// Writes the page.
pub(crate) fn write() -> Result<u8, String> {
    let page = marks::page(&sh::root());
    fs::write(sh::root().join(PAGE), page).map_err(|e| format!("{PAGE} cannot be written: {e}"))?;
    println!("rules: {PAGE} is what the marks give");
    Ok(0)
}
