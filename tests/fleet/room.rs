//! A fleet in memory: typed hosts that apply reads and actions as values, and break when they are told to.

use super::context::{Context, Event, EventSink, Patience};
use super::gate::{GateResult, Gatekeeper};
use crate::base::{Address, Diagnostic, Digest, Target};
use crate::observe::sealed::{named_by_host, seal_wishes};
use crate::plan::{Header, Inputs, InventoryOrigin, Plan, RolloutPolicy, Selection, make};
use crate::resource::file::{base64, sealed::seal_answer};
use crate::resource::probe::Probe;
use crate::resource::{Action, Answer, AnswerStatus, Answers, Disruption, Observation, Read, TargetObservation, Wish, kind_named};
use crate::state::{State, StateFolder};
use crate::transport::{BoxFuture, Connector, HostAccess, HostLink, Performed, Secrets, TransportError, Upkeep};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

/// What a host does wrong the next time it is told this word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The connection is lost before the action.
    LostBefore,
    /// The connection is lost after the action.
    LostAfter,
    /// The connection is lost, and the action goes on for three looks.
    GoesOn,
    /// It ends with exit status 1 and does nothing.
    Fails,
    /// It ends with exit status 0 and does nothing.
    NoEffect,
    /// It does nothing, and says all that it was told.
    Echoes,
}

/// One host.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Host {
    pub files: BTreeMap<String, String>,
    /// Of files that were written with another mode than the usual one.
    pub modes: BTreeMap<String, String>,
    pub sysctls: BTreeMap<String, String>,
    pub cmdline: Vec<String>,
    pub next_cmdline: Vec<String>,
    pub boot: u32,
    pub record: Option<String>,
    pub lock: Option<String>,
    pub fence: u64,
    pub ssh_netdev: Option<String>,
    /// Connections that fail before it is there again.
    pub down_for: u32,
    pub faults: Vec<(String, Fault)>,
    /// An action that nobody is connected to, with the looks until it has ended.
    pub running: Option<(Action, u32)>,
    /// The words that it was told, in order.
    pub told: Vec<String>,
    /// The tokens under which it was told anything, heard or not.
    pub tokens: Vec<String>,
}

impl Host {
    fn answer(&self, read: &Read) -> (i32, String) {
        match read {
            Read::Host => {
                let ssh = self.ssh_netdev.as_ref().map(|n| format!("ssh {n}\n")).unwrap_or_default();
                (0, format!("version 1\nuid 0\nboot_id boot-{}\n{ssh}end\n", self.boot))
            }
            Read::File { path } | Read::SealedFile { path } => match self.files.get(path) {
                Some(text) => {
                    let mode = self.modes.get(path).map_or("644", String::as_str);
                    (0, format!("{mode} root root {} regular file\n{text}", text.len()))
                }
                None => (1, format!("folder {}\n", path.rsplit_once('/').unwrap().0)),
            },
            Read::Sysctl { key } => {
                let mut out = self.sysctls.get(key).map_or("none\n".to_owned(), |value| format!("running\t{value}\n"));
                for (path, text) in self.files.iter().filter(|(path, _)| path.starts_with("/etc/sysctl.d/")) {
                    out.push_str(&format!("file\t{path}\n"));
                    text.lines().for_each(|line| out.push_str(&format!("line\t{path}:{line}\n")));
                }
                (0, out)
            }
            Read::Boot => {
                (0, format!("running\t{}\nloader\tgrubby\ngrubby\targs=\"{}\"\n", self.cmdline.join(" "), self.next_cmdline.join(" ")))
            }
            other => panic!("the fleet in memory does not answer {other:?}"),
        }
    }

