//! Usage limits: detects that a session ended because the quota is used up, and when the quota comes back.
//!
//! Text that a model writes is never searched, because tasks about rate limits exist. The tool's own structured event
//! comes first. Other text is searched only if the session failed, only in the tool's own messages, and only for whole
//! sentences at the beginning of a line.

use std::sync::LazyLock;
use std::time::Duration;

use jiff::civil::{Date, Time};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, Zoned};
use regex::Regex;
use serde::{Deserialize, Serialize};

use super::duration;
use crate::engine::hold::Hold;
use crate::time::Wall;
use crate::written::constant;

/// The traces of a limit that a session can leave.
#[derive(Clone, Copy, Debug, Default)]
pub struct Signs<'a> {
    /// The tool's own event about a rejected request.
    pub event: Option<LimitEvent<'a>>,
    /// The session failed: the exit status is not 0, or the tool reports that the result is an error.
    pub failed: bool,
    /// The status of the failed request (`api_error_status`).
    pub api_status: Option<u16>,
    pub stderr: &'a str,
    /// The text of the tool's own result. Read only if the session failed, because otherwise the model wrote it.
    pub result_text: &'a str,
    /// The time of the message, if that was earlier. A time of day is relative to it.
    pub said_at: Option<Wall>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitEvent<'a> {
    /// Seconds since the epoch.
    pub resets_at: Option<i64>,
    /// `five_hour`, `seven_day`.
    pub kind: Option<&'a str>,
}

/// The waiting times for the quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuotaWaits {
    /// Added to a reset, because clocks differ.
    pub buffer: Duration,
    pub max_wait: Duration,
    /// The first pause if the reset time is unknown.
    pub probe: Duration,
}

/// The wait if the reset time is in the past: short, but not zero.
const JUST_PAST: Duration = Duration::from_secs(60);
/// The bounds of a wait. The lower one prevents a busy loop; the upper one is the longest known window, a week.
const SHORTEST: Duration = Duration::from_secs(30);
const LONGEST: Duration = Duration::from_secs(8 * 86_400);
/// The longest pause between tries if the reset time is unknown.
const PROBE_MAX: Duration = Duration::from_secs(3600);
/// A time of day that passed this recently means today, not tomorrow: no window lasts a day, and sessions need a moment
/// to end.
const STILL_MEANT: i64 = 10 * 60;

/// Returns the hold that these signs require. `local` is the zone of this machine, for times without one. `probes` is
/// the number of consecutive limits without a reset time.
pub fn detect(signs: &Signs<'_>, now: Wall, local: &TimeZone, probes: u32, waits: &QuotaWaits) -> Option<Hold> {
    let known = |reset, reason| known(reset, now, reason, waits);
    let probe = |reason| probe(now, probes, reason, waits);
    if let Some(event) = signs.event {
        let reason = format!("usage limit{}", event.kind.map(|kind| format!(" ({kind})")).unwrap_or_default());
        return Some(match event.resets_at {
            Some(seconds) => known(Wall(seconds.saturating_mul(1000)), reason),
            None => probe(reason),
        });
    }
    if !signs.failed {
        return None;
    }
    let told = signs.api_status == Some(429);
    let sentence = [signs.stderr, signs.result_text].into_iter().find_map(sentence);
    let text = match (sentence, told) {
        (Some(sentence), _) => sentence,
        (None, true) => signs.result_text.lines().next().unwrap_or_default(),
        (None, false) => return None,
    };
    let reason = if text.trim().is_empty() { "too many requests".to_owned() } else { text.trim().to_owned() };
    Some(match reset(text, signs.said_at.unwrap_or(now), local) {
        Some(reset) => {
            known(reset.at, if reset.zone_is_a_guess { format!("{reason} (in local time)") } else { reason })
        }
        None => probe(reason),
    })
}

/// Parses the reset time in a tool's message: "3pm (Europe/Berlin)", "at 9:52 PM", "in 3 days 4 hours", a date, or
/// seconds since 1970. `zone` is the zone for times without one. Returns `None` if the time is not understood.
pub fn reset_at(words: &str, now: Wall, zone: Option<&str>) -> Option<Wall> {
    let local = zone.and_then(|zone| zones().get(zone).ok()).unwrap_or(TimeZone::UTC);
    if let Some(seconds) = words.trim().parse::<i64>().ok().filter(|seconds| *seconds > 1_000_000_000) {
        return Some(Wall(seconds.saturating_mul(1000)));
    }
    let clock = || reset(&format!("resets {}", words.trim()), now, &local).map(|reset| reset.at);
    in_so_long(words, now).or_else(|| on_date(words, &local)).or_else(clock)
}

/// Parses "in 3 days 4 hours".
fn in_so_long(words: &str, now: Wall) -> Option<Wall> {
    Some(now.after(duration(words.trim().strip_prefix("in ")?.trim_end_matches('.'))?))
}

/// Parses "2026-12-01 at 00:00 UTC".
fn on_date(words: &str, local: &TimeZone) -> Option<Wall> {
    let words = words.trim().trim_start_matches("on ").replace(" at ", " ");
    let (time, zone) = match words.rsplit_once(' ') {
        Some((time, name)) if name.starts_with(|c: char| c.is_alphabetic()) => (time, zones().get(name).ok()?),
        _ => (words.as_str(), local.clone()),
    };
    let at = time.parse::<jiff::civil::DateTime>().ok()?.to_zoned(zone).ok()?;
    Some(Wall(at.timestamp().as_millisecond()))
}

