//! `posse audit`: shows and verifies the record of answers to dialogs.

use std::io::Read;
use std::path::PathBuf;

use jiff::{Span, Timestamp, Zoned, civil};
use posse_api::{AuditEntry, AuditVerdict, ProblemKind, Terminal};
use posse_core::audit::{Answering, End, Ended, Who};
use posse_core::ids::TerminalId;
use posse_files::operator::{AnchorRule, Operator};

use crate::client::{self, Client};
use crate::config;
use crate::daemon;
use crate::error::{BadArgument, Error, Exit};
use crate::ui::{Colour, Ui, date_time, plain};

/// Show and verify the record of answers to dialogs
///
/// Every answer to a dialog of an agent is written down before its first key, and completed with what became of it. Nothing
/// of it is ever changed or removed; each entry carries the hash of the one before.
#[derive(Debug, clap::Subcommand)]
#[command(after_help = "\
Examples:
  posse audit show --since 2h
  posse audit verify")]
pub(crate) enum AuditCommand {
    /// Show the answers: who gave them, to what question, with which keys, and what became of it
    Show(Show),
    /// Check that no entry was changed, dropped, moved or added; says which, and fails, if one was
    #[command(after_help = "\
Examples:
  posse audit verify
  posse audit verify --anchor                          against the file that config.toml names
  journalctl -t posse | posse audit verify --anchor -  against the system's log")]
    Verify {
        /// Compare it with what was anchored, too: in this file, `-` for standard input, or the one that config.toml names
        #[arg(long, value_name = "FILE", num_args = 0..=1)]
        anchor: Option<Option<PathBuf>>,
    },
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse audit show                      the newest 100 entries
  posse audit show --run 1a2b3c4d       those of a run
  posse audit show --terminal reviewer --since 14:30")]
pub(crate) struct Show {
    /// Only those of this run
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// Only those in this terminal, by its id or its name; also after it is gone
    #[arg(long)]
    terminal: Option<String>,
    /// Only those since then: a time ago (90s, 10m, 2h, 3d), a time of today (14:30), a date, or both (2026-11-16T14:30)
    #[arg(long, value_name = "WHEN", value_parser = |text: &str| when(text, &Zoned::now()))]
    since: Option<Timestamp>,
    /// Maximum number of entries, the newest; each answer has two
    #[arg(long, short = 'n', default_value_t = 100)]
    lines: u32,
}

pub(crate) async fn run(command: AuditCommand, ui: &Ui) -> Result<Exit, Error> {
    match command {
        AuditCommand::Verify { anchor: Some(file) } => print_verdict(&anchored(file)?, ui),
        AuditCommand::Verify { anchor: None } => {
            print_verdict(&Client::connect().await?.get("/audit/verify").await?, ui)
        }
        AuditCommand::Show(show) => {
            let mut client = Client::connect().await?;
            let terminal = match &show.terminal {
                Some(name) => Some(terminal(&mut client, name).await?),
                None => None,
            };
            let entries: Vec<AuditEntry> = client.get(&query(&show, terminal.as_deref())).await?;
            let terminals: Vec<Terminal> = client.get("/terminals").await?;
            ui.answer(&entries, || entries.iter().map(|entry| text(entry, &terminals, ui)).collect());
            let verdict: AuditVerdict = client.get("/audit/verify").await?;
            if !verdict.intact {
                ui.warn("this is not as it was written: `posse audit verify` says what was changed");
            } else if entries.is_empty() {
                ui.say("no dialog was answered");
            }
            Ok(Exit::Ok)
        }
    }
}

fn print_verdict(verdict: &AuditVerdict, ui: &Ui) -> Result<Exit, Error> {
    let silent = verdict.intact && ui.quiet();
    ui.answer(verdict, || if silent { String::new() } else { judged(verdict, ui) });
    Ok(if verdict.intact { Exit::Ok } else { Exit::Failed })
}

/// Checks the audit against its anchor, without the daemon.
fn anchored(file: Option<PathBuf>) -> Result<AuditVerdict, Error> {
    let paths = client::paths()?;
    let file = match (file, Operator::of(&config::load()?).anchor) {
        (Some(file), _) | (None, Some(AnchorRule::File(file))) => file,
        (None, Some(AnchorRule::Syslog(_) | AnchorRule::Command(_))) => {
            return Err(Error::usage("the audit is not anchored in a file that could be read here")
                .with_hint("give what was anchored: `journalctl -t posse | posse audit verify --anchor -`"));
        }
        (None, None) => {
            return Err(Error::usage("the audit is not anchored")
                .with_hint("name a file, or set `anchor` under `[audit]` in config.toml"));
        }
    };
    let mut given = None;
    if file.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map_err(Error::io("cannot read standard input"))?;
        given = Some(text);
    }
    let read = || match &given {
        Some(text) => Ok(text.clone()),
        None => std::fs::read_to_string(&file),
    };
    (daemon::functions().verify_audit)(&paths, &read).map_err(|error| Error::failed(error.to_string()))
}

