//! What posse makes of a recorded session: `headless_events PROVIDER STREAM.jsonl`. Its standard error is read from
//! `STREAM.stderr` if there is one. One event to a line; the expectations beside the recordings are made like this, and read.

use std::process::ExitCode;

use posse_agents::headless::Reader;
use posse_agents::manifest::built_in;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [provider, stream] = arguments.as_slice() else {
        eprintln!("usage: headless_events PROVIDER STREAM.jsonl");
        return ExitCode::FAILURE;
    };
    let Some(texts) = built_in(provider).and_then(Result::ok).and_then(|provider| provider.manifest.headless) else {
        eprintln!("{provider} is no agent that runs without a terminal");
        return ExitCode::FAILURE;
    };
    let stdout = match std::fs::read(stream) {
        Ok(stdout) => stdout,
        Err(error) => {
            eprintln!("{stream}: {error}");
            return ExitCode::FAILURE;
        }
    };
    let stderr = std::fs::read(stream.replace(".jsonl", ".stderr")).unwrap_or_default();
    let mut reader = Reader::new(texts);
    let mut events = reader.stdout(&stdout);
    events.extend(reader.stderr(&stderr));
    events.extend(reader.finish());
    for event in events {
        match serde_json::to_string(&event) {
            Ok(line) => println!("{line}"),
            Err(error) => eprintln!("{error}"),
        }
    }
    ExitCode::SUCCESS
}
