//! Notices on the desktop. Whether and when to notify is the rules' business; here it is shown.

use tauri::AppHandle;
use tauri_plugin_notification::NotificationExt;

/// Shows a notice. A desktop without notices is no error of the app.
pub(super) fn show(app: &AppHandle, title: &str, body: &str) {
    let shown = app.notification().builder().title(title).body(body).show();
    super::logged("show a notice", shown);
}
