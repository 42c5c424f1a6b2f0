//! The prompt of a session, its permissions and its files: all of it decided before it starts, and kept beside its output.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use posse_agents::Provider;
use posse_agents::headless::agent_file::{self, AgentFile};
use posse_agents::headless::command::Asked;
use posse_agents::headless::{PermissionProfile, Policy, Request, Scope, Spawn, check_flags};
use posse_api::{PlanSpec, SessionRules};
use posse_core::plan::file::{Gate, GateWhen, Permissions, Task};
use posse_core::plan::machine::{Launch, Part, Run, RunId};
use posse_core::plan::prompt::{EarlierAttempt, ParallelWork, SharedCheckout, TaskBrief, ValidatorBrief};
use posse_core::plan::write_set;

use super::driver::PlanWake;
use crate::disk::{self, Disk};
use crate::project_files::real_path;
use crate::run::StepError;

/// Maximum size of a backlog item in a prompt; sessions also get the file's path.
const ITEM: usize = 64 << 10;

/// The place where a session works, and other known facts.
pub(super) struct Setting<'a> {
    pub(super) disk: &'a Disk,
    pub(super) spec: &'a PlanSpec,
    pub(super) provider: &'a Provider,
    pub(super) worktree: &'a Path,
    /// The session's own directory. It may write in `result` below it only.
    pub(super) files: &'a Path,
    /// For validators: what changed.
    pub(super) stat: &'a str,
    pub(super) branch_before: Option<&'a str>,
    pub(super) in_place: Option<SharedCheckout<'a>>,
}

pub(super) struct Briefing {
    pub(super) profile: PermissionProfile,
    pub(super) report: ReportPlace,
    pub(super) reports_in_file: bool,
    /// `Err`: why it cannot be started.
    pub(super) spawn: Result<Spawn, StepError>,
    given: PathBuf,
    copy: PathBuf,
}

impl Briefing {
    /// Returns the session's edit of its copy of the plan, if any. Otherwise the copies are removed: one per session,
    /// each as long as the plan, they would outgrow everything else.
    pub(super) async fn changed_copy(&self) -> Option<PlanWake> {
        let (given, copy) = (self.given.clone(), self.copy.clone());
        let compare = move |disk: &Disk| {
            let was = disk.read_text(&given).ok()?;
            let theirs = disk.read_text(&copy).ok()?;
            if was != theirs {
                return Some(PlanWake::CopyEdited { given: was, theirs });
            }
            // Remove the given text last: without the other copy, nothing has changed.
            for copy in [&copy, &given] {
                let _ = disk.remove_file(copy);
            }
            None
        };
        disk::run(compare).await
    }
}

/// The agent as the run knows it: the project's own, else ours.
pub(crate) fn agent(agents: &BTreeMap<String, String>, name: &str) -> Result<AgentFile, StepError> {
    let parsed = match agents.get(name) {
        Some(text) => Some(AgentFile::parse(name, text)),
        None => agent_file::built_in(name),
    };
    let bad = |error| StepError::because(format!("agent {name}: {error}"));
    let missing = || format!("there is no agent {name}; write .claude/agents/{name}.md, then run the plan again");
    parsed.ok_or_else(|| StepError::because(missing()))?.map_err(bad)
}

/// Writes all input of a session. The files of a session that was begun stay unchanged.
pub(super) fn write(setting: &Setting<'_>, id: &RunId, launch: &Launch, run: &Run) -> Result<Briefing, StepError> {
    let Setting { disk, spec, files, .. } = setting;
    let task = run
        .plan()
        .task(id.task.as_str())
        .ok_or_else(|| StepError::because(format!("task {} is not in the plan any more", id.task)))?;
    let role = agent(&spec.agents, &launch.agent)?;
    let profile = profile(&spec.policy(), &launch.agent, &role, task, id)?;
    let report = ReportPlace::make(disk, files)?;
    let mut briefing = Briefing {
        given: files.join("plan.yaml"),
        copy: files.join("result").join("plan.yaml"),
        reports_in_file: id.part == Part::Work && profile.writes(),
        spawn: Err(StepError::because("the session is not prepared")),
        report,
        profile,
    };
    if !disk.exists(&briefing.given) {
        // A plan into which statuses cannot be written is given as it is.
        let plan = run.mirror().unwrap_or_else(|_| run.text().text().clone());
        put(disk, &briefing.copy, &plan)?;
        put(disk, &briefing.given, &plan)?;
    }
    let session = SessionOutline {
        rules: &spec.sessions,
        program: &spec.program,
        provider: setting.provider,
        profile: &briefing.profile,
        worktree: setting.worktree,
        files,
        task: id.task.as_str(),
        item: None,
        model: launch.model.as_deref(),
        max_budget_usd: run.money_left(),
        writes: if briefing.reports_in_file { vec![briefing.report.text()] } else { Vec::new() },
    };
    let prompt = prompt(setting, &briefing, &role, task, id, launch, run);
    briefing.spawn = session.spawn(disk, &briefing.report, &prompt);
    Ok(briefing)
}

