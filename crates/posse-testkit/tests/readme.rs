//! What README.md says about how often the status is right is what was measured.
#![allow(clippy::unwrap_used)]

use posse_testkit::conformance::readme;

#[test]
fn the_figures_are_those_of_the_conformance_page() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let read = |name: &str| std::fs::read_to_string(format!("{root}/{name}")).unwrap();
    let table = readme::table(&read("docs/conformance.md")).expect("docs/conformance.md has its figures");
    let text = read("README.md");
    let mended = readme::put(&text, &table).expect("README.md has a place for them");
    assert!(text == mended, "run: cargo run -p posse-testkit --bin conformance -- --no-run --readme");
}
