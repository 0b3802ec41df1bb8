//! Build script of the app package: Tauri's own code generation.

fn main() {
    // lets `cargo build`, clippy and an editor work before the window was built
    let dist = std::path::Path::new("ui/dist");
    if !dist.join("index.html").exists() {
        std::fs::create_dir_all(dist).expect("ui/dist can be made");
        std::fs::write(
            dist.join("index.html"),
            "<!doctype html><p>The window is not built yet: run <code>cargo xtask ui</code>",
        )
        .expect("ui/dist can be written");
    }
    println!("cargo:rerun-if-changed=ui/dist");
    println!("cargo:rerun-if-changed=migrations");
    println!("cargo:rerun-if-changed=tauri.conf.json");
    tauri_build::try_build(
        tauri_build::Attributes::new().capabilities_path_pattern("./src-tauri/capabilities/**/*"),
    )
    .expect("tauri-build");
}
