//! A session row as columns and back. The queryable facts have a column each, the rest is `facts`.
//!
//! Knows names and types, never what a value means. A fact that an older app did not write reads as
//! a new row's.

use super::error::StoreError;
use omniscio_core::id::{SessionId, Uuid};
use omniscio_core::session::SessionRow;
use omniscio_core::time::{Day, Wall};
use rusqlite::types::Value as Sql;
use serde_json::{Map, Value};
use std::sync::LazyLock;

/// The facts of a row by their names in the core.
pub(super) type Facts = Map<String, Value>;

/// How a fact stands in its column.
#[derive(Clone, Copy)]
enum Form {
    Text,
    Integer,
    Flag,
    /// A day number, stored as `YYYY-MM-DD`.
    Day,
}

struct Column {
    name: &'static str,
    fact: &'static str,
    form: Form,
}

const fn column(name: &'static str, fact: &'static str, form: Form) -> Column {
    Column { name, fact, form }
}

/// Every column of `sessions` but `facts`, which follows them in every statement.
const COLUMNS: [Column; 17] = [
    column("id", "id", Form::Text),
    column("title", "title", Form::Text),
    column("folder", "folder", Form::Text),
    column("created_at", "created_at", Form::Integer),
    column("account", "account", Form::Text),
    column("status", "status", Form::Text),
    column("pending_action", "pending", Form::Text),
    column("status_changed_at", "status_changed_at", Form::Integer),
    column("intent_running", "intent_running", Form::Flag),
    column("cli_session_id", "cli_session_id", Form::Text),
    column("cli_session_wanted", "cli_session_wanted", Form::Text),
    column("delivered", "delivered", Form::Flag),
    column("last_restart_at", "last_restart_at", Form::Integer),
    column("stop_reason", "stop_reason", Form::Text),
    column("deleted_at", "deleted_at", Form::Integer),
    column("aborted_response_retry_attempts", "retry_attempts", Form::Integer),
    column("aborted_response_retry_day", "retry_day", Form::Day),
];

/// The column names, `facts` last, separated by commas.
pub(super) static NAMES: LazyLock<String> = LazyLock::new(|| {
    let names: Vec<_> = COLUMNS.iter().map(|column| column.name).chain(["facts"]).collect();
    names.join(", ")
});

/// `name = ?1, …` for every column, numbered like the values of [`to_sql`].
pub(super) static ASSIGNMENTS: LazyLock<String> = LazyLock::new(|| {
    let names = COLUMNS.iter().map(|column| column.name).chain(["facts"]);
    let pairs: Vec<_> = (1..).zip(names).map(|(at, name)| format!("{name} = ?{at}")).collect();
    pairs.join(", ")
});

/// `?1, ?2, …` for every column.
pub(super) static PLACES: LazyLock<String> = LazyLock::new(|| {
    let places: Vec<_> = (1..=COLUMNS.len() + 1).map(|at| format!("?{at}")).collect();
    places.join(", ")
});

/// All facts of a row.
pub(super) fn facts(row: &SessionRow) -> Result<Facts, StoreError> {
    match serde_json::to_value(row) {
        Ok(Value::Object(facts)) => Ok(facts),
        Ok(_) => Err(StoreError::unreadable("session", "not an object")),
        Err(error) => Err(StoreError::unreadable("session", error)),
    }
}

/// The values of all columns, in the order of [`NAMES`].
pub(super) fn to_sql(mut facts: Facts) -> Result<Vec<Sql>, StoreError> {
    let mut values = Vec::with_capacity(COLUMNS.len() + 1);
    for column in &COLUMNS {
        let fact = facts.remove(column.fact).unwrap_or(Value::Null);
        values.push(column_value(column, fact)?);
    }
    values.push(Sql::Text(Value::Object(facts).to_string()));
    Ok(values)
}

fn column_value(column: &Column, fact: Value) -> Result<Sql, StoreError> {
    let number = fact.as_i64();
    match (column.form, fact) {
        (_, Value::Null) => Ok(Sql::Null),
        (Form::Text, Value::String(text)) => Ok(Sql::Text(text)),
        (Form::Flag, Value::Bool(flag)) => Ok(Sql::Integer(i64::from(flag))),
        (Form::Integer, Value::Number(_)) if number.is_some() => Ok(number.into()),
        (Form::Day, Value::Number(_)) => {
            let day = number.and_then(|day| i32::try_from(day).ok()).map(Day);
            Ok(day.map(Day::to_iso).into())
        }
        (Form::Text | Form::Integer | Form::Flag | Form::Day, _) => {
            Err(StoreError::unreadable("session", column.name))
        }
    }
}

/// All facts from a result row whose columns are [`NAMES`].
pub(super) fn from_sql(row: &rusqlite::Row<'_>) -> Result<Facts, StoreError> {
    let text: String = row.get(COLUMNS.len())?;
    let mut facts: Facts =
        serde_json::from_str(&text).map_err(|error| StoreError::unreadable("session", error))?;
    for (at, column) in COLUMNS.iter().enumerate() {
        let fact = match (column.form, row.get::<_, Sql>(at)?) {
            (_, Sql::Null) => Value::Null,
            (Form::Text, Sql::Text(text)) => text.into(),
            (Form::Integer, Sql::Integer(number)) => number.into(),
            (Form::Flag, Sql::Integer(flag)) => (flag != 0).into(),
            // a day that does not read counts as none: the counter's rule takes it from there
            (Form::Day, Sql::Text(day)) => Day::from_iso(&day).map(|day| day.0).into(),
            (Form::Text | Form::Integer | Form::Flag | Form::Day, _) => {
                return Err(StoreError::unreadable("session", column.name));
            }
        };
        facts.insert(column.fact.to_owned(), fact);
    }
    Ok(facts)
}

/// The row that these facts make; missing ones are a new row's.
pub(super) fn from_facts(found: Facts) -> Result<SessionRow, StoreError> {
    let mut all = blank()?;
    let id = found.get("id").and_then(Value::as_str).unwrap_or("?").to_owned();
    all.extend(found);
    serde_json::from_value(Value::Object(all))
        // the error's own words could quote a value
        .map_err(|_| StoreError::unreadable("session", format!("{id}: a fact is ill-typed")))
}

/// The facts that quote the conversation.
const SAID: [&str; 7] =
    ["title", "card", "words", "answer_line", "replay", "launch_request", "gates"];

/// Whether a fact quotes the conversation.
pub(super) fn is_said(name: &str) -> bool {
    SAID.contains(&name)
}

/// Makes the facts that quote the conversation a new row's.
pub(super) fn forget_said(facts: &mut Facts) -> Result<(), StoreError> {
    facts.extend(blank()?.into_iter().filter(|(name, _)| is_said(name)));
    Ok(())
}

/// The facts of a row that has none.
fn blank() -> Result<Facts, StoreError> {
    facts(&SessionRow::new(Uuid(0), String::new(), String::new(), String::new(), Wall(0)))
}

/// The facts that differ, as they were and as they are.
pub(super) fn difference(before: &Facts, after: &Facts) -> (Facts, Facts) {
    let differing = |from: &Facts, other: &Facts| -> Facts {
        let pairs = from.iter().filter(|(name, value)| other.get(*name) != Some(*value));
        pairs.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    (differing(before, after), differing(after, before))
}

/// An id as it is stored.
pub(super) fn id(text: &str) -> Result<SessionId, StoreError> {
    text.parse().map_err(|_| StoreError::unreadable("id", text))
}
