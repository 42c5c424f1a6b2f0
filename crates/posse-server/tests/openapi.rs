//! The description of the API is a reviewed file; it may not drift from the code.
// Tests may wait for the disk.
#![allow(clippy::disallowed_methods)]

use std::path::Path;

#[test]
fn the_committed_description_is_the_true_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    let true_one = posse_server::api::description().unwrap();
    if std::env::var_os("POSSE_UPDATE").is_some() {
        std::fs::write(&path, &true_one).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == true_one,
        "docs/openapi.json is out of date: run this test with POSSE_UPDATE=1 and look at the difference"
    );
}
