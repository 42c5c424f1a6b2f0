//! Decisions that do not fit into rules. Each is a small pure function over rows; its patterns stay in the manifest,
//! under their names.

mod bracket_prompt;
mod codex;

use posse_core::detect::Classifier;

pub fn by_name(name: &str) -> Option<Classifier> {
    match name {
        "codex_turns" => Some(codex::turns),
        "bracket_prompts" => Some(bracket_prompt::prompts),
        _ => None,
    }
}
