//! Runs a rule and catches its panic: says where it was and of what kind, never words that were put
//! together at run time, for they may quote a conversation.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;

static HOOK: Once = Once::new();

thread_local! {
    /// A rule runs on this thread.
    static WATCHED: Cell<bool> = const { Cell::new(false) };
    /// Where its panic was.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// What a rule gives, or where and how it panicked. What it worked on is to be thrown away then.
pub(super) fn caught<T>(rule: impl FnOnce() -> T) -> Result<T, String> {
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            // the usual one prints the words
            if WATCHED.get() { remember(panic) } else { usual(panic) }
        }));
    });
    WATCHED.set(true);
    let done = panic::catch_unwind(AssertUnwindSafe(rule));
    WATCHED.set(false);
    done.map_err(|payload| {
        let place = PLACE.take().unwrap_or_else(|| "an unknown place".to_string());
        format!("{} at {place}", kind(&*payload))
    })
}

fn remember(panic: &PanicHookInfo<'_>) {
    PLACE.set(panic.location().map(ToString::to_string));
}

/// Words that stand in the program's text are told; others may hold data.
fn kind(payload: &(dyn Any + Send)) -> String {
    match payload.downcast_ref::<&'static str>() {
        Some(fixed) => format!("\"{fixed}\""),
        None if payload.is::<String>() => "a message that is not told".to_string(),
        None => "a value without words".to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_tells_its_place_and_no_data() {
        assert_eq!(caught(|| 7), Ok(7));
        let data = "what was said";
        let told = caught(|| panic!("no rule for {data}")).unwrap_err();
        assert!(told.contains(file!()) && !told.contains("said"), "{told}");
        let told = caught(|| panic!("fixed words")).unwrap_err();
        assert!(told.starts_with("\"fixed words\" at ") && told.contains(file!()), "{told}");
        let told = caught(|| panic::panic_any(7)).unwrap_err();
        assert!(told.starts_with("a value without words at "), "{told}");
        assert!(caught(|| Some(data).filter(|_| false).expect(data)).is_err());
    }
}
