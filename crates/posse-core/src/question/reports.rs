//! The reports of one terminal: its open questions, and the one on the screen.

use super::compare::compare;
use super::{QuestionEvidence, QuestionReport, ReportDifference};
use crate::audit::Hash;
use crate::detect::Dialog;
use crate::detect::dialog::identity;
use crate::status::{Claim, Source, WaitingKind};

/// The maximum number of open questions; the oldest is dropped. No agent runs so many tools at once; under a flood by
/// an attacker, questions go to a person.
const MOST_OPEN: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportEvent {
    Asked(Box<QuestionReport>),
    /// A question was answered: the one of this tool with this input, or the one on the screen.
    Closed(Option<(String, Hash)>),
    /// No question is open: a turn has started or ended.
    NoneOpen,
}

#[derive(Clone, Debug)]
struct Filed {
    report: QuestionReport,
    /// The question was on the screen.
    shown: bool,
    /// posse has answered the question.
    answered: bool,
}

/// The last report about questions of a source without inputs.
#[derive(Clone, Copy, Debug, Default)]
struct SourceState {
    asked_before: bool,
    asks: bool,
    kind: Option<WaitingKind>,
}

#[derive(Clone, Debug)]
pub struct QuestionReports {
    /// The sources that report inputs.
    detailed: Vec<Source>,
    open: Vec<Filed>,
    count: u64,
    /// Indexed by `Source as usize`.
    spoken: [bool; Source::ALL.len()],
    words: [SourceState; Source::ALL.len()],
    /// The question that was open when the last daemon ended, with its result then.
    restored: Option<Dialog>,
}

impl QuestionReports {
    pub fn new(detailed: Vec<Source>) -> Self {
        let (spoken, words) = ([false; Source::ALL.len()], [SourceState::default(); Source::ALL.len()]);
        Self { detailed, open: Vec::new(), count: 0, spoken, words, restored: None }
    }

    /// Continues after another daemon with the question that was open. `spoken`: the agent's sources have reported.
    pub fn restore(&mut self, dialog: Option<&Dialog>, spoken: bool) {
        self.restored = dialog.filter(|dialog| dialog.report.is_some()).cloned();
        self.count = self.restored.iter().filter_map(|dialog| dialog.report.as_ref()).map(|report| report.number).sum();
        for source in &self.detailed {
            self.spoken[*source as usize] |= spoken;
        }
    }

    /// Processes a claim of a source about the agent's state.
    pub fn hear(&mut self, source: Source, claim: &Claim) {
        self.spoken[source as usize] = true;
        let word = &mut self.words[source as usize];
        word.asks = false;
        if let Claim::Asking(kind) = claim {
            *word = SourceState { asked_before: true, asks: true, kind: *kind };
        }
    }

    /// Processes a report about questions. `showing` is true if a question is on the screen.
    pub fn take(&mut self, event: ReportEvent, showing: bool) {
        match event {
            ReportEvent::Asked(mut report) => {
                // Permissions that have disappeared from the screen were answered by a person. Questions of the agent
                // stay open until they are known to be closed: until then nothing may count as a permission.
                if !showing {
                    let is_permission = |filed: &Filed| filed.report.kind == Some(WaitingKind::Permission);
                    self.open.retain(|filed| !filed.shown || !is_permission(filed));
                }
                self.count += 1;
                report.number = self.count;
                self.spoken[report.source as usize] = true;
                self.open.push(Filed { report: *report, shown: false, answered: false });
                if self.open.len() > MOST_OPEN {
                    self.open.remove(0);
                }
            }
            ReportEvent::Closed(Some((tool, hash))) => {
                let same_tool = |filed: &Filed| filed.report.tool == tool;
                let same = |filed: &Filed| same_tool(filed) && filed.report.input_sha256 == hash;
                let find = |fits: &dyn Fn(&Filed) -> bool| self.open.iter().position(fits);
                let found = find(&|filed| filed.answered && same(filed)).or_else(|| find(&same));
                // The output of some tools contains more than their input.
                if let Some(at) = found.or_else(|| find(&|filed| filed.shown && same_tool(filed))) {
                    self.open.remove(at);
                }
            }
            ReportEvent::Closed(None) => self.open.retain(|filed| !filed.shown && !filed.answered),
            ReportEvent::NoneOpen => self.open.clear(),
        }
    }

