//! The jobs of a run as rows: roles of the loop, tasks of a plan, items of a backlog. `posse run show` and
//! `posse plan status` print all rows; `picture` draws those that fit at the foot of a window.

use jiff::Timestamp;
use posse_api::{
    DoingView, ItemView, LoopView, Output, PlanView, RunSummary, RunView, SessionView, TaskView, Terminal,
};
use posse_core::auto::Standing;
use posse_core::auto::settings::Mode;
use posse_core::backlog::ItemOutcome;
use posse_core::plan::TaskStatus;
use posse_core::review_loop::Role;
use posse_core::status::StatusKind;
use unicode_width::UnicodeWidthStr;

use crate::client::Client;
use crate::cmd::ls::{answers_to, asked};
use crate::error::Error;
use crate::status_area::{Row, painted};
use crate::ui::{Colour, Ui, age, colour_of, cut, date_time, plain, took};

/// Rows of the window that are left to the lines above a picture.
const ABOVE: usize = 4;
/// The same for a picture with the screen of an agent.
const ABOVE_SCREEN: usize = 9;
/// Rows of the screen that are looked at. Much of what an agent draws is frames and empty rows.
const TAIL: usize = 30;
/// The maximum number of lines of an agent's screen. More cannot be read at a glance.
const SCREEN_LINES: usize = 12;

/// Other details in the rows of a run.
#[derive(Default)]
pub(super) struct RunDetails {
    /// The terminals of a run of the loop.
    terminals: Vec<Terminal>,
    /// The runs of a backlog's plans.
    plans: Vec<PlanView>,
    /// The end of the screen of the agent whose turn it is.
    screen: String,
}

impl RunDetails {
    pub(super) async fn fetch(run: &RunView, client: &mut Client) -> Result<Self, Error> {
        let mut details = Self::default();
        match run {
            RunView::Loop(view) => {
                details.terminals = client.get("/terminals").await?;
                details.terminals.retain(|terminal| view.terminals.values().any(|id| *id == terminal.id));
            }
            RunView::Plan(_) => {}
            RunView::Backlog(view) => {
                for plan in view.doing.iter().filter_map(|doing| doing.plan_run) {
                    details.plans.push(client.get(&format!("/runs/{plan}")).await?);
                }
            }
        }
        Ok(details)
    }

    /// Fetches the end of the screen of the agent whose turn it is. A terminal that was removed shows nothing.
    pub(super) async fn fetch_screen(&mut self, run: &RunView, client: &mut Client) {
        let RunView::Loop(LoopView { turn: Some(turn), .. }) = run else { return self.screen.clear() };
        let path = format!("/terminals/{}/output?mode=tail&lines={TAIL}", turn.terminal);
        let live = self.terminals.iter().any(|terminal| terminal.id == turn.terminal);
        let output: Option<Output> = if live { client.get(&path).await.ok() } else { None };
        self.screen = output.map(|output| output.output).unwrap_or_default();
    }
}

pub(super) fn jobs(run: &RunView, details: &RunDetails, now: Timestamp) -> Vec<Job> {
    match run {
        RunView::Loop(view) => Role::ALL.map(|role| of_role(role, view, &details.terminals)).into(),
        RunView::Plan(view) => tasks(&view.tasks, &view.sessions, now),
        RunView::Backlog(view) => {
            let doing = |item: &ItemView| view.doing.iter().find(|doing| doing.item == item.item);
            let mut jobs: Vec<Job> = view.items.iter().map(|item| of_item(item, doing(item), &details.plans)).collect();
            // First what is worked on, then what waits for a person.
            jobs.sort_by_key(|job| (!job.busy, job.mark.0 != "?", job.done));
            jobs
        }
    }
}

