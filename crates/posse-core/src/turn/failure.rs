//! Reads a failed agent's report to decide whether a retry is worthwhile, and when.
//!
//! Only a row that begins with the agent's own failure report counts. Mentions by a model or a tool do not: work *on*
//! rate limits would be mistaken for one. The rows are those of known agents, in no particular order. `detect` decides
//! which rows make a status `error`.

use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::written::constant;

/// The reason a model's service gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApiFailure {
    /// The allowance is used up. `resets` is the agent's own text for the reset time, such as "3pm (Europe/Berlin)",
    /// "at 9:52 PM", "in 3 days" or seconds since 1970.
    UsageLimit { resets: Option<String> },
    /// The service is down or overloaded, in its own words. Temporary.
    Server(String),
    /// The connection failed or was lost. Temporary.
    Dropped,
    /// Any other failure, such as a wrong key or an oversized request. A retry does not help.
    Other(String),
}

/// Maximum length of agent text quoted in a message.
const QUOTED: usize = 200;

struct FailurePatterns {
    row: Regex,
    interrupted: Regex,
    standing: Regex,
    next_row: Regex,
    class: Regex,
    limit: Regex,
    resets: Regex,
    code: Regex,
    server: Regex,
    dropped: Regex,
    known: Regex,
}

static PATTERNS: LazyLock<FailurePatterns> = LazyLock::new(|| {
    // Start of a failure report, after any bullet, border or indent.
    let head = r"(?:API Error\b|Invalid API key|Not logged in|Please run /login|There.s an issue with the selected model|Request too large|Credit balance|Prompt is too long|You.ve (?:hit|reached) your\b|(?:\S+ ){0,3}limit reached|OAuth token|Unable to connect)";
    FailurePatterns {
        row: constant(&format!(r"^(?:■ |\s*✕ |\W{{0,12}}(?:\S[^·]{{0,40}} · )?{head})")),
        interrupted: constant(r"^■ .*\binterrupted\b"),
        // Stricter pattern for a terminal that is not in `error`: a bullet and a number, or the service's own JSON.
        standing: constant(
            r#"^[●⏺■] (?:Please run /login · )?(?:API Error:?\s*[45]\d\d\b|.*"type"\s*:\s*"api_error".*(?i:internal server error))"#,
        ),
        next_row: constant(r"^\s{0,2}[●⏺■•✦✕✻] |^\s*[─━╭╰┃❯›>]"),
        class: constant(r"\bsaid failed: (\w+)"),
        limit: constant(
            r"(?i)\busage limits?\b|\b(?:hit|reached) your .{0,30}\blimit|\blimit reached\b|\bout of (?:extra )?usage\b|\bquota (?:exceeded|exhausted)\b|\bexceeded your current quota\b|\binsufficient_quota\b",
        ),
        resets: constant(
            r"(?i)limit reached\|(\d{9,})|(?:\bresets?(?: at)?|\bregain access(?: on)?|\btry again)\s+((?:at |in |on )?[^·∙|(]*?\d[^·∙|(]*?)(\s\([^)]*\)|\.(?:\s|$)|\s*[·∙|(]|\s+/|$)",
        ),
        code: constant(
            r"(?i)(?:API Error:?(?: Repeated)?|\bstatus(?: code)?:?|\bHTTP(?:/[\d.]+)?|\brejected)\s*\(?([45]\d\d)\b",
        ),
        server: constant(
            r"(?i)\boverloaded|\binternal server error|\bservice unavailable|\bbad gateway|\bgateway time-?out|\bhigh demand|\bat capacity|\bserver_error\b|\btoo many requests|\brate.?limit",
        ),
        dropped: constant(
            r"(?i)\bconnection (?:was )?(?:closed|lost|reset|refused|error|timed out)|\bstream (?:disconnected|error|closed)|\bunable to connect|\bECONN|\bETIMEDOUT|\bENOTFOUND|\bsocket hang up|\bnetwork error|\bfetch failed|\brequest timed out",
        ),
        known: constant(head),
    }
});

/// Returns the last failure report among these lines, shortened to one line.
pub(super) fn row(words: &str) -> Option<String> {
    whole_row(words).map(|row| row.chars().take(QUOTED).collect())
}

fn whole_row(words: &str) -> Option<String> {
    let lines: Vec<&str> = words.lines().collect();
    let is_failure = |line: &&str| PATTERNS.row.is_match(line) && !PATTERNS.interrupted.is_match(line);
    last_said(&lines, is_failure).map(|at| paragraph(&lines[at..]))
}

