//! A run that finds a stop file.

use posse_api::PlanEntry;
use posse_core::plan::machine::{Effect, Event};
use posse_core::turn::Level;

use super::super::stop_file::StopFileMeaning;
use super::{Driver, Stopping};

impl Driver {
    /// What is found is written down before the file goes.
    pub(super) async fn look_for_stop_file(&mut self) -> Result<Vec<Effect>, Stopping> {
        let mut effects = Vec::new();
        while let Some(found) = self.stop_files.look().await {
            let path = found.path.display();
            let (level, text) = match found.meaning {
                StopFileMeaning::Stop(_) => (Level::Info, format!("{path} is there: stopping")),
                StopFileMeaning::Stale => {
                    (Level::Warning, format!("{path} is older than this run, and does not stop it"))
                }
            };
            effects.extend(self.record(PlanEntry::Said { level, text }).await?);
            if let StopFileMeaning::Stop(how) = found.meaning {
                effects.extend(self.happen(Event::Stop(how)).await?);
                effects.extend(self.let_go().await?);
            }
            self.stop_files.dealt_with(&found).await;
        }
        Ok(effects)
    }
}
