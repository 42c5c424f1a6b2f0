//! The status after a prompt, and after a restart.

use super::*;

#[test]
fn earlier_end_does_not_end_the_new_turn() {
    for (script, expected) in [
        // An earlier reported end, the row that closed the last turn, and both.
        ("1000 osc ready; 2000 prompted; 2010 quiet 1; 2400 quiet 2; 2500 spinner", "2500 processing: rule spinner"),
        (
            "2000 prompted; 2100 hook working; 2150 closed",
            "2100 processing: working (hook); 2150 completed: rule closed",
        ),
        ("2000 prompted; 2100 spinner; 5000 quiet 1", "2100 processing: rule spinner; 6000 completed: rule quiet"),
        // A prompt that was not taken.
        ("2000 prompted", "3500 completed: rule idle"),
        // An agent that reports every start is only slow, but the wait is limited.
        ("500 file nothing; 2000 prompted; 2100 quiet 1; 9000 spinner", "9000 processing: rule spinner"),
        ("500 file nothing; 2000 prompted", "12000 completed: rule idle"),
        // The agent does not report the start of its own commands.
        ("500 file nothing; 2000 commanded", "3500 completed: rule idle"),
    ] {
        check_idle(script, &format!("2000 idle: sent; {expected}"));
    }
    check_idle(
        "900 closed; 2000 prompted; 2300 closed; 2400 spinner",
        "900 completed: rule closed; 2000 completed: sent; 2400 processing: rule spinner",
    );
}

/// Only posse knows that a prompt was submitted. Clients must not read that as work of the agent (seed 002).
#[test]
fn status_after_a_prompt_is_the_last_observed_one_until_the_agent_reacts() {
    let (idle, sent) = ((Idle, false, false), (Idle, true, true));
    let check = |script: &str, expected: &[(StatusKind, bool, bool)]| {
        let told = run(&mut Life::starting(wall(0)), &events(&format!("100 idle; 2000 prompted; {script}")));
        let told = told.iter().map(|(_, status)| (status.kind, status.awaiting_reaction, status.unproven));
        assert_eq!(told.collect::<Vec<_>>(), [&[idle, sent][..], expected].concat(), "{script}");
    };
    let (working, over) = ((Processing, false, false), (Completed, false, false));
    check("", &[(Completed, false, true)]);
    check("2600 spinner; 9000 closed", &[working, over]);
    check("2600 hook working; 9000 closed", &[working, over]);
    // A turn of which only the end is observed.
    check("2600 osc over; 9000 closed", &[over]);
    check("2100 asks a", &[(WaitingUserAnswer, false, false)]);
    // The same for each further prompt.
    let again = [(Completed, true, true), (Completed, false, true)];
    check("2100 spinner; 5000 closed; 9000 prompted", &[[working, over], again].concat());
    // An error of the turn before is not one of the turn that starts.
    let failed = [working, (Error, false, false)];
    check("2100 spinner; 5000 hook failed; 5050 quiet 1; 9000 prompted", &[failed, again].concat());
}

#[test]
fn awaited_reaction_survives_a_restart() {
    let mut life = Life::starting(wall(0));
    run(&mut life, &events("100 idle"));
    let sent = life.handle(&Event::Prompted, at(200), wall(200)).cloned().unwrap();
    let stored: Status = serde_json::from_str(&serde_json::to_string(&sent).unwrap()).unwrap();
    assert!(stored.awaiting_reaction && stored.is_busy() && stored.kind == Idle);
    let resumed = Life::resumed(stored.clone(), false);
    assert_eq!(*resumed.status(), stored);
    for (script, expected) in [
        ("300 idle; 400 spinner; 9000 closed", &[(400, Processing), (9_000, Completed)][..]),
        ("300 idle", &[(1_300, Completed)]),
    ] {
        let told = run(&mut resumed.clone(), &events(script));
        assert!(told.iter().all(|(_, status)| !status.awaiting_reaction), "{script}");
        assert_eq!(told.iter().map(|(ms, status)| (*ms, status.kind)).collect::<Vec<_>>(), expected, "{script}");
    }
}

/// After a crash of the daemon the output of several turns is replayed. Only the current screen counts as new.
#[test]
fn recalled_claims_change_no_status_but_delay_an_end() {
    let claims = ["working", "over", "working", "failed", "asks", "working"];
    let script: String = (10..).zip(claims).map(|(ms, claim)| format!("{ms} recalled {claim};")).collect();
    check_idle(&script, "");
    // The last claim is still work, so a quiet screen is believed later.
    check_working("300 recalled working; 400 quiet 1", "1900 completed: rule quiet");
}

#[test]
fn restored_status_holds_until_there_is_evidence() {
    for (kind, reason, script, expected) in [
        (Processing, "rule x", "100 nothing", None),
        (Processing, "rule x", "100 quiet", Some((1_100, Completed))),
        (Processing, "rule x", "100 closed", Some((100, Completed))),
        (Idle, "rule x", "100 spinner", Some((100, Processing))),
        (Completed, "rule x", "100 idle", None),
        (Idle, "rule x", "100 asks a", Some((100, WaitingUserAnswer))),
        (WaitingUserAnswer, "rule x", "100 spinner", Some((100, Processing))),
        (Error, "rule x", "100 idle", Some((1_100, Completed))),
        // The agent is still starting.
        (Processing, "starting", "100 idle", Some((100, Idle))),
    ] {
        let told = run(&mut Life::resumed(Status::new(kind, reason, Wall(0)), false), &events(script));
        let told: Vec<_> = told.iter().map(|(ms, status)| (*ms, status.kind)).collect();
        assert_eq!(told, Vec::from_iter(expected), "{kind} then {script}");
    }
}
