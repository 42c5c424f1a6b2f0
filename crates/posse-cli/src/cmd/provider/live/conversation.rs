//! The short conversations that are played, and what each of them shows. Whether something happened is known from the
//! model server and from files, not from our own rules.

use std::time::Duration;

use posse_core::status::{StatusKind, WaitingKind};

use super::finding::{Evidence, Expectation, Finding, Verdict};
use super::stage::{Stage, Told};
use crate::error::Error;

/// How long a status may take after what makes it right. A quiet screen has to settle for a second or two.
const SOON: Duration = Duration::from_secs(5);
/// Longer than a screen without a sign of work has to stand to be believed.
const WHILE: Duration = Duration::from_millis(1800);

const PROMPT: &str = "Please do what the script says.";
const ANSWER: &str = "Good morning to everyone who reads this.";
/// What the command makes, in the project.
const MADE: &str = "made.txt";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Conversation {
    Answer,
    Accept,
    Deny,
    Failure,
}

impl Conversation {
    pub(super) const ALL: [Conversation; 4] = [Self::Answer, Self::Accept, Self::Deny, Self::Failure];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Accept => "accept",
            Self::Deny => "deny",
            Self::Failure => "failure",
        }
    }

    /// The scenario that the model plays.
    pub(super) fn script(self) -> &'static str {
        match self {
            Self::Answer => include_str!("answer.scenario.toml"),
            Self::Accept => include_str!("accept.scenario.toml"),
            Self::Deny => include_str!("deny.scenario.toml"),
            Self::Failure => include_str!("failure.scenario.toml"),
        }
    }

    /// What it shows, in the order in which it happens.
    pub(super) fn expectations(self) -> &'static [Expectation] {
        use Expectation as E;
        match self {
            Self::Answer => &[
                E::Starts,
                E::TakesPrompt,
                E::ThinksAsProcessing,
                E::StreamsAsProcessing,
                E::EndsAsCompleted,
                E::AnswerIsRead,
                E::LeavesWhenAsked,
            ],
            Self::Accept => &[E::Starts, E::TakesPrompt, E::AsksForPermission, E::AcceptsByKey, E::GoesOnWhenAccepted],
            Self::Deny => &[E::Starts, E::TakesPrompt, E::AsksForPermission, E::DeniesByKey],
            Self::Failure => &[E::Starts, E::TakesPrompt, E::FailsAsError],
        }
    }
}

impl Conversation {
    /// Whether something that it needs is known not to be so.
    pub(super) fn is_hopeless(self, known: &[Finding]) -> bool {
        let fails = |expectation: &Expectation| {
            let differs = |known: &Finding| known.expectation == *expectation && known.verdict == Verdict::Differs;
            is_needed(*expectation) && known.iter().any(differs)
        };
        self.expectations().iter().any(fails)
    }

    /// What is known when it was not played at all.
    pub(super) fn unplayed(self) -> Vec<Finding> {
        let expectations = self.expectations().iter();
        expectations.map(|expectation| Finding::unchecked(*expectation, NOT_REACHED)).collect()
    }
}

const NOT_REACHED: &str = "it did not come to that";

/// Whether there is no point in going on when this is not so.
fn is_needed(expectation: Expectation) -> bool {
    use Expectation as E;
    !matches!(expectation, E::ThinksAsProcessing | E::StreamsAsProcessing | E::EndsAsCompleted | E::AnswerIsRead)
}

/// Plays one to its end, or as far as it goes.
pub(super) async fn play(stage: &mut Stage, conversation: Conversation) -> Result<Vec<Finding>, Error> {
    let mut findings = Vec::new();
    let mut over = false;
    for &expectation in conversation.expectations() {
        let finding = match over {
            true => Finding::unchecked(expectation, NOT_REACHED),
            false => check(stage, expectation).await?,
        };
        over |= finding.verdict != Verdict::Fits && is_needed(expectation);
        findings.push(finding);
    }
    Ok(findings)
}

async fn check(stage: &mut Stage, expectation: Expectation) -> Result<Finding, Error> {
    // What is not as expected; nothing, if all is.
    let differs = match expectation {
        // Seen by whoever found the program.
        Expectation::Runs => None,
        Expectation::Starts => starts(stage).await?,
        Expectation::TakesPrompt => takes_prompt(stage).await?,
        Expectation::ThinksAsProcessing => works_at(stage, "thought").await?,
        Expectation::StreamsAsProcessing => {
            stage.release("thought");
            works_at(stage, "half").await?
        }
        Expectation::EndsAsCompleted => {
            stage.release("half");
            ends(stage, 0).await?
        }
        Expectation::GoesOnWhenAccepted => ends(stage, 1).await?,
        Expectation::AnswerIsRead => {
            let read = stage.last_answer().await?;
            let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
            (words(&read) != words(ANSWER)).then(|| format!("the model said {ANSWER:?}, read was {read:?}"))
        }
        Expectation::LeavesWhenAsked => stage.leaves().await?,
        Expectation::AsksForPermission => asks(stage).await?,
        Expectation::AcceptsByKey | Expectation::DeniesByKey if !stage.can_answer() => {
            let why = "posse cannot read this agent's options off the screen, so it answers no question of it";
            return Ok(Finding::unchecked(expectation, why));
        }
        Expectation::AcceptsByKey => accepts(stage).await?,
        Expectation::DeniesByKey => denies(stage).await?,
        Expectation::FailsAsError => fails(stage).await?,
    };
    let Some(seen) = differs else { return Ok(Finding::fits(expectation, stage.now())) };
    let evidence: Evidence = stage.evidence().await;
    Ok(Finding::differs(expectation, seen, evidence))
}

