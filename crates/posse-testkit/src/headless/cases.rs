//! What is played to sessions without a terminal, to record what they say about it.

/// One recording.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub name: &'static str,
    /// Whose permissions the session gets.
    pub agent: &'static str,
    /// What the model says.
    pub scenario: &'static str,
    /// How often a failed request is repeated.
    pub retries: u32,
    /// Claude Code only: it believes itself signed in to a subscription, which has limits of its own.
    pub subscribed: bool,
    /// Claude Code only.
    pub max_turns: Option<u32>,
    /// It is killed when the model has come to this gate.
    pub killed_at: Option<&'static str>,
}

const USUAL: Case =
    Case { name: "", agent: "coder", scenario: "", retries: 1, subscribed: false, max_turns: None, killed_at: None };

pub const CASES: [Case; 15] = [
    Case {
        name: "answer",
        scenario: "[[turn]]\nsteps = [{ think = { text = 'Hm.' } }, { say = 'All is well.' }]",
        ..USUAL
    },
    Case {
        name: "answer_subscribed",
        scenario: "[[turn]]\nsteps = [{ say = 'You have hit your limit · resets 3pm, says the item.' }]",
        subscribed: true,
        ..USUAL
    },
    Case {
        name: "edit_inside",
        scenario: "[[turn]]\nsteps = [{ say = 'I write it.' }, { write = { path = 'made.txt', text = 'made' } }]
                   [[turn]]\nsteps = [{ run = { command = 'cat made.txt' } }]
                   [[turn]]\nsteps = [{ say = 'It is there.' }]",
        ..USUAL
    },
    Case {
        name: "edit_outside",
        scenario: "[[turn]]\nsteps = [{ write = { path = '../home/outside.txt', text = 'no' } }]
                   [[turn]]\nsteps = [{ say = 'It was refused.' }]",
        ..USUAL
    },
    Case {
        name: "command_outside",
        scenario: "[[turn]]\nsteps = [{ run = { command = 'echo no > ../home/outside.txt' } }]
                   [[turn]]\nsteps = [{ run = { command = 'exit 3' } }]
                   [[turn]]\nsteps = [{ say = 'One was refused, one failed.' }]",
        ..USUAL
    },
    Case {
        name: "reader_writes",
        agent: "code-reviewer",
        scenario: "[[turn]]\nsteps = [{ write = { path = 'made.txt', text = 'no' } }]
                   [[turn]]\nsteps = [{ run = { command = 'touch made.txt' } }]
                   [[turn]]\nsteps = [{ say = 'Both were refused.' }]",
        ..USUAL
    },
    Case {
        name: "escalation",
        scenario: "[[turn]]\nsteps = [{ run = { command = 'git push origin main', escalated = true } }]
                   [[turn]]\nsteps = [{ say = 'It was refused.' }]",
        ..USUAL
    },
    Case {
        name: "error_401",
        scenario: "[[turn]]\nsteps = [{ fail = { status = 401 } }]",
        ..USUAL
    },
    Case {
        name: "error_400",
        scenario: "[[turn]]\nsteps = [{ fail = { status = 400 } }]",
        ..USUAL
    },
    Case {
        name: "limit",
        scenario: "[[turn]]\nsteps = [{ fail = { status = 429, kind = 'usage_limit_reached',
                   message = 'The usage limit has been reached', fields = { plan_type = 'plus', resets_at = 'now+7200' },
                   headers = { anthropic-ratelimit-unified-status = 'rejected',
                   anthropic-ratelimit-unified-reset = 'now+3600', x-should-retry = 'false',
                   anthropic-ratelimit-unified-representative-claim = 'five_hour' } } }]",
        subscribed: true,
        ..USUAL
    },
    Case {
        name: "error_429",
        scenario: "[[turn]]\nsteps = [{ fail = { status = 429 } }]",
        ..USUAL
    },
    Case {
        name: "retry_500",
        scenario: "[[turn]]\nsteps = [{ fail = { status = 500, times = 1 } }, { say = 'At the second time.' }]",
        retries: 2,
        ..USUAL
    },
    Case {
        name: "error_500",
        scenario: "[[turn]]\nsteps = [{ fail = { status = 500 } }]",
        ..USUAL
    },
    Case {
        name: "dropped",
        scenario: "[[turn]]\nsteps = [{ say = 'Half of' }, { fail = 'dropped' }]",
        ..USUAL
    },
    Case {
        name: "killed",
        scenario: "[[turn]]\nsteps = [{ say = 'I look.' }, { run = { command = 'cat README.md' } }]
                   [[turn]]\nsteps = [{ say = 'And then' }, { wait_for = 'the end' }]",
        killed_at: Some("the end"),
        ..USUAL
    },
];

/// Only Claude Code can be told how many turns it may take.
pub const MAX_TURNS: Case = Case {
    name: "max_turns",
    scenario: "[[turn]]\nsteps = [{ run = { command = 'cat README.md' } }]
               [[turn]]\nsteps = [{ run = { command = 'cat README.md' } }]
               [[turn]]\nsteps = [{ say = 'Never said.' }]",
    max_turns: Some(1),
    ..USUAL
};
