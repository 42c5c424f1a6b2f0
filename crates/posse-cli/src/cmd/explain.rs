//! `posse explain`: explains a status.

mod replay;

use std::io::Read;
use std::path::{Path, PathBuf};

use posse_agents::Provider;
use posse_api::ExplanationView;
use posse_core::detect::{Explanation, Look, Memo, Reading};
use posse_core::screen::Size;
use posse_files::disk::Disk;
use posse_files::providers::Providers;
use posse_term::cast::CastReader;
use posse_term::emulator::{Emulator, HistoryLimit};
use serde::Serialize;

use crate::client::{self, Client};
use crate::error::{Error, Exit};
use crate::ui::{Colour, Ui, colour_of};
use replay::{RecordingReplay, StatusChange};

/// Explain a status: the rule that matched, the matched text, and the rules that did not
///
/// For a terminal, for a screen from a file, or for a recording, as the changes of status in it. The same text belongs into a bug report about a wrong status.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse explain reviewer
  posse explain --provider codex --screen screen.txt --title 'Action Required'
  tmux capture-pane -p | posse explain --provider claude_code --screen -
  posse explain --provider claude_code --recording recording.cast")]
pub(crate) struct Args {
    /// The terminal: its id, the beginning of it, or its name
    #[arg(required_unless_present_any = ["screen", "recording"], conflicts_with_all = ["screen", "recording"])]
    terminal: Option<String>,
    /// Whose rules to read it by
    #[arg(long, value_name = "PROVIDER", conflicts_with = "terminal")]
    provider: Option<String>,
    /// A screen as text, with escape sequences or without; `-` reads standard input
    #[arg(long, value_name = "FILE", requires = "provider")]
    screen: Option<PathBuf>,
    /// Its window title
    #[arg(long, requires = "screen")]
    title: Option<String>,
    /// A recording of a terminal (asciicast), as posse makes one of each
    #[arg(long, value_name = "FILE", requires = "provider", conflicts_with = "screen")]
    recording: Option<PathBuf>,
}

/// The answer with `--json`.
#[derive(Serialize)]
struct ExplainAnswer<'a> {
    #[serde(flatten)]
    reading: &'a Reading,
    verdicts: &'a [posse_core::detect::Verdict],
}

pub(crate) async fn run(args: Args, ui: &Ui) -> Result<Exit, Error> {
    if let (Some(provider), Some(screen)) = (&args.provider, &args.screen) {
        return explain_file(&args, provider, screen, ui);
    }
    if let (Some(provider), Some(recording)) = (&args.provider, &args.recording) {
        return explain_recording(provider, recording, ui);
    }
    let (mut client, terminal) = Client::with_terminal(args.terminal.as_deref().unwrap_or_default()).await?;
    let view: ExplanationView = client.get(&format!("/terminals/{}/explain", terminal.id)).await?;
    ui.answer(&view, || {
        let status = &view.status;
        let head = format!("{} is {} since {}: {}\n", terminal.name, status.status, status.since, status.reason);
        let said = view.signals.iter().map(|said| format!("{}: {}\n", said.source, said.said)).collect::<String>();
        head + &format!("title: {:?}\n{said}\nThe screen alone:\n", view.title) + &text(&view.explanation, ui)
    });
    Ok(Exit::Ok)
}

fn explain_file(args: &Args, provider: &str, file: &Path, ui: &Ui) -> Result<Exit, Error> {
    let provider = load(provider)?;
    let (rows, title) = rows(&read(file)?);
    let title = args.title.as_deref().or(title.as_deref());
    let look = Look { rows: &rows, title, foreground: None, colours: None };
    let explanation = provider.detector.explain(look, &mut Memo::default());
    let answer = ExplainAnswer { reading: &explanation.reading, verdicts: &explanation.verdicts };
    ui.answer(&answer, || text(&explanation, ui));
    Ok(Exit::Ok)
}

