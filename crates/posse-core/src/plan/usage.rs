//! Summaries of usage, for people and for other tools: in total, by section, by task, by model, by plan.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::budget::{Line, Total, Usage};

/// The note beside every report of costs.
pub const COSTS: &str = "costs are estimates of the tools at API prices, not what a subscription charges";

/// A sum for other tools: unknown amounts are absent, not zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sum {
    pub sessions: u32,
    pub cost_usd: Option<f64>,
    /// Sessions of unknown cost. The sum excludes them.
    pub cost_unknown: u32,
    /// Sessions that ended before their final report.
    pub partial: u32,
    pub turns: u64,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub cache_read_tokens: Option<u64>,
    pub cache_creation_tokens: Option<u64>,
    /// The share of the input that came from the cache.
    pub cache_hit_rate: Option<f64>,
    pub api_seconds: f64,
    pub seconds: f64,
}

impl From<&Total> for Sum {
    fn from(total: &Total) -> Self {
        let known = |unknown: u32| total.sessions > 0 && unknown < total.sessions;
        let tokens = |tokens: u64| known(total.tokens_unknown).then_some(tokens);
        Self {
            sessions: total.sessions,
            cost_usd: known(total.cost_unknown).then_some(total.cost_usd),
            cost_unknown: total.cost_unknown,
            partial: total.partial,
            turns: total.turns,
            input_tokens: tokens(total.input_tokens),
            output_tokens: tokens(total.output_tokens),
            cache_read_tokens: tokens(total.cache_read_tokens),
            cache_creation_tokens: tokens(total.cache_creation_tokens),
            cache_hit_rate: total.cache_hits(),
            api_seconds: total.api_seconds,
            seconds: total.seconds,
        }
    }
}

/// The usage of some sessions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The meaning of the costs.
    pub note: String,
    pub total: Sum,
    /// By the plan's file.
    pub plans: BTreeMap<String, Sum>,
    pub sections: BTreeMap<String, Sum>,
    pub tasks: BTreeMap<String, Sum>,
    pub models: BTreeMap<String, Sum>,
    /// The single sessions, oldest first.
    pub sessions: Vec<Line>,
}

impl Summary {
    pub fn of(lines: Vec<Line>) -> Self {
        let shown = |totals: BTreeMap<String, Total>| {
            totals.iter().map(|(name, total)| (name.clone(), Sum::from(total))).collect()
        };
        let by = |key: fn(&Line) -> Option<&String>| {
            let mut totals: BTreeMap<String, Total> = BTreeMap::new();
            for line in &lines {
                if let Some(name) = key(line) {
                    totals.entry(name.clone()).or_default().add(line);
                }
            }
            shown(totals)
        };
        Self {
            note: COSTS.to_owned(),
            total: Sum::from(&Total::of(&lines)),
            plans: by(|line| line.plan.as_ref()),
            sections: by(|line| line.section.as_ref()),
            tasks: by(|line| line.task.as_ref()),
            models: shown(by_model(&lines)),
            sessions: lines,
        }
    }
}

/// Returns the usage by model. A session may use several models; if its tool reports each, each gets its part.
fn by_model(lines: &[Line]) -> BTreeMap<String, Total> {
    let mut totals: BTreeMap<String, Total> = BTreeMap::new();
    for line in lines {
        if line.usage.models.is_empty() {
            let name = line.model.clone().unwrap_or_else(|| "unknown".into());
            totals.entry(name).or_default().add(line);
        }
        for model in &line.usage.models {
            totals.entry(model.model.clone()).or_default().add_usage(&Usage {
                cost_usd: model.cost_usd,
                input_tokens: model.input_tokens,
                output_tokens: model.output_tokens,
                cache_read_tokens: model.cache_read_tokens,
                cache_creation_tokens: model.cache_creation_tokens,
                partial: line.usage.partial,
                ..Usage::default()
            });
        }
    }
    totals
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::budget::{ModelUsage, Phase};

    fn line(task: &str, phase: Phase, usage: Usage) -> Line {
        Line {
            plan: Some("/p/plan.yaml".into()),
            section: Some("s".into()),
            task: Some(task.into()),
            phase,
            model: Some("sonnet".into()),
            seconds: 2.0,
            usage,
            ..Line::default()
        }
    }

    #[test]
    fn t74_t76_all_of_it_is_summed_up_and_what_is_unknown_stays_so() {
        let known = |cost| Usage {
            cost_usd: Some(cost),
            turns: Some(2),
            input_tokens: Some(30),
            output_tokens: Some(5),
            cache_read_tokens: Some(10),
            ..Usage::default()
        };
        let model = |name: &str, cost| ModelUsage {
            model: name.into(),
            cost_usd: Some(cost),
            input_tokens: Some(1),
            ..ModelUsage::default()
        };
        let mixed = Usage { models: vec![model("opus", 0.5), model("haiku", 0.25)], ..known(0.75) };
        let summary = Summary::of(vec![
            line("a", Phase::Task, known(0.5)),
            line("a", Phase::Task, mixed),
            line("a", Phase::Validation, known(0.25)),
            line("b", Phase::Task, Usage { partial: true, ..Usage::default() }),
        ]);
        assert_eq!((summary.total.sessions, summary.total.cost_usd, summary.total.cost_unknown), (4, Some(1.5), 1));
        assert_eq!((summary.total.turns, summary.total.cache_hit_rate), (6, Some(0.25)));
        assert_eq!((summary.tasks["a"].sessions, summary.tasks["a"].seconds), (3, 6.0));
        let b = &summary.tasks["b"];
        assert_eq!((b.cost_usd, b.input_tokens, b.partial), (None, None, 1));
        let models: Vec<String> =
            summary.models.iter().map(|(name, sum)| format!("{name} {:?}", sum.cost_usd)).collect();
        assert_eq!(models, ["haiku Some(0.25)", "opus Some(0.5)", "sonnet Some(0.75)"]);
        let written = serde_json::to_value(&summary).unwrap();
        assert_eq!(written["tasks"]["b"]["cost_usd"], serde_json::Value::Null);
        assert_eq!(Summary::of(Vec::new()).total.cost_usd, None);
    }
}
