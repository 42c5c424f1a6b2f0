//! The user's commands that check work: in the work tree of a session, and on the result of merging it. Which of their failures
//! count is decided in `posse_core::plan::gates`.
//!
//! The result of a command on a tree is kept, so that it is not run twice on the same files. The commit that a task began with is
//! checked only if a command fails: then it tells what was red before.
//!
//! Everything but the session's own work tree is checked in the scratch work tree. No session works there, it has no branch, and what
//! commands leave in it (caches, build results) stays for the next time.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use posse_core::plan::file::{Gate, GateWhen, Isolation};
use posse_core::plan::gates::{GateResult, GateRun, GateVerdict, compare};
use posse_core::plan::machine::GateFailure;
use posse_core::secrets::masked;
use tokio::sync::watch;

use super::merge::{PlannedMerge, at_fault};
use super::outlived_checks::CHECK_OF;
use super::record;
use super::{Result, TaskWorktree, WorktreeError, Worktrees};
use crate::disk;
use crate::git;
use posse_files::child::{self, ChildError, Leftovers};

/// The most that is kept of what a command printed.
const KEPT: usize = 1 << 20;

/// A check of the whole plan that cannot be made (its server does not run, for example) exits with this, as test suites do.
const NOT_RUN: i32 = 77;

#[derive(Clone, Debug, Default)]
pub(crate) struct Gates {
    pub commands: Vec<Gate>,
    /// For one command.
    pub limit: Duration,
    /// All that the commands get. The daemon's own environment is none of their business.
    pub environment: Vec<(String, String)>,
    /// As soon as this says so, what runs is ended and nothing more is run.
    pub stop: Option<watch::Receiver<bool>>,
}

impl Gates {
    pub(crate) fn of_plan(&self) -> impl Iterator<Item = &Gate> {
        self.commands.iter().filter(|gate| gate.when == GateWhen::AfterPlan)
    }

    pub(super) fn of_tasks(&self) -> impl Iterator<Item = &Gate> {
        self.commands.iter().filter(|gate| gate.when == GateWhen::AfterTask)
    }

