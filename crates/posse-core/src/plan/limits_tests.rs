//! What tools say when the quota is used up, and until when that holds.

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::limits::{LimitEvent, QuotaWaits, Signs, detect, reset_at};
use crate::time::Wall;

fn wall(time: &str) -> Wall {
    Wall(time.parse::<Timestamp>().unwrap().as_millisecond())
}

fn zone(name: &str) -> TimeZone {
    TimeZoneDatabase::bundled().get(name).unwrap()
}

/// How a failed session that said this on stderr is held at this time: until when, and whether that was said.
fn held(text: &str, now: &str) -> Option<(String, bool)> {
    let signs = Signs { failed: true, stderr: text, ..Signs::default() };
    let hold = detect(&signs, wall(now), &zone("Europe/Berlin"), 0, &QuotaWaits::default())?;
    Some((Timestamp::from_millisecond(hold.until.0).unwrap().to_string(), hold.known))
}

#[test]
fn reset_times() {
    for (name, text, now, until) in [
        (
            "T65",
            "You've hit your limit · resets Feb 9 at 6pm (America/Toronto)",
            "2026-02-09T22:00:00Z",
            "2026-02-09T23:00:30Z",
        ),
        (
            "T67",
            "You’ve hit your session limit · resets 1am (Asia/Singapore)",
            "2026-03-01T12:00:00Z",
            "2026-03-01T17:00:30Z",
        ),
        (
            "T68 comma",
            "Weekly limit reached ∙ resets Feb 16, 11am (Europe/Berlin)",
            "2026-02-12T08:00:00Z",
            "2026-02-16T10:00:30Z",
        ),
        ("T68 epoch", "Claude AI usage limit reached|1762952400", "2025-11-12T12:00:00Z", "2025-11-12T13:00:30Z"),
        ("T69 noon", "Usage limit reached - resets 12pm (UTC)", "2026-05-01T20:00:00Z", "2026-05-02T12:00:30Z"),
        (
            "long month, minutes, local zone",
            "You've hit your weekly limit. resets February 9 at 6:30pm",
            "2026-02-08T00:00:00Z",
            "2026-02-09T17:30:30Z",
        ),
        (
            "half past",
            "5-hour limit reached ∙ resets 2:30pm (America/New_York)",
            "2026-07-01T12:00:00Z",
            "2026-07-01T18:30:30Z",
        ),
        (
            "24 hours, local zone",
            "You're out of extra usage · resets at 18:00",
            "2026-07-01T12:00:00Z",
            "2026-07-01T16:00:30Z",
        ),
        (
            "after an error",
            "Error: Usage limit reached. resets 3pm (UTC)",
            "2026-07-01T12:00:00Z",
            "2026-07-01T15:00:30Z",
        ),
        (
            "in a later line",
            "boom\nUsage limit reached. resets 3pm (UTC)\n",
            "2026-07-01T12:00:00Z",
            "2026-07-01T15:00:30Z",
        ),
    ] {
        assert_eq!(held(text, now), Some((until.to_owned(), true)), "{name}: {text}");
    }
    for (name, words, now, until) in [
        ("T69 midnight", "resets 12am (UTC)", "2026-05-01T20:00:00Z", "2026-05-02T00:00:30Z"),
        (
            "a zone with a sign",
            "Your limit will reset at 1pm (Etc/GMT+5)",
            "2026-07-01T12:00:00Z",
            "2026-07-01T18:00:30Z",
        ),
        (
            "an unknown zone is the local one",
            "resets 3pm (Mars/Olympus)",
            "2026-07-01T12:00:00Z",
            "2026-07-01T13:00:30Z",
        ),
        ("a moment ago: soon", "resets 3pm (UTC)", "2026-07-01T15:04:00Z", "2026-07-01T15:05:00Z"),
        ("yesterday's date: soon", "resets Jun 30 at 3pm (UTC)", "2026-07-01T15:04:00Z", "2026-07-01T15:05:00Z"),
        ("over new year", "resets Jan 2 at 3pm (UTC)", "2026-12-31T12:00:00Z", "2027-01-02T15:00:30Z"),
        (
            "an hour that the clocks leave out",
            "resets 2:30am (Europe/Berlin)",
            "2026-03-28T23:00:00Z",
            "2026-03-29T01:30:30Z",
        ),
    ] {
        let held = held(&format!("Usage limit reached. {words}"), now);
        assert_eq!(held, Some((until.to_owned(), true)), "{name}: {words}");
    }
}

