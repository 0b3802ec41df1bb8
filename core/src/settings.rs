//! What the user and the environment switch on and off, and the one value the rules read.
//!
//! `Policy = Settings and not KillSwitches`. No rule looks at a setting or a variable itself.

use crate::endpoint::Endpoint;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// The settings of the window, with their stored keys. A missing key means its default (ST-08).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// Settings, Sessions: "Aborted-response recovery" (ST-01).
    pub aborted_response_recovery_enabled: bool,
    /// Settings, Sessions: "Auto-Recover When Out of Context" (ST-02).
    pub context_stall_auto_recover_enabled: bool,
    /// Settings, Sessions: "Auto-Continue Mid-Task" (ST-03).
    pub auto_continue_mid_task_enabled: bool,
    /// Settings, Workflow: "Keep Relaunching a Session Until It's Back" (ST-04).
    pub relentless_session_relaunch: bool,
    /// Settings, Workflow: Plain Speak, adds the summary card to the prompt (A-19).
    pub plain_speak_enabled: bool,
    /// Settings, Sessions: show hidden rows of the transcript.
    pub show_interruptions: bool,
    /// A `claude` the user chose on the first-run page; empty means search.
    pub claude_path: String,
    /// The endpoints that were set up, oldest first. Their secrets are elsewhere (A-32).
    pub endpoints: Vec<Endpoint>,
}

impl Default for Settings {
    fn default() -> Self {
        // rule: ST-08
        Settings {
            aborted_response_recovery_enabled: true,
            context_stall_auto_recover_enabled: true,
            auto_continue_mid_task_enabled: false,
            relentless_session_relaunch: true,
            plain_speak_enabled: false,
            show_interruptions: false,
            claude_path: String::new(),
            endpoints: Vec::new(),
        }
    }
}

/// One setting changed by the window. Typed, so that an ill-typed value never parses (ST-05).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "key", content = "value", rename_all = "camelCase", deny_unknown_fields)]
pub enum SettingChange {
    /// See [`Settings::aborted_response_recovery_enabled`].
    AbortedResponseRecoveryEnabled(bool),
    /// See [`Settings::context_stall_auto_recover_enabled`].
    ContextStallAutoRecoverEnabled(bool),
    /// See [`Settings::auto_continue_mid_task_enabled`].
    AutoContinueMidTaskEnabled(bool),
    /// See [`Settings::relentless_session_relaunch`].
    RelentlessSessionRelaunch(bool),
    /// See [`Settings::plain_speak_enabled`].
    PlainSpeakEnabled(bool),
    /// See [`Settings::show_interruptions`].
    ShowInterruptions(bool),
    /// See [`Settings::claude_path`].
    ClaudePath(String),
}

impl Settings {
    /// Applies one change.
    pub fn apply(&mut self, change: SettingChange) {
        match change {
            SettingChange::AbortedResponseRecoveryEnabled(on) => {
                self.aborted_response_recovery_enabled = on;
            }
            SettingChange::ContextStallAutoRecoverEnabled(on) => {
                self.context_stall_auto_recover_enabled = on;
            }
            SettingChange::AutoContinueMidTaskEnabled(on) => {
                self.auto_continue_mid_task_enabled = on;
            }
            SettingChange::RelentlessSessionRelaunch(on) => self.relentless_session_relaunch = on,
            SettingChange::PlainSpeakEnabled(on) => self.plain_speak_enabled = on,
            SettingChange::ShowInterruptions(on) => self.show_interruptions = on,
            SettingChange::ClaudePath(path) => self.claude_path = path,
        }
    }
}

/// The six launch-time switches of the environment (OP-01..OP-06). Read once, at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KillSwitches {
    /// `AMC_DISABLE_ABORTED_RESPONSE_RECOVERY`
    pub aborted_response_recovery: bool,
    /// `AMC_DISABLE_PREINIT_ORPHAN_RETIRE`
    pub preinit_orphan_retire: bool,
    /// `AMC_DISABLE_FINAL_MARKER_SETTLE`
    pub final_marker_settle: bool,
    /// `AMC_DISABLE_THINKING_ONLY_ENDTURN_RECOVERY`
    pub thinking_only_endturn_recovery: bool,
    /// `AMC_DISABLE_INCOMPLETE_GATE_REPORT_NUDGE`
    pub incomplete_gate_report_nudge: bool,
    /// `AMC_DISABLE_RELENTLESS_RELAUNCH`
    pub relentless_relaunch: bool,
}

/// The names of the switches, in the order of [`KillSwitches`].
pub const SWITCH_NAMES: [&str; 6] = [
    "AMC_DISABLE_ABORTED_RESPONSE_RECOVERY",
    "AMC_DISABLE_PREINIT_ORPHAN_RETIRE",
    "AMC_DISABLE_FINAL_MARKER_SETTLE",
    "AMC_DISABLE_THINKING_ONLY_ENDTURN_RECOVERY",
    "AMC_DISABLE_INCOMPLETE_GATE_REPORT_NUDGE",
    "AMC_DISABLE_RELENTLESS_RELAUNCH",
];