fn explain_recording(provider: &str, file: &Path, ui: &Ui) -> Result<Exit, Error> {
    let provider = load(provider)?;
    let bytes = std::fs::read(file).map_err(Error::io(format!("cannot read {}", file.display())))?;
    let bad = |error| Error::failed(format!("{}: {error}", file.display()));
    let recording = CastReader::new(bytes.as_slice()).map_err(bad)?;
    let size = recording.header().size;
    let changes = RecordingReplay::new(&provider, size).cast(recording).map_err(bad)?;
    ui.answer(&changes, || timeline(&changes, ui));
    Ok(Exit::Ok)
}

fn timeline(changes: &[StatusChange], ui: &Ui) -> String {
    let line = |change: &StatusChange| {
        let status = ui.paint(&format!("{:20}", change.status.kind), colour_of(change.status.kind));
        format!("{:>9.3} s {:>9}  {status} {}\n", change.at, change.offset, change.status.reason)
    };
    changes.iter().map(line).collect()
}

fn load(provider: &str) -> Result<std::sync::Arc<Provider>, Error> {
    Providers::new(client::paths()?.providers())
        .load(&Disk::of_this_thread(), provider)
        .map_err(|error| Error::usage(error.to_string()))
}

fn read(file: &Path) -> Result<String, Error> {
    let bytes = if file == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes).map_err(Error::io("cannot read standard input"))?;
        bytes
    } else {
        std::fs::read(file).map_err(Error::io(format!("cannot read {}", file.display())))?
    };
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The rows of a saved screen, and its title if it has one. Escape sequences are carried out, not just left out.
fn rows(text: &str) -> (Vec<String>, Option<String>) {
    if !text.contains('\x1b') {
        return (text.lines().map(|row| row.trim_end_matches([' ', '\r']).to_owned()).collect(), None);
    }
    let lines: Vec<&str> = text.lines().collect();
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX);
    // Wider than any row: nothing may be wrapped that was not.
    let mut emulator = Emulator::new(Size::clamped(height, Size::MAX), HistoryLimit::default());
    emulator.feed(lines.join("\r\n").as_bytes());
    let screen = emulator.screen();
    (screen.rows, Some(screen.title).filter(|title| !title.is_empty()))
}

fn text(explanation: &Explanation, ui: &Ui) -> String {
    let Explanation { reading, verdicts } = explanation;
    let status = reading.status.map_or("nothing", |status| status.as_str());
    let mut text = format!("status    {}\nrule      {}\n", ui.paint(status, Colour::Bold), reading.rule);
    if let Some(kind) = reading.waiting_kind {
        text += &format!("kind      {}\n", kind);
    }
    if let Some(evidence) = &reading.evidence {
        let place = evidence.row.map_or_else(String::new, |row| format!("row {}: ", row + 1));
        text += &format!("evidence  {place}{:?}\n", evidence.text);
    }
    if let Some(dialog) = &reading.dialog {
        text += &format!("question  {}\n", dialog.question);
        for (number, option) in (1..).zip(&dialog.options) {
            let mark = if option.selected { ">" } else { " " };
            let meaning = format!("{:?}", option.meaning).to_lowercase();
            let key = option.key.as_deref().map_or_else(String::new, |key| format!(", key {key}"));
            text += &format!("        {mark} {number}. {} ({meaning}{key})\n", option.label);
        }
    }
    text += "\nRules, in the order in which they are tried:\n";
    for verdict in verdicts {
        let decided = verdict.held && verdict.rule == reading.rule;
        let mark = match (decided, verdict.held) {
            (true, _) => ui.paint("decided", Colour::Green),
            (false, true) => ui.paint("too late", Colour::Dim),
            (false, false) => "-".into(),
        };
        text += &format!("  {:24} {mark}  {}\n", verdict.rule, verdict.because);
        if decided {
            text += &format!("  {:24} {}\n", "", ui.paint(&verdict.why, Colour::Dim));
        }
    }
    text
}
