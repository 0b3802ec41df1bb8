//! Builds the window: Rust to WebAssembly, the bindings beside it, pages, styles and fonts.
//!
//! Everything lands in `ui/dist`, which the app embeds. A file is written only if its content
//! changed, and a file that no longer belongs there is removed, so cargo rebuilds the app exactly
//! when the window changed. Never downloads anything.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use wasm_bindgen_cli_support::Bindgen;

use crate::sh;

/// What belongs in `ui/dist`: the relative path, and the file its content comes from.
type Plan = BTreeMap<PathBuf, PathBuf>;

/// Builds the window into `ui/dist`, small and slow to build with `release`.
pub(crate) fn build(release: bool) -> Result<u8, String> {
    let wasm = compile(release)?;
    let bindings = bind(&wasm, release)?;
    let mut plan = Plan::new();
    add_folder(&mut plan, &bindings, "", &["js", "wasm"])?;
    add_pages(&mut plan, &sh::root().join("ui"))?;
    let changed = sync(&plan, &sh::root().join("ui/dist"))?;
    match changed {
        0 => println!("ui: ui/dist is up to date"),
        n => println!("ui: {n} file(s) of ui/dist changed"),
    }
    Ok(0)
}

/// Compiles the crate and names the module cargo made.
fn compile(release: bool) -> Result<PathBuf, String> {
    let (profile, folder) = if release { ("ui-release", "ui-release") } else { ("dev", "debug") };
    let target = "wasm32-unknown-unknown";
    let package = ["build", "--locked", "--package", "omniscio-ui", "--target", target];
    sh::run(sh::cargo(&package).args(["--profile", profile]))?;
    Ok(sh::target()?.join(target).join(folder).join("omniscio-ui.wasm"))
}

/// Makes `ui.js` and `ui_bg.wasm` from the module, unless they were made from this very module.
fn bind(wasm: &Path, release: bool) -> Result<PathBuf, String> {
    let out = sh::target()?.join("ui-bindings");
    let stamp_file = out.join("made-from");
    let stamp = fingerprint(wasm, release)?;
    if fs::read_to_string(&stamp_file).is_ok_and(|old| old == stamp) {
        return Ok(out);
    }
    if out.exists() {
        fs::remove_dir_all(&out).map_err(|e| cannot("clear", &out, &e))?;
    }
    let mut bindgen = Bindgen::new();
    bindgen
        .input_path(wasm)
        .out_name("ui")
        .typescript(false)
        .remove_name_section(release)
        .remove_producers_section(true);
    bindgen
        .web(true)
        .and_then(|bindgen| bindgen.generate(&out))
        .map_err(|e| format!("wasm-bindgen cannot make the bindings: {e:#}"))?;
    fs::write(&stamp_file, stamp).map_err(|e| cannot("write", &stamp_file, &e))?;
    Ok(out)
}

/// Tells one build of the module from the next.
fn fingerprint(wasm: &Path, release: bool) -> Result<String, String> {
    let meta = fs::metadata(wasm).map_err(|e| cannot("read", wasm, &e))?;
    let modified = meta.modified().map_err(|e| cannot("read", wasm, &e))?;
    let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(format!("release={release} bytes={} nanos={}", meta.len(), since.as_nanos()))
}

/// The page, its start script, the style sheets and the fonts named in `ui/fonts.txt`.
fn add_pages(plan: &mut Plan, ui: &Path) -> Result<(), String> {
    plan.insert("index.html".into(), ui.join("index.html"));
    if ui.join("boot.js").is_file() {
        plan.insert("boot.js".into(), ui.join("boot.js"));
    }
    add_folder(plan, &ui.join("style"), "style", &["css"])?;
    let Ok(list) = fs::read_to_string(ui.join("fonts.txt")) else {
        return Ok(());
    };
    let modules = ui.join("node_modules");
    if !modules.is_dir() {
        println!(
            "ui: the fonts are not installed (`cargo xtask setup` does it); the system's are used"
        );
        return Ok(());
    }
    for font in fonts(&list) {
        add_font(plan, &modules.join(font))
            .ok_or_else(|| format!("ui/fonts.txt: `{font}` is not PACKAGE/FOLDER/FILE"))?;
    }
    Ok(())
}