/// The file that a session reads on standard input.
pub(crate) const PROMPT: &str = "prompt.md";

/// The place where a session reports.
pub(crate) struct ReportPlace {
    pub(crate) file: PathBuf,
    /// A random token that authenticates the report. A session resumed after a crash keeps it.
    pub(crate) nonce: String,
}

impl ReportPlace {
    /// Makes it, or finds it, in the directory of a session.
    pub(crate) fn make(disk: &Disk, files: &Path) -> Result<Self, StepError> {
        let results = files.join("result");
        disk.create_private_dir(&results)?;
        let path = files.join("nonce");
        let known = disk.read_to_string(&path).ok().filter(|known| known.len() == 32);
        let nonce = known.unwrap_or_else(|| format!("{:016x}{:016x}", crate::random(), crate::random()));
        put(disk, &path, &nonce)?;
        Ok(Self { file: results.join("result.json"), nonce })
    }

    fn text(&self) -> String {
        self.file.to_string_lossy().into_owned()
    }
}

fn put(disk: &Disk, path: &Path, text: &str) -> Result<(), StepError> {
    Ok(disk.write_private_unsynced(path, text.as_bytes())?)
}

/// Returns the session's permissions: its agent's, reduced if the task requires.
fn profile(
    policy: &Policy,
    agent: &str,
    role: &AgentFile,
    task: &Task,
    id: &RunId,
) -> Result<PermissionProfile, StepError> {
    let granted = policy.grant(agent, Some(role))?.profile;
    if id.part != Part::Work {
        return Ok(granted);
    }
    let narrower = match &task.permissions {
        None => return Ok(granted),
        Some(Permissions::Profile(name)) => policy.profile(name)?.tools,
        Some(Permissions::Tools(tools)) => tools.clone(),
    };
    let narrowed = policy.narrowed(&granted, &narrower);
    match narrowed.tools.is_empty() {
        true => {
            let text = format!("task {}: `permissions` leaves nothing of what agent {agent} may do", task.id);
            Err(StepError::because(text))
        }
        false => Ok(narrowed),
    }
}

fn prompt(
    setting: &Setting<'_>,
    briefing: &Briefing,
    role: &AgentFile,
    task: &Task,
    id: &RunId,
    launch: &Launch,
    run: &Run,
) -> String {
    let plan = run.plan();
    let record = run.state().get(&id.task).cloned().unwrap_or_default();
    let all_gates = setting.spec.gates(plan);
    let of_task = all_gates.iter().filter(|gate| gate.when == GateWhen::AfterTask);
    if id.part != Part::Work {
        // Work passes if it makes no check worse; checks that failed before may still fail.
        let result = |gate: &Gate| (gate.name.clone(), "passed, or fails just as it did before the task".to_owned());
        let gates: Vec<(String, String)> = of_task.map(result).collect();
        let brief = ValidatorBrief {
            role: &role.text,
            plan,
            task,
            message: record.result_message.as_deref().unwrap_or_default(),
            diff: setting.stat,
            gates: &gates,
            nonce: &briefing.report.nonce,
        };
        return brief.render(&setting.spec.prompts);
    }
    let gates: Vec<(String, String)> = of_task.map(|gate| (gate.name.clone(), gate.command.clone())).collect();
    // The user may have checked out a branch without it meanwhile.
    let places = [Path::new(&setting.spec.directory), setting.worktree];
    let item = plan
        .meta
        .source_item
        .as_ref()
        .and_then(|path| places.iter().find_map(|place| item(setting.disk, &place.join(path))));
    let (worktree, write_set) = (setting.worktree.to_string_lossy(), write_set(task));
    let report = briefing.report.text();
    let copy = briefing.copy.to_string_lossy();
    let brief = TaskBrief {
        role: &role.text,
        plan,
        plan_path: &copy,
        task,
        record: &record,
        attempt: launch.attempt,
        before: launch.before.as_ref().map(|failure| EarlierAttempt {
            failed: Some(failure.kind),
            message: &failure.message,
            output: failure.output.as_deref(),
            branch: setting.branch_before,
        }),
        beside: (!launch.siblings.is_empty()).then(|| ParallelWork {
            worker: 1 + launch.siblings.iter().filter(|sibling| **sibling < id.task).count() as u32,
            area: &worktree,
            group: task.parallel_group.as_deref().unwrap_or_default(),
            siblings: &launch.siblings,
            write_set: &write_set,
        }),
        in_place: setting.in_place,
        item: item.as_deref(),
        gates: &gates,
        report_file: briefing.reports_in_file.then_some(&report),
        nonce: &briefing.report.nonce,
        rejected: &launch.rejected,
    };
    brief.render(&setting.spec.prompts)
}

