//! Limit messages of tools, and the resulting holds.

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::config::PlanConfig;
use super::limits::{LimitEvent, Signs, detect, reset_at};
use crate::time::Wall;

/// Parses a time in UTC, in 2026 unless it has another year: `02-09 22:00`.
fn wall(time: &str) -> Wall {
    let year = if time.starts_with("20") { "" } else { "2026-" };
    Wall(format!("{year}{time}Z").parse::<Timestamp>().unwrap().as_millisecond())
}

/// Returns the hold for a failed session whose stderr, written at one time, is read at another: its end, and whether
/// the end is known.
fn held_later(text: &str, said: Option<&str>, now: &str) -> Option<(String, bool)> {
    let signs = Signs { failed: true, stderr: text, said_at: said.map(wall), ..Signs::default() };
    let berlin = TimeZoneDatabase::bundled().get("Europe/Berlin").unwrap();
    let hold = detect(&signs, wall(now), &berlin, 0, &PlanConfig::default().rate_limit)?;
    let until = Timestamp::from_millisecond(hold.until.0).unwrap();
    Some((until.strftime("%m-%d %H:%M:%S").to_string(), hold.known))
}

fn held(text: &str, now: &str) -> Option<(String, bool)> {
    held_later(text, None, now)
}

#[test]
fn reset_times() {
    for (name, text, now, until) in [
        ("T65", "You've hit your limit · resets Feb 9 at 6pm (America/Toronto)", "02-09 22:00", "02-09 23:00:30"),
        ("T67", "You’ve hit your session limit · resets 1am (Asia/Singapore)", "03-01 12:00", "03-01 17:00:30"),
        ("T68", "Weekly limit reached ∙ resets Feb 16, 11am (Europe/Berlin)", "02-12 08:00", "02-16 10:00:30"),
        ("T68", "Claude AI usage limit reached|1762952400", "2025-11-12 12:00", "11-12 13:00:30"),
        ("T69 noon", "Usage limit reached - resets 12pm (UTC)", "05-01 20:00", "05-02 12:00:30"),
        ("local", "You've hit your weekly limit. resets February 9 at 6:30pm", "02-08 00:00", "02-09 17:30:30"),
        ("half", "5-hour limit reached ∙ resets 2:30pm (America/New_York)", "07-01 12:00", "07-01 18:30:30"),
        ("24 hours", "You're out of extra usage · resets at 18:00", "07-01 12:00", "07-01 16:00:30"),
        ("error", "Error: Usage limit reached. resets 3pm (UTC)", "07-01 12:00", "07-01 15:00:30"),
        ("later line", "boom\nUsage limit reached. resets 3pm (UTC)\n", "07-01 12:00", "07-01 15:00:30"),
    ] {
        assert_eq!(held(text, now), Some((until.to_owned(), true)), "{name}: {text}");
    }
    for (name, words, now, until) in [
        ("T69 midnight", "resets 12am (UTC)", "05-01 20:00", "05-02 00:00:30"),
        ("a zone with a sign", "will reset at 1pm (Etc/GMT+5)", "07-01 12:00", "07-01 18:00:30"),
        ("an unknown zone is the local one", "resets 3pm (Mars/Olympus)", "07-01 12:00", "07-01 13:00:30"),
        ("a moment ago: soon", "resets 3pm (UTC)", "07-01 15:04", "07-01 15:05:00"),
        ("yesterday's date: soon", "resets Jun 30 at 3pm (UTC)", "07-01 15:04", "07-01 15:05:00"),
        ("over new year", "resets Jan 2 at 3pm (UTC)", "12-31 12:00", "01-02 15:00:30"),
        ("no such hour", "resets 2:30am (Europe/Berlin)", "03-28 23:00", "03-29 01:30:30"),
    ] {
        let held = held(&format!("Usage limit reached. {words}"), now);
        assert_eq!(held, Some((until.to_owned(), true)), "{name}: {words}");
    }
}