    fn act(&mut self, action: &Action) {
        match action {
            Action::WriteFile { path, content, mode, .. } => {
                self.files.insert(path.clone(), content.clone());
                self.modes.insert(path.clone(), mode.clone());
            }
            Action::WriteBinaryFile { path, base64, .. } => {
                drop(self.files.insert(path.clone(), String::from_utf8(base64::decode(base64).unwrap()).unwrap()));
            }
            Action::RemoveFile { path } => drop(self.files.remove(path)),
            Action::SetSysctl { key, value } => drop(self.sysctls.insert(key.clone(), value.clone())),
            Action::SetKernelArgument { argument, present } => {
                self.next_cmdline.retain(|other| other.split('=').next() != argument.split('=').next());
                if *present {
                    self.next_cmdline.push(argument.clone());
                }
            }
            Action::Reboot => {
                self.boot += 1;
                self.down_for = 2;
                self.cmdline = self.next_cmdline.clone();
                let lines = self.files.iter().filter(|(path, _)| path.starts_with("/etc/sysctl.d/")).flat_map(|(_, text)| text.lines());
                let kept = lines.filter_map(|l| l.split_once(" = ")).map(|(k, v)| (k.to_owned(), v.to_owned())).collect::<BTreeMap<_, _>>();
                self.sysctls.iter_mut().for_each(|(key, value)| *value = kept.get(key).cloned().unwrap_or_else(|| "0".to_owned()));
            }
            other => panic!("the fleet in memory cannot do {other:?}"),
        }
    }

    fn upkeep(&mut self, upkeep: &Upkeep) -> (i32, String) {
        match upkeep {
            Upkeep::ReadRecord => self.record.clone().map_or((1, String::new()), |json| (0, json)),
            Upkeep::WriteRecord { json } => {
                self.record = Some(json.clone());
                (0, String::new())
            }
            Upkeep::Lock { holder, fence } => match &self.lock {
                Some(other) if other != holder => (75, format!("{other}\n")),
                _ if *fence < self.fence => (76, format!("{}\n", self.fence)),
                _ => {
                    (self.lock, self.fence) = (Some(holder.clone()), *fence);
                    (0, String::new())
                }
            },
            Upkeep::Idle => match self.running.take() {
                None => (0, String::new()),
                Some((action, 0)) => {
                    self.act(&action);
                    self.told.push(action.word());
                    (0, String::new())
                }
                Some((action, looks)) => {
                    self.running = Some((action, looks - 1));
                    (77, String::new())
                }
            },
            Upkeep::Unlock { holder } => match &self.lock {
                Some(other) if other != holder => (75, format!("{other}\n")),
                _ => {
                    self.lock = None;
                    (0, String::new())
                }
            },
        }
    }
}

/// All hosts, and whether railwright itself is dead (then nothing reaches them any more).
#[derive(Debug, Clone, Default)]
pub struct Fleet {
    pub hosts: Arc<Mutex<BTreeMap<String, Host>>>,
    pub dead: Arc<Mutex<bool>>,
}

impl Fleet {
    pub fn of(names: &[&str]) -> Self {
        let host = Host {
            sysctls: [("net.a".to_owned(), "0".to_owned()), ("net.b".to_owned(), "0".to_owned())].into(),
            cmdline: vec!["quiet".to_owned()],
            next_cmdline: vec!["quiet".to_owned()],
            ..Host::default()
        };
        let fleet = Fleet::default();
        *fleet.hosts.lock().unwrap() = names.iter().map(|name| ((*name).to_owned(), host.clone())).collect();
        fleet
    }

    pub fn with<T>(&self, host: &str, change: impl FnOnce(&mut Host) -> T) -> T {
        change(self.hosts.lock().unwrap().get_mut(host).unwrap())
    }

    pub fn fault(&self, host: &str, word: &str, fault: Fault) {
        self.with(host, |host| host.faults.push((word.to_owned(), fault)));
    }

    fn reach<T>(&self, host: &str, what: impl FnOnce(&mut Host) -> T) -> Result<T, TransportError> {
        if *self.dead.lock().unwrap() {
            return Err(TransportError::Lost { host: host.to_owned(), reason: "railwright is dead".to_owned() });
        }
        Ok(self.with(host, what))
    }

    /// What an observation of the whole fleet would be.
    fn observe(&self, wishes: &[Wish], state: &State, secrets: &Secrets) -> Observation {
        let hosts = self.hosts.lock().unwrap();
        let mut targets = BTreeMap::new();
        for (name, host) in hosts.iter() {
            let target = Target::host(name);
            let applied = state.last_applied.resources.iter().map(|(address, applied)| applied.wish(address)).collect::<Vec<_>>();
            let mut answers = Answers::default();
            for wish in wishes.iter().chain(&applied).filter(|wish| wish.address.target == target) {
                for read in kind_named(&wish.kind).unwrap().reads(wish) {
                    let (code, out) = host.answer(&read);
                    let answer = Answer { status: AnswerStatus::Exit(code), out };
                    let answer = match &read {
                        Read::SealedFile { path } => seal_answer(path, answer, secrets.key()),
                        _ => answer,
                    };
                    answers.insert(read.key(), answer);
                }
            }
            targets.insert(target, TargetObservation { problem: None, answers });
        }
        Observation { format_version: "1.0".into(), recorded_at: "2026-01-01T00:00:00Z".into(), texts: BTreeMap::new(), targets }
    }
}

