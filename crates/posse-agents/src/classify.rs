//! Decisions that rules cannot express: small pure functions over rows. Their patterns stay in the manifest.

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
