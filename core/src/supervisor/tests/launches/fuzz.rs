//! Anything at any time over a few sessions; then the machine mends, and everybody must have come to rest.

use super::port::{EAGAIN, ENOENT, Port};
use super::*;
use crate::id::Rng;
use crate::session::Holder;
use alloc::vec;

struct Dice(Rng);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0.next_u64() % n
    }
}

fn is_up(port: &Port, id: SessionId) -> bool {
    port.state.sessions[&id].live.child.is_up()
}

fn has_turn(port: &Port, id: SessionId) -> bool {
    port.state.sessions[&id].live.turn.is_some()
}

fn one_thing(port: &mut Port, ids: &mut Vec<SessionId>, dice: &mut Dice, log: &mut Vec<String>) {
    if ids.len() < 6 && dice.below(4) == 0 {
        let id = port.create();
        log.push(format!("{} create {id}", port.now.mono.0));
        ids.push(id);
        return;
    }
    let Some(id) = ids.get(dice.below(ids.len().max(1) as u64) as usize).copied() else {
        return;
    };
    let what = dice.below(34);
    log.push(format!("{} {what} {id}", port.now.mono.0));
    match what {
        0 | 1 => {
            port.command(Command::Send {
                session: id,
                text: "more".into(),
                now: dice.below(3) == 0,
            });
        }
        2 | 3 => port.command(Command::Retry { session: id }),
        4 => port.command(Command::Continue { session: id }),
        5 => port.command(Command::Stop { session: id }),
        6 => port.command(Command::ForkHeld { session: id }),
        7 => {
            let message = port.queue(id).first().map(|queued| queued.id);
            if let Some(message) = message {
                port.command(Command::Unqueue { session: id, message });
            }
        }
        8..=10 if is_up(port, id) => port.exit(id),
        11..=13 if is_up(port, id) && has_turn(port, id) => port.answer_turn(id),
        14 if is_up(port, id) && has_turn(port, id) => port.refuse_turn(id),
        15 if is_up(port, id) && has_turn(port, id) => port.say(id),
        16 | 17 => {
            port.fails.insert(id, (1 + dice.below(12) as u32, EAGAIN));
        }
        18 => {
            port.fails.insert(id, (1, ENOENT));
        }
        19 => port.folder = !port.folder,
        20 => port.blind = if port.blind.is_some() { None } else { Some(EAGAIN) },
        21 => port.deaf = !port.deaf,
        22 => {
            let memory_mib = (dice.below(2) == 0).then_some(3);
            port.headroom = Headroom { memory_mib, ..Headroom::default() };
        }
        23 => port.exists = !port.exists,
        24 => {
            port.holder = port.holder.is_none().then(|| Holder {
                pid: 300,
                start: 7,
                folder: "/elsewhere".into(),
            });
        }
        25 => port.shake_takes_ms = [Some(500), Some(20_000), None][dice.below(3) as usize],
        26 => port.spawn_takes_ms = [5, 3_000, 50_000][dice.below(3) as usize],
        27 if dice.below(3) == 0 => port.crash(),
        27 => port.rebuild(),
        28 => port.sleep(dice.below(1_000_000)),
        29 => {
            let change = SettingChange::RelentlessSessionRelaunch(dice.below(2) == 0);
            port.command(Command::SetSetting { change });
        }
        30 => {
            if dice.below(2) == 0 {
                port.gone.push(id);
            } else {
                port.gone.clear();
            }
        }
        31 => port.late_stops = !port.late_stops,
        32 | 33 => port.refuse = true,
        _ => {}
    }
}

fn mend(port: &mut Port) {
    port.fails.clear();
    port.folder = true;
    port.blind = None;
    port.deaf = false;
    port.headroom = Headroom::default();
    port.holder = None;
    port.shake_takes_ms = Some(500);
    port.spawn_takes_ms = 5;
    port.gone.clear();
    port.late_stops = false;
    port.refuse = false;
    port.command(Command::SetSetting { change: SettingChange::RelentlessSessionRelaunch(true) });
}

fn run(seed: u64) -> Result<(), String> {
    let mut dice = Dice(Rng::new(seed));
    let mut port = Port::new(Limits::default());
    let (mut ids, mut log) = (vec![], vec![]);
    let bad = |port: &Port, log: &[String], what: String| {
        let tail = log.iter().rev().take(25).cloned().collect::<Vec<_>>();
        Err(format!("seed {seed} at {}: {what}\n{tail:#?}", port.now.mono.0))
    };
    for _ in 0..120 {
        one_thing(&mut port, &mut ids, &mut dice, &mut log);
        let span = [0, 50, 400, 3_000, 20_000, 90_000, 400_000][dice.below(7) as usize];
        port.pass(span);
        if !port.doubled.is_empty() {
            return bad(&port, &log, format!("two children of {:?}", port.doubled));
        }
        if port.calls_most > 4
            && port.spawn_takes_ms < 30_000
            && !log.iter().any(|l| l.contains(" 26 "))
        {
            return bad(&port, &log, format!("{} spawn calls at once", port.calls_most));
        }
    }
    mend(&mut port);
    port.pass(3 * HOUR);
    for id in &ids {
        let row = port.row(*id);
        let session = &port.state.sessions[id];
        if row.status == Status::Starting {
            let text = format!("{id} starting for ever: {:?} {:#?}", row, session.live);
            return bad(&port, &log, text);
        }
        if row.status == Status::Running && !session.live.child.is_up() {
            return bad(&port, &log, format!("{id} running without a child"));
        }
        if session.live.spawn_call.is_some() {
            return bad(&port, &log, format!("{id} holds a slot"));
        }
        if session.live.restart_under_way() {
            let text = format!("{id} under way for ever in {:?}: {:#?}", row.status, session.live);
            return bad(&port, &log, text);
        }
        if row.status == Status::Error && row.pending.is_none() && !port.queue(*id).is_empty() {
            // a launch error keeps its message: Retry must bring it back
            port.command(Command::Retry { session: *id });
            port.pass(MINUTE);
            if port.row(*id).status != Status::Running {
                let text = format!("{id} does not come back by Retry: {:?}", port.row(*id));
                return bad(&port, &log, text);
            }
        }
    }
    let mut written = port.written.clone();
    written.sort();
    let before = written.len();
    written.dedup();
    if written.len() != before {
        return bad(&port, &log, "a message was written twice as a new one".into());
    }
    Ok(())
}

#[test]
fn whatever_befalls_launches_everybody_comes_to_rest() {
    let failed: Vec<String> = (0..600).filter_map(|seed| run(seed).err()).collect();
    if let Some(first) = failed.first() {
        let heads: Vec<&str> =
            failed.iter().map(|text| text.lines().next().unwrap_or_default()).collect();
        let heads: Vec<String> =
            heads.iter().map(|head| head.chars().take(160).collect()).collect();
        panic!("{} of 600: {heads:#?}\n{first}", failed.len());
    }
}