struct Link {
    fleet: Fleet,
    host: String,
}

impl HostLink for Link {
    fn read<'a>(&'a self, reads: &'a [Read]) -> BoxFuture<'a, Result<Answers, TransportError>> {
        Box::pin(async move {
            self.fleet.reach(&self.host, |host| {
                let mut answers = Answers::default();
                for read in reads {
                    let (code, out) = host.answer(read);
                    answers.insert(read.key(), Answer { status: AnswerStatus::Exit(code), out });
                }
                answers
            })
        })
    }

    fn perform<'a>(&'a self, action: &'a Action, token: &'a str) -> BoxFuture<'a, Result<Performed, TransportError>> {
        Box::pin(async move {
            tokio::task::yield_now().await;
            self.fleet.reach(&self.host, |host| {
                let word = action.word();
                host.tokens.push(token.to_owned());
                let fault = host.faults.iter().position(|(w, _)| *w == word).map(|n| host.faults.remove(n).1);
                let ended = |code: i32| Performed::Ended { code, stdout: String::new(), stderr: "no such \u{1b}[31mdevice".to_owned() };
                let echo = serde_json::to_string(action).unwrap();
                let lost = Performed::Unknown { reason: "the connection ended".to_owned() };
                assert!(host.running.is_none(), "{word} beside {:?}", host.running);
                if fault == Some(Fault::GoesOn) {
                    host.running = Some((action.clone(), 3));
                    return lost;
                }
                if !matches!(fault, Some(Fault::LostBefore | Fault::Fails | Fault::NoEffect | Fault::Echoes)) {
                    host.act(action);
                    host.told.push(word);
                }
                match fault {
                    Some(Fault::LostBefore | Fault::LostAfter) => lost,
                    Some(Fault::Fails) => ended(1),
                    Some(Fault::Echoes) => Performed::Ended { code: 2, stdout: echo.clone(), stderr: echo },
                    _ => ended(0),
                }
            })
        })
    }

    fn probe<'a>(&'a self, _: &'a Probe) -> BoxFuture<'a, Result<Performed, TransportError>> {
        Box::pin(async { Ok(Performed::Unknown { reason: "no probes here".to_owned() }) })
    }

    fn upkeep<'a>(&'a self, upkeep: &'a Upkeep) -> BoxFuture<'a, Result<Performed, TransportError>> {
        Box::pin(async move {
            let (code, stdout) = self.fleet.reach(&self.host, |host| host.upkeep(upkeep))?;
            Ok(Performed::Ended { code, stdout, stderr: String::new() })
        })
    }
}

impl Connector for Fleet {
    fn connect<'a>(&'a self, access: &'a HostAccess) -> BoxFuture<'a, Result<Arc<dyn HostLink>, TransportError>> {
        Box::pin(async move {
            let up = self.reach(&access.name, |host| {
                let up = host.down_for == 0;
                host.down_for = host.down_for.saturating_sub(1);
                up
            })?;
            if !up {
                let (host, address) = (access.name.clone(), access.address.clone());
                return Err(TransportError::Unreachable { host, address, reason: "no route".to_owned() });
            }
            Ok(Arc::new(Link { fleet: self.clone(), host: access.name.clone() }) as Arc<dyn HostLink>)
        })
    }
}

/// A gate that fails for the hosts that are named bad.
#[derive(Default)]
pub struct Gate {
    pub bad: Mutex<BTreeSet<String>>,
    pub checked: Mutex<Vec<String>>,
}

impl Gatekeeper for Gate {
    fn check<'a>(&'a self, hosts: &'a [String], proven: &'a [String]) -> BoxFuture<'a, GateResult> {
        self.checked.lock().unwrap().push(format!("{} after {}", hosts.join(","), proven.join(",")));
        let bad = self.bad.lock().unwrap().clone();
        let slow = hosts.iter().filter(|host| bad.contains(*host)).map(|host| Diagnostic::error("RW0650", format!("{host} is slow")));
        let result = GateResult { problems: slow.collect() };
        Box::pin(async move { result })
    }
}

