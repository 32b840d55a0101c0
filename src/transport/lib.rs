//! The only room that talks to targets. Behind one trait stand SSH, this machine (`local`), API
//! servers and, for tests, a fleet in memory: all take the typed reads and actions of `resource`,
//! and none but this room renders them.
//!
//! The handles are types: `Reader` (plan, drift) can only read, `Prober` (verify) can also start
//! leased test traffic, `Locker` (apply) can also take the target's lock, and `Writer`, which shows
//! the fence of that lock with every write, can also change things. A dry run holds a `Reader`, so
//! it cannot write; and nothing is written without a fence.
//!
//! Ways to a target: `connectors` chooses among `ssh`, `local`, `api` (switches over NVUE and eAPI)
//! and `kubernetes` (API servers; a map of its own); `sim` is the fleet in memory. `contact` is the
//! leave that a command needs to contact anything, `access` says how to reach a target, `diagnose`
//! words what went wrong.
//!
//! On a host: `link` renders what is asked for into a script, `shell` frames it, bounds what comes
//! back (`OUTPUT_KEPT`, `OUTPUT_TAKEN`) and says what its end means; `secrets` fills secrets in on
//! the way out and takes them out of what programs print. `step` runs a short action, `detached` a
//! long one, `probe_timeout` ends test traffic.
//!
//! Who may write: `target_lock` has the rules of the lock and its fencing token,
//! `fenced_script` the scripts that hold them on the host (`render_lock_check` stands in front
//! of every write), `writer` the handles.
//!
//! What comes back by itself: `rollback_timer` arms the rollback timer of a host or a switch, as a unit of
//! its systemd, and renders what it runs; what is put back is said by the kinds
//! (`resource::rollback_scope`). NVUE has a timer of its own: `api/nvue/rollback_timer`.

mod access;
mod api;
mod connectors;
mod contact;
mod detached;
mod diagnose;
mod fenced_script;
mod kubernetes;
mod link;
mod local;
mod probe_timeout;
mod rollback_timer;
mod secrets;
mod shell;
pub mod sim;
mod ssh;
mod step;
mod target_lock;
mod writer;

pub use access::{ClusterAccess, SshAccess, TargetAccess, TargetReach, resolve_spec_path};
pub use api::{ApiAccess, CertificatePin, Password};
pub use connectors::{Connectors, new_connector};
pub use contact::TargetContact;
pub use fenced_script::RECORD_LIMIT_BYTES;
use railwright_base::Reason;
pub use secrets::Secrets;
pub use ssh::SshConnector;
pub use target_lock::{
    Fence, Grounds, HeldBy, LockOutcome, LockReading, NO_RECORD, RecordOutcome, RecordReading,
    StealOutcome, TargetLock, Uptime,
};
pub use writer::{JobWriter, Locker, Writer};