async fn starts(stage: &mut Stage) -> Result<Option<String>, Error> {
    let settled = |told: &Told| told.status != StatusKind::Processing;
    let told = stage.status_within(super::START, settled).await?;
    Ok(match told {
        Some(told) if told.status == StatusKind::Idle => None,
        Some(Told { status: StatusKind::WaitingUserAnswer, dialog, .. }) => {
            let asked = dialog.map(|dialog| format!(": {}", dialog.title));
            Some(format!("it asks something at the start{}", asked.unwrap_or_default()))
        }
        _ => Some(format!("it was {} after {} s", stage.now(), super::START.as_secs())),
    })
}

async fn takes_prompt(stage: &mut Stage) -> Result<Option<String>, Error> {
    if let Err(why) = stage.send(PROMPT).await? {
        return Ok(Some(format!("it could not be sent: {why}")));
    }
    if !stage.model_comes_within(super::START, |log| log.turns().next().is_some()).await {
        return Ok(Some("its model was not asked".into()));
    }
    let asked = stage.log().turns().next().map(|(_, opened)| opened.user_text.clone()).unwrap_or_default();
    Ok((asked != PROMPT).then(|| format!("its model was asked {asked:?}")))
}

async fn works_at(stage: &mut Stage, gate: &'static str) -> Result<Option<String>, Error> {
    if !stage.model_comes(move |log| log.waits_at(gate)).await {
        return Ok(Some("its model was not asked for an answer to its end".into()));
    }
    if stage.status_within(SOON, |told| told.status == StatusKind::Processing).await?.is_none() {
        return Ok(Some(format!("it was {} while the model worked", stage.now())));
    }
    let other = stage.status_within(WHILE, |told| told.status != StatusKind::Processing).await?;
    Ok(other.map(|told| format!("{told} was told in the middle of the turn")))
}

async fn ends(stage: &mut Stage, turn: usize) -> Result<Option<String>, Error> {
    if !stage.model_comes(move |log| log.ended(turn)).await {
        return Ok(Some("the model's answer was not taken to its end".into()));
    }
    let told = stage.status_within(SOON, |told| told.status == StatusKind::Completed).await?;
    Ok(told.is_none().then(|| format!("it was {} {} s after the answer was over", stage.now(), SOON.as_secs())))
}

async fn asks(stage: &mut Stage) -> Result<Option<String>, Error> {
    if !stage.model_comes(|log| log.ended(0)).await {
        return Ok(Some("the model's answer was not taken to its end".into()));
    }
    // When the question is drawn only the screen shows, which is what is checked here. So it gets its time.
    let asks = |told: &Told| told.status == StatusKind::WaitingUserAnswer && told.is_drawn();
    let told = stage.status_within(super::GOES_ON, asks).await?;
    Ok(match told {
        Some(told) if told.waiting_kind == Some(WaitingKind::Permission) => None,
        Some(told) => Some(format!("it was taken for another question: {told}")),
        // The model would have heard of a command that ran.
        None if stage.log().turns().count() > 1 => Some("it did not ask, the command was run".into()),
        None => {
            let (now, time) = (stage.now(), super::GOES_ON.as_secs());
            Some(format!("it was {now} {time} s after the model asked for a command"))
        }
    })
}

async fn accepts(stage: &mut Stage) -> Result<Option<String>, Error> {
    if let Err(why) = stage.answer("approve").await? {
        return Ok(Some(format!("it could not be accepted: {why}")));
    }
    let heard = stage.model_comes(|log| log.turns().count() > 1).await;
    let made = stage.directory.join(MADE).exists();
    Ok(match (heard, made) {
        (true, true) => None,
        (true, false) => Some("the model heard of it, but the command was not run".into()),
        (false, _) => Some("the model heard nothing of it".into()),
    })
}

async fn denies(stage: &mut Stage) -> Result<Option<String>, Error> {
    if let Err(why) = stage.answer("deny").await? {
        return Ok(Some(format!("it could not be denied: {why}")));
    }
    let waits = |told: &Told| matches!(told.status, StatusKind::Completed | StatusKind::Idle);
    let told = stage.status_within(SOON, waits).await?;
    if stage.directory.join(MADE).exists() {
        return Ok(Some("the command was run".into()));
    }
    Ok(told.is_none().then(|| format!("it was {} {} s after it was denied", stage.now(), SOON.as_secs())))
}

async fn fails(stage: &mut Stage) -> Result<Option<String>, Error> {
    // It tries again by itself before it shows anything.
    let told = stage.status_within(super::GOES_ON, |told| told.status == StatusKind::Error).await?;
    Ok(told.is_none().then(|| format!("it was {} {} s after the model refused", stage.now(), super::GOES_ON.as_secs())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_work_is_not_tried_again() {
        let known = |expectation| [Finding::differs(expectation, "", Evidence::default())];
        assert!(Conversation::Deny.is_hopeless(&known(Expectation::AsksForPermission)));
        assert!(!Conversation::Failure.is_hopeless(&known(Expectation::AsksForPermission)));
        assert!(!Conversation::Answer.is_hopeless(&known(Expectation::AnswerIsRead)), "that stops nothing");
        assert!(Conversation::ALL.iter().all(|one| one.is_hopeless(&known(Expectation::Starts))));
        assert!(Conversation::Deny.unplayed().iter().all(|finding| finding.verdict == Verdict::Unchecked));
    }

    #[test]
    fn every_script_can_be_played() {
        for conversation in Conversation::ALL {
            posse_sim::Scenario::parse(conversation.script()).unwrap();
        }
    }
}