impl KillSwitches {
    /// Reads the switches through `lookup`. Returns them and the names whose value was not
    /// understood: active means `1` or `true`, anything else non-empty is inactive and worth one
    /// line in the log (OP-07).
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> (KillSwitches, Vec<&'static str>) {
        // rule: OP-07
        let mut odd = Vec::new();
        let mut on = [false; SWITCH_NAMES.len()];
        for (name, slot) in SWITCH_NAMES.into_iter().zip(on.iter_mut()) {
            let value = lookup(name).unwrap_or_default();
            let value = value.trim();
            *slot = value == "1" || value.eq_ignore_ascii_case("true");
            if !*slot && !value.is_empty() {
                odd.push(name);
            }
        }
        let [aborted, orphan, settle, thinking, gate, relaunch] = on;
        let switches = KillSwitches {
            aborted_response_recovery: aborted,
            preinit_orphan_retire: orphan,
            final_marker_settle: settle,
            thinking_only_endturn_recovery: thinking,
            incomplete_gate_report_nudge: gate,
            relentless_relaunch: relaunch,
        };
        (switches, odd)
    }
}

/// Settings and switches joined: what the rules may read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// What the user set.
    pub settings: Settings,
    /// What the environment switched off.
    pub switches: KillSwitches,
}

impl Policy {
    /// Whether the scan may replay cut-off turns.
    pub fn aborted_response_recovery(&self) -> bool {
        // rule: SC-25, OP-01
        self.settings.aborted_response_recovery_enabled && !self.switches.aborted_response_recovery
    }

    /// Whether a launch that fails transiently is tried until it succeeds.
    pub fn relentless_relaunch(&self) -> bool {
        // rule: RS-14, RS-19, OP-06
        self.settings.relentless_session_relaunch && !self.switches.relentless_relaunch
    }

    /// Whether a turn that ran out of room is continued.
    pub fn context_stall_recovery(&self) -> bool {
        // rule: CS-24, AC-04
        self.settings.context_stall_auto_recover_enabled
    }

    /// Whether a turn that stopped mid-task is continued.
    pub fn auto_continue(&self) -> bool {
        // rule: AC-02, AC-04
        self.settings.auto_continue_mid_task_enabled
    }

    /// Whether a turn that ended without visible text is routed to recovery.
    pub fn thinking_only_recovery(&self) -> bool {
        // rule: TE-07
        !self.switches.thinking_only_endturn_recovery
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    // proves: SC-25
    #[test]
    fn recovery_runs_only_with_the_toggle_on_and_the_switch_unset() {
        for (toggle, switch, runs) in
            [(true, false, true), (true, true, false), (false, false, false), (false, true, false)]
        {
            let mut policy = Policy::default();
            policy.settings.aborted_response_recovery_enabled = toggle;
            policy.switches.aborted_response_recovery = switch;
            assert_eq!(policy.aborted_response_recovery(), runs, "{toggle} {switch}");
        }
    }

    #[test]
    fn a_switch_is_active_for_1_and_true_only() {
        let read = |value: &'static str| {
            KillSwitches::read(|name| {
                (name == "AMC_DISABLE_ABORTED_RESPONSE_RECOVERY").then(|| value.to_string())
            })
        };
        for value in ["1", " true ", "TRUE", "True"] {
            assert!(read(value).0.aborted_response_recovery, "{value}");
        }
        for value in ["0", "yes", "on"] {
            let (switches, odd) = read(value);
            assert_eq!(switches, KillSwitches::default(), "{value}");
            assert_eq!(odd, ["AMC_DISABLE_ABORTED_RESPONSE_RECOVERY"], "{value}");
        }
        assert_eq!(read("").1, [""; 0]);
    }

    // proves: CS-25
    #[test]
    fn no_number_of_a_rule_is_a_setting() {
        let serde_json::Value::Object(settings) =
            serde_json::to_value(Settings::default()).expect("settings")
        else {
            panic!("settings are an object");
        };
        assert!(settings.contains_key("contextStallAutoRecoverEnabled"));
        let number = settings.iter().find(|(_, value)| value.is_number());
        assert_eq!(number, None, "thresholds and caps are constants");
    }

    // proves: ST-05, ST-08
    #[test]
    fn settings_have_defaults_and_refuse_what_is_ill_typed() {
        let empty: Settings = serde_json::from_str("{}").expect("defaults");
        assert_eq!(empty, Settings::default());
        assert!(empty.aborted_response_recovery_enabled && empty.relentless_session_relaunch);
        assert!(empty.context_stall_auto_recover_enabled && !empty.auto_continue_mid_task_enabled);
        for bad in [
            r#"{"key":"abortedResponseRecoveryEnabled","value":"yes"}"#,
            r#"{"key":"abortedResponseRecoveryEnabled"}"#,
            r#"{"key":"dailyCap","value":3}"#,
        ] {
            assert!(serde_json::from_str::<SettingChange>(bad).is_err(), "{bad}");
        }
        let change =
            serde_json::from_str(r#"{"key":"abortedResponseRecoveryEnabled","value":false}"#);
        let mut settings = Settings::default();
        settings.apply(change.expect("a change"));
        assert!(!settings.aborted_response_recovery_enabled);
    }
}
