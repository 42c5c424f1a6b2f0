//! `posse doctor --repair`: replaces a database that cannot be read.

use std::time::Duration;

use posse_api::DatabaseCondition;
use posse_term::lock;

use crate::client::{self, Client};
use crate::daemon;
use crate::error::Error;
use crate::ui::Ui;

/// The time a daemon that cannot use the database may hold its lock. It ends at once.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) async fn repair(ui: &Ui) -> Result<(), Error> {
    let paths = client::paths()?;
    paths.prepare()?;
    let path = paths.database();
    let why = match (daemon::functions().inspect_database)(&path) {
        DatabaseCondition::Damaged(why) => why,
        DatabaseCondition::Absent | DatabaseCondition::Sound => {
            ui.say("the database is in order; there is nothing to repair");
            return Ok(());
        }
        DatabaseCondition::Unusable(why) => return Err(Error::failed(format!("this cannot be repaired: {why}"))),
    };
    if let Some(mut client) = Client::connect_if_running().await? {
        client.stop(false).await?;
    }
    // The keeper may be starting daemons again and again; none of them may have the file open now.
    let lock = lock::acquire(&paths.daemon_lock(), PATIENCE)?;
    let aside = (daemon::functions().set_database_aside)(&path)
        .map_err(Error::io(format!("cannot rename {}", path.display())))?;
    drop(lock);
    Client::connect().await?;
    ui.say(&format!(
        "the database was damaged ({why}) and is now {}; posse goes on with a new one\n\
         kept: running terminals, recordings, files of plans, your configuration\n\
         lost from posse's view: the log of events, the audit so far, ended terminals, which runs, plans and pipelines were going on, \
         and settings of `posse serve` such as --listen; begin those again",
        aside.display()
    ));
    Ok(())
}
