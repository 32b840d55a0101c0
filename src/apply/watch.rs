//! What a run looks at besides its steps: the clock (maintenance window, deadline) and the orders
//! that others leave for it in the state folder.

use super::context::Context;
use jiff::{SignedDuration, Timestamp};
use railwright_knowledge::spec::window::{Opening, WindowState, compute_window_state};
use railwright_plan::RolloutPolicy;
use railwright_state::{RunOrder, StateFolder};
use railwright_system::clock::{Clock, Ticker};

/// Something that the scheduler has to know.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Notice {
    /// No maintenance window is open any more.
    Closed,
    /// The run has gone on for as long as it may.
    Expired,
    /// Somebody ordered something.
    Ordered(RunOrder),
}

/// Looks now and then.
pub(super) struct RunMonitor {
    ticker: Ticker,
    clock: Clock,
    openings: Vec<Opening>,
    /// Not re-checked before that moment.
    open_until: Option<Timestamp>,
    expires: Option<Timestamp>,
    folder: StateFolder,
    run: String,
    /// The latest order that was noticed, or lay there before.
    last_order: Option<RunOrder>,
}

impl RunMonitor {
    /// From now on. The order that lay there before, followed or not, is none for this part of the
    /// run.
    pub fn new(
        context: &Context,
        policy: &RolloutPolicy,
        run: &str,
        last_order: Option<RunOrder>,
    ) -> Self {
        let expires = policy.deadline_s.and_then(|seconds| {
            let deadline = SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX));
            context.clock.now().checked_add(deadline).ok()
        });
        RunMonitor {
            ticker: Ticker::every(context.patience.watch),
            clock: context.clock.clone(),
            openings: policy.openings(),
            open_until: None,
            expires,
            folder: context.folder.clone(),
            run: run.to_owned(),
            last_order,
        }
    }

    /// Waits a moment, then says what is new.
    pub async fn next(&mut self) -> Vec<Notice> {
        self.ticker.tick().await;
        self.look()
    }

    /// What is new since the last look.
    pub fn look(&mut self) -> Vec<Notice> {
        let now = self.clock.now();
        let mut notices = Vec::new();
        if self.expires.is_some_and(|expires| now >= expires) {
            self.expires = None;
            notices.push(Notice::Expired);
        }
        if self.closes(now) {
            self.openings.clear();
            notices.push(Notice::Closed);
        }
        if let Some(order) = self
            .folder
            .read_order(&self.run)
            .filter(|order| self.last_order.as_ref() != Some(order))
        {
            self.last_order = Some(order.clone());
            notices.push(Notice::Ordered(order));
        }
        notices
    }

    fn closes(&mut self, now: Timestamp) -> bool {
        if self.openings.is_empty() || self.open_until.is_some_and(|until| now < until) {
            return false;
        }
        match compute_window_state(&self.openings, now) {
            WindowState::Open { until } => {
                self.open_until = Some(until);
                false
            }
            WindowState::Closed { .. } => true,
        }
    }
}