/// One font, and beside it the licence of its package, which asks to travel with it.
fn add_font(plan: &mut Plan, source: &Path) -> Option<()> {
    let folder = Path::new("fonts");
    plan.insert(folder.join(source.file_name()?), source.to_path_buf());
    let package = source.parent()?.parent()?;
    let licence = package.join("LICENSE");
    if licence.is_file() {
        let name = format!("{}-LICENSE.txt", package.file_name()?.to_string_lossy());
        plan.insert(folder.join(name), licence);
    }
    Some(())
}

/// The paths in `ui/fonts.txt`, relative to `ui/node_modules`; `#` starts a comment.
fn fonts(list: &str) -> impl Iterator<Item = &str> {
    list.lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim())
        .filter(|line| !line.is_empty())
        .map(|line| line.strip_prefix("node_modules/").unwrap_or(line))
}

/// Adds the files of `folder` that have one of these extensions, as `prefix/NAME`.
fn add_folder(plan: &mut Plan, folder: &Path, prefix: &str, kinds: &[&str]) -> Result<(), String> {
    for entry in fs::read_dir(folder).map_err(|e| cannot("read", folder, &e))? {
        let path = entry.map_err(|e| cannot("read", folder, &e))?.path();
        let kind = path.extension().unwrap_or_default().to_string_lossy();
        if let (true, Some(name)) = (kinds.contains(&&*kind), path.file_name()) {
            plan.insert(Path::new(prefix).join(name), path.clone());
        }
    }
    Ok(())
}

/// Makes `dist` hold exactly the plan; returns how many files were written or removed.
fn sync(plan: &Plan, dist: &Path) -> Result<usize, String> {
    let mut changed = 0;
    for (name, source) in plan {
        let content = fs::read(source).map_err(|e| cannot("read", source, &e))?;
        let path = dist.join(name);
        if fs::read(&path).is_ok_and(|old| old == content) {
            continue;
        }
        let folder = path.parent().unwrap_or(dist);
        fs::create_dir_all(folder).map_err(|e| cannot("make", folder, &e))?;
        fs::write(&path, content).map_err(|e| cannot("write", &path, &e))?;
        changed += 1;
    }
    Ok(changed + remove_strangers(plan, dist, Path::new(""))?)
}

fn remove_strangers(plan: &Plan, dist: &Path, below: &Path) -> Result<usize, String> {
    let folder = dist.join(below);
    let mut removed = 0;
    for entry in fs::read_dir(&folder).map_err(|e| cannot("read", &folder, &e))? {
        let entry = entry.map_err(|e| cannot("read", &folder, &e))?;
        let name = below.join(entry.file_name());
        if entry.path().is_dir() {
            removed += remove_strangers(plan, dist, &name)?;
        } else if !plan.contains_key(&name) {
            fs::remove_file(entry.path()).map_err(|e| cannot("remove", &entry.path(), &e))?;
            removed += 1;
        }
    }
    Ok(removed)
}

fn cannot(what: &str, path: &Path, error: &std::io::Error) -> String {
    format!("cannot {what} {}: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("xtask-ui-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn sync_writes_what_changed_and_removes_what_does_not_belong() {
        let folder = scratch("sync");
        let (source, dist) = (folder.join("page"), folder.join("dist"));
        fs::write(&source, "one").unwrap();
        let plan = Plan::from([(PathBuf::from("style/page.css"), source.clone())]);
        assert_eq!(sync(&plan, &dist), Ok(1));
        assert_eq!(sync(&plan, &dist), Ok(0), "nothing changed");
        fs::write(&source, "two").unwrap();
        fs::write(dist.join("style/old.css"), "").unwrap();
        assert_eq!(sync(&plan, &dist), Ok(2), "one written, one removed");
        assert_eq!(fs::read_to_string(dist.join("style/page.css")).unwrap(), "two");
        assert!(!dist.join("style/old.css").exists());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_font_list_may_hold_comments_and_the_folder_name() {
        let list = "# fonts\nnode_modules/a/b.woff2\n\nc.woff2 # mono\n";
        assert_eq!(fonts(list).collect::<Vec<_>>(), ["a/b.woff2", "c.woff2"]);
    }
}
