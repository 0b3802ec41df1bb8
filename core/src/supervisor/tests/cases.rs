//! Cases from public bug reports, as far as the rules alone decide them; the virtual clock makes their
//! minutes and days. What needs a process is in `tests/process/supervisor`.
//!
//! | case | what must hold | test |
//! |---|---|---|
//! | T1 | the silent turn ends at its limit, is brought back once by the next scan; nine others go on | `t01_silence_…` |
//! | T2 | the limit's clock starts at the tool's result; exactly the silent two of six come back | `t02_…` |
//! | T4 | no success before the handshake; "never started" with its last words; never archived | `t04_a_start_that_…` |
//! | T4 | chatter for minutes, then init: not killed | `t04_chatter_…` |
//! | T7 | one recovery within a minute, unseen below five minutes | `t07_a_failed_request_…`, `t07_what_is_held_…` |
//! | T7 | two a day, the third is red; a message of the person resets | `t07_the_third_…`, `t07_a_session_that_…` |
//! | T7 | the count starts over at local midnight, also on a day of 23 or 25 hours | `t07_the_count_…` |
//! | T14 | a refused resume goes on at once with a hand-over, said aloud; the dead id is gone | `t14_…` |
//! | T22 | long silences with a reason end nothing, and the row says the reason | `t22_…` |
//! | lid | eight hours of sleep: one scan, no kill, every limit anew | `a_closed_lid_…` |

mod days;
mod lid;
mod lost;
mod silent;

use super::Rig;
use super::rig::many::{One, agent, piece};
use crate::attention::{Attention, attention};
use crate::ipc::RowView;
use crate::limits::Limits;
use crate::settings::Policy;

const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// What a person sees of a row now.
fn seen(rig: &Rig, view: &RowView) -> Attention {
    attention(view, &Policy::default(), &Limits::default(), rig.now())
}
