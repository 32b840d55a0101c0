//! The API server of a Kubernetes cluster, behind the same traits as a host: objects are read and
//! previewed in requests that change nothing, applied as the field manager `railwright`, and the
//! cluster keeps lock and record in its own objects.
//!
//! - The way there: `kubeconfig` (its files), `cluster_config` (server, certificates, proxy),
//!   `pinned_server` (the same one from beginning to end), `identity` (who we are; the exec plugin),
//!   `credentials` (what a request shows), `proxy`, `server` (one request and its answer), `fault`
//!   (what an answer means that is no success).
//! - Reads: `read` over `lists` (checked against their `label_selector`), `kinds` (what the server
//!   calls a kind), `nodes` (whose pods `silence` takes for gone), `jobs`, `access_review` (what
//!   this account may do); a program in a pod by `exec`, the pod that is named (`pod_exec`) or that
//!   an agent has on a node (`agents`), if it runs (`running_pod`).
//! - Writes: `act` decides by what is there, `create`, `write`, `edit`, `node_edit` and `cordon_and_evict`
//!   send it (to a `write_target`) and evaluate the answer; `lock`, `record` and `mark_key` are
//!   ours.
//! - Helm: `helm` runs the program, `chart` finds the chart, `release` shows what it renders to,
//!   `release_change` applies it.

mod access_review;
mod act;
mod agents;
mod answer;
mod chart;
mod cluster_config;
mod cordon_and_evict;
mod create;
mod credentials;
mod edit;
mod exec;
mod fault;
mod helm;
mod identity;
mod jobs;
#[cfg(test)]
mod kept_tests;
mod kinds;
mod kubeconfig;
mod label_selector;
#[cfg(test)]
mod law_tests;
#[cfg(test)]
mod list_law_tests;
mod lists;
mod lock;
#[cfg(test)]
mod lock_tests;
mod mark_key;
mod node_edit;
#[cfg(test)]
mod node_law_tests;
mod nodes;
mod pinned_server;
mod pod_exec;
mod proxy;
mod read;
mod record;
mod release;
mod release_change;
mod running_pod;
mod server;
#[cfg(test)]
mod server_fault_tests;
mod silence;
#[cfg(test)]
mod stale_tests;
#[cfg(test)]
mod tests;
mod unmarked;
mod write;
mod write_target;

use super::target_lock::lock_lost;
use super::{
    BoxFuture, ClusterAccess, ExecutionOutcome, Fence, FencedWrite, HostLink, TransportError,
    Upkeep,
};
use exec::InPod;
use helm::Helm;
use pinned_server::PINS;
use railwright_base::mutex::lock_ignoring_poison;
use railwright_resource::kubernetes_object::access::NAMESPACE;
use railwright_resource::probe::Probe;
use railwright_resource::{Action, Read, ReadResults};
use railwright_system::clock::Deadline;
use record::NewRecord;
use server::KubernetesServer;
use silence::SilenceWatch;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// As of a script that is fed to a host which cannot do what is asked.
const NOT_HERE: i32 = 70;
/// As of a script that could not write.
const NOT_KEPT: i32 = 74;

/// How long a client is used for new connections too: files that are renewed under a run are read
/// again after it.
const KEPT_FOR: Duration = Duration::from_secs(300);

/// Opens connections to API servers. Each step of a run has one of its own, and the exec plugin of
/// a kubeconfig takes a second or two: what it gave is used again, as long as the server takes it.
/// No step changes the way to the server, as one of a host may, so there is none to be checked
/// afresh.
#[derive(Default)]
pub struct KubernetesConnector {
    /// Of a spec's one cluster.
    kept: Mutex<Option<CachedServer>>,
    silence: Arc<SilenceWatch>,
}

struct CachedServer {
    access: ClusterAccess,
    until: Deadline,
    server: Arc<KubernetesServer>,
}

impl KubernetesConnector {
    fn kept(&self) -> MutexGuard<'_, Option<CachedServer>> {
        // Poisoned, another task panicked; what it holds is whole between statements.
        lock_ignoring_poison(&self.kept)
    }

    /// The server that was reached by this access a moment ago.
    fn find_kept_server(&self, access: &ClusterAccess) -> Option<Arc<KubernetesServer>> {
        match &*self.kept() {
            Some(kept) if kept.access == *access && !kept.until.left().is_zero() => {
                Some(kept.server.clone())
            }
            _ => None,
        }
    }

    async fn server(
        &self,
        name: &str,
        access: &ClusterAccess,
    ) -> Result<Arc<KubernetesServer>, TransportError> {
        if let Some(server) = self.find_kept_server(access) {
            // One that goes away, or does not know us any more, says so to whatever is asked of it.
            if !server.is_stranger() {
                return Ok(server);
            }
            match server.greet().await {
                // What we are known by may have been renewed since.
                Err(TransportError::IdentityRefused { .. }) => (),
                Err(error) => return Err(error),
                Ok(()) => return Ok(server),
            }
        }
        let server = Arc::new(identity::open_kubernetes_server(name, access, &PINS).await?);
        server.greet().await?;
        *self.kept() = Some(CachedServer {
            access: access.clone(),
            until: Deadline::after(KEPT_FOR),
            server: server.clone(),
        });
        Ok(server)
    }

    /// A link to the cluster that the spec calls by this name.
    pub async fn connect(
        &self,
        name: &str,
        access: &ClusterAccess,
    ) -> Result<Arc<dyn HostLink>, TransportError> {
        let server = self.server(name, access).await?;
        let (access, silence) = (access.clone(), self.silence.clone());
        Ok(Arc::new(KubernetesLink::new(server, access, silence)))
    }
}