/// Returns the index of the last such row, if the agent printed no message after it.
fn last_said(lines: &[&str], is_it: impl Fn(&&str) -> bool) -> Option<usize> {
    let at = lines.iter().rposition(is_it)?;
    let said_after = |line: &&str| line.starts_with(['●', '⏺', '■', '•', '✦']);
    (!lines[at + 1..].iter().any(said_after)).then_some(at)
}

/// Returns the row with its wrapped continuation lines.
fn paragraph(lines: &[&str]) -> String {
    let wrapped = lines.iter().skip(1).take_while(|line| !line.trim().is_empty() && !PATTERNS.next_row.is_match(line));
    let joined: Vec<&str> = lines.iter().take(1).chain(wrapped).flat_map(|line| line.split_whitespace()).collect();
    joined.join(" ")
}

/// Classifies the failure of a terminal in `error`, from its newest lines or the reason of its status.
pub fn classify(text: &str) -> Option<ApiFailure> {
    if let Some(row) = whole_row(text) {
        return judge(&row);
    }
    let class = PATTERNS.class.captures(text)?.get(1)?.as_str();
    Some(match class {
        "rate_limit" => ApiFailure::UsageLimit { resets: None },
        "server_error" | "overloaded" | "api_error" => ApiFailure::Server(class.replace('_', " ")),
        "unknown" => return None,
        _ => ApiFailure::Other(class.replace('_', " ")),
    })
}

/// Classifies the failure of a terminal that is not in `error`, because some agents return to their prompt after a
/// failure. Only an unambiguous report counts, and only as the agent's last message.
pub fn standing(words: &str) -> Option<ApiFailure> {
    let lines: Vec<&str> = words.lines().collect();
    let at = last_said(&lines, |line| PATTERNS.standing.is_match(line))?;
    judge(&paragraph(&lines[at..]))
}

fn judge(row: &str) -> Option<ApiFailure> {
    let quoted = || row.trim_start_matches(|c: char| !c.is_alphanumeric()).chars().take(QUOTED).collect::<String>();
    let code = PATTERNS.code.captures(row).and_then(|found| found.get(1)?.as_str().parse::<u16>().ok());
    Some(match code {
        _ if PATTERNS.limit.is_match(row) => ApiFailure::UsageLimit { resets: resets(row) },
        Some(408 | 409 | 425 | 429 | 500..) => ApiFailure::Server(quoted()),
        Some(_) => ApiFailure::Other(quoted()),
        None if PATTERNS.server.is_match(row) => ApiFailure::Server(quoted()),
        None if PATTERNS.dropped.is_match(row) => ApiFailure::Dropped,
        None if PATTERNS.known.is_match(row) => ApiFailure::Other(quoted()),
        None => return None,
    })
}

