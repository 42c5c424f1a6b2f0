//! The backlog as a pipeline looks at it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use posse_api::AutoSpec;
use posse_core::auto::Pipeline;
use posse_core::auto::messages::Candidate;
use posse_core::backlog::{Priority, Slug};
use posse_core::plan::{Plan, TaskStatus};
use posse_files::backlog::{FoundItem, scan};

use super::place::item_in_project;
use crate::disk::Disk;

/// All items there are.
pub(super) fn candidates(disk: &Disk, spec: &AutoSpec, pipeline: &Pipeline) -> Vec<Candidate> {
    let found = scan(disk, Path::new(&spec.directory), &spec.shelves);
    let memory = &pipeline.carried().items;
    let unfinished: BTreeSet<Slug> =
        memory.iter().filter(|(_, memory)| memory.planned.is_some()).map(|(item, _)| item.clone()).collect();
    let queue = found.queue(&unfinished, &BTreeMap::new());
    let mut held: BTreeMap<Slug, Option<String>> = queue.into_iter().map(|entry| (entry.slug, entry.held)).collect();
    let mut candidates: BTreeMap<Slug, Candidate> = BTreeMap::new();
    for FoundItem { item, path, .. } in &found.items {
        let archived = item_in_project(spec, item.kind, &item.slug, path).is_archived(disk);
        let candidate = Candidate {
            item: item.slug.clone(),
            path: path.clone(),
            kind: item.kind,
            priority: item.priority,
            title: item.title.clone(),
            hash: item.hash.clone(),
            // A finished item only has to leave the backlog, regardless of its status.
            held: held.remove(&item.slug).flatten().filter(|_| !archived),
            archived,
            asks: asks(disk, &plan_file(spec, &item.slug)),
            limit_usd: item.budget_usd,
        };
        candidates.entry(item.slug.clone()).or_insert(candidate);
    }
    for other in found.others {
        let Some(slug) = other.slug else { continue };
        let candidate = Candidate {
            item: slug.clone(),
            path: other.path,
            kind: other.kind,
            priority: Priority::default(),
            title: slug.to_string(),
            hash: String::new(),
            held: Some(other.why),
            archived: false,
            asks: false,
            limit_usd: None,
        };
        candidates.entry(slug).or_insert(candidate);
    }
    candidates.into_values().collect()
}

pub(super) fn plan_file(spec: &AutoSpec, item: &Slug) -> PathBuf {
    Path::new(&spec.directory).join(&spec.config.plans_dir).join(format!("{item}.yaml"))
}

/// Reports whether a task of this plan waits for an answer.
fn asks(disk: &Disk, file: &Path) -> bool {
    let plan = disk.read_text(file).ok().and_then(|text| Plan::read(&file.to_string_lossy(), &text).ok());
    plan.is_some_and(|(plan, _)| plan.tasks().any(|task| task.record.status == TaskStatus::Suspended))
}