/// A connection to one API server. What it may do is what the roles of its identity allow.
struct KubernetesLink {
    server: Arc<KubernetesServer>,
    /// The name of the Lease and the Secret.
    keeps: String,
    helm: Arc<Helm>,
    silence: Arc<SilenceWatch>,
    /// Of the lock under which it writes; a job has none.
    fence: Option<Fence>,
}

impl KubernetesLink {
    fn new(
        server: Arc<KubernetesServer>,
        access: ClusterAccess,
        silence: Arc<SilenceWatch>,
    ) -> Self {
        let helm = Arc::new(Helm::new(access.clone(), server.words.credentials.clone()));
        KubernetesLink {
            server,
            keeps: access.keeps,
            helm,
            silence,
            fence: None,
        }
    }

    /// A link that writes only while the lock is this writer's.
    fn under(&self, fence: Option<&Fence>) -> Self {
        KubernetesLink {
            server: self.server.clone(),
            keeps: self.keeps.clone(),
            helm: self.helm.clone(),
            silence: self.silence.clone(),
            fence: fence.cloned(),
        }
    }

    async fn keep(&self, upkeep: &Upkeep) -> Result<ExecutionOutcome, TransportError> {
        match upkeep {
            Upkeep::ReadLock => self.lock_now().await,
            Upkeep::ReadRecord => self.record_now().await,
            Upkeep::Lock { holder, fence } => self.lock(&Fence::new(holder, *fence)).await,
            Upkeep::Steal {
                holder,
                fence,
                grounds,
            } => self.steal(holder, *fence, *grounds).await,
            Upkeep::Write { fence, write } => self.write_fenced(fence, write).await,
            // Requests have no life of their own: none goes on when we are gone.
            Upkeep::Idle { .. } => Ok(performed_from_exit(0, "", "")),
            Upkeep::RollbackStatus { .. } => Ok(performed_from_exit(1, "", "")),
        }
    }

    async fn write_fenced(
        &self,
        fence: &Fence,
        write: &FencedWrite,
    ) -> Result<ExecutionOutcome, TransportError> {
        match write {
            FencedWrite::Record {
                json,
                members,
                replaces,
                ..
            } => {
                self.write_record(
                    fence,
                    &NewRecord {
                        json,
                        members,
                        replaces,
                    },
                )
                .await
            }
            FencedWrite::Unlock => self.while_held(self.unlock(fence).await?),
            FencedWrite::Beat { note } => self.while_held(self.beat(fence, note).await?),
            // There is nothing to arm.
            FencedWrite::Arm { .. } => Ok(performed_from_exit(
                69,
                "",
                "an API server has no automatic rollback",
            )),
            FencedWrite::Disarm { .. } | FencedWrite::Fire { .. } => {
                Ok(performed_from_exit(1, "", ""))
            }
            FencedWrite::ServerReads => Ok(performed_from_exit(0, "", "")),
        }
    }

    /// What was done while the lock was its writer's: 1 says that nobody has it, 75 that another
    /// has.
    fn while_held(&self, performed: ExecutionOutcome) -> Result<ExecutionOutcome, TransportError> {
        match performed {
            ExecutionOutcome::Ended { code: 1, .. } => Err(lock_lost(&self.server.cluster, None)),
            ExecutionOutcome::Ended {
                code: 75, stdout, ..
            } => Err(lock_lost(&self.server.cluster, Some(&stdout))),
            other => Ok(other),
        }
    }
}

impl HostLink for KubernetesLink {
    fn read<'a>(&'a self, reads: &'a [Read]) -> BoxFuture<'a, Result<ReadResults, TransportError>> {
        Box::pin(self.read_all(reads))
    }

    fn perform<'a>(
        &'a self,
        action: &'a Action,
        token: &'a str,
        fence: Option<&'a Fence>,
    ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
        Box::pin(async move { self.under(fence).act(action, token).await })
    }

    fn probe<'a>(
        &'a self,
        probe: &'a Probe,
    ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
        Box::pin(async move {
            match probe {
                Probe::InPod {
                    namespace,
                    pod,
                    container,
                    script,
                    lease_s,
                } => {
                    let asked = InPod {
                        namespace,
                        pod,
                        container,
                        script,
                        lease_s: *lease_s,
                    };
                    Ok(exec::in_pod(&self.server, &asked).await)
                }
                _ => Ok(performed_from_exit(
                    NOT_HERE,
                    "",
                    "an API server carries no test traffic",
                )),
            }
        })
    }

    fn upkeep<'a>(
        &'a self,
        upkeep: &'a Upkeep,
    ) -> BoxFuture<'a, Result<ExecutionOutcome, TransportError>> {
        Box::pin(self.keep(upkeep))
    }
}

fn performed_from_exit(code: i32, stdout: &str, stderr: &str) -> ExecutionOutcome {
    ExecutionOutcome::Ended {
        code,
        stdout: end_last_line(stdout),
        stderr: end_last_line(stderr),
    }
}

fn end_last_line(text: &str) -> String {
    if text.is_empty() || text.ends_with('\n') {
        text.to_owned()
    } else {
        format!("{text}\n")
    }
}
