//! Budgets, and one ledger of all spending. Every total is a sum over the ledger, including failed sessions, ended
//! sessions and validators. If a tool does not report an amount, it is unknown, not zero.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::config::{PlanConfig, WindowOwner};
use super::file::{BudgetMeta, Plan};
use super::settings::Given;
use crate::time::Wall;

/// The usage of one session, as its tool reports it. Costs are estimates of the tool at API prices.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    pub cost_usd: Option<f64>,
    pub turns: Option<u32>,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub cache_read_tokens: Option<u64>,
    pub cache_creation_tokens: Option<u64>,
    pub api_seconds: Option<f64>,
    /// The session ended before its final report. These amounts are the last known ones.
    pub partial: bool,
    /// The usage by model, if the tool reports it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ModelUsage>,
    /// No session ran: it could not start, or was not needed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_session: bool,
}

/// The usage of one model in a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelUsage {
    pub model: String,
    pub cost_usd: Option<f64>,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub cache_read_tokens: Option<u64>,
    pub cache_creation_tokens: Option<u64>,
}

impl Usage {
    /// Returns the usage of a session that never ran.
    pub fn none() -> Self {
        Self { no_session: true, ..Self::default() }
    }
}

/// The purpose of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    Planning,
    #[default]
    Task,
    Validation,
    Verification,
}

/// One line of the ledger: one session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Line {
    pub at: Wall,
    pub run: String,
    /// The project's directory.
    pub project: Option<String>,
    pub item: Option<String>,
    /// The plan's file.
    pub plan: Option<String>,
    pub section: Option<String>,
    pub task: Option<String>,
    pub attempt: Option<u32>,
    pub phase: Phase,
    pub agent: String,
    pub model: Option<String>,
    pub outcome: String,
    pub seconds: f64,
    #[serde(flatten)]
    pub usage: Usage,
}

/// A sum over sessions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct Total {
    pub sessions: u32,
    pub cost_usd: f64,
    /// Sessions whose cost nobody knows. The sum is without them.
    pub cost_unknown: u32,
    /// The same of their tokens.
    pub tokens_unknown: u32,
    /// Sessions that were ended before they could say all.
    pub partial: u32,
    pub turns: u64,
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cache_read_tokens: u64,
    pub cache_creation_tokens: u64,
    pub api_seconds: f64,
    pub seconds: f64,
}

impl Total {
    pub fn of<'l>(lines: impl IntoIterator<Item = &'l Line>) -> Self {
        let mut total = Self::default();
        for line in lines {
            total.add(line);
        }
        total
    }

    pub fn add(&mut self, line: &Line) {
        self.add_usage(&line.usage);
        self.seconds += line.seconds;
    }

    /// Adds a session.
    pub fn add_usage(&mut self, usage: &Usage) {
        if usage.no_session {
            return;
        }
        self.sessions += 1;
        self.cost_usd += usage.cost_usd.unwrap_or(0.0);
        self.cost_unknown += u32::from(usage.cost_usd.is_none());
        self.tokens_unknown += u32::from(usage.input_tokens.is_none() && usage.output_tokens.is_none());
        self.partial += u32::from(usage.partial);
        self.turns += u64::from(usage.turns.unwrap_or(0));
        self.input_tokens += usage.input_tokens.unwrap_or(0);
        self.output_tokens += usage.output_tokens.unwrap_or(0);
        self.cache_read_tokens += usage.cache_read_tokens.unwrap_or(0);
        self.cache_creation_tokens += usage.cache_creation_tokens.unwrap_or(0);
        self.api_seconds += usage.api_seconds.unwrap_or(0.0);
    }

    /// Adds all sessions of another sum.
    pub fn add_total(&mut self, other: &Self) {
        self.sessions += other.sessions;
        self.cost_usd += other.cost_usd;
        self.cost_unknown += other.cost_unknown;
        self.tokens_unknown += other.tokens_unknown;
        self.partial += other.partial;
        self.turns += other.turns;
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cache_read_tokens += other.cache_read_tokens;
        self.cache_creation_tokens += other.cache_creation_tokens;
        self.api_seconds += other.api_seconds;
        self.seconds += other.seconds;
    }

    /// Returns the cost in words: `1.25 USD`, `unknown`, `1.25 USD and 2 sessions of unknown cost`.
    pub fn cost(&self) -> String {
        match (self.cost_unknown, self.sessions) {
            (0, _) => format!("{:.2} USD", self.cost_usd),
            (unknown, all) if unknown == all => "unknown".into(),
            (1, _) => format!("{:.2} USD and one session of unknown cost", self.cost_usd),
            (unknown, _) => format!("{:.2} USD and {unknown} sessions of unknown cost", self.cost_usd),
        }
    }

    /// Returns the share of the input that came from the cache.
    pub fn cache_hits(&self) -> Option<f64> {
        let read = self.cache_read_tokens + self.input_tokens;
        #[allow(clippy::cast_precision_loss)] // A share for people.
        (read > 0).then(|| self.cache_read_tokens as f64 / read as f64)
    }
}