/// Returns the picture of a run: never higher or wider than the window. Sections that do not fit are shown as numbers; jobs
/// that are worked on are always shown.
pub(super) fn picture(run: &RunView, details: &RunDetails, now: Timestamp, rows: usize, columns: usize) -> Vec<Row> {
    let mut picture = vec![vec![("─".repeat(columns), Some(Colour::Dim))], head(run, now)];
    let yellow = |text: String| vec![(text, Some(Colour::Yellow))];
    picture.extend(obstacles(run).into_iter().map(yellow));
    let room = rows.saturating_sub(picture.len() + ABOVE).max(1);
    picture.extend(fitting(&jobs(run, details, now), room, columns));
    if let RunView::Loop(view) = run {
        let asks = details.terminals.iter().find(|terminal| !view.auto_accept && asked(terminal).is_some());
        picture.extend(asks.map(|asks| yellow(format!("  {} answers it", answers_to(asks, asks.id.as_str())))));
        let said: Vec<&str> = details.screen.lines().filter(|line| says_something(line)).collect();
        let room = rows.saturating_sub(picture.len() + ABOVE_SCREEN).clamp(3, SCREEN_LINES).min(said.len());
        let line = |line: &&str| vec![(format!("  │ {}", plain(line)), Some(Colour::Dim))];
        picture.extend(said[said.len() - room..].iter().map(line));
    }
    picture.truncate(rows.saturating_sub(1));
    picture
}

/// The first row of a picture: how far the run is, since when, at what cost. A narrow window cuts the end.
fn head(run: &RunView, now: Timestamp) -> Row {
    let since = took(now.duration_since(run.created).as_secs());
    if let RunView::Loop(view) = run {
        let turn = view.turn.as_ref();
        let turn = turn.map(|turn| format!(", review {}  turn {}  {}", view.cycle, turn.number, age(turn.since)));
        let head = format!("round {}/{}  {}{}", view.round, view.max_rounds, view.phase, turn.unwrap_or_default());
        return vec![(head, Some(Colour::Bold)), (format!("  run {}  {since}", run.id), None)];
    }
    let cost = if run.used.sessions > 0 { format!("  {}", run.used.cost()) } else { String::new() };
    let facts = format!("  {}  {since}{cost}", progress(run));
    vec![(format!("{} {}", run.kind(), run.id), Some(Colour::Bold)), (facts, None)]
}

fn of_role(role: Role, view: &LoopView, terminals: &[Terminal]) -> Job {
    let id = view.terminals.get(&role);
    let turn = view.turn.as_ref().filter(|turn| Some(&turn.terminal) == id);
    let mark = if turn.is_some() { ("▸", Some(Colour::Blue)) } else { (" ", None) };
    let mut job = Job { mark, id: role.to_string(), busy: turn.is_some(), ..Job::default() };
    let Some(terminal) = terminals.iter().find(|terminal| Some(&terminal.id) == id) else {
        job.name = if id.is_some() { "gone" } else { "starting" }.to_owned();
        return job;
    };
    let status = terminal.status.status;
    job.name = format!("{} {status:<19}", glyph(status));
    job.colours = [turn.map(|_| Colour::Bold), Some(colour_of(status))];
    job.facts = [age(terminal.status.since), terminal.id.to_string()].map(|fact| (fact, None)).into();
    let accepts = turn.map(|turn| turn.accepts).filter(|accepts| *accepts > 0);
    job.facts.extend(accepts.map(|accepts| (format!("{accepts} accepted"), None)));
    job.facts.push(match asked(terminal) {
        Some(asks) => (asks, Some(Colour::Yellow)),
        None => (format!("{:<11}  {}", terminal.provider, terminal.title), Some(Colour::Dim)),
    });
    job
}

