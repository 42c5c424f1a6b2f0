//! Lists of scenarios in the documentation, held against the tests they name.

use std::path::Path;

/// A file of this repository; empty if it is not there.
pub(crate) fn read(file: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)).unwrap_or_default()
}

/// A test with what is said above it, or why there is none.
pub(crate) fn test_text(source: &str, name: &str) -> Result<String, String> {
    let head = source.find(&format!("fn {name}(")).ok_or("there is no such function")?;
    let begins = source[..head].rfind("\n\n").map_or(0, |at| at + 2);
    if !source[begins..head].contains("test]") {
        return Err("it is no test".into());
    }
    let indent = source[..head].lines().last().unwrap_or_default();
    let indent = &indent[..indent.len() - indent.trim_start().len()];
    let ends = source[head..].find(&format!("\n{indent}}}\n")).ok_or("it has no end")?;
    Ok(source[begins..head + ends].to_owned())
}

/// Whether one of these marks is there: `S-7` or `s_7_`, and not `S-70`.
pub(crate) fn speaks_of(text: &str, marks: &[String]) -> bool {
    let is_whole = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_digit());
    marks.iter().any(|mark| text.match_indices(mark.as_str()).any(|(at, _)| is_whole(&text[at + mark.len()..])))
}

#[test]
fn what_is_not_there_is_noticed() {
    let source = "\n\n/// S-70.\n#[test]\nfn a() {\n    b();\n}\n\nfn c() {\n}\n";
    let marks = |id: u32| [format!("S-{id}"), format!("s_{id}_")];
    assert!(!speaks_of(&test_text(source, "a").unwrap(), &marks(7)));
    assert!(speaks_of(&test_text(source, "a").unwrap(), &marks(70)));
    assert_eq!(test_text(source, "c").unwrap_err(), "it is no test");
    assert_eq!(test_text(source, "d").unwrap_err(), "there is no such function");
}