/// The terminal that is meant, by its id or name. One that is gone is known by its entries alone.
async fn terminal(client: &mut Client, name: &str) -> Result<String, Error> {
    match client.find(name).await {
        Ok(terminal) if terminal.name.as_str() == name => Ok(name.to_owned()),
        Ok(terminal) => Ok(terminal.id.to_string()),
        Err(error) if error.kind() == ProblemKind::NoTerminal => {
            let entries: Vec<AuditEntry> = client.get(&format!("/audit?limit=1&terminal={}", encoded(name))).await?;
            if entries.is_empty() && name.parse::<TerminalId>().is_err() {
                return Err(Error::no_terminal(name));
            }
            Ok(name.to_owned())
        }
        Err(error) => Err(error),
    }
}

fn query(show: &Show, terminal: Option<&str>) -> String {
    let run = show.run.as_ref().map(|run| format!("&run={}", encoded(run)));
    let terminal = terminal.map(|terminal| format!("&terminal={}", encoded(terminal)));
    let since = show.since.map(|since| format!("&since={}", encoded(&since.to_string())));
    let filters: String = [run, terminal, since].into_iter().flatten().collect();
    format!("/audit?limit={}{filters}", show.lines)
}

/// Text as it may stand in a query.
pub(super) fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

/// Parses a point in time in the forms that users type.
pub(super) fn when(text: &str, now: &Zoned) -> Result<Timestamp, BadArgument> {
    let zoned = |at: civil::DateTime| at.to_zoned(now.time_zone().clone()).map(|at| at.timestamp());
    let ago = text.parse::<Span>().ok().filter(|_| !text.starts_with(['-', '+', 'P']));
    let at = if let Some(ago) = ago {
        now.checked_sub(ago).map(|at| at.timestamp())
    } else if let Ok(at) = text.parse::<Timestamp>() {
        Ok(at)
    } else if let Ok(at) = text.parse::<civil::DateTime>() {
        zoned(at)
    } else {
        text.parse::<civil::Time>().and_then(|time| zoned(now.date().to_datetime(time)))
    };
    at.map_err(|_| BadArgument::Time(text.to_owned()))
}

fn judged(verdict: &AuditVerdict, ui: &Ui) -> String {
    if verdict.intact {
        let entries = match &verdict.hash {
            Some(hash) => format!("{} entries, the last with hash {hash}", verdict.entries),
            None => "no dialog was answered yet".to_owned(),
        };
        return format!("{} {entries}\n", ui.paint("intact", Colour::Green));
    }
    let head = format!("{} {} entries\n", ui.paint("not intact", Colour::Red), verdict.entries);
    let flaws = verdict.flaws.iter().map(|flaw| format!("  {}\n", flaw.text));
    std::iter::once(head).chain(flaws).collect()
}