use railwright_resource::probe::Probe;
use railwright_resource::rollback_scope::RollbackScope;
use railwright_resource::{Action, Read, ReadResults};
use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// A boxed future: keeps the compiler's work small at room borders.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Why there is no answer. A dropped connection is `Lost`: the outcome of what ran is unknown,
/// never failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransportError {
    /// No connection could be made.
    #[error("{host} is not reachable at {address}: {reason}")]
    Unreachable {
        host: String,
        address: String,
        reason: Reason,
    },
    /// The host's key is not in known_hosts.
    #[error("the host key of {host} is not known: {fingerprint}")]
    HostKeyUnknown {
        host: String,
        fingerprint: String,
        known_hosts: String,
        /// What to add to known_hosts once the fingerprint was compared.
        line: String,
        /// Lines that are no lines of known_hosts, as `FILE:LINE`: the key may be meant to stand
        /// there.
        malformed: Vec<String>,
    },
    /// Another key is in known_hosts.
    #[error("the host key of {host} is not the pinned one: {fingerprint}")]
    HostKeyChanged {
        host: String,
        fingerprint: String,
        known_hosts: String,
        line: u32,
    },
    /// The key is marked `@revoked`.
    #[error("the host key of {host} is revoked: {fingerprint}")]
    HostKeyRevoked {
        host: String,
        fingerprint: String,
        known_hosts: String,
        line: u32,
    },
    /// A certificate of an authority that is pinned for the host does not hold.
    #[error("the host certificate of {host} does not hold: {reason}")]
    HostCertificateRefused {
        host: String,
        fingerprint: String,
        known_hosts: String,
        reason: Reason,
    },
    /// No key or agent identity was accepted.
    #[error("{host} accepted none of the identities offered for {user}")]
    AuthenticationFailed {
        host: String,
        user: String,
        tried: Vec<String>,
    },
    /// `sudo -n` refused.
    #[error("{host} does not let {user} use sudo without a password")]
    SudoRefused { host: String, user: String },
    /// The identity may only read, and was asked for more.
    #[error("{user} may only read {host}")]
    ReadOnly { host: String, user: String },
    /// The lock of the target is not this writer's any more; nothing was begun.
    #[error("the lock of {host} is no longer this run's")]
    LockLost {
        host: String,
        /// The line of the holder that has it now.
        holder: Option<String>,
    },
    /// The connection ended in the middle.
    #[error("the connection to {host} ended: {reason}")]
    Lost { host: String, reason: Reason },
    /// It ran past its limit.
    #[error("{host} did not answer within {limit_s} s")]
    TimedOut { host: String, limit_s: u32 },
    /// No connection to the API server of a cluster could be made, or it ended in the middle.
    #[error("the API server of {cluster} is not reachable at {address}: {reason}")]
    ServerUnreachable {
        cluster: String,
        address: String,
        reason: Reason,
    },
    /// Its certificate does not hold.
    #[error("the API server of {cluster} at {address} is not trusted: {reason}")]
    ServerNotTrusted {
        cluster: String,
        address: String,
        reason: Reason,
    },
    /// It does not know who we are; the reason names what was shown to it.
    #[error("the API server of {cluster} at {address} does not accept {reason}")]
    IdentityRefused {
        cluster: String,
        address: String,
        reason: Reason,
    },
    /// Nobody said yet which certificate the API of a switch has to show.
    #[error("the certificate of {switch} at {address} is not known: {fingerprint}")]
    CertificateUnknown {
        switch: String,
        address: String,
        fingerprint: String,
        /// The file that would pin it.
        file: String,
    },
    /// It shows another than the pinned one.
    #[error("the certificate of {switch} at {address} is not the pinned one: \
             {fingerprint}{}{reason}", if reason.is_empty() { "" } else { ", " })]
    CertificateRefused {
        switch: String,
        address: String,
        fingerprint: String,
        /// What pins another.
        pin: String,
        reason: String,
    },
    /// The API does not take the user with this password.
    #[error("{switch} does not let {user} in with the password of the spec")]
    LoginRefused {
        switch: String,
        user: String,
        reason: Reason,
    },
    /// There is no API where it should be.
    #[error("{switch} has no {api} at {address}: {reason}")]
    NoApi {
        switch: String,
        address: String,
        api: &'static str,
        reason: Reason,
    },
    /// The API refuses what was asked for; nothing of it was begun.
    #[error("the {api} of {switch} refuses what it is asked for: {reason}")]
    ApiRefused {
        switch: String,
        api: &'static str,
        user: String,
        reason: Reason,
    },
    /// The Secret in which a cluster keeps the record of our changes cannot be read, though it may
    /// be there.
    #[error("the record of our changes on {cluster} cannot be read: {reason}")]
    RecordUnread {
        cluster: String,
        secret: String,
        reason: Reason,
    },
    /// The kubeconfig, its context or what they name cannot be used on this side.
    #[error("{cluster}: {reason}")]
    NoIdentity { cluster: String, reason: Reason },
    /// No file or connection can be opened any more on this side: no host was contacted.
    #[error("there is no file descriptor left for the connection to {host}; {limit} may be open")]
    NoDescriptors { host: String, limit: usize },
    /// Something on this side: a file that cannot be read, a key that cannot be parsed.
    #[error("{reason}")]
    Local { reason: Reason },
}

/// How an action or probe ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecutionOutcome {
    /// It ended with this exit status; output bounded and not yet cleaned.
    Ended {
        code: i32,
        stdout: String,
        stderr: String,
    },
    /// Whether it took effect is not known (connection lost, no exit status, time limit).
    Unknown { reason: Reason },
}

/// What railwright keeps on the host itself, below `/var/lib/railwright` (0700, files 0600): what
/// is read of it, how its lock changes hands, and what its holder writes. The exit statuses end in
/// `Locker`, `Writer` and `Reader`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Upkeep {
    /// Reads `record.json`. Exit 0 with its text; 1 there is nothing in its place; any other:
    /// something is there and cannot be read.
    ReadRecord,
    /// Takes the host's lock for a holder (one line of JSON) with a fencing token. Exit 0 taken,
    /// stdout the digest of the record that stands there or `none` (nothing where the target does
    /// not tell); 75 held by another, stdout its holder line; 76 the fencing token is lower than
    /// the highest seen, stdout that one.
    Lock { holder: String, fence: u64 },
    /// Takes the lock away from this holder on these grounds, and sees to it that it cannot be had
    /// again with a lower fencing token. Exit 0 done; 1 there is none; 75 another has it, stdout
    /// its holder line; 77 it gave a heartbeat meanwhile.
    Steal {
        holder: String,
        fence: u64,
        grounds: Grounds,
    },
    /// Who holds the lock. Exit 1 nobody does; 0 stdout has the holder line, the latest note (or
    /// nothing), the seconds since the latest heartbeat by the host's own clock, and the highest
    /// fencing token, a line each.
    ReadLock,
    /// Whether a step that an earlier connection began still runs: a short one, a long one that is
    /// not of `run`, or a long one whose token begins with `attempt`. Exit 0 none does; 77 one
    /// does; 78 none does, and stdout names the automatic rollbacks that are not over, a line each:
    /// `TOKEN armed SECONDS-LEFT` or `TOKEN reverting`.
    Idle {
        attempt: Option<String>,
        run: Option<String>,
    },
    /// The state of an automatic rollback: stdout `armed SECONDS-LEFT`, `reverting`, or `reverted`
    /// and what could not be put back. Exit 1 there is none.
    RollbackStatus { token: String },
    /// What only the holder of the lock writes. Where the lock is not its own any more, nothing is
    /// written, and it ends as `TransportError::LockLost`.
    Write { fence: Fence, write: FencedWrite },
}

