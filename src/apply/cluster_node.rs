//! A step on the node of a Kubernetes cluster that a host is: what emptying it and giving it back
//! have in common.

use super::change::Finish;
use super::context::RunEvent;
use super::shared::RunContext;
use super::trouble;
use railwright_base::text::one_line;
use railwright_base::{Diagnostic, Digest, Reason, Target};
use railwright_plan::NodeKind;
use railwright_resource::complaint::find_failure_message;
use railwright_resource::kubernetes_object::node_pods::PodNow;
use railwright_resource::kubernetes_object::nodes::NodeNow;
use railwright_resource::kubernetes_object::request::{ABSENT, KubernetesRead, ObjectName};
use railwright_resource::{Action, Read};
use railwright_state::journal_writer::JournalError;
use railwright_state::{JournalEntry, NodeOutcome};
use railwright_system::clock;
use railwright_transport::{ExecutionOutcome, Writer};
use std::time::Duration;

/// Between two looks, at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Why a step goes no further.
pub(super) enum Halt {
    Journal(JournalError),
    Over(Box<Finish>),
}

impl From<JournalError> for Halt {
    fn from(broken: JournalError) -> Self {
        Halt::Journal(broken)
    }
}

/// The step is over, with this problem to report.
pub(super) fn halt_with_problem(outcome: NodeOutcome, problem: Diagnostic) -> Halt {
    Halt::Over(Box::new(Finish::with_problem(outcome, problem)))
}

/// A step on a node.
pub(super) struct NodeStep<'a> {
    pub shared: &'a RunContext,
    /// Its number in the plan.
    pub n: usize,
    /// The step's id.
    pub id: String,
    cluster: &'a str,
    /// The node's name in the cluster.
    pub node: &'a str,
    writer: Option<Writer>,
    pause: Duration,
}

impl<'a> NodeStep<'a> {
    /// The step with this number, on this node of this cluster.
    pub fn new(shared: &'a RunContext, n: usize, cluster: &'a Target, node: &'a str) -> Self {
        let pause = shared.context.patience.settle_poll;
        NodeStep {
            shared,
            n,
            id: shared.plan.nodes[n].id.clone(),
            cluster: &cluster.name,
            node,
            writer: None,
            pause,
        }
    }

    /// A new connection to the cluster, whose lock is ours still.
    pub async fn connect(&mut self) -> Result<(), Halt> {
        let writer = match self.shared.connect(self.cluster).await {
            Ok(writer) => writer,
            Err(error) => {
                let reason = error.one_line();
                let cluster = format!("kube/{}", self.cluster);
                let problem = trouble::not_reached(cluster, &error, &self.shared.next);
                return Err(halt_with_problem(
                    NodeOutcome::Unreachable { reason },
                    problem,
                ));
            }
        };
        if let Err(lost) = self.shared.heart.confirm(self.cluster, &writer).await {
            return Err(halt_with_problem(
                NodeOutcome::LockLost {
                    reason: lost.message.clone(),
                },
                *lost,
            ));
        }
        self.writer = Some(writer);
        Ok(())
    }

    /// The intent, durable before anything is done.
    pub async fn intend(&self) -> Result<(), Halt> {
        let earlier = self
            .shared
            .earlier
            .nodes
            .get(&self.id)
            .and_then(|status| status.intent.as_ref());
        let attempt = earlier.map_or(1, |intent| intent.attempt + 1);
        let token = format!("{}-{}-{attempt}", self.shared.run, self.n);
        let node = &self.shared.plan.nodes[self.n];
        let actions = Digest::of(&node.kind);
        let entry = JournalEntry::NodeStarted {
            node: self.id.clone(),
            host: self.shared.host_of(self.n),
            disruptive: self.shared.is_disruptive(self.n),
            drains: matches!(node.kind, NodeKind::Drain { .. }),
            attempt,
            token,
            actions,
            members: Vec::new(),
            boot_id: None,
        };
        Ok(self.shared.journal.commit(entry).await?)
    }

    /// How the node is; nothing where the cluster has none of this name.
    pub async fn now(&self) -> Result<Option<NodeNow>, Reason> {
        let object = ObjectName {
            api_version: "v1".to_owned(),
            kind: "Node".to_owned(),
            namespace: None,
            name: self.node.to_owned(),
        };
        match self.read(KubernetesRead::Object(object)).await? {
            (0, text) => serde_json::from_str(&text)
                .map(|node| Some(NodeNow::of(&node)))
                .map_err(|_| "its answer is no node".into()),
            (ABSENT, _) => Ok(None),
            (_, why) => Err(one_line(&why, 200).into()),
        }
    }