/// Returns the limit of one level, if there is one. For each amount the first setting counts. Zero is a setting, too:
/// no limit.
pub fn limit(said: &[BudgetMeta]) -> Option<f64> {
    let first = |amount: fn(&BudgetMeta) -> Option<f64>| said.iter().find_map(amount);
    let ceiling = first(|budget| budget.ceiling_usd).filter(|ceiling| *ceiling > 0.0)?;
    let share = ceiling * first(|budget| budget.percent).unwrap_or(100.0) / 100.0;
    let reserved = first(|budget| budget.reserved_usd).filter(|reserved| *reserved > 0.0);
    Some(reserved.map_or(share, |reserved| share.min(ceiling - reserved)).max(0.0))
}

/// A limit on one level: this run, this plan, this item, the last days.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Level {
    pub name: String,
    pub limit_usd: Option<f64>,
    pub spent: Total,
    /// The sessions that count.
    pub of: Of,
    /// If set, only sessions within this time count.
    pub window: Option<Duration>,
    /// If set, only sessions since then count.
    pub since: Option<Wall>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Of {
    #[default]
    Run,
    Plan,
    Item,
    /// All items of the project: planners, verifiers and the runs of their plans.
    Backlog,
    Project,
    Everything,
}

impl Of {
    /// Returns whether other runs spend on this level, too.
    pub fn is_shared(self) -> bool {
        matches!(self, Self::Item | Self::Backlog | Self::Project | Self::Everything)
    }
}

/// The budget of one run of the pipeline for the backlog.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BacklogCap {
    pub limit_usd: f64,
    /// The start of the run.
    pub since: Wall,
}

/// Returns every level with a limit. Its spending is not filled in yet.
pub fn levels(plan: &Plan, config: &PlanConfig, given: &Given) -> Vec<Level> {
    let of_plan = limit(&[given.budget, plan.meta.budget, config.budget]);
    let level = |name: &str, limit_usd, of| Level { name: name.into(), limit_usd, of, ..Level::default() };
    let mut levels = vec![
        level("this plan", of_plan, Of::Plan),
        level("this run", given.cap_usd, Of::Run),
        level("this item", given.item_limit_usd, Of::Item),
    ];
    levels.retain(|level| level.limit_usd.is_some());
    levels.extend(backlog_levels(config, given.backlog));
    levels
}

/// Returns the levels that limit all items together.
pub fn backlog_levels(config: &PlanConfig, cap: Option<BacklogCap>) -> Vec<Level> {
    let cap = cap.map(|cap| Level {
        name: "this run of the backlog".into(),
        limit_usd: Some(cap.limit_usd),
        of: Of::Backlog,
        since: Some(cap.since),
        ..Level::default()
    });
    let windows = config.windows.iter().map(|window| {
        let (whose, of) = match window.whose {
            WindowOwner::User => ("everything", Of::Everything),
            WindowOwner::Project => ("this project", Of::Project),
        };
        let name = format!("{whose} in the last {}", crate::config::shown_duration(window.window));
        Level { name, limit_usd: Some(window.limit_usd), of, window: Some(window.window), ..Level::default() }
    });
    cap.into_iter().chain(windows).collect()
}