    /// Records that posse has answered the question with this report.
    pub fn answered(&mut self, number: u64) {
        if let Some(filed) = self.open.iter_mut().find(|filed| filed.report.number == number) {
            filed.answered = true;
        }
        self.restored.take_if(|dialog| dialog.report.as_ref().is_some_and(|report| report.number == number));
    }

    /// Compares the question on the screen with the reports, and adds the result to it. Its id then includes the
    /// report, so questions that differ only in hidden text have different ids.
    pub fn attach(&mut self, dialog: &mut Dialog) {
        dialog.evidence = if dialog.cut { QuestionEvidence::ScreenCut } else { QuestionEvidence::ScreenOnly };
        if dialog.kind == WaitingKind::Permission {
            self.attach_permission(dialog);
        } else {
            for filed in self.open.iter_mut().filter(|filed| filed.report.kind == Some(dialog.kind)) {
                filed.shown = true;
            }
        }
        if dialog.evidence.allows_automatic_yes().is_ok()
            && let Some(against) = self.judge_words(dialog.kind)
        {
            // Files of state come late. If the whole input is confirmed, only contradictions count.
            let confirmed = dialog.evidence != QuestionEvidence::ScreenOnly;
            if !(confirmed && matches!(against, QuestionEvidence::Silent(_))) {
                dialog.evidence = against;
            }
        }
    }

    fn attach_permission(&mut self, dialog: &mut Dialog) {
        let open = || self.open.iter().filter(|filed| !filed.answered);
        let of_other_kind = open().find(|filed| filed.report.kind.is_some_and(|kind| kind != dialog.kind));
        let fits = |filed: &&Filed| compare(&filed.report, dialog).allows_automatic_yes().is_ok();
        let found = of_other_kind.or_else(|| open().find(fits)).or_else(|| open().next_back());
        if let Some(found) = found {
            let number = found.report.number;
            dialog.evidence = compare(&found.report, dialog);
            add_report(dialog, found.report.clone());
            if let Some(filed) = self.open.iter_mut().find(|filed| filed.report.number == number) {
                filed.shown = true;
            }
            return;
        }
        let same = |restored: &&Dialog| screen_id(restored) == dialog.id;
        if let Some(report) = self.restored.as_ref().filter(same).and_then(|restored| restored.report.clone()) {
            dialog.evidence = self.restored.as_ref().map_or(dialog.evidence, |restored| restored.evidence);
            return add_report(dialog, *report);
        }
        if let Some(silent) = self.detailed.iter().find(|source| self.spoken[**source as usize]) {
            dialog.evidence = QuestionEvidence::Silent(*silent);
        }
    }

    /// Returns the evidence for a question that is only text and has no dialog.
    pub fn without_dialog(&self, kind: WaitingKind) -> QuestionEvidence {
        let open = self.open.iter().any(|filed| !filed.answered);
        let silent = self.detailed.iter().find(|source| self.spoken[**source as usize]);
        match (open, silent) {
            (true, _) => QuestionEvidence::Differs(ReportDifference::Input),
            (false, Some(silent)) => QuestionEvidence::Silent(*silent),
            (false, None) => self.judge_words(kind).unwrap_or_default(),
        }
    }

    /// Returns the objections of sources without inputs.
    fn judge_words(&self, kind: WaitingKind) -> Option<QuestionEvidence> {
        let sources = [Source::Osc, Source::SessionFile, Source::Hook].into_iter();
        let words = || {
            let others = sources.clone().filter(|source| !self.detailed.contains(source));
            others.map(|source| (source, self.words[source as usize]))
        };
        let differs = |word: SourceState| word.asks && word.kind.is_some_and(|told| told != kind);
        let silent = |word: SourceState| !word.asks && word.asked_before;
        match words().find(|(_, word)| differs(*word)) {
            Some(_) => Some(QuestionEvidence::Differs(ReportDifference::Kind)),
            None => words().find(|(_, word)| silent(*word)).map(|(source, _)| QuestionEvidence::Silent(source)),
        }
    }
}

fn add_report(dialog: &mut Dialog, report: QuestionReport) {
    let hidden = [report.number.to_string(), report.input_sha256.to_string()];
    dialog.id = identity(&dialog.id, "", &hidden, &[]);
    dialog.report = Some(Box::new(report));
}

/// Returns the id that a dialog has by its screen alone.
fn screen_id(dialog: &Dialog) -> String {
    identity(&dialog.title, &dialog.question, &dialog.detail, &dialog.options)
}