fn of_item(item: &ItemView, doing: Option<&DoingView>, plans: &[PlanView]) -> Job {
    let mark = item_mark(item);
    let mut job = Job {
        mark,
        id: item.item.to_string(),
        name: item.title.clone().unwrap_or_default(),
        busy: doing.is_some(),
        done: matches!(item.standing, Standing::Ended | Standing::Gone),
        ..Job::default()
    };
    let mut fact = |fact, colour| job.facts.push((fact, colour));
    if let Some(doing) = doing {
        fact(format!("{}  {}", doing.step, age(doing.since)), Some(Colour::Dim));
        for plan in plans.iter().filter(|plan| Some(plan.id) == doing.plan_run) {
            fact(tasks_done(plan), Some(Colour::Dim));
            let has_session = |task: &TaskView| plan.sessions.iter().any(|session| session.task == task.id);
            let busy = |task: &&TaskView| task.status == TaskStatus::InProgress || has_session(task);
            plan.tasks.iter().filter(busy).for_each(|task| fact(format!("{} {}", task.id, task.name), None));
        }
    }
    if !item.cost.is_empty() {
        fact(item.cost.clone(), Some(Colour::Dim));
    }
    if let Some(session) = doing.and_then(|doing| doing.session.as_ref()) {
        fact(format!("{} {}", session.agent, age(session.since)), Some(Colour::Dim));
        session.doing.iter().for_each(|said| fact(said.clone(), None));
    }
    if doing.is_none() && item.standing != Standing::Waiting {
        fact(item.reason.clone(), mark.1);
    }
    job
}