/// An answer, or its outcome.
fn text(entry: &AuditEntry, terminals: &[Terminal], ui: &Ui) -> String {
    let mut lines = vec![headline(entry, terminals, ui)];
    lines.extend(entry.answering.iter().flat_map(|answering| asked(answering, ui)));
    lines.extend(entry.outcome.as_ref().map(|outcome| became(outcome, ui)));
    lines.join("\n      ") + "\n"
}

fn headline(entry: &AuditEntry, terminals: &[Terminal], ui: &Ui) -> String {
    let Who { run, turn, count, .. } = &entry.who;
    let known = |id: &TerminalId| terminals.iter().find(|terminal| terminal.id == *id);
    let name = |id: &TerminalId| known(id).map_or_else(|| id.to_string(), |terminal| terminal.name.to_string());
    let mut who = entry.who.words(name);
    who.extend(run.iter().map(|run| format!(" in run {run}")));
    who.extend(turn.iter().map(|turn| format!(", turn {turn}")));
    who.extend(count.iter().map(|(n, most)| format!(" {n}/{most}")));
    let what = entry.answering.as_ref().map_or("", |answering| &answering.wish);
    let terminal = entry.name.clone().unwrap_or_else(|| entry.terminal.to_string());
    let (time, terminal) = (ui.paint(&date_time(entry.at), Colour::Dim), ui.paint(&plain(&terminal), Colour::Bold));
    format!("{:>5} {time} {terminal} {}: {what}", entry.seq, plain(&who)).trim_end().to_owned()
}

fn asked(answering: &Answering, ui: &Ui) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(dialog) = &answering.dialog {
        lines.push(plain(&format!("asked: {}", dialog.question)));
        lines.extend(dialog.in_full().iter().map(|line| format!("  {}", plain(line))));
    }
    let chosen = answering.chosen.as_ref().map(|chosen| format!(" ({chosen})")).unwrap_or_default();
    lines.push(plain(&format!("keys: {}{chosen}", answering.keys.join(" "))));
    lines.extend(answering.reason.iter().map(|reason| plain(&format!("reason: {reason}"))));
    if answering.dialog.as_ref().is_none_or(|dialog| dialog.in_full().is_empty()) {
        lines.extend(answering.tail.iter().map(|row| ui.paint(&format!("│ {}", plain(row)), Colour::Dim)));
    }
    lines
}

fn became(outcome: &Ended, ui: &Ui) -> String {
    let colour = match outcome.end {
        End::Answered => Colour::Green,
        End::Refused => Colour::Yellow,
        End::Uncertain => Colour::Red,
    };
    format!("{} ({}): {}", ui.paint(outcome.end.as_str(), colour), outcome.of, plain(&outcome.text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_said_in_many_ways() {
        let now: Zoned = "2026-11-16T15:00:00+00:00[UTC]".parse().unwrap();
        for (text, expected) in [
            ("90s", "2026-11-16T14:58:30Z"),
            ("10m", "2026-11-16T14:50:00Z"),
            ("2h", "2026-11-16T13:00:00Z"),
            ("3d", "2026-11-13T15:00:00Z"),
            ("14:30", "2026-11-16T14:30:00Z"),
            ("2026-11-15", "2026-11-15T00:00:00Z"),
            ("2026-11-15T14:30", "2026-11-15T14:30:00Z"),
            ("2026-11-15T14:30:05Z", "2026-11-15T14:30:05Z"),
        ] {
            assert_eq!(when(text, &now).unwrap().to_string(), expected, "{text}");
        }
        for bad in ["", "yesterday", "-2h", "25:00", "2026-13-01"] {
            assert!(when(bad, &now).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn what_stands_in_a_query_cannot_leave_it() {
        assert_eq!(encoded("a-1_b.c"), "a-1_b.c");
        assert_eq!(encoded("a&b=c d+é"), "a%26b%3Dc%20d%2B%C3%A9");
    }
}
