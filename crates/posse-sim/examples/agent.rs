//! Plays the scenario file named on the command line; the tests run this in a real terminal.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("usage: agent FILE")?;
    let scenario = posse_sim::Scenario::parse(&std::fs::read_to_string(file)?)?;
    std::process::exit(posse_sim::agent::run(scenario)?)
}