/// A fleet with a state folder, wishes and a gate.
pub struct Room {
    pub fleet: Fleet,
    pub gate: Arc<Gate>,
    pub wishes: Vec<Wish>,
    pub rollout: RolloutPolicy,
    pub interrupt: watch::Sender<u32>,
    pub context: Context,
    pub events: Arc<Mutex<Vec<Event>>>,
    _temporary: tempfile::TempDir,
}

impl Room {
    pub fn of(hosts: &[&str]) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let (fleet, gate) = (Fleet::of(hosts), Arc::new(Gate::default()));
        let (interrupt, interrupts) = watch::channel(0);
        let access = |name: &str| HostAccess {
            name: name.to_owned(),
            address: name.to_owned(),
            port: 22,
            user: "root".to_owned(),
            identities: Vec::new(),
            known_hosts: String::new(),
            jump: Vec::new(),
            ssh_config: false,
            local: false,
            connect_timeout_s: 1,
        };
        let secrets = Arc::new(Secrets::new(None, BTreeMap::new(), BTreeMap::new()));
        let millisecond = Duration::from_millis(1);
        let context = Context {
            folder: StateFolder::at(temporary.path().join("state")),
            connector: secrets.carried_by(Arc::new(fleet.clone())),
            secrets,
            hosts: hosts.iter().map(|name| ((*name).to_owned(), access(name))).collect(),
            gatekeeper: gate.clone(),
            spec_digest: Some(Digest::of_bytes(b"spec")),
            wished: None,
            patience: Patience {
                parallel: 4,
                reboot: Duration::from_secs(300),
                reboot_poll: millisecond,
                settle: millisecond * 4,
                settle_poll: millisecond,
                earlier_step: millisecond * 20,
            },
            interrupts,
        };
        Room {
            fleet,
            gate,
            wishes: Vec::new(),
            rollout: RolloutPolicy { canary: 1, max_unavailable: 2, max_disruption: Disruption::Reboot },
            interrupt,
            context,
            events: Arc::default(),
            _temporary: temporary,
        }
    }

    pub fn wish(mut self, kind: &str, body: Value, after: &[&str]) -> Self {
        let kind = kind_named(kind).unwrap();
        assert!(kind.check(&body).is_empty(), "{:?}", kind.check(&body));
        for host in self.context.hosts.keys() {
            self.wishes.push(Wish {
                address: Address::host(host, kind.name(), &kind.address_name(&body).unwrap()),
                kind: kind.name().to_owned(),
                body: body.clone(),
                after: after.iter().map(|within| format!("host/{host}/{within}").parse().unwrap()).collect(),
                module: "m/r".to_owned(),
                places: Vec::new(),
            });
        }
        self
    }

    /// The secrets are these from now on.
    pub fn secrets(&mut self, values: &[(&str, &str)]) {
        let found = values.iter().map(|(name, value)| ((*name).to_owned(), Ok((*value).to_owned())));
        let secrets =
            Arc::new(Secrets::new(Some(self.context.folder.make_seal_key().unwrap()), found.collect(), named_by_host(&self.wishes)));
        self.context.connector = secrets.carried_by(Arc::new(self.fleet.clone()));
        self.context.secrets = secrets;
    }

    pub fn state(&self) -> State {
        State::load(&self.context.folder).unwrap()
    }

    pub fn plan(&self) -> Plan {
        let state = self.state();
        let targets: Vec<Target> = self.context.hosts.keys().map(Target::host).collect();
        let header = Header {
            made_by: "test".into(),
            cluster: "c".into(),
            inventory: InventoryOrigin { path: "inventories/x".into(), ..InventoryOrigin::default() },
            spec_digest: Digest::of_bytes(b"spec"),
            modules: BTreeMap::new(),
        };
        let (mut wishes, secrets) = (self.wishes.clone(), &self.context.secrets);
        seal_wishes(&mut wishes, &state.last_applied, secrets);
        make(&Inputs {
            header,
            wishes: &wishes,
            last: &state.last_applied,
            observation: &self.fleet.observe(&wishes, &state, secrets),
            kinds: &kind_named,
            targets: &targets,
            rollout: self.rollout.clone(),
            selection: Selection::default(),
        })
        .unwrap()
    }

    pub fn sink(&self) -> EventSink {
        let events = self.events.clone();
        Arc::new(move |event| events.lock().unwrap().push(event))
    }
}
