//! The command agents are told to use, run by a real shell: it must do what it promises for any path and any answer.
#![allow(clippy::unwrap_used)]

use std::process::{Command, Stdio};

use posse_core::turn::files::{heredoc_word, instruction, reminder};

/// The command in these instructions, with this answer in its place.
fn command(text: &str, word: &str, answer: &str) -> String {
    let from = text.find("cat > ").unwrap();
    let end = format!("\n{word}");
    let to = text.rfind(&end).unwrap() + end.len();
    text[from..to].replace("<your answer>", answer)
}

fn run(command: &str) {
    let status = Command::new("sh").arg("-c").arg(command).stdin(Stdio::null()).status().unwrap();
    assert!(status.success(), "{command}");
}

#[test]
fn s_110_s_111_the_file_holds_the_answer_whatever_is_in_it() {
    let answers = [
        "RESULT: PASS",
        "EOF\nANSWER\n`rm -rf x` $(exit 1) $HOME \\ \"quotes\" 'quotes'",
        "ANSWER_\nANSWER_0000000000000000",
        "",
    ];
    let directory = tempfile::tempdir().unwrap();
    for (n, name) in ["plain", "with blanks", "it's \"quoted\"", "$HOME `x` \\n", "Ünïcödé", "-dash"].iter().enumerate()
    {
        let folder = directory.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("test_result.md");
        let word = heredoc_word(0xfeed_0000 + n as u64);
        let templates = posse_core::prompts::PromptTemplates::default();
        for text in [
            instruction(&templates, path.to_str().unwrap(), &word),
            reminder(&templates, path.to_str().unwrap(), &word),
        ] {
            for answer in answers {
                run(&command(&text, &word, answer));
                assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{answer}\n"));
            }
        }
        let left: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["test_result.md"], "nothing else is left behind");
    }
}