fn known(reset: Wall, now: Wall, reason: String, waits: &QuotaWaits) -> Hold {
    let until = if reset <= now { now.after(JUST_PAST) } else { reset.after(waits.buffer) };
    Hold { until: until.clamp(now.after(SHORTEST), now.after(waits.max_wait.max(SHORTEST))), reason, known: true }
}

fn probe(now: Wall, probes: u32, reason: String, waits: &QuotaWaits) -> Hold {
    let pause = waits.probe.saturating_mul(2_u32.saturating_pow(probes.min(16))).min(PROBE_MAX.max(waits.probe));
    Hold { until: now.after(pause.min(waits.max_wait)), reason, known: false }
}

/// Returns the line in which a tool reports that the quota is used up.
fn sentence(text: &str) -> Option<&str> {
    static SENTENCE: LazyLock<Regex> = LazyLock::new(|| {
        constant(concat!(
            r"(?im)^[ \t]*(?:error:?[ \t]+)?(?:",
            r"you['’]ve hit your (?:session |weekly )?limit",
            r"|(?:claude (?:ai )?)?usage limit reached",
            r"|5-hour limit reached|weekly limit reached",
            r"|(?:you['’]re )?out of extra usage",
            r").*$"
        ))
    });
    SENTENCE.find(text).map(|found| found.as_str())
}

struct Reset {
    at: Wall,
    zone_is_a_guess: bool,
}

/// Returns the reset time, if the sentence has one in a known form.
fn reset(text: &str, said_at: Wall, local: &TimeZone) -> Option<Reset> {
    static EPOCH: LazyLock<Regex> = LazyLock::new(|| constant(r"(?i)limit reached\|(\d{9,11})\b"));
    static CLOCK: LazyLock<Regex> = LazyLock::new(|| {
        constant(concat!(
            r"(?i)\bresets?\s+(?:at\s+)?",
            r"(?:(?P<month>[a-z]{3,9})\.?\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?(?:\s+at|\s*,(?:\s+at)?)?\s+)?",
            r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?\s*(?P<half>am|pm)?\b",
            r"(?:\s*\((?P<zone>[a-z0-9_+/-]+)\))?"
        ))
    });
    if let Some(found) = EPOCH.captures(text) {
        let seconds: i64 = found.get(1)?.as_str().parse().ok()?;
        return Some(Reset { at: Wall(seconds * 1000), zone_is_a_guess: false });
    }
    let found = CLOCK.captures(text)?;
    let part = |name| found.name(name).map(|part| part.as_str());
    let number = |name| part(name).and_then(|text| text.parse::<i8>().ok());
    let hour = match (number("hour")?, part("half").map(str::to_ascii_lowercase).as_deref()) {
        (hour @ 1..=12, Some("am")) => hour % 12,
        (hour @ 1..=12, Some("pm")) => hour % 12 + 12,
        // Neither am nor pm, and no minutes: ambiguous.
        (hour @ 0..=23, None) if part("minute").is_some() => hour,
        _ => return None,
    };
    let time = Time::new(hour, number("minute").unwrap_or(0), 0, 0).ok()?;
    let zone = part("zone").and_then(|name| zones().get(name).ok());
    let zone_is_a_guess = zone.is_none();
    let zone = zone.unwrap_or_else(|| local.clone());
    let here = Timestamp::from_millisecond(said_at.0).ok()?.to_zoned(zone);
    let at = match (part("month"), number("day")) {
        (Some(month), Some(day)) => dated(&here, self::month(month)?, day, time)?,
        _ => next(&here, time)?,
    };
    Some(Reset { at: Wall(at.timestamp().as_millisecond()), zone_is_a_guess })
}

/// Returns the time zones compiled into the program, so that results do not depend on the machine.
fn zones() -> &'static TimeZoneDatabase {
    static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);
    &ZONES
}

/// Returns the next time when the clock shows this. A time that a clock change skips becomes the one after it.
fn next(here: &Zoned, time: Time) -> Option<Zoned> {
    let today = here.date().to_datetime(time).to_zoned(here.time_zone().clone()).ok()?;
    if here.timestamp().as_second() - today.timestamp().as_second() <= STILL_MEANT {
        return Some(today);
    }
    here.date().tomorrow().ok()?.to_datetime(time).to_zoned(here.time_zone().clone()).ok()
}

/// Returns a date without a year: the nearest one, and only if it is near. An old text must not cause a wait until next
/// February.
fn dated(here: &Zoned, month: i8, day: i8, time: Time) -> Option<Zoned> {
    let years = [here.year() - 1, here.year(), here.year() + 1];
    let dates = years
        .into_iter()
        .filter_map(|year| Date::new(year, month, day).ok()?.to_datetime(time).to_zoned(here.time_zone().clone()).ok());
    let away = |date: &Zoned| (date.timestamp().as_second() - here.timestamp().as_second()).abs();
    dates.min_by_key(away).filter(|date| away(date) <= LONGEST.as_secs().cast_signed())
}

fn month(name: &str) -> Option<i8> {
    const MONTHS: &str = "january february march april may june july august september october november december";
    let name = name.to_ascii_lowercase();
    let at = MONTHS.split(' ').position(|month| month.starts_with(&name) && name.len() >= 3)?;
    i8::try_from(at + 1).ok()
}
