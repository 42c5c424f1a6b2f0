//! What is known of runs, from memory and from the database.

use super::*;

impl Plans {
    /// What was spent on a level so far, by all that count.
    pub(super) async fn spent(&self, level: &Level, spec: &posse_api::PlanSpec) -> Result<Total, PlanError> {
        let run = spec.id.to_string();
        let of = Account { run: &run, file: Some(&spec.file), item: spec.item.as_deref(), project: &spec.directory };
        self.spent_by(level, &of).await
    }

    /// The same, for whoever has an account.
    pub(crate) async fn spent_by(&self, level: &Level, account: &Account<'_>) -> Result<Total, PlanError> {
        let nothing = UsageOf::default();
        let project = || Some(account.project.to_owned());
        let of = match level.of {
            Of::Run => UsageOf { run: Some(account.run.to_owned()), ..nothing },
            Of::Plan => UsageOf { plan: account.file.map(str::to_owned), ..nothing },
            // What is for no item has spent nothing on one.
            Of::Item if account.item.is_none() => return Ok(Total::default()),
            Of::Item => UsageOf { item: account.item.map(str::to_owned), project: project(), ..nothing },
            Of::Backlog | Of::Project => UsageOf { project: project(), ..nothing },
            Of::Everything => nothing,
        };
        let window = level.window.map(|window| i64::try_from(window.as_millis()).unwrap_or(i64::MAX));
        let window = window.map(|window| Wall(crate::now().0.saturating_sub(window)));
        let lines = self.usage(UsageOf { since: level.since.max(window), ..of }).await?;
        Ok(Total::of(lines.iter().filter(|line| level.of != Of::Backlog || line.item.is_some())))
    }

    /// What sessions have used, oldest first.
    pub(crate) async fn usage(&self, of: UsageOf) -> Result<Vec<Line>, PlanError> {
        Ok(self.journals.read(move |disk, database| store::usage(disk, database, &of)).await?)
    }

    /// The run of this file that began last, if it began at this time or later.
    pub(crate) async fn newest_since(&self, file: &str, since: Wall) -> Result<Option<PlanView>, PlanError> {
        let Some(id) = self.journals.newest_of(file).await? else { return Ok(None) };
        let view = self.show(id).await?;
        Ok(Some(view).filter(|view| view.created >= since.timestamp()))
    }

    /// All runs, newest first.
    pub(crate) async fn list(&self, limit: usize) -> Result<Vec<PlanView>, PlanError> {
        let mut views = Vec::new();
        for row in self.journals.list(limit).await? {
            views.push(self.as_it_is(row).await);
        }
        Ok(views)
    }

    pub(crate) async fn show(&self, id: RunId) -> Result<PlanView, PlanError> {
        if let Some(view) = self.live.get(id) {
            return Ok(view);
        }
        let row = self.journals.show(id).await?.ok_or(PlanError::None(id))?;
        Ok(self.as_it_is(row).await)
    }

    /// Without its tasks, of which there may be many.
    pub(crate) async fn show_without_tasks(&self, id: RunId) -> Result<PlanView, PlanError> {
        match self.live.without_tasks(id) {
            Some(view) => Ok(view),
            None => Ok(PlanView { tasks: Vec::new(), ..self.show(id).await? }),
        }
    }

    /// Of one that goes on, the database has only how it began. If nobody drives it yet, its journal tells.
    async fn as_it_is(&self, row: PlanView) -> PlanView {
        if row.status == PlanRunStatus::Over {
            return row;
        }
        if let Some(view) = self.live.get(row.id) {
            return view;
        }
        match self.load(row.id).await {
            Ok((ledger, _)) => view::plan_view(&ledger, &row.files),
            Err(error) => {
                tracing::error!("run {} of a plan cannot be read: {error}", row.id);
                row
            }
        }
    }

    pub(crate) async fn journal(&self, id: RunId, after: i64) -> Result<Vec<(i64, Wall, PlanEntry)>, PlanError> {
        Ok(self.journals.entries(id, after).await?)
    }

    /// The run of this file that began last.
    pub(super) async fn last(&self, file: &str) -> Result<Option<Ledger>, PlanError> {
        match self.journals.newest_of(file).await? {
            Some(id) => match self.load(id).await {
                Ok((ledger, _)) => Ok(Some(ledger)),
                // Its journal cannot be understood any more. The file says what has become of the tasks.
                Err(PlanError::None(_)) => Ok(None),
                Err(PlanError::Journal(Failed::Store(error))) if error.is_of_content() => {
                    tracing::warn!("the journal of run {id} cannot be understood: {error}");
                    Ok(None)
                }
                Err(error) => Err(error),
            },
            None => Ok(None),
        }
    }

    pub(super) async fn load(&self, id: RunId) -> Result<(Ledger, i64), PlanError> {
        self.journals.load(id).await?.ok_or(PlanError::None(id))
    }
}
