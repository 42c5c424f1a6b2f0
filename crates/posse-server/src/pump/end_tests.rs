//! Whoever wants something of an agent that has ended hears so, from whichever side of the end the wish comes. The hub here
//! says nothing: it does not know a pump any more whose end it has heard of.

use super::testing::{heard, scene};
use super::*;

#[tokio::test]
async fn asked_on_either_side_of_the_end() {
    // An agent that is caught up with answers at once that it asks nothing; what one that is not gets has to wait.
    for (behind, asked_before) in [(0, InputError::NoQuestion), (100, InputError::Lost)] {
        let scene = scene(behind);
        let before = (scene.message(), scene.answer(None));
        scene.pump.send(Event::KeeperLost);
        let after = (scene.message(), scene.answer(None));
        assert_eq!(heard(before.0).await, Some(InputError::Lost), "{behind} bytes behind");
        assert_eq!(heard(before.1).await, Some(asked_before), "{behind} bytes behind");
        assert_eq!(heard(after.0).await, Some(InputError::Lost), "{behind} bytes behind");
        assert_eq!(heard(after.1).await, Some(InputError::Lost), "{behind} bytes behind");
        drop((scene.pump, scene.hub, scene.keeper));
        scene.recorder.finish();
        assert!(scene.directory.path().join("screen").exists(), "the last screen is kept");
    }
}

#[tokio::test]
async fn it_is_not_alive_before_anybody_has_heard_so() {
    let scene = scene(0);
    assert_eq!(scene.pump.ask(Command::Alive).await, Some(true));
    scene.pump.send(Event::KeeperLost);
    assert_eq!(scene.pump.ask(Command::Alive).await, Some(false));
    drop((scene.pump, scene.hub, scene.keeper));
    scene.recorder.finish();
}
