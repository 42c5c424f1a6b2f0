//! The spec by its letter: `wait_for_response_file`, polls P1 to P8, every 50 ms.

use super::{Change, Day, Report};
use crate::status::StatusKind;

const POLL: u64 = 50;

/// What a poll sees.
#[derive(Clone, Copy, Default)]
struct World {
    status: Option<StatusKind>,
    file: Option<&'static str>,
    messages: u32,
}

fn world(day: &Day, now: u64) -> World {
    let mut world = World::default();
    for (_, change) in day.changes.iter().take_while(|(ms, _)| *ms <= now) {
        match change {
            Change::Status(kind) => world.status = *kind,
            Change::File(text) => world.file = *text,
            Change::Message => world.messages += 1,
        }
    }
    world
}

pub(super) fn polled(day: &Day) -> Report {
    let grace = day.rules.grace().as_millis() as u64;
    let timeout = day.rules.timeout().as_millis() as u64;
    let mut report = Report::default();
    let (mut guard_since, mut idle_since, mut started, mut reminders) = (0, None, false, 0);
    let (mut last_accept, mut accepts): (Option<u64>, u32) = (None, 0);
    let mut warned: Option<u64> = None;
    let mut first_message: Option<u32> = None;
    let mut now = 0;
    let no_file =
        |now: u64| (now, if day.rules.strict_file_handoff { "Runtime NoFile" } else { "LastOutput said" }.to_owned());
    loop {
        // P1
        let World { status, file, messages } = world(day, now);
        let quiet = matches!(status, Some(StatusKind::Idle | StatusKind::Completed));
        let waiting = status == Some(StatusKind::WaitingUserAnswer);
        // P2
        if status == Some(StatusKind::Error) {
            report.end = (now, "Runtime ErrorState".into());
            return report;
        }
        // P3
        if waiting && !day.rules.auto_accept_permissions {
            if warned.is_none_or(|warned| now - warned >= 60_000) {
                report.warnings.push(now);
                warned = Some(now);
            }
        } else if waiting && last_accept.is_none_or(|last| now - last >= 5_000) {
            if accepts == 20 {
                report.end = (now, "Runtime Cap".into());
                return report;
            }
            accepts += 1;
            report.accepts.push(now);
            last_accept = Some(now);
        } else if status.is_some() && !waiting {
            warned = None;
        }
        // P4
        let answer = file.map(str::trim).filter(|text| !text.is_empty());
        if let (Some(answer), true) = (answer, quiet) {
            report.end = (now, format!("File {answer}"));
            return report;
        }
        // P5
        if status.is_some() && !quiet {
            started = true;
        }
        // P6, with D8
        if quiet {
            let changed = *first_message.get_or_insert(messages) != messages;
            if !started && changed {
                started = true;
                idle_since = None;
            }
            if !started && now - guard_since > grace {
                report.warnings.push(now);
                started = true;
                idle_since = Some(now);
            } else if started && idle_since.is_none() {
                idle_since = Some(now);
            } else if started && idle_since.is_some_and(|since| now - since > grace) {
                if reminders == day.rules.max_file_reminders || now > timeout {
                    report.end = no_file(now);
                    return report;
                }
                reminders += 1;
                report.reminders.push(now);
                (idle_since, started, guard_since, first_message) = (None, false, now, None);
            }
        } else if status.is_some() {
            idle_since = None;
        }
        // P7
        if now > timeout {
            report.end = if quiet { no_file(now) } else { (now, "Timeout TimedOut".into()) };
            return report;
        }
        // P8
        now += POLL;
    }
}