/// Counts a session on every level.
pub fn spend(levels: &mut [Level], usage: &Usage) {
    levels.iter_mut().for_each(|level| level.spent.add_usage(usage));
}

/// Returns whether these sums are known already.
pub fn knows_sums(levels: &[Level], sums: &[(String, Total)]) -> bool {
    sums.iter().all(|(name, total)| levels.iter().any(|level| level.name == *name && level.spent == *total))
}

/// Replaces the spending of the levels with these names.
pub fn set_sums(levels: &mut [Level], sums: Vec<(String, Total)>) {
    for (name, total) in sums {
        if let Some(level) = levels.iter_mut().find(|level| level.name == name) {
            level.spent = total;
        }
    }
}

/// Returns the rest of the tightest level, rounded for a command line.
pub fn left(levels: &[Level]) -> Option<f64> {
    let rests = levels.iter().filter_map(|level| Some(level.limit_usd? - level.spent.cost_usd));
    rests.min_by(f64::total_cmp).map(|rest| (rest.max(0.0) * 10_000.0).ceil() / 10_000.0)
}

/// Returns the first exhausted level, in words. Checked before every session.
pub fn exhausted(levels: &[Level]) -> Option<String> {
    levels.iter().find_map(|level| {
        let limit = level.limit_usd?;
        (level.spent.cost_usd >= limit)
            .then(|| format!("{}: {} of {limit:.2} USD are spent", level.name, level.spent.cost()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(at: i64, phase: Phase, cost_usd: Option<f64>) -> Line {
        let usage = Usage { cost_usd, ..Usage::default() };
        Line { at: Wall(at), task: Some("1.1".into()), phase, usage, ..Line::default() }
    }

    #[test]
    fn t73_limits() {
        let budget = |ceiling, percent, reserved| BudgetMeta {
            ceiling_usd: Some(ceiling),
            percent: Some(percent),
            reserved_usd: Some(reserved),
        };
        for (budget, expected) in [
            (budget(10.0, 80.0, 3.0), Some(7.0)),
            (budget(10.0, 60.0, 3.0), Some(6.0)),
            (budget(10.0, 100.0, 0.0), Some(10.0)),
            (budget(10.0, 100.0, 30.0), Some(0.0)),
            (budget(0.0, 80.0, 3.0), None),
        ] {
            assert_eq!(limit(&[budget]), expected, "{budget:?}");
        }
        let level = |cost| Level {
            name: "plan".into(),
            limit_usd: Some(7.0),
            spent: Total::of(&[line(0, Phase::Task, Some(cost))]),
            of: Of::Plan,
            ..Level::default()
        };
        assert_eq!(exhausted(&[level(6.99)]), None);
        assert_eq!(exhausted(&[level(7.0)]), Some("plan: 7.00 USD of 7.00 USD are spent".into()));
        assert_eq!(exhausted(&[Level { limit_usd: None, ..level(900.0) }]), None);
    }

    #[test]
    fn what_is_said_on_the_command_line_counts_even_if_it_is_zero() {
        let meta = BudgetMeta { ceiling_usd: Some(5.0), percent: Some(50.0), reserved_usd: None };
        let none = BudgetMeta::default();
        assert_eq!(limit(&[none, meta]), Some(2.5));
        assert_eq!(limit(&[BudgetMeta { ceiling_usd: Some(0.0), ..none }, meta]), None);
        assert_eq!(limit(&[BudgetMeta { percent: Some(0.0), ..none }, meta]), Some(0.0));
        assert_eq!(limit(&[BudgetMeta { reserved_usd: Some(5.0), ..meta }, meta]), Some(0.0));
    }

    /// For each amount, the command line takes precedence over the plan, and the plan over the configuration. Windows
    /// apply in addition.
    #[test]
    fn every_level_has_its_limit() {
        let text = |budget: &str| {
            format!("meta: {{name: p, budget: {{{budget}}}}}\nsections: [{{id: s, tasks: [{{id: t, name: T}}]}}]")
        };
        let (plan, _) = Plan::read("p", &text("quota_ceiling_usd: 10")).unwrap();
        let (silent, _) = Plan::read("p", &text("")).unwrap();
        let mut config = PlanConfig::default();
        let shown = |plan: &Plan, config: &PlanConfig, given: &Given| {
            let levels = levels(plan, config, given);
            levels.iter().map(|level| format!("{} {}", level.name, level.limit_usd.unwrap())).collect::<Vec<_>>()
        };
        assert_eq!(shown(&silent, &config, &Given::default()), [""; 0]);
        config.budget = BudgetMeta { ceiling_usd: Some(4.0), percent: Some(50.0), reserved_usd: None };
        assert_eq!(shown(&silent, &config, &Given::default()), ["this plan 2"]);
        assert_eq!(shown(&plan, &config, &Given::default()), ["this plan 5"]);
        let budget = BudgetMeta { percent: Some(100.0), ..BudgetMeta::default() };
        let given = Given { budget, cap_usd: Some(0.0), item_limit_usd: Some(3.0), ..Given::default() };
        assert_eq!(shown(&plan, &config, &given), ["this plan 10", "this run 0", "this item 3"]);
        let window = Duration::from_secs(7 * 86_400);
        config.windows = vec![super::super::config::BudgetWindow { whose: WindowOwner::User, window, limit_usd: 70.0 }];
        let lifted = BudgetMeta { ceiling_usd: Some(0.0), ..BudgetMeta::default() };
        let given = Given { budget: lifted, ..Given::default() };
        assert_eq!(shown(&plan, &config, &given), ["everything in the last 7d 70"], "that is not the plan's to lift");
        let backlog = Some(BacklogCap { limit_usd: 6.0, since: Wall(5) });
        let of_backlog = ["this run of the backlog 6", "everything in the last 7d 70"];
        assert_eq!(shown(&plan, &config, &Given { backlog, ..given }), of_backlog, "whoever works on an item");
        assert_eq!(backlog_levels(&config, backlog).len(), 2);
        let mut all = levels(&plan, &config, &Given { cap_usd: Some(1.0), ..Given::default() });
        assert_eq!(left(&all), Some(1.0));
        all[1].spent.cost_usd = 0.333_33;
        assert_eq!((left(&all), left(&[])), (Some(0.6667), None));
        all[1].spent.cost_usd = 2.0;
        assert_eq!(left(&all), Some(0.0));
    }

    #[test]
    fn a_session_that_never_was_costs_nothing_and_is_none() {
        let mut total = Total::default();
        total.add_usage(&Usage::none());
        assert_eq!(total, Total::default());
        let written = serde_json::to_string(&Usage::none()).unwrap();
        assert_eq!(serde_json::from_str::<Usage>(&written).unwrap(), Usage::none());
    }

    #[test]
    fn t75_t76_what_is_not_known_is_not_zero() {
        let mut ended = line(1, Phase::Task, Some(0.5));
        ended.usage.partial = true;
        let total = Total::of(&[ended, line(2, Phase::Task, None)]);
        assert_eq!((total.partial, total.cost_unknown), (1, 1));
        assert_eq!(total.cost(), "0.50 USD and one session of unknown cost");
        assert_eq!(Total::of(&[line(2, Phase::Task, None)]).cost(), "unknown");
        assert_eq!(total.cache_hits(), None);
        let written = serde_json::to_value(line(2, Phase::Task, None)).unwrap();
        assert_eq!(written["cost_usd"], serde_json::Value::Null);
    }
}
