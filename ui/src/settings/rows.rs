//! The switches of Settings: where each stands, its words, and what it changes. The labels and
//! helpers are the contract's, byte for byte. Values only.

use omniscio_core::settings::{KillSwitches, SWITCH_NAMES, SettingChange, Settings};

/// A page of Settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageName {
    /// What belongs nowhere else.
    General,
    /// What Omniscio does by itself.
    Sessions,
    /// How sessions are launched.
    Workflow,
    /// Who answers.
    Accounts,
    /// Why something was restarted.
    Diagnostics,
}

impl PageName {
    /// The pages, in order.
    pub(crate) const ALL: [PageName; 5] = [
        PageName::General,
        PageName::Sessions,
        PageName::Workflow,
        PageName::Accounts,
        PageName::Diagnostics,
    ];

    /// Its name.
    pub(crate) fn title(self) -> &'static str {
        match self {
            PageName::General => "General",
            PageName::Sessions => "Sessions",
            PageName::Workflow => "Workflow",
            PageName::Accounts => "Accounts",
            PageName::Diagnostics => "Diagnostics",
        }
    }

    /// The sentence under its name.
    pub(crate) fn about(self) -> &'static str {
        match self {
            PageName::General => "What Omniscio runs on.",
            PageName::Sessions => {
                "What Omniscio does by itself while you are elsewhere. Changes apply at once."
            }
            PageName::Workflow => {
                "How sessions are launched and how their turns end. Changes apply at once."
            }
            PageName::Accounts => "Who answers your sessions.",
            PageName::Diagnostics => "Why a session was restarted, and what the environment sets.",
        }
    }
}

/// One switch.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    /// Its page.
    pub page: PageName,
    /// Its group; empty for none.
    pub group: &'static str,
    /// Its stored key.
    pub key: &'static str,
    /// Its label.
    pub label: &'static str,
    /// Its helper.
    pub helper: &'static str,
    /// Its value.
    pub value: fn(&Settings) -> bool,
    /// The change that sets it.
    pub change: fn(bool) -> SettingChange,
    /// The variable that switches it off, if it is set.
    pub disabled_by: fn(&KillSwitches) -> Option<&'static str>,
}

/// The group of the three that keep sessions going.
const KEEP_GOING: &str = "Waiting & keeping sessions going";

/// Every switch, in the order of the pages.
pub(crate) const ROWS: [Row; 5] = [
    // rule: ST-01
    Row {
        page: PageName::Sessions,
        group: KEEP_GOING,
        key: "abortedResponseRecoveryEnabled",
        label: "Aborted-response recovery",
        helper: "When the CLI drops a reply mid-way, retry it automatically (up to twice a day per session).",
        value: |settings| settings.aborted_response_recovery_enabled,
        change: SettingChange::AbortedResponseRecoveryEnabled,
        disabled_by: |switches| switches.aborted_response_recovery.then_some(SWITCH_NAMES[0]),
    },
    // rule: ST-02, ST-09
    Row {
        page: PageName::Sessions,
        group: KEEP_GOING,
        key: "contextStallAutoRecoverEnabled",
        label: "Auto-Recover When Out of Context",
        helper: "When a turn stops because its context is full, compact and continue automatically.",
        value: |settings| settings.context_stall_auto_recover_enabled,
        change: SettingChange::ContextStallAutoRecoverEnabled,
        disabled_by: |_| None,
    },
    // rule: ST-03
    Row {
        page: PageName::Sessions,
        group: KEEP_GOING,
        key: "autoContinueMidTaskEnabled",
        label: "Auto-Continue Mid-Task",
        helper: "Nudge the agent whenever it stops mid-task. Aggressive; off by default.",
        value: |settings| settings.auto_continue_mid_task_enabled,
        change: SettingChange::AutoContinueMidTaskEnabled,
        disabled_by: |_| None,
    },
    Row {
        page: PageName::Sessions,
        group: "Transcript",
        key: "showInterruptions",
        label: "Show interruptions",
        helper: "Shows the hidden rows that record a cut-off turn and what was retried.",
        value: |settings| settings.show_interruptions,
        change: SettingChange::ShowInterruptions,
        disabled_by: |_| None,
    },
    // rule: ST-04, RS-25
    Row {
        page: PageName::Workflow,
        group: "",
        key: "relentlessSessionRelaunch",
        label: "Keep Relaunching a Session Until It's Back",
        helper: "When a session that was running fails to launch because the machine is momentarily overloaded (a transient OS hiccup), keep retrying — with a growing gap between tries — until it comes back, instead of giving up after a few attempts. Genuine errors still stop and turn red.",
        value: |settings| settings.relentless_session_relaunch,
        change: SettingChange::RelentlessSessionRelaunch,
        disabled_by: |switches| switches.relentless_relaunch.then_some(SWITCH_NAMES[5]),
    },
];

/// The rows that match a search, by label and helper, in any case.
pub(crate) fn search(query: &str) -> Vec<&'static Row> {
    let query = query.trim().to_lowercase();
    let has = |text: &str| text.to_lowercase().contains(&query);
    ROWS.iter().filter(|row| has(row.label) || has(row.helper)).collect()
}

