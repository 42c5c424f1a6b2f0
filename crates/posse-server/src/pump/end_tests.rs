//! Requests for an ended agent get an error, both before and after the end is known. The store here never answers,
//! because it no longer knows a pump whose end was reported.

use posse_core::delivery::{Failure, Left, Why};

use super::testing::{heard, scene, scene_of};
use super::*;

#[tokio::test]
async fn requests_for_an_ended_agent_fail() {
    // After the replay an agent answers at once that it has no question; during the replay requests wait.
    for (behind, asked_before) in [(0, InputError::NoQuestion), (100, InputError::Lost)] {
        let scene = scene(behind);
        let before = (scene.message(), scene.answer(None));
        scene.pump.send(PumpEvent::KeeperLost);
        let after = (scene.message(), scene.answer(None));
        assert_eq!(heard(before.0).await, Some(InputError::Lost), "{behind} bytes behind");
        assert_eq!(heard(before.1).await, Some(asked_before), "{behind} bytes behind");
        assert_eq!(heard(after.0).await, Some(InputError::Lost), "{behind} bytes behind");
        assert_eq!(heard(after.1).await, Some(InputError::Lost), "{behind} bytes behind");
        assert!(scene.finish().path().join("screen").exists(), "the last screen is kept");
    }
}

#[tokio::test]
async fn program_is_not_alive_after_its_keeper_is_lost() {
    let scene = scene(0);
    assert_eq!(scene.pump.ask(PumpCommand::Alive).await, Some(true));
    scene.pump.send(PumpEvent::KeeperLost);
    assert_eq!(scene.pump.ask(PumpCommand::Alive).await, Some(false));
    scene.finish();
}

/// The exit is reported after all output. Until then the program must not count as alive.
#[tokio::test]
async fn program_that_ended_earlier_is_not_alive_before_its_exit_is_reported() {
    let scene = scene_of(0, true);
    assert_eq!(scene.pump.ask(PumpCommand::Alive).await, Some(false));
    scene.finish();
}

/// S-166: an input that the keeper refuses gives an error with its reason, and nothing is typed.
#[tokio::test]
async fn s_166_input_the_keeper_refuses_gives_an_error_with_its_reason() {
    use axum::response::IntoResponse;
    for (why, error, status) in [
        (InputRefusal::NotReading, InputError::Ended, 409),
        (InputRefusal::Full, InputError::Full, 409),
        (InputRefusal::Untaken, InputError::KeeperSilent, 503),
    ] {
        let mut scene = scene(0);
        let (reply, answer) = oneshot::channel();
        let input = PumpInput {
            writer: WriterId(9),
            sequence: 1,
            bytes: vec![b'x'; 1000],
            expect: None,
            may_answer: true,
            origin: InputOrigin::Request(reply),
        };
        scene.pump.send(PumpEvent::Command(PumpCommand::Input(input)));
        let (id, writer, sequence) = loop {
            if let KeeperRequest::Input { id, writer, sequence, .. } = scene.keeper.recv().await.unwrap().request {
                break (id, writer, sequence);
            }
        };
        scene.pump.send(PumpEvent::Keeper(KeeperEvent::InputRefused { id, writer, sequence, why }));
        assert_eq!(heard(answer).await, Some(error));
        let response = crate::api::ApiError::from(error).into_response();
        assert_eq!(response.status().as_u16(), status, "{error}");
    }
    // The same holds for a message typed with proof.
    let failure = Failure { why: Why::Typing, left: Left::Nothing };
    let response = crate::api::ApiError::from(InputError::NotDelivered(failure)).into_response();
    assert_eq!(response.status().as_u16(), 500);
}

#[tokio::test]
async fn message_that_cannot_be_stored_is_not_typed() {
    let mut scene = scene(0);
    let message = scene.message();
    scene.store.recv().await.unwrap().tell(Err(crate::store::WriteError::ThreadEnded.into()));
    assert_eq!(heard(message).await, Some(InputError::NotNoted));
    scene.finish();
}
