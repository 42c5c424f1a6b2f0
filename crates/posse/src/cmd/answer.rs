//! `posse approve` and `posse deny`: answer what an agent asks.

use posse_core::detect::dialog::short;
use posse_server::api::types::{AnswerIn, Answered, Question, Terminal};

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
    /// The terminal: its id, the beginning of it, or its name
    terminal: String,
    /// Choose this option, counted from 1
    #[arg(long, value_name = "N")]
    option: Option<u32>,
    /// Only if this is the question, by its id or the beginning of it: `posse ls` and `posse show` give it
    #[arg(long, value_name = "ID")]
    question: Option<String>,
}

/// Refuse what an agent asks
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  posse deny reviewer
  posse deny reviewer --question 3f2a           only the question that `posse ls` has shown")]
pub(crate) struct Deny {
    /// The terminal: its id, the beginning of it, or its name
    terminal: String,
    /// Only if this is the question, by its id or the beginning of it: `posse ls` and `posse show` give it
    #[arg(long, value_name = "ID")]
    question: Option<String>,
}

pub(crate) async fn approve(args: Approve, ui: &Ui) -> Result<Exit, Error> {
    answer(&args.terminal, "approve", args.question.as_deref(), args.option, ui).await
}

pub(crate) async fn deny(args: Deny, ui: &Ui) -> Result<Exit, Error> {
    answer(&args.terminal, "deny", args.question.as_deref(), None, ui).await
}

async fn answer(name: &str, verb: &str, meant: Option<&str>, option: Option<u32>, ui: &Ui) -> Result<Exit, Error> {
    let mut client = Client::connect().await?;
    let terminal = client.find(name).await?;
    let asked = open_question(&mut client, &terminal).await?;
    if meant.is_some_and(|meant| meant.is_empty() || !asked.id.starts_with(meant)) {
        return Err(changed(&terminal, &asked));
    }
    ui.say(&format!("{verb}: {} ({})", plain(&asked.text), short(&asked.id)));
    let body = AnswerIn { dialog: asked.id, option };
    match client.post::<_, Answered>(&format!("/terminals/{}/{verb}", terminal.id), &body, Repeat::Never).await {
        Ok(done) => ui.done(&done, String::new),
        Err(Error::Refused(problem)) if problem.kind == "question_changed" => {
            return Err(match open_question(&mut client, &terminal).await {
                Ok(asked) => changed(&terminal, &asked),
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
fn changed(terminal: &Terminal, asked: &Question) -> Error {
    let (name, id) = (&terminal.name, short(&asked.id));
    let message = format!("another question is open now, and nothing was typed: {} ({id})", plain(&asked.text));
    let hint =
        format!("`posse approve {name} --question {id}` or `posse deny {name} --question {id}` answers this one");
    Error::Failed { message, hint: Some(hint) }
}