fn resets(row: &str) -> Option<String> {
    let found = PATTERNS.resets.captures(row)?;
    let (time, after) = match (found.get(1), found.get(2), found.get(3)) {
        (Some(seconds), ..) => (seconds.as_str(), ""),
        (_, Some(time), after) => (time.as_str(), after.map_or("", |after| after.as_str())),
        _ => return None,
    };
    // The time zone.
    let zone = after.trim().strip_suffix(')').map_or("", |_| after);
    Some(format!("{}{zone}", time.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Summarizes the classification in a few words.
    fn judged(failure: Option<ApiFailure>) -> String {
        match failure {
            None => "nothing".into(),
            Some(ApiFailure::UsageLimit { resets }) => format!("limit {}", resets.unwrap_or_default()).trim().into(),
            Some(ApiFailure::Server(words)) => format!("server: {words}"),
            Some(ApiFailure::Dropped) => "dropped".into(),
            Some(ApiFailure::Other(words)) => format!("other: {words}"),
        }
    }

    /// Each row is `words => classification`, on one line or two.
    #[track_caller]
    fn check(judge: fn(&str) -> Option<ApiFailure>, table: &str) {
        for row in table.replace("\n    =>", " =>").lines().filter(|row| !row.is_empty()) {
            let (words, expected) = row.split_once(" => ").unwrap();
            assert_eq!(judged(judge(&words.replace("\\n", "\n"))), expected, "{words}");
        }
    }

    /// Rows as drawn by real agents, with their surroundings. The newest report counts, unless a message follows it.
    #[test]
    fn words_of_failed_agents() {
        check(
            classify,
            r#"
❯ go on\n\n● API Error: 500 Internal server error. This is a server-side issue, usually temporary — try again in a moment.\n  If it persists, check your inference gateway (127.0.0.1:8951).\n\n✻ Brewed for 2s\n
    => server: API Error: 500 Internal server error. This is a server-side issue, usually temporary — try again in a moment. If it persists, check your inference gateway (127.0.0.1:8951).
● API Error: Request rejected (429) · This request would exceed your account's rate limit. Please try again\n  later.\n
    => server: API Error: Request rejected (429) · This request would exceed your account's rate limit. Please try again later.
● You've hit your session limit · resets 3pm\n => limit 3pm
● You’ve hit your weekly limit · resets Feb 9 at 6pm (America/Toronto)\n => limit Feb 9 at 6pm (America/Toronto)
  ⎿  5-hour limit reached ∙ resets 2:30pm (Europe/Berlin)\n     /upgrade to increase it\n
    => limit 2:30pm (Europe/Berlin)
  ⎿  AI usage limit reached|1762952400\n => limit 1762952400
■ You've hit your usage limit. Try again in 3 days 4 hours.\n => limit in 3 days 4 hours
■ We’re currently experiencing high demand, which may cause temporary errors.\n
    => server: We’re currently experiencing high demand, which may cause temporary errors.
■ stream disconnected before completion: error sending request\n => dropped
■ stream error: unexpected status 503 Service Unavailable\n
    => server: stream error: unexpected status 503 Service Unavailable
● API Error: Connection closed mid-response. The response above may be incomplete.\n => dropped
● API Error: Connection lost mid-response.\n => dropped
  ⎿  Unable to connect to API (ECONNREFUSED)\n => dropped
■ unexpected status 401 Unauthorized: Incorrect API key provided: sk-dummy\n
    => other: unexpected status 401 Unauthorized: Incorrect API key provided: sk-dummy
● Please run /login · API Error: 403 mock error\n => other: Please run /login · API Error: 403 mock error
  ⎿  Invalid API key · Fix external API key\n => other: Invalid API key · Fix external API key
● Request too large (max 32MB). Double press esc\n => other: Request too large (max 32MB). Double press esc
  ✕ [API Error: 500 overloaded]\n => server: API Error: 500 overloaded]
● API Error: 529 Overloaded.\n\n❯ again\n\n● API Error: 401 no\n => other: API Error: 401 no
the agent said failed: rate_limit (hook) => limit
the agent said failed: server_error (hook) => server: server error
the agent said failed: authentication_failed (hook) => other: authentication failed
the agent said failed: unknown (hook) => nothing
● API Error: 529 Overloaded.\n\n● All done.\n => nothing
❯ fix this:\n  API Error: 500\n\n● Reading the log.\n => nothing
rule box.failed => nothing
■ {"error": {"message": "mock error"}}\n => nothing
■ Conversation interrupted - use /feedback\n => nothing
● I added a test for the usage limit and for API Error: 500.\n => nothing
● The service answers 429 when the rate limit is hit; resets at 3pm.\n => nothing
exited with 1 => nothing
"#,
        );
        assert_eq!(classify(""), None);
    }

    /// A prompt or a tool's output may quote a report.
    #[test]
    fn outside_of_error_only_the_last_and_plain_report_counts() {
        check(
            standing,
            r#"
❯ go\n\n● API Error: 500\n\n✻ Baked for 4s\n => server: API Error: 500
● {"type":"error","error":{"type":"api_error","message":"Internal Server Error"}}\n
    => server: type":"error","error":{"type":"api_error","message":"Internal Server Error"}}
● API Error: 529 Overloaded\n\n● All done after a second attempt.\n => nothing
● The user sees API Error: 500 when he logs in.\n => nothing
❯ fix this:\n  API Error: 500\n => nothing
● Bash(cat log)\n  ⎿  API Error: 500\n => nothing
● You've hit your session limit · resets 3pm\n => nothing
"#,
        );
    }

    #[test]
    fn what_is_quoted_is_one_line_and_short() {
        let long = format!("■ unexpected status 500\n{}", "so it goes\n".repeat(100));
        let row = row(&long).unwrap();
        assert_eq!(row.chars().count(), QUOTED);
        assert!(!row.contains('\n'));
    }
}
