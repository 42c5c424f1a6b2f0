//! Output replayed from the keeper's ring after a crash of the daemon is not reported as new.

use posse_core::status::{Claim, Source};

use super::testing::{Scene, scene};
use super::*;

/// Two turns as reported by Claude Code, with a title, a bell and a notification.
const TURNS: &[u8] = b"\x1b]0;old\x07\
    \x1b]7501;state=working:app=claude-code\x07one\x1b]7501;state=idle:app=claude-code\x07\
    \x07\x1b]9;look at me\x07\x1b]7501;state=working:app=claude-code\x07two\r\n";

/// Returns the statuses and signals sent to the hub, with their offsets, up to the pump's next reply.
async fn told(scene: &mut Scene) -> Vec<(u64, &'static str)> {
    assert_eq!(scene.pump.ask(PumpCommand::Alive).await, Some(true));
    let mut told = Vec::new();
    while let Ok(message) = scene.hub.try_recv() {
        if let HubEvent::Pump(_, offset, change) = message {
            let what = match change {
                PumpReport::Status(_) => "status",
                PumpReport::Title(_) => "title",
                PumpReport::Signal(_) => "signal",
                _ => continue,
            };
            told.push((offset.unwrap(), what));
        }
    }
    told
}

/// Returns the agent's last claim by OSC 7501, as known to the pump.
async fn last_word(scene: &Scene) -> Option<Claim> {
    let (_, claims) = scene.pump.ask(PumpCommand::Explain).await.flatten().unwrap();
    claims.into_iter().find(|(source, _)| *source == Source::Osc).map(|(_, claim)| claim)
}

#[tokio::test]
async fn replayed_output_reports_nothing_but_new_output_in_the_same_piece_does() {
    let old = TURNS.len() as u64;
    let mut scene = scene(old);
    let news = b"\x1b]7501;state=idle:app=claude-code\x07\x07";
    scene.output([TURNS, &news[..]].concat());
    let told = told(&mut scene).await;
    assert!(told.iter().all(|(offset, _)| *offset == old + news.len() as u64), "{told:?}");
    assert_eq!(told.iter().filter(|(_, what)| *what == "signal").count(), 1, "only the new bell: {told:?}");
    assert_eq!(last_word(&scene).await, Some(Claim::Ready));
    scene.finish();
}

#[tokio::test]
async fn last_claim_of_replayed_output_is_remembered() {
    let mut scene = scene(TURNS.len() as u64);
    scene.output(TURNS[..40].to_vec());
    scene.output(TURNS[40..].to_vec());
    assert_eq!(told(&mut scene).await.iter().filter(|(_, what)| *what != "title").count(), 0);
    assert_eq!(last_word(&scene).await, Some(Claim::Working));
    scene.finish();
}