#[test]
fn what_is_not_understood_is_tried_again_soon() {
    for (name, text, now) in [
        ("T66", "You've hit your limit · resets Feb 9 at 6pm (America/Toronto)", "2026-11-15T12:00:00Z"),
        ("no time", "You've hit your limit", "2026-11-15T12:00:00Z"),
        ("an hour alone", "Usage limit reached. resets 3", "2026-11-15T12:00:00Z"),
        ("no such hour", "Usage limit reached. resets 13pm", "2026-11-15T12:00:00Z"),
        ("no such day", "Usage limit reached. resets Feb 31 at 3pm", "2026-02-28T12:00:00Z"),
        ("no such month", "Usage limit reached. resets Foo 3 at 3pm", "2026-02-28T12:00:00Z"),
    ] {
        let until = wall(now).0 + 300_000;
        let until = Timestamp::from_millisecond(until).unwrap().to_string();
        assert_eq!(held(text, now), Some((until, false)), "{name}");
    }
    let pause = |probes| {
        let signs = Signs { failed: true, api_status: Some(429), ..Signs::default() };
        detect(&signs, Wall(0), &TimeZone::UTC, probes, &QuotaWaits::default()).unwrap().until.0 / 60_000
    };
    assert_eq!([0, 1, 2, 3, 4, 100].map(pause), [5, 10, 20, 40, 60, 60]);
}

/// Whoever hears of it only later, after a crash for example, must not take this morning's "3pm" for tomorrow's.
#[test]
fn a_time_of_day_is_meant_from_when_it_was_said() {
    let said = "2026-07-01T11:00:00Z";
    for (name, text, now, until) in [
        ("it is still to come", "resets 3pm (UTC)", "2026-07-01T14:00:00Z", "2026-07-01T15:00:30Z"),
        ("it is past", "resets 3pm (UTC)", "2026-07-01T18:00:00Z", "2026-07-01T18:01:00Z"),
        ("it was past for days", "resets 3pm (UTC)", "2026-07-04T09:00:00Z", "2026-07-04T09:01:00Z"),
        ("the next day", "resets 1am (UTC)", "2026-07-02T00:30:00Z", "2026-07-02T01:00:30Z"),
        ("the next day is past", "resets 1am (UTC)", "2026-07-02T12:00:00Z", "2026-07-02T12:01:00Z"),
        ("with a date", "resets Jul 1 at 3pm (UTC)", "2026-07-02T12:00:00Z", "2026-07-02T12:01:00Z"),
    ] {
        let text = format!("Usage limit reached. {text}");
        let signs = Signs { failed: true, stderr: &text, said_at: Some(wall(said)), ..Signs::default() };
        let hold = detect(&signs, wall(now), &TimeZone::UTC, 0, &QuotaWaits::default()).unwrap();
        assert_eq!((hold.until, hold.known), (wall(until), true), "{name}");
    }
}

#[test]
fn what_is_no_limit() {
    let now = wall("2026-07-01T12:00:00Z");
    let event = |status| Some(LimitEvent { status, resets_at: Some(0), kind: None });
    let text = "You've hit your limit · resets 3pm (UTC)";
    for (name, signs) in [
        ("T62: the model says so, and the session is fine", Signs { result_text: text, ..Signs::default() }),
        ("T62: stderr of a session that is fine", Signs { stderr: text, ..Signs::default() }),
        ("T64", Signs { event: event("allowed_warning"), ..Signs::default() }),
        ("allowed", Signs { event: event("allowed"), ..Signs::default() }),
        (
            "in the middle of a sentence",
            Signs { failed: true, result_text: "the text \"Usage limit reached\" is matched by", ..Signs::default() },
        ),
        ("another error", Signs { failed: true, api_status: Some(500), stderr: "overloaded", ..Signs::default() }),
    ] {
        assert_eq!(detect(&signs, now, &TimeZone::UTC, 0, &QuotaWaits::default()), None, "{name}");
    }
}

#[test]
fn t63_the_tools_own_word_comes_first() {
    let now = wall("2026-07-01T12:00:00Z");
    let at = |seconds: i64, stderr| {
        let event = LimitEvent { status: "rejected", resets_at: Some(now.0 / 1000 + seconds), kind: Some("five_hour") };
        let signs = Signs { event: Some(event), failed: true, stderr, ..Signs::default() };
        let hold = detect(&signs, now, &TimeZone::UTC, 0, &QuotaWaits::default()).unwrap();
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
    let now = wall("2026-11-16T12:00:00Z");
    for (words, zone, expected) in [
        ("3pm (Europe/Berlin)", None, Some("2026-11-16T14:00:00Z")),
        ("3pm", Some("Europe/Berlin"), Some("2026-11-16T14:00:00Z")),
        ("3pm", None, Some("2026-11-16T15:00:00Z")),
        ("at 9:52 AM", None, Some("2026-11-17T09:52:00Z")),
        ("1794832200", None, Some("2026-11-16T12:30:00Z")),
        ("in 3 days", None, Some("2026-11-19T12:00:00Z")),
        ("in 3 days 4 hours", None, Some("2026-11-19T16:00:00Z")),
        ("in 45 minutes", None, Some("2026-11-16T12:45:00Z")),
        ("in a while", None, None),
        ("2026-12-01 at 00:00 UTC", Some("Europe/Berlin"), Some("2026-12-01T00:00:00Z")),
        ("on 2026-12-01 00:00", Some("Europe/Berlin"), Some("2026-11-30T23:00:00Z")),
        ("soon", None, None),
    ] {
        assert_eq!(reset_at(words, now, zone), expected.map(wall), "{words} {zone:?}");
    }
}