/// A label parted around the words that a search found in it; whole, with an empty middle, when the
/// words stand elsewhere.
pub(crate) fn marked(
    label: &'static str,
    query: &str,
) -> (&'static str, &'static str, &'static str) {
    let query = query.trim().to_ascii_lowercase();
    let at = label.to_ascii_lowercase().find(&query).filter(|_| !query.is_empty());
    let parts = at.and_then(|at| {
        let (before, rest) = label.split_at_checked(at)?;
        let (hit, after) = rest.split_at_checked(query.len())?;
        Some((before, hit, after))
    });
    parts.unwrap_or((label, "", ""))
}

/// The title over what a search found.
pub(crate) fn found(count: usize, query: &str) -> String {
    let query = query.trim();
    match count {
        0 => format!("No setting matches “{query}”."),
        1 => format!("1 setting for “{query}”"),
        count => format!("{count} settings for “{query}”"),
    }
}

/// Each switch of the environment and whether it is set.
pub(crate) fn environment(switches: &KillSwitches) -> [(&'static str, bool); SWITCH_NAMES.len()] {
    let KillSwitches {
        aborted_response_recovery,
        preinit_orphan_retire,
        final_marker_settle,
        thinking_only_endturn_recovery,
        incomplete_gate_report_nudge,
        relentless_relaunch,
    } = *switches;
    let on = [
        aborted_response_recovery,
        preinit_orphan_retire,
        final_marker_settle,
        thinking_only_endturn_recovery,
        incomplete_gate_report_nudge,
        relentless_relaunch,
    ];
    std::array::from_fn(|at| (SWITCH_NAMES[at], on[at]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_is_marked_in_a_label_where_it_stands() {
        let label = "Auto-Recover When";
        for (query, parts) in [
            (" recover ", ("Auto-", "Recover", " When")),
            ("AUTO", ("", "Auto", "-Recover When")),
            ("context", (label, "", "")),
            ("", (label, "", "")),
            ("…", (label, "", "")),
        ] {
            assert_eq!(marked(label, query), parts, "{query}");
        }
    }

    // proves: ST-01, ST-02, ST-03, ST-04
    #[test]
    fn the_four_switches_stand_where_and_as_the_contract_says() {
        let wanted = [
            (
                "Sessions",
                KEEP_GOING,
                "abortedResponseRecoveryEnabled",
                "Aborted-response recovery",
                true,
            ),
            (
                "Sessions",
                KEEP_GOING,
                "contextStallAutoRecoverEnabled",
                "Auto-Recover When Out of Context",
                true,
            ),
            ("Sessions", KEEP_GOING, "autoContinueMidTaskEnabled", "Auto-Continue Mid-Task", false),
            (
                "Workflow",
                "",
                "relentlessSessionRelaunch",
                "Keep Relaunching a Session Until It's Back",
                true,
            ),
        ];
        let defaults = Settings::default();
        let shown: Vec<_> = ROWS
            .iter()
            .filter(|row| row.key != "showInterruptions")
            .map(|row| (row.page.title(), row.group, row.key, row.label, (row.value)(&defaults)))
            .collect();
        assert_eq!(shown, wanted);
        let helpers: Vec<_> = [0, 1, 2, 4].map(|at| ROWS[at].helper).into();
        assert_eq!(
            helpers,
            [
                "When the CLI drops a reply mid-way, retry it automatically (up to twice a day per session).",
                "When a turn stops because its context is full, compact and continue automatically.",
                "Nudge the agent whenever it stops mid-task. Aggressive; off by default.",
                "When a session that was running fails to launch because the machine is momentarily \
                 overloaded (a transient OS hiccup), keep retrying — with a growing gap between tries — \
                 until it comes back, instead of giving up after a few attempts. Genuine errors still \
                 stop and turn red.",
            ]
        );
    }

    #[test]
    fn every_switch_changes_its_own_key_and_no_other() {
        for row in ROWS {
            let json = serde_json::to_value((row.change)(true)).unwrap();
            assert_eq!(json, serde_json::json!({"key": row.key, "value": true}));
            let mut settings = Settings::default();
            for on in [true, false] {
                settings.apply((row.change)(on));
                assert_eq!((row.value)(&settings), on, "{}", row.key);
            }
        }
    }

    #[test]
    fn a_switch_of_the_environment_names_itself() {
        let mut switches = KillSwitches::default();
        assert!(ROWS.iter().all(|row| (row.disabled_by)(&switches).is_none()));
        switches.relentless_relaunch = true;
        assert_eq!((ROWS[4].disabled_by)(&switches), Some("AMC_DISABLE_RELENTLESS_RELAUNCH"));
        let set: Vec<_> = environment(&switches).into_iter().filter(|(_, on)| *on).collect();
        assert_eq!(set, [("AMC_DISABLE_RELENTLESS_RELAUNCH", true)]);
        switches.aborted_response_recovery = true;
        assert_eq!((ROWS[0].disabled_by)(&switches), Some("AMC_DISABLE_ABORTED_RESPONSE_RECOVERY"));
    }

    #[test]
    fn a_search_finds_words_of_labels_and_helpers() {
        let keys = |query: &str| search(query).iter().map(|row| row.key).collect::<Vec<_>>();
        assert_eq!(
            keys("RECOVER"),
            ["abortedResponseRecoveryEnabled", "contextStallAutoRecoverEnabled"]
        );
        assert_eq!(keys("hiccup"), ["relentlessSessionRelaunch"]);
        assert_eq!(keys("xyz"), [""; 0]);
        assert_eq!(found(2, " recover "), "2 settings for “recover”");
        assert_eq!(found(0, "x"), "No setting matches “x”.");
    }
}
