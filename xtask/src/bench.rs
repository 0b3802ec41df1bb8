//! `cargo xtask bench`: builds as released and prints what the app costs, each figure against a limit
//! of the same run.
//!
//! The measurements are in `benches/`. A goal that is missed is printed, it is no failure.

use crate::{setup, sh, ui};

/// Builds and measures; the names choose some measurements, none means all.
pub(crate) fn bench(names: &[String]) -> Result<u8, String> {
    if let Some(flag) = names.iter().find(|name| name.starts_with('-')) {
        return Err(format!("`bench` takes names of measurements, not `{flag}`"));
    }
    setup::ensure(setup::Purpose::Run)?;
    // the package embeds the window, whoever uses it
    ui::build(false)?;
    let mut cargo =
        sh::cargo(&["bench", "--locked", "--package=omniscio", "--bench=figures", "--"]);
    sh::run(cargo.args(names))?;
    Ok(0)
}
