//! Runs of loops, plans and backlogs. The machines in `posse-core` decide; this module drives them.
//!
//! A run is its journal. While a run is active, one driver serves it: the driver journals each input, hands it to the
//! machine and starts the resulting effects. Executors carry out the effects in separate tasks and answer with inputs.
//! After a crash of the daemon every active run is resumed: its sessions continue under the keeper, and outstanding
//! effects are restarted. The environment of sessions is never stored. A run that must start a session waits, or stops,
//! until a client provides one.
//!
//! [`Workflow`] is the interface to the kinds of runs.

pub(crate) mod driver;
pub(crate) mod effects;
pub(crate) mod error;
pub(crate) mod executor;
pub(crate) mod journal;
pub(crate) mod ledger;
mod logs;
pub(crate) mod messages;
pub(crate) mod retention;
pub(crate) mod shared_limits;
pub(crate) mod step_error;
pub(crate) mod stop_file;
pub(crate) mod supervisor;
pub(crate) mod view;
mod workflow;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) use driver::Driver;
pub(crate) use error::SupervisorError;
pub(crate) use executor::{Executor, LaunchContext};
pub(crate) use journal::Stopping;
pub(crate) use ledger::RunLedger;
pub(crate) use step_error::StepError;
pub(crate) use supervisor::{RunServices, Supervisor};
pub(crate) use workflow::{EffectOf, Effects, EntryOf, InputOf, SessionEnded, SpecFields, Workflow};

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
