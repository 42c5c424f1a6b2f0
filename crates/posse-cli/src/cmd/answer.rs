//! `posse approve`, `posse deny` and `posse answer`: answer what an agent asks.

use posse_api::{AnswerIn, Answered, ProblemKind, Question, Terminal};
use posse_core::detect::dialog::short;

use super::ls::answers_to;
use crate::client::{Client, Repeat};
use crate::error::{Error, Exit};
use crate::ui::{Ui, plain};

/// Accept what an agent asks
///
/// Chooses the option that allows this once and nothing else. Where there is none, say which option you mean: `posse show`
/// lists them. Says what it accepts, and presses no key if another question has taken its place meanwhile; to be sure that it
/// is the one you have read, name it. Afterwards the question is seen to be gone. `posse audit show` has it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse approve reviewer                        this once
  posse approve reviewer --question 3f2a        only the question that `posse ls` has shown
  posse approve reviewer --option 2             this option of a menu; none that allows more than this once")]
pub(crate) struct Approve {
    #[command(flatten)]
    asked: AskedArgs,
    /// Choose this option, counted from 1
    #[arg(long, value_name = "N")]
    option: Option<u32>,
}

/// Refuse what an agent asks
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse deny reviewer
  posse deny reviewer --reason 'Use the test database.'
  posse deny reviewer --question 3f2a           only the question that `posse ls` has shown")]
pub(crate) struct Deny {
    #[command(flatten)]
    asked: AskedArgs,
    /// Tell the agent why: its next prompt, sent as soon as it is ready for one
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Answer a question of an agent, in words or with one of its options
///
/// For questions that are not about a permission: an agent wants to know something, or lets you choose. Words are typed into
/// the option that takes some, seen there, and confirmed; where there is none, choose an option.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse answer reviewer --option 2              the second of its options; `posse show` lists them
  posse answer reviewer 'Neither: use SQLite.'  in words
  posse answer reviewer --question 3f2a --option 1")]
pub(crate) struct AnswerArgs {
    #[command(flatten)]
    asked: AskedArgs,
    /// The answer; several words are joined by spaces
    #[arg(required_unless_present = "option", conflicts_with = "option")]
    text: Vec<String>,
    /// Choose this option, counted from 1
    #[arg(long, value_name = "N")]
    option: Option<u32>,
}

/// Which question is answered.
#[derive(Debug, clap::Args)]
struct AskedArgs {
    /// The terminal: its id, the beginning of it, or its name
    terminal: String,
    /// Only if this is the question, by its id or the beginning of it: `posse ls` and `posse show` give it
    #[arg(long, value_name = "ID")]
    question: Option<String>,
}

pub(crate) async fn approve(args: Approve, ui: &Ui) -> Result<Exit, Error> {
    answer(&args.asked, "approve", AnswerIn { option: args.option, ..AnswerIn::default() }, ui).await
}

pub(crate) async fn deny(args: Deny, ui: &Ui) -> Result<Exit, Error> {
    answer(&args.asked, "deny", AnswerIn { reason: args.reason, ..AnswerIn::default() }, ui).await
}

pub(crate) async fn question(args: AnswerArgs, ui: &Ui) -> Result<Exit, Error> {
    let text = (!args.text.is_empty()).then(|| args.text.join(" "));
    answer(&args.asked, "answer", AnswerIn { option: args.option, text, ..AnswerIn::default() }, ui).await
}

/// Sends an answer once it is known which question it is for.
async fn answer(args: &AskedArgs, verb: &str, answer: AnswerIn, ui: &Ui) -> Result<Exit, Error> {
    let (mut client, terminal) = Client::with_terminal(&args.terminal).await?;
    let asked = open_question(&mut client, &terminal).await?;
    if args.question.as_ref().is_some_and(|meant| meant.is_empty() || !asked.id.starts_with(meant.as_str())) {
        return Err(changed(&mut client, &terminal, &asked).await);
    }
    ui.say(&format!("{verb}: {} ({})", plain(&asked.text), short(&asked.id)));
    // That line is only the beginning of it, unless it is all there is.
    let said =
        matches!(&asked.full[..], [] | [_]) || matches!(&asked.full[..], [_, all] if asked.text.contains(all.trim()));
    if !said {
        asked.full.iter().for_each(|line| ui.say(&format!("  {}", plain(line))));
    }
    let body = AnswerIn { dialog: asked.id, ..answer };
    match client.post::<_, Answered>(&format!("/terminals/{}/{verb}", terminal.id), &body, Repeat::Never).await {
        Ok(done) => ui.done(&done, String::new),
        Err(Error::Refused(problem)) if problem.kind == ProblemKind::QuestionChanged => {
            return Err(match open_question(&mut client, &terminal).await {
                Ok(asked) => changed(&mut client, &terminal, &asked).await,
                Err(_) => Error::Refused(problem),
            });
        }
        Err(error) => return Err(error),
    }
    Ok(Exit::Ok)
}

async fn open_question(client: &mut Client, terminal: &Terminal) -> Result<Question, Error> {
    client.get(&format!("/terminals/{}/question", terminal.id)).await
}

/// Another question is open than the one that is meant.
async fn changed(client: &mut Client, terminal: &Terminal, asked: &Question) -> Error {
    let name = &terminal.name;
    let message =
        format!("another question is open now, and nothing was typed: {} ({})", plain(&asked.text), short(&asked.id));
    let now = client.get::<Terminal>(&format!("/terminals/{}", terminal.id)).await;
    let is_shown = |now: &Terminal| now.status.dialog.as_ref().is_none_or(|dialog| dialog.id == asked.id);
    let hint = match now.ok().filter(is_shown) {
        Some(now) => format!("{} answers this one", answers_to(&now, name.as_str())),
        None => format!("`posse show {name}` has it, and what answers it"),
    };
    Error::failed(message).with_hint(hint)
}