/// A row of a run: a role of the loop, a task of a plan, or an item of a backlog.
#[derive(Default)]
pub(in crate::cmd) struct Job {
    /// Jobs of one section follow each other.
    section: String,
    mark: (&'static str, Option<Colour>),
    pub(in crate::cmd) id: String,
    name: String,
    /// The colours of the id and the name.
    colours: [Option<Colour>; 2],
    /// It is worked on.
    busy: bool,
    /// Nothing is left to do for it.
    done: bool,
    pub(in crate::cmd) facts: Vec<(String, Option<Colour>)>,
}

pub(in crate::cmd) fn tasks(tasks: &[TaskView], sessions: &[SessionView], now: Timestamp) -> Vec<Job> {
    tasks.iter().map(|task| of_task(task, sessions.iter().find(|session| session.task == task.id), now)).collect()
}

fn of_task(task: &TaskView, session: Option<&SessionView>, now: Timestamp) -> Job {
    let status = task.status;
    let busy = status == TaskStatus::InProgress || session.is_some();
    let done = is_done(task);
    let quiet = (!busy && (done || status == TaskStatus::Pending)).then_some(Colour::Dim);
    let mut facts: Vec<_> = facts(task, session, now).into_iter().map(|fact| (fact, Some(Colour::Dim))).collect();
    facts.extend(session.and_then(|session| session.doing.clone()).map(|doing| (doing, None)));
    let mark = match status {
        TaskStatus::Pending => ("○", Some(Colour::Dim)),
        TaskStatus::InProgress => ("▸", Some(Colour::Blue)),
        TaskStatus::Completed => ("●", Some(Colour::Green)),
        TaskStatus::Verified => ("✓", Some(Colour::Green)),
        TaskStatus::Failed => ("✗", Some(Colour::Red)),
        TaskStatus::Skipped => ("–", Some(Colour::Dim)),
        TaskStatus::Suspended => ("?", Some(Colour::Yellow)),
    };
    let (section, id, name) = (task.section.clone(), task.id.to_string(), task.name.clone());
    Job { section, mark, id, name, colours: [quiet; 2], busy, done, facts }
}

/// Time, attempt, agent, model, cost, and what is wrong: what is known of a task.
fn facts(task: &TaskView, session: Option<&SessionView>, now: Timestamp) -> Vec<String> {
    let record = &task.record;
    let time = |text: &Option<String>| text.as_deref().and_then(|text| text.parse::<Timestamp>().ok());
    let ended = match task.status {
        TaskStatus::InProgress | TaskStatus::Completed => Some(now),
        TaskStatus::Verified => time(&record.completed_at),
        _ => None,
    };
    let begun_and_ended = time(&record.last_attempt).zip(ended);
    let mut facts: Vec<String> =
        begun_and_ended.map(|(begun, end)| took(end.duration_since(begun).as_secs())).into_iter().collect();
    facts.extend(match (record.attempts, task.status) {
        (2.., TaskStatus::InProgress) => Some(format!("attempt {}", record.attempts)),
        (2.., _) | (1, TaskStatus::Pending) => Some(format!("{} attempts", record.attempts)),
        _ => None,
    });
    facts.extend(session.map(|session| match session.validates {
        true => format!("{} looks at it", session.agent),
        false => session.agent.clone(),
    }));
    facts.extend(session.and_then(|session| session.model.clone()).or_else(|| record.model_used.clone()));
    facts.extend(record.cost_usd.map(|cost| format!("{cost:.2} USD")));
    facts.extend(match task.status {
        TaskStatus::Failed => record.last_error.clone(),
        TaskStatus::Suspended => record.question.clone(),
        _ => None,
    });
    facts
}

fn is_done(task: &TaskView) -> bool {
    matches!(task.status, TaskStatus::Verified | TaskStatus::Skipped)
}

/// Returns how far a plan is.
fn tasks_done(plan: &PlanView) -> String {
    format!("{}/{} tasks", plan.tasks.iter().filter(|task| is_done(task)).count(), plan.tasks.len())
}

/// Returns jobs as lines of text.
pub(in crate::cmd) fn lines(jobs: &[Job], ui: &Ui) -> String {
    let rows = fitting(jobs, usize::MAX, usize::MAX);
    rows.iter().map(|row| format!("{}\n", painted(row, usize::MAX, ui).0.trim_end())).collect()
}

/// Returns as many rows as there is room for, around the first job that is worked on.
fn fitting(jobs: &[Job], room: usize, columns: usize) -> Vec<Row> {
    let widest = |of: fn(&Job) -> &str| jobs.iter().map(|job| plain(of(job)).width()).max().unwrap_or(0);
    // Room for what it does, in any window that has room at all.
    let name = widest(|job| &job.name).min((columns / 2).max(24));
    let id = widest(|job| &job.id).min(if columns == usize::MAX { columns } else { 24 });
    let sections: Vec<&[Job]> = jobs.chunk_by(|a, b| a.section == b.section).collect();
    let fits = jobs.len() + sections.len() <= room;
    let mut rows = Vec::new();
    let mut first_busy = None;
    for jobs in sections {
        rows.extend(heading(jobs));
        if !fits && !jobs[0].section.is_empty() && !jobs.iter().any(|job| job.busy) {
            continue;
        }
        for job in jobs {
            if job.busy {
                first_busy.get_or_insert(rows.len());
            }
            let indent = if job.section.is_empty() { "" } else { "  " };
            let mut row: Row = vec![
                (format!("{indent}{} ", job.mark.0), job.mark.1),
                (format!("{}  ", padded(&job.id, id)), job.colours[0]),
                (padded(&job.name, name), job.colours[1]),
            ];
            row.extend(job.facts.iter().map(|(fact, colour)| (format!("  {}", plain(fact)), *colour)));
            rows.push(row);
        }
    }
    let from = first_busy.unwrap_or(0).saturating_sub(room / 2).min(rows.len().saturating_sub(room));
    rows.drain(..from);
    rows.truncate(room);
    rows
}

/// The row above a section, which counts its jobs.
fn heading(jobs: &[Job]) -> Option<Row> {
    let section = jobs.first().map(|job| &job.section).filter(|section| !section.is_empty())?;
    let done = jobs.iter().filter(|job| job.done).count();
    let colour = if jobs.iter().any(|job| job.mark.0 == "✗") {
        Colour::Red
    } else if done == jobs.len() {
        Colour::Green
    } else {
        Colour::Dim
    };
    Some(vec![(plain(section), Some(Colour::Bold)), (format!("  {done}/{}", jobs.len()), Some(colour))])
}

fn padded(text: &str, width: usize) -> String {
    let text = cut(&plain(text), width);
    let room = " ".repeat(width.saturating_sub(text.width()));
    text + &room
}

/// Returns how far a run is.
pub(super) fn progress(run: &RunView) -> String {
    match run {
        RunView::Loop(view) => {
            let turn = view.turn.as_ref().map(|turn| format!(", turn {}", turn.number)).unwrap_or_default();
            format!("round {}/{}, {}{turn}", view.round, view.max_rounds, view.phase)
        }
        RunView::Plan(view) => tasks_done(view),
        RunView::Backlog(view) if view.items.is_empty() => "nothing in it; `posse auto new` makes an item".into(),
        RunView::Backlog(view) => {
            let words = [
                (Standing::Ended, "ended"),
                (Standing::Waiting, "to do"),
                (Standing::Parked, "for you"),
                (Standing::Held, "held"),
            ];
            let count = |standing| view.items.iter().filter(|item| item.standing == standing).count();
            let counts = words.map(|(standing, word)| (count(standing), word));
            let parts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
            parts.collect::<Vec<_>>().join(", ")
        }
    }
}

pub(super) fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Watch => "watches the backlog",
        Mode::Drain => "works through the backlog",
        Mode::Once => "works on one item",
    }
}

