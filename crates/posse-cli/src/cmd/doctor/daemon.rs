//! The daemon, the keeper and the database. Starts nothing.

use std::io;
use std::path::Path;
use std::time::Duration;

use posse_api::{DatabaseCondition, Health};
use posse_term::client as keeper;
use posse_term::lock::{self, Holder, LockStatus};
use posse_term::paths::Paths;

use super::line::{ReportLine, line};
use crate::client::Client;
use crate::daemon;
use crate::error::Error;

/// The time a daemon has to report its health.
const PATIENCE: Duration = Duration::from_secs(5);

const SEE_LOG: &str = "see posse.log in posse's home; `posse ls` tries again";

pub(super) async fn lines(paths: &Paths) -> Vec<ReportLine> {
    let health = health().await;
    let keeper = look(&paths.keeper_lock());
    let keeper_runs = matches!(keeper, Ok(LockStatus::Held(_)));
    let daemon = match health {
        Ok(health) => answers(&health, posse_api::VERSION),
        Err(why) => does_not_answer(&why.to_string(), look(&paths.daemon_lock()), keeper_runs),
    };
    let keeper = keeper_line(keeper, |pid| keeper::is_stopped(pid as i32));
    vec![daemon, keeper, database(&(daemon::functions().inspect_database)(&paths.database()))]
}

fn look(path: &Path) -> io::Result<LockStatus> {
    lock::look(path).map_err(|error| io::Error::other(format!("cannot read {}: {error}", path.display())))
}

async fn health() -> Result<Health, Error> {
    let answer = async {
        let Some(mut client) = Client::connect_if_running().await? else {
            return Err(Error::failed("no process listens on its socket"));
        };
        // One that ends now must not be started again.
        client.only_running();
        client.get("/health").await
    };
    let late = |_| Err(Error::failed(format!("it took more than {} s", PATIENCE.as_secs())));
    tokio::time::timeout(PATIENCE, answer).await.unwrap_or_else(late)
}

fn daemon_says(says: impl Into<String>) -> ReportLine {
    line("daemon", says)
}

fn answers(Health { pid, version, problem, .. }: &Health, ours: &str) -> ReportLine {
    if let Some(problem) = problem {
        return daemon_says(problem).bad(SEE_LOG);
    }
    let says = format!("process {pid}, version {version}");
    if ours == version {
        return daemon_says(says);
    }
    daemon_says(format!("{says}; this is {ours}"))
        .warn("an older one is replaced by the next command; with a newer one, update this program")
}

fn does_not_answer(why: &str, lock: io::Result<LockStatus>, keeper_runs: bool) -> ReportLine {
    let holder = match lock {
        Ok(LockStatus::Free) => return off(keeper_runs),
        Ok(LockStatus::Held(holder)) => holder,
        Err(error) => return daemon_says(error.to_string()).bad(SEE_LOG),
    };
    let pid = holder.map(|holder| holder.pid.to_string());
    let advice = format!(
        "see posse.log in posse's home; `kill {}` ends it, and another one is started: terminals go on",
        pid.as_deref().unwrap_or("PID")
    );
    let pid = pid.map(|pid| format!("process {pid} ")).unwrap_or_default();
    daemon_says(format!("{pid}does not answer: {why}")).bad(advice)
}

fn off(keeper_runs: bool) -> ReportLine {
    if keeper_runs {
        return daemon_says("not running; terminals go on").advise("`posse ls` starts it");
    }
    daemon_says("not running; every command that needs it starts it")
}

fn keeper_line(lock: io::Result<LockStatus>, is_stopped: impl Fn(u32) -> bool) -> ReportLine {
    match lock {
        Ok(LockStatus::Free) => line("keeper", "not running; it is started with the first terminal"),
        Ok(LockStatus::Held(Some(Holder { pid, .. }))) if is_stopped(pid) => {
            line("keeper", format!("process {pid} is stopped: no terminal can be started, typed to or ended"))
                .bad(format!("`kill -CONT {pid}` continues it"))
        }
        Ok(LockStatus::Held(Some(Holder { pid, started, .. }))) => {
            line("keeper", format!("process {pid}, since {}", started.strftime("%F %T UTC")))
        }
        Ok(LockStatus::Held(None)) => line("keeper", "runs"),
        Err(error) => line("keeper", error.to_string()).bad(SEE_LOG),
    }
}

fn database(condition: &DatabaseCondition) -> ReportLine {
    match condition {
        DatabaseCondition::Absent => line("database", "not there yet"),
        DatabaseCondition::Sound => line("database", "can be read from end to end"),
        DatabaseCondition::Damaged(why) => line("database", format!("damaged: {why}"))
            .bad("`posse doctor --repair` sets it aside and goes on with a new one; running terminals are kept"),
        DatabaseCondition::Unusable(why) => {
            line("database", why).bad("nothing is lost: put that right, and posse goes on")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::line::ReportVerdict::{Bad, Ok as Fine, Warn};
    use super::super::line::assert_lines;
    use super::*;

    fn health(version: &str, problem: Option<&str>) -> ReportLine {
        let problem = problem.map(str::to_owned);
        let health = Health { status: "ok".into(), service: "posse".into(), version: version.into(), pid: 7, problem };
        answers(&health, "0.1.0")
    }

    fn held() -> io::Result<LockStatus> {
        Ok(LockStatus::Held(Some(Holder { pid: 42, started: jiff::Timestamp::UNIX_EPOCH, purpose: None })))
    }

    fn broken() -> io::Result<LockStatus> {
        Err(io::Error::other("cannot read it"))
    }

    #[test]
    fn daemon_keeper_and_database_are_judged() {
        let silent = |lock| does_not_answer("too slow", lock, true);
        let keeper = |lock| keeper_line(lock, |_| false);
        assert_lines([
            (health("0.1.0", None), Fine, "process 7, version 0.1.0", ""),
            (health("0.0.9", None), Warn, "this is 0.1.0", "replaced by the next command"),
            (health("0.1.0", Some("the disk is full")), Bad, "the disk is full", "posse.log"),
            (silent(held()), Bad, "process 42 does not answer: too slow", "`kill 42`"),
            (silent(Ok(LockStatus::Held(None))), Bad, "does not answer: too slow", "`kill PID`"),
            (silent(broken()), Bad, "cannot read it", "posse.log"),
            (silent(Ok(LockStatus::Free)), Fine, "not running; terminals go on", "`posse ls` starts it"),
            (off(false), Fine, "every command that needs it", ""),
            (keeper(held()), Fine, "process 42, since 1970-01-01", ""),
            (keeper_line(held(), |_| true), Bad, "process 42 is stopped", "kill -CONT 42"),
            (keeper(Ok(LockStatus::Free)), Fine, "not running", ""),
            (keeper(Ok(LockStatus::Held(None))), Fine, "runs", ""),
            (keeper(broken()), Bad, "cannot read it", "posse.log"),
            (database(&DatabaseCondition::Sound), Fine, "can be read", ""),
            (database(&DatabaseCondition::Damaged("page 3".into())), Bad, "damaged: page 3", "doctor --repair"),
            (database(&DatabaseCondition::Unusable("read-only".into())), Bad, "read-only", "put that right"),
        ]);
    }
}