/// What only the holder of a target's lock writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FencedWrite {
    /// Writes `record.json` atomically in the place of one with one of these digests (`NO_RECORD`
    /// for none; any where there are none, `other` where it is no file); exit 81 where another one
    /// stands there, 69 where the target has no place for one. `set_aside`: what stands there is
    /// kept beside it under this name. `members`: addresses within the target of objects that are
    /// ours or are about to be, whose kinds and places a cluster names beside its record.
    Record {
        json: String,
        members: Vec<String>,
        replaces: BTreeSet<String>,
        set_aside: Option<String>,
    },
    /// Lets the lock go.
    Unlock,
    /// A heartbeat, with a word about what the holder does.
    Beat { note: String },
    /// Keeps what the rollback needs, and has the host put it back by itself after so many seconds
    /// or with its next boot. Exit 0 armed; 69 systemd does not run there; 75 another rollback is
    /// armed; 74 it could not be armed.
    Arm {
        token: String,
        scope: RollbackScope,
        seconds: u32,
    },
    /// Confirms a change and so ends its automatic rollback. Exit 0 it is disarmed; 1 there is
    /// none; 75 it is being put back, or was.
    Disarm { token: String },
    /// Has an automatic rollback put everything back now, without waiting for it. Exit 1 there is
    /// none that is armed.
    Fire { token: String },
    /// Has the SSH server check its configuration and read it. Exit 65 with its complaint where it
    /// does not take it.
    ServerReads,
}

/// One open connection to a host. Implemented by `ssh`, `local` and the simulator.
pub trait HostLink: Send + Sync {
    /// All reads in one program.
    fn read<'a>(&'a self, reads: &'a [Read]) -> BoxFuture<'a, Result<ReadResults, TransportError>>;
    /// One action. Long ones run under the transient unit `railwright-<token>` and are found again
    /// by the token. Hosts and switches take none without the fence of their lock; what is written
    /// to a cluster for a job has none.
    fn perform<'a>(
        &'a self,
        action: &'a Action,
        token: &'a str,
        fence: Option<&'a Fence>,
    ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>>;
    /// One probe.
    fn probe<'a>(
        &'a self,
        probe: &'a Probe,
    ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>>;
    /// Record and lock on the host.
    fn upkeep<'a>(
        &'a self,
        upkeep: &'a Upkeep,
    ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>>;
}

/// Opens connections.
pub trait Connector: Send + Sync {
    /// A new connection to a host; never a cached one, so that a change can be checked over a fresh
    /// path. Of an API server, what is known of it and of us may be used again.
    fn connect<'a>(
        &'a self,
        access: &'a TargetAccess,
    ) -> BoxFuture<'a, Result<Arc<dyn HostLink>, TransportError>>;
}

/// Reads, and nothing else.
#[derive(Clone)]
pub struct Reader(Arc<dyn HostLink>);

/// Reads and starts leased test traffic.
#[derive(Clone)]
pub struct Prober(Arc<dyn HostLink>);

impl Reader {
    /// A handle that can only read.
    pub fn new(link: Arc<dyn HostLink>) -> Self {
        Reader(link)
    }
    /// All reads in one program.
    pub async fn read(&self, reads: &[Read]) -> Result<ReadResults, TransportError> {
        self.0.read(reads).await
    }
    /// Who holds the target's lock; nothing where nobody does. The inner error says why the target
    /// did not tell.
    pub async fn lock(&self) -> Result<Result<Option<LockReading>, Reason>, TransportError> {
        Ok(match self.0.upkeep(&Upkeep::ReadLock).await? {
            ExecutionOutcome::Ended {
                code: 0, stdout, ..
            } => Ok(Some(LockReading::parse(&stdout))),
            ExecutionOutcome::Ended { code: 1, .. } => Ok(None),
            ExecutionOutcome::Ended { code, stderr, .. } => {
                Err(format!("exit status {code}: {stderr}").into())
            }
            ExecutionOutcome::Unknown { reason } => Err(reason),
        })
    }
    /// The record that the host keeps.
    pub async fn record(&self) -> Result<RecordReading, TransportError> {
        self.0
            .upkeep(&Upkeep::ReadRecord)
            .await
            .map(RecordReading::parse)
    }
}

impl Prober {
    /// A handle that can read and probe.
    pub fn new(link: Arc<dyn HostLink>) -> Self {
        Prober(link)
    }
    /// The reading half.
    pub fn reader(&self) -> Reader {
        Reader(self.0.clone())
    }
    /// One probe.
    pub async fn probe(&self, probe: &Probe) -> Result<ExecutionOutcome, TransportError> {
        self.0.probe(probe).await
    }
}
