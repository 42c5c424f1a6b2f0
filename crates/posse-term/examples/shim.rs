//! The shim as a program of its own, for the tests: `posse shim` without posse.

fn main() {
    let file = std::env::args_os().next_back().unwrap_or_default();
    match posse_term::tmux::run_shim(std::path::Path::new(&file)) {
        Ok(code) => std::process::exit(code),
        Err(error) => {
            eprintln!("shim: {error}");
            std::process::exit(1);
        }
    }
}
