//! The registry of active drivers. A driver receives commands; a run that rests has none.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use posse_core::ids::RunId;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

pub(crate) struct DriverRegistry<C> {
    drivers: Arc<Mutex<HashMap<RunId, UnboundedSender<C>>>>,
}

impl<C> DriverRegistry<C> {
    /// Adds the driver of a run. Returns the sender of its commands, for `leave`, and the receiver.
    pub(crate) fn enter(&self, id: RunId) -> (UnboundedSender<C>, UnboundedReceiver<C>) {
        let (commands, inbox) = unbounded_channel();
        self.drivers().insert(id, commands.clone());
        (commands, inbox)
    }

    /// Removes a driver that has ended. A new driver of the same run stays.
    pub(crate) fn leave(&self, id: RunId, commands: &UnboundedSender<C>) {
        let mut drivers = self.drivers();
        if drivers.get(&id).is_some_and(|driver| driver.same_channel(commands)) {
            drivers.remove(&id);
        }
    }

    /// Sends a command. Returns whether the run has a driver.
    pub(crate) fn send(&self, id: RunId, command: C) -> bool {
        self.drivers().get(&id).is_some_and(|driver| driver.send(command).is_ok())
    }

    /// Sends a command and waits for its receipt. Returns false if the driver has ended.
    pub(crate) async fn tell(&self, id: RunId, command: impl FnOnce(oneshot::Sender<()>) -> C) -> bool {
        let (taken, answer) = oneshot::channel();
        self.send(id, command(taken)) && answer.await.is_ok()
    }

    fn drivers(&self) -> MutexGuard<'_, HashMap<RunId, UnboundedSender<C>>> {
        self.drivers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C> Clone for DriverRegistry<C> {
    fn clone(&self) -> Self {
        Self { drivers: self.drivers.clone() }
    }
}

impl<C> Default for DriverRegistry<C> {
    fn default() -> Self {
        Self { drivers: Arc::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_driver_at_its_end_takes_nothing_and_puts_nobody_out() {
        let driven = DriverRegistry::<oneshot::Sender<()>>::default();
        let id = RunId::from_random(7);
        assert!(!driven.tell(id, |taken| taken).await, "nobody drives it");

        let (first, inbox) = driven.enter(id);
        let told = driven.tell(id, |taken| taken);
        let ends = async { drop(inbox) };
        assert!(!tokio::join!(told, ends).0, "it ended before it heard of it");

        let (second, mut inbox) = driven.enter(id);
        driven.leave(id, &first);
        let told = driven.tell(id, |taken| taken);
        let takes = async { inbox.recv().await.unwrap().send(()).unwrap() };
        assert!(tokio::join!(told, takes).0);
        driven.leave(id, &second);
        assert!(!driven.tell(id, |taken| taken).await, "nobody drives it any more");
    }
}