/// Returns the reasons why a run starts nothing.
pub(super) fn obstacles(run: &RunView) -> Vec<String> {
    match run {
        RunView::Loop(_) => holds(run, None).collect(),
        RunView::Plan(view) => {
            let taken = view.taken.iter().map(|taken| format!("{} is held by {}", taken.name, taken.held_by));
            holds(run, view.paused_until).chain(taken.map(|text| plain(&text))).collect()
        }
        RunView::Backlog(view) => holds(run, None).chain(view.away.as_deref().map(plain)).collect(),
    }
}

/// Returns the reasons why a run starts no sessions. `paused_until` is that of a plan.
pub(in crate::cmd) fn holds(run: &RunSummary, paused_until: Option<Timestamp>) -> impl Iterator<Item = String> {
    let hold = run.hold.as_ref();
    let hold = hold.map(|hold| format!("no session before {}: {}", date_time(hold.until), plain(&hold.reason)));
    let paused = |until| format!("sessions failed one after the other; none before {}", date_time(until));
    hold.into_iter().chain(paused_until.map(paused))
}

pub(in crate::cmd) fn item_mark(item: &ItemView) -> (&'static str, Option<Colour>) {
    match item.standing {
        Standing::Ended if is_given_up(item) => ("✗", Some(Colour::Red)),
        Standing::Waiting => ("○", None),
        Standing::Held => ("–", Some(Colour::Dim)),
        Standing::InProgress => ("▸", Some(Colour::Blue)),
        Standing::Parked => ("?", Some(Colour::Yellow)),
        Standing::Ended => ("■", Some(Colour::Green)),
        Standing::Gone => ("·", Some(Colour::Dim)),
    }
}

pub(super) fn is_given_up(item: &ItemView) -> bool {
    let outcome = item.reason.parse::<ItemOutcome>().ok();
    item.standing == Standing::Ended && outcome.is_some_and(|outcome| !outcome.is_success())
}

/// A status for people who see no colours.
fn glyph(status: StatusKind) -> char {
    match status {
        StatusKind::Idle => '○',
        StatusKind::Processing => '●',
        StatusKind::WaitingUserAnswer => '?',
        StatusKind::Completed => '✓',
        StatusKind::Error => '✗',
    }
}

/// Returns whether a line is neither empty nor only a frame.
fn says_something(line: &str) -> bool {
    line.chars().any(|c| !c.is_whitespace() && !('\u{2500}'..='\u{259f}').contains(&c))
}

#[cfg(test)]
mod tests;
