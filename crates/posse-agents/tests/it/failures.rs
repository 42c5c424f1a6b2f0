//! What the screens of failed agents say about the service behind them.

use crate::common::{Folder, fixture};
use posse_core::turn::ApiFailure;
use posse_core::turn::failure::{classify, standing};

fn in_short(failure: Option<ApiFailure>) -> String {
    match failure {
        None => "nothing".into(),
        Some(ApiFailure::UsageLimit { resets }) => format!("limit, {}", resets.as_deref().unwrap_or("no time")),
        Some(ApiFailure::Server(_)) => "server".into(),
        Some(ApiFailure::Dropped) => "dropped".into(),
        Some(ApiFailure::Other(_)) => "other".into(),
    }
}

#[test]
fn every_recorded_failure_is_told_apart() {
    for (screen, expected) in [
        ("claude_code/2.1.197/error_400.txt", "other"),
        ("claude_code/2.1.197/error_403.txt", "other"),
        ("claude_code/2.1.197/error_404.txt", "other"),
        ("claude_code/2.1.197/error_529_repeated.txt", "server"),
        ("claude_code/2.1.197/error_529_repeated_2.txt", "server"),
        ("claude_code/2.1.197/error_529_repeated_3.txt", "server"),
        ("claude_code/2.1.197/error_529_repeated_typed.txt", "server"),
        ("claude_code/2.1.197/error_drop.txt", "dropped"),
        ("claude_code/2.1.197/error_refusal.txt", "other"),
        ("claude_code/2.1.197/error_usage_limit.txt", "limit, 2026-12-01 at 00:00 UTC"),
        ("claude_code/2.1.325/error_400.txt", "other"),
        ("claude_code/2.1.325/error_400_60x20.txt", "other"),
        ("claude_code/2.1.325/error_400_classic.txt", "other"),
        ("claude_code/2.1.325/error_404.txt", "other"),
        ("claude_code/2.1.325/error_529_repeated.txt", "server"),
        ("claude_code/2.1.325/error_drop.txt", "dropped"),
        ("claude_code/2.1.325/error_usage_limit.txt", "limit, 2026-12-01 at 00:00 UTC"),
        // The words are the provider's own, and could mean anything.
        ("codex/0.145.0/error_400.txt", "nothing"),
        ("codex/0.166.0/error_400.txt", "nothing"),
        ("codex/0.166.0/error_401.txt", "other"),
        ("codex/0.166.0/error_429.txt", "server"),
        ("codex/0.166.0/error_quota.txt", "limit, no time"),
        ("codex/0.166.0/error_usage_limit.txt", "limit, at 9:52 PM"),
        ("codex/0.166.0/proc_retry_429.txt", "server"),
        ("opencode/1.18.33/error_400.txt", "nothing"),
        ("qwen/0.15.10/error_401.txt", "other"),
    ] {
        let text = std::fs::read_to_string(fixture(screen)).unwrap();
        assert_eq!(in_short(classify(&text)), expected, "{screen}\n{text}");
    }
}

/// A turn is failed early for words on the screen of an agent that is not in `error`: they must not be found by accident.
#[test]
fn no_failure_is_seen_where_there_is_none() {
    let mut screens = 0;
    for folder in [
        "claude_code/2.1.197",
        "claude_code/2.1.325",
        "codex/0.145.0",
        "codex/0.166.0",
        "opencode/1.18.33",
        "qwen/0.15.10",
    ] {
        let screens_of = Folder::open(folder);
        for screen in &screens_of.labelled {
            if !screen.accept.iter().any(|status| status == "error") {
                screens += 1;
                let text = screens_of.text(&screen.screen);
                assert_eq!(standing(&text), None, "{folder}/{}\n{text}", screen.screen);
            }
        }
    }
    assert!(screens > 250, "{screens}");
}
