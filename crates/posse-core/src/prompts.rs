//! The texts that posse sends to agents, as templates.
//!
//! The templates ship with posse (`prompts/*.j2`). The user may override one with a file of the same name in the
//! configuration directory; a project cannot. Values are data: a template is compiled before any value is inserted, so
//! template code inside of a value stays text. [`PromptTemplates::new`] finds a broken override before a run starts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use minijinja::value::{Enumerator, Object, Value};
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::{Deserialize, Serialize};

use crate::file_problem::{FileProblem, FileProblems, TextSpan};
use crate::nearest::did_you_mean;
use crate::visible::words_of;

/// The ending of template files.
pub const EXTENSION: &str = "j2";

/// Every template that ships with posse: name, source.
pub const BUILT_IN: [(&str, &str); 16] = [
    ("analyst", include_str!("../prompts/analyst.j2")),
    ("analyst_review", include_str!("../prompts/analyst_review.j2")),
    ("programmer", include_str!("../prompts/programmer.j2")),
    ("programmer_review", include_str!("../prompts/programmer_review.j2")),
    ("tester", include_str!("../prompts/tester.j2")),
    ("response_file", include_str!("../prompts/response_file.j2")),
    ("reminder", include_str!("../prompts/reminder.j2")),
    ("plan_task", include_str!("../prompts/plan_task.j2")),
    ("validator", include_str!("../prompts/validator.j2")),
    ("planner", include_str!("../prompts/planner.j2")),
    ("verifier", include_str!("../prompts/verifier.j2")),
    ("task_or_reference", include_str!("../prompts/task_or_reference.j2")),
    ("test_command", include_str!("../prompts/test_command.j2")),
    ("report_place", include_str!("../prompts/report_place.j2")),
    ("item", include_str!("../prompts/item.j2")),
    ("planner_example", include_str!("../prompts/planner_example.j2")),
];

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_keep_trailing_newline(true);
    environment.add_filter("data", |value: &Value| data(&text_of(value)));
    environment.add_filter("tagged", |value: &Value, tag: &str| tagged(tag, &text_of(value)));
    environment.add_filter("quoted", |value: &Value| serde_json::Value::from(text_of(value)).to_string());
    environment.add_filter("one_line", |value: &Value| words_of(&text_of(value)));
    for (name, source) in BUILT_IN {
        environment.add_template(name, source).expect("a test compiles every built-in template");
    }
    environment
});

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The templates of a run: those that ship with posse, and the user's overrides. A run keeps the overrides it started with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PromptTemplates {
    overrides: BTreeMap<String, String>,
}

impl PromptTemplates {
    /// Checks the user's overrides (file, template name, source) and puts them over the built-in templates.
    pub fn new(files: Vec<(String, String, String)>) -> Result<Self, (FileProblems, String)> {
        let mut overrides = BTreeMap::new();
        for (file, name, source) in files {
            if let Some(problem) = problem_of(&name, &source) {
                return Err((FileProblems { file, problems: vec![problem], warnings: Vec::new() }, source));
            }
            overrides.insert(name, source);
        }
        Ok(Self { overrides })
    }

    /// Returns the effective source of a template.
    pub(crate) fn source(&self, name: &str) -> &str {
        let built_in = || BUILT_IN.iter().find(|(known, _)| *known == name).map_or("", |(_, source)| *source);
        self.overrides.get(name).map_or_else(built_in, String::as_str)
    }

    /// Renders a template with these values, and with `step()`, which counts.
    ///
    /// If an override fails with these values although it passed every check, the built-in template is rendered: a run that
    /// has started must not fail because of the wording of a prompt.
    pub(crate) fn render(&self, name: &str, values: &Value) -> String {
        let overridden = (!self.overrides.is_empty()).then(|| self.environment()).flatten();
        let text = overridden.and_then(|environment| render(&environment, name, values).ok());
        let text = text.or_else(|| render(&ENVIRONMENT, name, values).ok());
        // A test renders every built-in template with every value there or absent.
        text.expect("a built-in template renders").trim_end().to_owned()
    }