#[test]
fn what_is_not_understood_is_tried_again_soon() {
    for (name, words) in [
        ("T66", "· resets Feb 9 at 6pm (America/Toronto)"),
        ("no time", ""),
        ("an hour alone", "resets 3"),
        ("no such hour", "resets 13pm"),
        ("no such day", "resets Nov 31 at 3pm"),
        ("no such month", "resets Foo 3 at 3pm"),
    ] {
        let held = held(&format!("You've hit your limit {words}"), "11-15 12:00");
        assert_eq!(held, Some(("11-15 12:05:00".to_owned(), false)), "{name}");
    }
    let pause = |probes| {
        let signs = Signs { failed: true, api_status: Some(429), ..Signs::default() };
        detect(&signs, Wall(0), &TimeZone::UTC, probes, &PlanConfig::default().rate_limit).unwrap().until.0 / 60_000
    };
    assert_eq!([0, 1, 2, 3, 4, 100].map(pause), [5, 10, 20, 40, 60, 60]);
}

/// A message read late, for example after a crash, must not turn this morning's "3pm" into tomorrow's.
#[test]
fn a_time_of_day_is_meant_from_when_it_was_said() {
    for (name, words, now, until) in [
        ("it is still to come", "resets 3pm (UTC)", "07-01 14:00", "07-01 15:00:30"),
        ("it is past", "resets 3pm (UTC)", "07-01 18:00", "07-01 18:01:00"),
        ("it was past for days", "resets 3pm (UTC)", "07-04 09:00", "07-04 09:01:00"),
        ("the next day", "resets 1am (UTC)", "07-02 00:30", "07-02 01:00:30"),
        ("the next day is past", "resets 1am (UTC)", "07-02 12:00", "07-02 12:01:00"),
        ("with a date", "resets Jul 1 at 3pm (UTC)", "07-02 12:00", "07-02 12:01:00"),
    ] {
        let held = held_later(&format!("Usage limit reached. {words}"), Some("07-01 11:00"), now);
        assert_eq!(held, Some((until.to_owned(), true)), "{name}");
    }
}

#[test]
fn what_is_no_limit() {
    let now = wall("07-01 12:00");
    let text = "You've hit your limit · resets 3pm (UTC)";
    for (name, signs) in [
        ("T62: the model says so, and the session is fine", Signs { result_text: text, ..Signs::default() }),
        ("T62: stderr of a session that is fine", Signs { stderr: text, ..Signs::default() }),
        (
            "in the middle of a sentence",
            Signs { failed: true, result_text: "the text \"Usage limit reached\" is matched by", ..Signs::default() },
        ),
        ("another error", Signs { failed: true, api_status: Some(500), stderr: "overloaded", ..Signs::default() }),
    ] {
        assert_eq!(detect(&signs, now, &TimeZone::UTC, 0, &PlanConfig::default().rate_limit), None, "{name}");
    }
}

#[test]
fn t63_the_tools_own_word_comes_first() {
    let now = wall("07-01 12:00");
    let at = |seconds: i64, stderr| {
        let event = LimitEvent { resets_at: Some(now.0 / 1000 + seconds), kind: Some("five_hour") };
        let signs = Signs { event: Some(event), failed: true, stderr, ..Signs::default() };
        let hold = detect(&signs, now, &TimeZone::UTC, 0, &PlanConfig::default().rate_limit).unwrap();
        assert_eq!(hold.reason, "usage limit (five_hour)");
        (hold.until.0 - now.0) / 1000
    };
    assert_eq!(at(90, "Usage limit reached. resets 3pm (UTC)"), 120);
    assert_eq!(at(-5, ""), 60, "past already");
    assert_eq!(at(-100_000_000, ""), 60, "long past");
    assert_eq!(at(100_000_000, ""), 8 * 86_400, "no wait is longer than eight days");
}

#[test]
fn words_for_a_reset_are_understood_or_not() {
    let now = wall("11-16 12:00");
    for (words, zone, expected) in [
        ("3pm (Europe/Berlin)", None, Some("11-16 14:00")),
        ("3pm", Some("Europe/Berlin"), Some("11-16 14:00")),
        ("3pm", None, Some("11-16 15:00")),
        ("at 9:52 AM", None, Some("11-17 09:52")),
        ("1794832200", None, Some("11-16 12:30")),
        ("in 3 days", None, Some("11-19 12:00")),
        ("in 3 days 4 hours", None, Some("11-19 16:00")),
        ("in 45 minutes", None, Some("11-16 12:45")),
        ("in a while", None, None),
        ("2026-12-01 at 00:00 UTC", Some("Europe/Berlin"), Some("12-01 00:00")),
        ("on 2026-12-01 00:00", Some("Europe/Berlin"), Some("11-30 23:00")),
        ("soon", None, None),
    ] {
        assert_eq!(reset_at(words, now, zone), expected.map(wall), "{words} {zone:?}");
    }
}