    /// Waits until the commands are to be ended.
    async fn stopped(&self) {
        if let Some(mut stop) = self.stop.clone()
            && stop.wait_for(|stop| *stop).await.is_ok()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}

/// Where a command is run.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    Worktree(&'a Path),
    /// On the scratch work tree, with the files of this commit.
    Scratch(&'a str),
}

/// What the work was built on.
#[derive(Clone, Copy)]
pub(super) enum Base<'a> {
    Commit(&'a str),
    /// These files, on which the commands were run before the work began.
    Seen(&'a str),
}

impl Worktrees {
    /// Checks the work in a work tree, which ends it (`commit_leftovers`). What was red before does not count.
    pub(crate) async fn check(
        &self,
        worktree: &TaskWorktree,
        message: &str,
        gates: &Gates,
    ) -> Result<Option<GateFailure>> {
        let checked = async {
            let final_commit = self.commit_leftovers(worktree, message).await?;
            if self.isolation == Isolation::InPlace {
                return self.check_in_place(worktree, gates).await;
            }
            if gates.of_tasks().next().is_none() {
                return Ok(None);
            }
            let tree = self.tree_of(&final_commit).await?;
            self.first_red(&tree, Base::Commit(&worktree.base), gates, Place::Worktree(&worktree.directory)).await
        };
        checked.await.or_else(|error| at_fault(&error).map(Some).ok_or(error))
    }

    /// Checks what a merge gives, before anybody sees it.
    pub(super) async fn check_result(&self, planned: &PlannedMerge, gates: &Gates) -> Result<Option<GateFailure>> {
        if gates.of_tasks().next().is_none() {
            return Ok(None);
        }
        let tree = self.tree_of(&planned.result).await?;
        self.first_red(&tree, Base::Commit(&planned.onto), gates, Place::Scratch(&planned.result)).await
    }

    pub(super) async fn first_red(
        &self,
        tree: &str,
        base: Base<'_>,
        gates: &Gates,
        place: Place<'_>,
    ) -> Result<Option<GateFailure>> {
        for gate in gates.of_tasks() {
            match self.verdict(tree, base, gate, gates, place).await? {
                GateVerdict::Red(failure) => return Ok(Some(failure)),
                GateVerdict::KnownRed(known) => tracing::debug!("{}: red as before: {}", gate.name, known.join(", ")),
                GateVerdict::NotRun(why) => tracing::warn!("{}: not run: {why}", gate.name),
                GateVerdict::Green => {}
            }
        }
        Ok(None)
    }

    /// What a command says about these files, compared with what it says about those that the work was built on.
    pub(super) async fn verdict(
        &self,
        tree: &str,
        base: Base<'_>,
        gate: &Gate,
        gates: &Gates,
        place: Place<'_>,
    ) -> Result<GateVerdict> {
        let passed = |run: &GateRun| run.result == GateResult::Passed;
        if self.said(tree, gate).await?.as_ref().is_some_and(passed) {
            return Ok(GateVerdict::Green);
        }
        let run = self.run(gate, gates, place).await?;
        self.keep(tree, gate, &run).await?;
        if passed(&run) {
            return Ok(GateVerdict::Green);
        }
        let before = self.baseline(base, gate, gates).await?;
        Ok(compare(before.as_ref(), &run))
    }

    /// What a command says about what the work was built on.
    async fn baseline(&self, base: Base<'_>, gate: &Gate, gates: &Gates) -> Result<Option<GateRun>> {
        let (tree, commit) = match base {
            Base::Seen(tree) => return self.said(tree, gate).await,
            Base::Commit(commit) => (self.tree_of(commit).await?, commit),
        };
        if let Some(known) = self.said(&tree, gate).await? {
            return Ok(Some(known));
        }
        let run = self.run(gate, gates, Place::Scratch(commit)).await?;
        self.keep(&tree, gate, &run).await?;
        Ok(Some(run))
    }

    pub(super) async fn run(&self, gate: &Gate, gates: &Gates, place: Place<'_>) -> Result<GateRun> {
        let _scratch;
        let directory = match place {
            Place::Worktree(directory) => directory.to_owned(),
            Place::Scratch(commit) => {
                _scratch = self.scratch.lock().await;
                self.scratch_at(commit).await?
            }
        };
        run(gate, gates, &directory, &self.state).await
    }

    /// The scratch work tree, with the files of a commit.
    async fn scratch_at(&self, commit: &str) -> Result<PathBuf> {
        let directory = self.scratch_directory();
        {
            let _list = self.list.lock().await;
            self.make_empty(&directory, commit).await?;
        }
        // By force: changes that a command made to these files are no work.
        self.check_out(&directory, &["--force", "--detach", commit]).await?;
        Ok(directory)
    }

    pub(super) fn scratch_directory(&self) -> PathBuf {
        self.state.join("scratch")
    }

    fn kept_at(&self, tree: &str, gate: &Gate) -> PathBuf {
        let command = crate::sha256(gate.command.as_bytes());
        self.state.join("gates").join(format!("{tree}-{command}.json"))
    }

    /// What a command said about these files.
    pub(super) async fn said(&self, tree: &str, gate: &Gate) -> Result<Option<GateRun>> {
        disk::at(self.kept_at(tree, gate), record::read).await
    }

    pub(super) async fn keep(&self, tree: &str, gate: &Gate, run: &GateRun) -> Result<()> {
        let run = run.clone();
        disk::at(self.kept_at(tree, gate), move |disk, path| record::write(disk, path, &run, true)).await
    }
}

/// Runs a command of the user's. What it started ends with it.
async fn run(gate: &Gate, gates: &Gates, directory: &Path, state: &Path) -> Result<GateRun> {
    let done = |result, output| Ok(GateRun { gate: gate.name.clone(), result, output });
    if gates.stop.as_ref().is_some_and(|stop| *stop.borrow()) {
        return Err(WorktreeError::Stopped);
    }
    if gate.command.trim().is_empty() {
        return done(GateResult::NotRun("there is no command".into()), String::new());
    }
    let mut command = Command::new("sh");
    // One stream, so that what it says stays in order.
    command.args(["-c", &format!("exec 2>&1\n{}", gate.command)]).current_dir(directory).env_clear();
    let variables = gates.environment.iter().filter(|(name, _)| !git::speaks_of_another_repository(name.as_ref()));
    command.envs(variables.map(|(name, value)| (name, value))).env(CHECK_OF, state);
    match child::run_until(command, b"", gates.limit, Leftovers::End, (), gates.stopped()).await {
        Ok(ended) => {
            let output = String::from_utf8_lossy(&ended.stdout);
            let output = masked(&output[output.ceil_char_boundary(output.len().saturating_sub(KEPT))..]).into_owned();
            let result = match ended.status.code() {
                Some(0) => GateResult::Passed,
                // Only for checks whose result is reported and is not a pass. A check of a task must not be skipped.
                Some(NOT_RUN) if gate.when == GateWhen::AfterPlan => {
                    GateResult::NotRun(format!("it says that it cannot be run here (exit code {NOT_RUN})"))
                }
                Some(code) => GateResult::Failed(format!("exited with {code}")),
                None => GateResult::Failed(ended.status.to_string()),
            };
            done(result, output)
        }
        Err(ChildError::Stopped { .. }) => Err(WorktreeError::Stopped),
        Err(ChildError::Late { limit, .. }) => {
            let text = format!("did not end within {} s", limit.as_secs());
            done(GateResult::Failed(text), String::new())
        }
        Err(error) => done(GateResult::Failed(error.to_string()), String::new()),
    }
}
