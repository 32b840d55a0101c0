//! The handles that change targets: `Locker` changes who has a target's lock, and `Writer` changes
//! the target in the name of the one who has it.

use super::{
    ExecutionOutcome, Fence, FencedWrite, Grounds, HostLink, LockOutcome, Prober, Reader,
    RecordOutcome, StealOutcome,
};
use super::{TransportError, Upkeep};
use railwright_base::Reason;
use railwright_resource::Action;
use railwright_resource::rollback_scope::RollbackScope;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Reads, and changes who has the lock of the target.
#[derive(Clone)]
pub struct Locker(Arc<dyn HostLink>);

/// Reads, and changes the target for as long as the lock is its own. Anything else ends as
/// `TransportError::LockLost`.
#[derive(Clone)]
pub struct Writer {
    link: Arc<dyn HostLink>,
    fence: Fence,
}

/// Writes objects of jobs to a cluster. Runs have nothing to do with them, so they need no lock.
#[derive(Clone)]
pub struct JobWriter(Arc<dyn HostLink>);

impl Locker {
    /// A handle that can take the lock.
    pub fn new(link: Arc<dyn HostLink>) -> Self {
        Locker(link)
    }
    /// The reading half.
    pub fn reader(&self) -> Reader {
        Reader::new(self.0.clone())
    }
    /// A handle that writes with this fence.
    pub fn writer(&self, fence: Fence) -> Writer {
        Writer {
            link: self.0.clone(),
            fence,
        }
    }
    /// Takes the lock.
    pub async fn lock(&self, fence: &Fence) -> Result<LockOutcome, TransportError> {
        let lock = Upkeep::Lock {
            holder: fence.holder.clone(),
            fence: fence.number,
        };
        self.0.upkeep(&lock).await.map(LockOutcome::parse)
    }
    /// Takes the lock away from the holder of this line.
    pub async fn steal(
        &self,
        holder: &str,
        number: u64,
        grounds: Grounds,
    ) -> Result<StealOutcome, TransportError> {
        let steal = Upkeep::Steal {
            holder: holder.to_owned(),
            fence: number,
            grounds,
        };
        self.0.upkeep(&steal).await.map(StealOutcome::parse)
    }
}

impl Writer {
    /// The reading half.
    pub fn reader(&self) -> Reader {
        Reader::new(self.link.clone())
    }
    /// The probing half, for gates.
    pub fn prober(&self) -> Prober {
        Prober::new(self.link.clone())
    }
    /// One action.
    pub async fn perform(
        &self,
        action: &Action,
        token: &str,
    ) -> Result<ExecutionOutcome, TransportError> {
        self.link.perform(action, token, Some(&self.fence)).await
    }
    /// Whether steps of earlier connections still run, as `Upkeep::Idle` says.
    pub async fn idle(
        &self,
        attempt: Option<&str>,
        run: Option<&str>,
    ) -> Result<ExecutionOutcome, TransportError> {
        self.link
            .upkeep(&Upkeep::Idle {
                attempt: attempt.map(str::to_owned),
                run: run.map(str::to_owned),
            })
            .await
    }
    /// The state of an automatic rollback, as `Upkeep::RollbackStatus` says.
    pub async fn rollback_status(&self, token: &str) -> Result<ExecutionOutcome, TransportError> {
        self.link
            .upkeep(&Upkeep::RollbackStatus {
                token: token.to_owned(),
            })
            .await
    }
    /// Writes the record in the place of one with one of these digests.
    pub async fn record(
        &self,
        json: String,
        members: Vec<String>,
        replaces: BTreeSet<String>,
    ) -> Result<RecordOutcome, TransportError> {
        self.write(FencedWrite::Record {
            json,
            members,
            replaces,
            set_aside: None,
        })
        .await
        .map(RecordOutcome::parse)
    }
    /// Writes the record in the place of something that cannot be read, which is kept beside it
    /// under this name.
    pub async fn record_beside(
        &self,
        json: String,
        replaces: BTreeSet<String>,
        name: String,
    ) -> Result<RecordOutcome, TransportError> {
        let members = Vec::new();
        self.write(FencedWrite::Record {
            json,
            members,
            replaces,
            set_aside: Some(name),
        })
        .await
        .map(RecordOutcome::parse)
    }
    /// A heartbeat. The inner error says why nobody knows whether it was heard.
    pub async fn beat(&self, note: &str) -> Result<Result<(), Reason>, TransportError> {
        Ok(
            match self
                .write(FencedWrite::Beat {
                    note: note.to_owned(),
                })
                .await?
            {
                ExecutionOutcome::Ended { code: 0, .. } => Ok(()),
                ExecutionOutcome::Ended { code, stderr, .. } => {
                    Err(format!("exit status {code}: {stderr}").into())
                }
                ExecutionOutcome::Unknown { reason } => Err(reason),
            },
        )
    }
    /// Lets the lock go.
    pub async fn unlock(&self) -> Result<ExecutionOutcome, TransportError> {
        self.write(FencedWrite::Unlock).await
    }
    /// Arms an automatic rollback.
    pub async fn arm(
        &self,
        token: &str,
        scope: &RollbackScope,
        seconds: u32,
    ) -> Result<ExecutionOutcome, TransportError> {
        self.write(FencedWrite::Arm {
            token: token.to_owned(),
            scope: scope.clone(),
            seconds,
        })
        .await
    }
    /// Confirms a change and so ends its automatic rollback.
    pub async fn disarm(&self, token: &str) -> Result<ExecutionOutcome, TransportError> {
        self.write(FencedWrite::Disarm {
            token: token.to_owned(),
        })
        .await
    }
    /// Has an automatic rollback put everything back now.
    pub async fn fire(&self, token: &str) -> Result<ExecutionOutcome, TransportError> {
        self.write(FencedWrite::Fire {
            token: token.to_owned(),
        })
        .await
    }
    /// Has the SSH server read its configuration.
    pub async fn server_reads(&self) -> Result<ExecutionOutcome, TransportError> {
        self.write(FencedWrite::ServerReads).await
    }

    async fn write(&self, write: FencedWrite) -> Result<ExecutionOutcome, TransportError> {
        self.link
            .upkeep(&Upkeep::Write {
                fence: self.fence.clone(),
                write,
            })
            .await
    }
}

impl JobWriter {
    /// A handle that writes objects of jobs.
    pub fn new(link: Arc<dyn HostLink>) -> Self {
        JobWriter(link)
    }
    /// The reading half.
    pub fn reader(&self) -> Reader {
        Reader::new(self.0.clone())
    }
    /// One action.
    pub async fn perform(
        &self,
        action: &Action,
        token: &str,
    ) -> Result<ExecutionOutcome, TransportError> {
        self.0.perform(action, token, None).await
    }
}
