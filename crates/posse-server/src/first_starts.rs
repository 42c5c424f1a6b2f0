//! First starts, one at a time: some agents prepare their home when they first start in it, and break if two of them do.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::run::lock;

/// A home for one agent: the agent, its version, and the variables that locate the home.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct AgentHome {
    pub(crate) provider: String,
    /// A new version prepares the home again.
    pub(crate) version: Option<String>,
    pub(crate) variables: Vec<Option<String>>,
}

/// Homes in which an agent has started, or is just doing so. Forgotten with the daemon: then one start is alone that need
/// not be.
#[derive(Debug, Default)]
pub(crate) struct FirstStarts {
    /// `true`: an agent has been ready there.
    homes: Mutex<HashMap<AgentHome, Arc<tokio::sync::Mutex<bool>>>>,
}

impl FirstStarts {
    /// Starts something: alone, as long as nothing was started successfully in this home.
    pub(crate) async fn start<T, E>(&self, home: AgentHome, start: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        let prepared = lock(&self.homes).entry(home).or_default().clone();
        let mut is_prepared = prepared.lock().await;
        if *is_prepared {
            drop(is_prepared);
            return start.await;
        }
        let started = start.await;
        *is_prepared = started.is_ok();
        started
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::{mpsc, oneshot};

    use super::*;

    fn home(of: &str) -> AgentHome {
        AgentHome { provider: "a".into(), version: None, variables: vec![Some(of.into()), None] }
    }

    /// Starts that the test observes and ends.
    struct Starts {
        starts: Arc<FirstStarts>,
        tell: mpsc::UnboundedSender<u32>,
        begun: mpsc::UnboundedReceiver<u32>,
    }

    impl Starts {
        fn new() -> Self {
            let (tell, begun) = mpsc::unbounded_channel();
            Self { starts: Arc::default(), tell, begun }
        }

        fn ask_for(&self, number: u32, of: &str) -> oneshot::Sender<Result<(), ()>> {
            let (end, ended) = oneshot::channel();
            let (starts, tell, home) = (self.starts.clone(), self.tell.clone(), home(of));
            tokio::spawn(async move {
                let start = async {
                    tell.send(number).unwrap();
                    ended.await.unwrap_or(Err(()))
                };
                starts.start(home, start).await
            });
            end
        }

        /// Returns the numbers of starts begun since, once all runnable tasks have run.
        async fn begun(&mut self) -> Vec<u32> {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            std::iter::from_fn(|| self.begun.try_recv().ok()).collect()
        }
    }

    #[tokio::test]
    async fn a_start_is_alone_until_one_has_prepared_the_home() {
        let mut starts = Starts::new();
        let first = starts.ask_for(1, "x");
        let second = starts.ask_for(2, "x");
        let _others = [starts.ask_for(3, "x"), starts.ask_for(4, "x"), starts.ask_for(5, "elsewhere")];
        assert_eq!(starts.begun().await, [1, 5]);
        first.send(Err(())).unwrap();
        assert_eq!(starts.begun().await, [2], "one that fails prepares nothing");
        second.send(Ok(())).unwrap();
        assert_eq!(starts.begun().await, [3, 4], "both at once");
    }
}