    fn environment(&self) -> Option<Environment<'static>> {
        let mut environment = ENVIRONMENT.clone();
        for (name, source) in &self.overrides {
            environment.add_template_owned(name.clone(), source.clone()).ok()?;
        }
        Some(environment)
    }
}

fn render(environment: &Environment<'_>, name: &str, values: &Value) -> Result<String, minijinja::Error> {
    let steps = AtomicUsize::new(0);
    let step = Value::from_function(move || format!("{}.", steps.fetch_add(1, Ordering::Relaxed) + 1));
    environment.get_template(name)?.render(minijinja::context! { step, ..values.clone() })
}

/// Checks an override: its name, its syntax, its variables, its filters.
fn problem_of(name: &str, source: &str) -> Option<FileProblem> {
    let names = || BUILT_IN.iter().map(|(name, _)| *name);
    let start = TextSpan::of_bytes(source, 0..0);
    if !names().any(|known| known == name) {
        let problem = FileProblem::new(start, format!("there is no prompt template `{name}`"));
        let all = || format!("the templates are {}", names().collect::<Vec<_>>().join(", "));
        return Some(problem.hint(did_you_mean(name, names()).unwrap_or_else(all)));
    }
    let mut environment = ENVIRONMENT.clone();
    if let Err(error) = environment.add_template_owned(name.to_owned(), source.to_owned()) {
        return Some(of_error(source, &error));
    }
    let known = known_variables(name);
    let used = environment.get_template(name).map(|template| template.undeclared_variables(true)).unwrap_or_default();
    if let Some(unknown) = used.iter().find(|variable| !known.contains(*variable)) {
        let start = source.find(unknown.as_str()).unwrap_or(0);
        let at = TextSpan::of_bytes(source, start..start + unknown.len());
        let problem = FileProblem::new(at, format!("the template `{name}` has no variable `{unknown}`"));
        let all = known.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        return Some(problem.hint(format!("the variables are {all}")));
    }
    let tried = [true, false].map(|there| render(&environment, name, &Value::from_object(AnyValue { there })));
    tried.into_iter().find_map(|result| result.err().map(|error| of_error(source, &error)))
}

fn of_error(source: &str, error: &minijinja::Error) -> FileProblem {
    let line = |number: usize| source.split_inclusive('\n').take(number).map(str::len).sum::<usize>();
    let whole_line = || error.line().map_or(0..0, |number| line(number - 1)..line(number));
    let at = TextSpan::of_bytes(source, error.range().unwrap_or_else(whole_line));
    FileProblem::new(
        at,
        error.detail().map_or_else(|| error.kind().to_string(), |detail| format!("{}: {detail}", error.kind())),
    )
}

/// Returns the variables that an override may use: those of the replaced template, and of the parts that all templates
/// include.
fn known_variables(name: &str) -> BTreeSet<String> {
    let variables =
        |name: &str| ENVIRONMENT.get_template(name).map(|it| it.undeclared_variables(true)).unwrap_or_default();
    let source = BUILT_IN.iter().find(|(known, _)| *known == name).map_or("", |(_, source)| *source);
    let parts = BUILT_IN.iter().map(|(part, _)| *part);
    let included = parts.filter(|part| source.contains(&format!("include \"{part}\"")));
    included.chain([name]).flat_map(variables).chain(["step".to_owned()]).collect()
}

/// Stands for every value while an override is checked: all present, or all absent.
#[derive(Debug)]
struct AnyValue {
    there: bool,
}

impl Object for AnyValue {
    fn get_value(self: &Arc<Self>, _: &Value) -> Option<Value> {
        Some(Value::from_dyn_object(self.clone()))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        if self.there { Enumerator::Values(vec![Value::from_dyn_object(self.clone())]) } else { Enumerator::Empty }
    }

    fn is_true(self: &Arc<Self>) -> bool {
        self.there
    }

    fn call(self: &Arc<Self>, _: &minijinja::State<'_, '_>, _: &[Value]) -> Result<Value, minijinja::Error> {
        Ok(Value::from("value"))
    }

    fn render(self: &Arc<Self>, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("value")
    }
}

