//! What goes wrong on a simulated host, and when.

use crate::{FencedWrite, Upkeep};
use railwright_resource::Action;
use serde::{Deserialize, Serialize};

/// What goes wrong.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SimulatedTrouble {
    /// The connection is lost before the action: nothing happens.
    LostBefore,
    /// The connection is lost, and the action goes on for so many more seconds.
    GoesOn(u32),
    /// The connection is lost after the action took effect.
    LostAfter,
    /// The action is killed half way, and the connection is lost.
    Killed,
    /// It ends with exit status 1 and does nothing.
    Fails,
    /// It ends with exit status 0 and does nothing.
    NoEffect,
    /// It does nothing, and says all that it was told.
    Echoes,
    /// It takes so many times as long.
    Slow(u32),
    /// A reboot from which the host comes back only after so many seconds.
    BackAfter(u32),
    /// A reboot after which the earlier kernel command line runs.
    OldKernel,
    /// The host loses power: what runs is gone, and it boots.
    PowerLost,
    /// Of a read, all behind the section with this number is cut off.
    CutOff(usize),
    /// An automatic rollback is armed, and the answer gets lost.
    ArmedUnsaid,
    /// Nobody reaches the host for so many seconds.
    Unreachable(u32),
    /// Nothing can be written for so many calls.
    DiskFull(u32),
    /// The host's clock jumps by so many seconds.
    Clock(i64),
    /// Another program has the package manager's lock for so many seconds.
    PackagesLocked(u32),
    /// Somebody else does this.
    Stranger(Box<Action>),
}

/// A trouble and when it comes: with the first call that it fits, from so many calls on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SimulatedFault {
    /// Calls to the host before it: connections, reads, actions, upkeep.
    pub after: u32,
    /// Only with an action of this word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub word: Option<String>,
    /// What.
    pub trouble: SimulatedTrouble,
}

/// What is asked of a host.
#[derive(Debug, Clone, Copy)]
pub enum SimulatedCall<'a> {
    /// A new connection.
    Connect,
    /// A program of reads.
    Read,
    /// An action.
    Act(&'a Action),
    /// Record, lock and automatic rollbacks.
    Upkeep(&'a Upkeep),
}

impl SimulatedFault {
    /// True when it comes with this call.
    pub fn comes(&self, calls: u32, call: SimulatedCall<'_>) -> bool {
        let fits = match (&self.trouble, call) {
            (SimulatedTrouble::CutOff(_), call) => matches!(call, SimulatedCall::Read),
            (SimulatedTrouble::ArmedUnsaid, call) => matches!(
                call,
                SimulatedCall::Upkeep(Upkeep::Write {
                    write: FencedWrite::Arm { .. },
                    ..
                })
            ),
            (SimulatedTrouble::BackAfter(_) | SimulatedTrouble::OldKernel, call) => {
                matches!(call, SimulatedCall::Act(Action::Reboot))
            }
            // A reboot is no step that could go on, be killed or take longer: it has troubles of
            // its own.
            (
                SimulatedTrouble::GoesOn(_) | SimulatedTrouble::Killed | SimulatedTrouble::Slow(_),
                call,
            ) => {
                matches!(call, SimulatedCall::Act(action) if *action != Action::Reboot)
            }
            (trouble, call) if trouble.is_of_action() => matches!(call, SimulatedCall::Act(_)),
            _ => true,
        };
        let named = match (&self.word, call) {
            (None, _) => true,
            (Some(word), SimulatedCall::Act(action)) => action.word() == *word,
            (Some(_), _) => false,
        };
        fits && named && calls > self.after
    }
}

impl SimulatedTrouble {
    /// True when it happens to one call, and not to the host.
    pub fn is_of_call(&self) -> bool {
        self.is_of_action()
            || matches!(
                self,
                SimulatedTrouble::CutOff(_) | SimulatedTrouble::ArmedUnsaid
            )
    }

    /// True when it happens to an action, and not to the host.
    pub fn is_of_action(&self) -> bool {
        use SimulatedTrouble::{
            BackAfter, Echoes, Fails, GoesOn, Killed, LostAfter, LostBefore, NoEffect, OldKernel,
            Slow,
        };
        matches!(
            self,
            LostBefore
                | GoesOn(_)
                | LostAfter
                | Killed
                | Fails
                | NoEffect
                | Echoes
                | Slow(_)
                | BackAfter(_)
                | OldKernel
        )
    }
}