fn item(disk: &Disk, path: &Path) -> Option<String> {
    let mut text = disk.read_text(path).ok()?;
    if text.len() > ITEM {
        let end = (0..=ITEM).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push_str("\n(the rest is in the file)");
    }
    Some(text)
}

/// A session, as far as its command and its files go.
pub(crate) struct SessionOutline<'a> {
    pub(crate) rules: &'a SessionRules,
    pub(crate) program: &'a str,
    pub(crate) provider: &'a Provider,
    pub(crate) profile: &'a PermissionProfile,
    pub(crate) worktree: &'a Path,
    /// The session's own directory. It may write in `result` below it only.
    pub(crate) files: &'a Path,
    pub(crate) task: &'a str,
    pub(crate) item: Option<&'a str>,
    pub(crate) model: Option<&'a str>,
    pub(crate) max_budget_usd: Option<f64>,
    /// Files that it must be able to write. None: its last words are all that is wanted.
    pub(crate) writes: Vec<String>,
}

impl SessionOutline<'_> {
    /// Writes the prompt down and returns the command, looked at once more before it is started.
    pub(crate) fn spawn(&self, disk: &Disk, report: &ReportPlace, prompt: &str) -> Result<Spawn, StepError> {
        put(disk, &self.files.join(PROMPT), prompt)?;
        let SessionRules { config, sandbox, .. } = self.rules;
        let dialect = self.provider.manifest.headless.as_ref().ok_or_else(StepError::needs_terminal)?.dialect;
        let scope = Scope {
            directory: real_path(disk, self.worktree)?,
            results: Some(real_path(disk, &self.files.join("result"))?),
        };
        let policy = self.rules.policy();
        let request = Request { dialect, sandbox: *sandbox, profile: self.profile, scope: &scope, policy: &policy };
        let model = self.model.map(|model| config.model(model));
        let asked = Asked { prompt, model, max_budget_usd: self.max_budget_usd };
        let mut unset = self.provider.manifest.unset_for_sessions();
        unset.extend(config.env_strip.iter().cloned());
        let variables = [
            ("POSSE_RUN_ID", Some(report.nonce.clone())),
            ("POSSE_TASK_ID", Some(self.task.to_owned())),
            ("POSSE_ITEM", self.item.map(str::to_owned)),
            ("POSSE_RESULT_FILE", Some(report.text())),
        ];
        let set = variables.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
        let spawn = Spawn::new(self.program, &request, &asked, set, unset)?;
        let real = |directory: &str| real_path(disk, Path::new(directory)).ok();
        check_flags(&spawn.argv[1..], &request, &self.writes, real)?;
        Ok(spawn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::DISK;

    #[test]
    fn a_nonce_is_random_and_stays_the_same() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let nonce = |directory: &Path| ReportPlace::make(DISK, directory).unwrap().nonce;
        let first = nonce(one.path());
        assert_eq!((first.len(), nonce(one.path())), (32, first.clone()), "also after a crash");
        assert_ne!(nonce(other.path()), first);
    }
}