/// Maximum length of foreign text passed on at once, in characters. No sensible answer is as long, and a terminal
/// accepts at most a mebibyte of input.
const TAGGED_MAX: usize = 200_000;

/// Puts foreign text between tags, so that no agent takes it for posse's own words.
fn tagged(tag: &str, text: &str) -> String {
    let text = text.trim_matches('\n');
    let Some((end, _)) = text.char_indices().nth(TAGGED_MAX) else { return format!("<{tag}>\n{text}\n</{tag}>") };
    let cut = text[end..].chars().count();
    format!("<{tag}>\n{}\n[{cut} characters cut]\n</{tag}>", &text[..end])
}

/// Puts foreign text into a fence that is longer than any fence inside the text.
fn data(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(3.max(longest + 1));
    format!("{fence}text\n{}\n{fence}", text.trim_end())
}

#[cfg(test)]
mod tests {
    use minijinja::context;

    use super::*;

    fn override_of(name: &str, source: &str) -> Result<PromptTemplates, (FileProblems, String)> {
        PromptTemplates::new(vec![(format!("/c/prompts/{name}.j2"), name.to_owned(), source.to_owned())])
    }

    #[test]
    fn every_built_in_template_passes_the_checks_of_an_override() {
        for (name, source) in BUILT_IN {
            assert_eq!(problem_of(name, source), None, "{name}");
        }
    }

    /// A value is inserted as it is: neither rendered nor able to change the template around it.
    #[test]
    fn template_code_inside_of_a_value_stays_text() {
        let hostile = "{{ 7 * 7 }} {% include \"tester\" %} {# gone #} {{ step() }} {%- raw %}";
        let templates = override_of("reminder", "{{ path }}\n{{ command|data }}\n{{ command|tagged('x') }}").unwrap();
        let values = context! { path => hostile, command => hostile };
        let text = templates.render("reminder", &values);
        assert_eq!(text, format!("{hostile}\n```text\n{hostile}\n```\n<x>\n{hostile}\n</x>"));
        assert!(PromptTemplates::default().render("reminder", &values).contains(hostile));
    }

    #[test]
    fn broken_override_is_an_error_with_its_line() {
        for (name, source, place, words) in [
            ("testr", "x", "1:1", "did you mean `tester`?"),
            ("tester", "a\n{{ round", "2:", "syntax error"),
            ("tester", "a\nb {{ secret }}", "2:6", "the template `tester` has no variable `secret`"),
            ("tester", "{{ round|shout }}", "1:", "unknown filter"),
            ("tester", "{% if openspec %}{% endif %}", "1:7", "no variable `openspec`"),
            ("tester", "{% if not round %}{{ round|shout }}{% endif %}", "1:", "unknown filter"),
            ("tester", "{% if round %}{{ round|shout }}{% endif %}", "1:", "unknown filter"),
            ("tester", "{% include '/etc/passwd' %}", "1:", "template not found"),
            ("verifier", "{{ item.nonsense }}", "1:4", "no variable `item.nonsense`"),
        ] {
            let (problems, _) = override_of(name, source).unwrap_err();
            let shown = problems.to_string();
            assert!(shown.starts_with(&format!("/c/prompts/{name}.j2:{place}")), "{source}: {shown}");
            assert!(shown.contains(words), "{source}: {shown}");
        }
    }

    #[test]
    fn override_that_fails_later_gives_way_to_the_built_in_template() {
        let templates = override_of("reminder", "{% if path == '/odd' %}{{ path + 1 }}{% endif %}mine").unwrap();
        let values = |path: &str| context! { path => path, command => "c" };
        assert_eq!(templates.render("reminder", &values("/even")), "mine");
        assert!(templates.render("reminder", &values("/odd")).starts_with("Your answer is missing"));
    }

    #[test]
    fn every_template_file_is_built_in_and_documented() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/prompts");
        let files: BTreeSet<String> = std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        assert_eq!(files, BUILT_IN.iter().map(|(name, _)| (*name).to_owned()).collect());
        let guide = include_str!("../../../docs/configuration.md");
        for (name, _) in BUILT_IN {
            assert!(guide.contains(&format!("`{name}`")), "{name} is not in docs/configuration.md");
        }
    }
}