    /// The pods that are on it.
    pub async fn pods(&self) -> Result<Vec<PodNow>, Reason> {
        match self
            .read(KubernetesRead::PodsOn(self.node.to_owned()))
            .await?
        {
            (0, text) => {
                serde_json::from_str(&text).map_err(|_| "its answer is no list of pods".into())
            }
            (_, why) => Err(one_line(&why, 200).into()),
        }
    }

    async fn read(&self, read: KubernetesRead) -> Result<(i32, String), Reason> {
        let writer = self.writer.as_ref().ok_or("there is no connection")?;
        let read = Read::Kubernetes(read);
        let answers = writer
            .reader()
            .read(std::slice::from_ref(&read))
            .await
            .map_err(|error| error.one_line())?;
        answers
            .output(&read)
            .map(|(code, out)| (code, out.to_owned()))
    }

    /// Has an action done, and journals it; why it was not done otherwise.
    pub async fn perform(&self, action: Action) -> Result<(), Reason> {
        let (node, word) = (self.id.clone(), action.word());
        (self.shared.sink)(RunEvent::ActionStarted {
            node: node.clone(),
            index: 0,
            count: 1,
            word: word.clone(),
        });
        self.shared.journal.note(JournalEntry::ActionSent {
            node: node.clone(),
            index: 0,
            word: word.clone(),
        });
        let performed = self.ask(&action).await;
        let code = if let ExecutionOutcome::Ended { code, .. } = &performed {
            Some(*code)
        } else {
            None
        };
        self.shared.journal.note(JournalEntry::ActionEnded {
            node,
            index: 0,
            code,
        });
        match performed {
            ExecutionOutcome::Ended { code: 0, .. } => Ok(()),
            ExecutionOutcome::Ended { stderr, .. } => Err(find_failure_message(&stderr)
                .unwrap_or_else(|| format!("{word} was refused"))
                .into()),
            ExecutionOutcome::Unknown { reason } => Err(reason),
        }
    }

    /// Has an action done.
    pub async fn ask(&self, action: &Action) -> ExecutionOutcome {
        let Some(writer) = &self.writer else {
            return ExecutionOutcome::Unknown {
                reason: "there is no connection".into(),
            };
        };
        let token = format!(
            "{}-{}-{}",
            self.shared.run,
            self.n,
            Digest::of(action).short()
        );
        match writer.perform(action, &token).await {
            Ok(performed) => performed,
            Err(error) => ExecutionOutcome::Unknown {
                reason: error.one_line().into(),
            },
        }
    }

    /// What the cluster refused, or did not say.
    pub fn unreadable(&self, reason: &Reason) -> Halt {
        let problem = Diagnostic::error(
            "RW0651",
            format!(
                "the cluster did not do what is due on its node {}: {}",
                self.node,
                one_line(reason.as_words(), 600)
            ),
        )
        .on(self.id.clone())
        .effect(
            "whether pods are put on the node is not known, so nothing after this step was begun \
             on its host",
        )
        .state(format!(
            "whether it is cordoned: kubectl get node {}",
            self.node
        ))
        .next(format!(
            "fix what keeps it, then {}",
            self.shared.next.resume()
        ));
        halt_with_problem(
            NodeOutcome::Failed {
                reason: one_line(reason.as_words(), 200),
            },
            problem,
        )
    }

    /// The user asked to stop.
    pub fn is_interrupted(&self) -> bool {
        self.shared.is_ending()
    }

    /// Says how it stands, where that is not what was said last.
    pub fn tell(&self, words: &str, said: &mut String) {
        if words != said {
            words.clone_into(said);
            (self.shared.sink)(RunEvent::StepWaits {
                node: self.id.clone(),
                words: words.to_owned(),
            });
        }
    }

    /// Waits before the next look, a little longer each time.
    pub async fn pause(&mut self) {
        clock::sleep_for(self.pause).await;
        self.pause =
            (self.pause * 5 / 4).min(LONGEST_PAUSE.max(self.shared.context.patience.settle_poll));
    }

    /// Journals how it ended.
    pub async fn finish(&self, finish: &Finish) {
        let _ = self
            .shared
            .finish(&self.shared.plan.nodes[self.n], finish, None)
            .await;
    }
}
