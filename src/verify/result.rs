//! What came out: one result per check and subject, and the measured matrix.

use super::nccl_run::NcclFigure;
use railwright_base::text::one_line;
use railwright_base::{Diagnostic, Severity, nodeset};
use serde::{Serialize, Serializer};
use std::collections::BTreeSet;

/// The format of the JSON report.
pub const FORMAT_VERSION: &str = "1.0";

/// How a check ended. Ordered from worst to best, which is the order on the screen.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum CheckVerdict {
    /// Found out, and not as it must be.
    Failed,
    /// Could not be found out; it proves nothing, so it does not let a rollout go on.
    Unknown,
    /// Not tried, because something has to be there first that is no part of the fabric; does not
    /// stop a rollout.
    NotRun,
    /// As it must be, but somebody should know.
    Warning,
    /// The question has no meaning here.
    NotApplicable,
    /// As it must be.
    Passed,
}

/// What is checked.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VerifyCheck {
    /// The host answers.
    Connection,
    /// The kernel modules that run are the installed ones.
    RunningModules,
    /// The GPUs of the spec are there, with their driver.
    Gpus,
    /// The PCIe link of the NIC carries what the port can.
    PcieLink,
    /// The netdev is there, up, and has its MTU.
    Netdev,
    /// The RDMA port of the netdev is active.
    RdmaLink,
    /// A GID of the right type for the right address.
    Gid,
    /// What is not RDMA leaves by another interface than eRDMA's.
    Routes,
    /// Whole packets pass unsplit.
    PathMtu,
    /// RoCE packets arrive with the DSCP of the lossless class.
    Marks,
    /// RDMA traffic from a host to itself.
    Loopback,
    /// `ib_write_bw`.
    Bandwidth,
    /// `ib_write_bw` from GPU memory to GPU memory.
    GpuDirect,
    /// What an eRDMA device sees of the traffic.
    LiveTraffic,
    /// `ib_read_lat`.
    Latency,
    /// Error counters before and after the traffic.
    Counters,
    /// NCCL's tests between hosts: what `job prove` checks of their output, by the word of the
    /// aspect; empty: how they ended.
    Nccl(&'static str),
    /// A proof of a module.
    Module(String),
}

impl VerifyCheck {
    /// The word on the screen and in JSON.
    pub fn word(&self) -> String {
        match self {
            VerifyCheck::Connection => "connection".to_owned(),
            VerifyCheck::Netdev => "netdev".to_owned(),
            VerifyCheck::RdmaLink => "rdma link".to_owned(),
            VerifyCheck::Gid => "gid".to_owned(),
            VerifyCheck::Routes => "routes".to_owned(),
            VerifyCheck::LiveTraffic => "erdma traffic".to_owned(),
            VerifyCheck::PathMtu => "path mtu".to_owned(),
            VerifyCheck::Marks => "dscp".to_owned(),
            VerifyCheck::Loopback => "loopback".to_owned(),
            VerifyCheck::RunningModules => "running".to_owned(),
            VerifyCheck::Gpus => "gpus".to_owned(),
            VerifyCheck::PcieLink => "pcie link".to_owned(),
            VerifyCheck::Bandwidth => "bandwidth".to_owned(),
            VerifyCheck::GpuDirect => "gpudirect".to_owned(),
            VerifyCheck::Latency => "latency".to_owned(),
            VerifyCheck::Counters => "counters".to_owned(),
            VerifyCheck::Nccl("") => "nccl".to_owned(),
            VerifyCheck::Nccl(aspect) => format!("nccl {aspect}"),
            VerifyCheck::Module(id) => format!("module {id}"),
        }
    }
}

impl schemars::JsonSchema for VerifyCheck {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Check".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "description": "What is checked: `gid`, `path \
                                                                   mtu`, `nccl transport`, `module \
                                                                   memlock/limit`." })
    }
}

impl Serialize for VerifyCheck {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.word())
    }
}

/// What a check's pure half says, before it is bound to hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckOutcome {
    /// How it ended.
    pub verdict: CheckVerdict,
    /// What was found, in words.
    pub measured: String,
    /// What must be, in words; empty where nothing is stated.
    pub expected: String,
    /// A code of `docs/codes`, for everything that is not as it must be.
    pub code: Option<&'static str>,
    /// What it means for the fabric.
    pub effect: String,
    /// What to run next.
    pub next: String,
}

impl CheckOutcome {
    fn of(verdict: CheckVerdict, measured: impl Into<String>) -> Self {
        CheckOutcome {
            verdict,
            measured: one_line(&measured.into(), 160),
            expected: String::new(),
            code: None,
            effect: String::new(),
            next: String::new(),
        }
    }

    /// As it must be.
    pub fn passed(measured: impl Into<String>) -> Self {
        CheckOutcome::of(CheckVerdict::Passed, measured)
    }

    /// Not as it must be.
    pub fn failed(code: &'static str, measured: impl Into<String>) -> Self {
        CheckOutcome {
            code: Some(code),
            ..CheckOutcome::of(CheckVerdict::Failed, measured)
        }
    }

    /// Could not be found out.
    pub fn unknown(code: &'static str, reason: impl Into<String>) -> Self {
        CheckOutcome {
            code: Some(code),
            ..CheckOutcome::of(CheckVerdict::Unknown, reason)
        }
    }

    /// Could not be tried: something is missing that is no part of the fabric.
    pub fn not_run(code: &'static str, reason: impl Into<String>) -> Self {
        CheckOutcome {
            code: Some(code),
            ..CheckOutcome::of(CheckVerdict::NotRun, reason)
        }
    }

    /// As it must be, but worth a word.
    pub fn warning(code: &'static str, measured: impl Into<String>) -> Self {
        CheckOutcome {
            code: Some(code),
            ..CheckOutcome::of(CheckVerdict::Warning, measured)
        }
    }

    /// The question has no meaning here.
    pub fn not_applicable(reason: impl Into<String>) -> Self {
        CheckOutcome::of(CheckVerdict::NotApplicable, reason)
    }

    /// Says what must be.
    pub fn expected(self, expected: impl Into<String>) -> Self {
        CheckOutcome {
            expected: expected.into(),
            ..self
        }
    }

    /// Says what it means for the fabric.
    pub fn effect(self, effect: impl Into<String>) -> Self {
        CheckOutcome {
            effect: effect.into(),
            ..self
        }
    }

    /// Says what to run next; `{host}` and `{inventory}` are filled in when it is bound to hosts.
    pub fn next(self, next: impl Into<String>) -> Self {
        CheckOutcome {
            next: next.into(),
            ..self
        }
    }

    /// Binds it to its hosts (for a pair the sender first) and rail.
    pub fn on(
        self,
        inventory: &str,
        hosts: &[&str],
        rail: Option<u32>,
        check: VerifyCheck,
    ) -> CheckResult {
        CheckResult {
            hosts: hosts.iter().map(|h| (*h).to_owned()).collect(),
            rail,
            check,
            verdict: self.verdict,
            measured: self.measured,
            expected: self.expected,
            code: self.code,
            effect: self.effect,
            next: self.next.replace("{inventory}", inventory),
        }
    }
}

/// One check of one subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct CheckResult {
    /// One host; for a pair sender and receiver; of NCCL's tests all hosts that ran together.
    pub hosts: Vec<String>,
    /// The rail.
    pub rail: Option<u32>,
    /// What was checked.
    pub check: VerifyCheck,
    /// How it ended.
    pub verdict: CheckVerdict,
    /// What was found, in words; clean of control characters.
    pub measured: String,
    /// What must be, in words; empty where nothing is stated.
    pub expected: String,
    /// A code of `docs/codes`.
    pub code: Option<&'static str>,
    /// What it means for the fabric.
    pub effect: String,
    /// What to run next; `{host}` stands for the hosts concerned, so that equal results fold.
    pub next: String,
}

/// One cell of the matrix.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Measurement {
    /// The rail.
    pub rail: u32,
    /// The sending host.
    pub from: String,
    /// The receiving host.
    pub to: String,
    /// Average of `ib_write_bw`, in Gb/s.
    pub bandwidth_gbps: Option<f64>,
    /// Average of `ib_write_bw` from GPU memory to GPU memory, in Gb/s; only where the spec has a
    /// path of GPUDirect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu_bandwidth_gbps: Option<f64>,
    /// Typical latency of `ib_read_lat`, in microseconds.
    pub latency_us: Option<f64>,
    /// 99th percentile of it.
    pub latency_p99_us: Option<f64>,
}

/// All results of one go.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct VerifyReport {
    /// `FORMAT_VERSION`.
    pub format_version: &'static str,
    /// The inventory, as the user named it.
    pub inventory: String,
    /// The hosts that were asked.
    pub hosts: Vec<String>,
    /// Every result.
    pub results: Vec<CheckResult>,
    /// What the pairs delivered.
    pub matrix: Vec<Measurement>,
    /// What NCCL's tests reached; only where they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nccl: Vec<NcclFigure>,
}

impl VerifyCheck {
    /// True of what the spec asks for and is a matter of the fabric or of a module. That a host
    /// answers, which drivers it runs and how many GPUs it has says nothing of what another check
    /// found.
    fn proves(&self) -> bool {
        !matches!(
            self,
            VerifyCheck::Connection | VerifyCheck::RunningModules | VerifyCheck::Gpus
        )
    }
}

impl VerifyReport {
    /// The hosts that passed a check that proves something.
    pub fn proven(&self) -> BTreeSet<String> {
        let mut hosts = BTreeSet::new();
        for result in &self.results {
            let is_good = matches!(result.verdict, CheckVerdict::Passed | CheckVerdict::Warning);
            if is_good && result.check.proves() {
                hosts.extend(result.hosts.iter().cloned());
            }
        }
        hosts
    }

    /// The hosts that a check of nobody else failed on.
    pub fn failed_alone(&self) -> BTreeSet<String> {
        let mut hosts = BTreeSet::new();
        for result in &self.results {
            if result.verdict == CheckVerdict::Failed
                && let [host] = result.hosts.as_slice()
            {
                hosts.insert(host.clone());
            }
        }
        hosts
    }
}

impl CheckResult {
    /// The hosts in words: a pair in its direction, others as a node-set.
    fn who(&self) -> String {
        if matches!(self.check, VerifyCheck::Nccl(_)) {
            nodeset::fold_node_set(&self.hosts)
        } else {
            self.hosts.join(" -> ")
        }
    }

    /// As a diagnostic, for a journal or a gate; nothing when it is as it must be. What is unknown
    /// is an error too, because it proves nothing.
    pub fn diagnostic(&self) -> Option<Diagnostic> {
        let code = self.code?;
        let rail = self
            .rail
            .map_or(String::new(), |rail| format!(", rail {rail}"));
        let message = match self.verdict {
            CheckVerdict::Unknown => {
                format!("{} is inconclusive: {}", self.check.word(), self.measured)
            }
            CheckVerdict::NotRun => format!("{} was not run: {}", self.check.word(), self.measured),
            _ if self.expected.is_empty() => format!("{}: {}", self.check.word(), self.measured),
            _ => format!(
                "{}: {} (expected: {})",
                self.check.word(),
                self.measured,
                self.expected
            ),
        };
        let severity = if matches!(self.verdict, CheckVerdict::Warning | CheckVerdict::NotRun) {
            Severity::Warning
        } else {
            Severity::Error
        };
        let mut diagnostic = Diagnostic {
            severity,
            ..Diagnostic::error(code, message)
        }
        .on(format!("host {}{rail}", self.who()));
        diagnostic.effect = Some(self.effect.clone()).filter(|text| !text.is_empty());
        diagnostic
            .next
            .extend(Some(self.next.clone()).filter(|text| !text.is_empty()));
        Some(diagnostic)
    }
}

impl VerifyReport {
    /// Of these hosts, before anything is known.
    pub fn of(inventory: &str, hosts: &[String]) -> Self {
        VerifyReport {
            format_version: FORMAT_VERSION,
            inventory: inventory.to_owned(),
            hosts: hosts.to_vec(),
            results: Vec::new(),
            matrix: Vec::new(),
            nccl: Vec::new(),
        }
    }

    /// Everything that is not as it must be, worst first.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        [
            CheckVerdict::Failed,
            CheckVerdict::Unknown,
            CheckVerdict::NotRun,
            CheckVerdict::Warning,
        ]
        .into_iter()
        .flat_map(|verdict| self.with(verdict))
        .filter_map(CheckResult::diagnostic)
        .collect()
    }

    /// The worst verdict: `Failed`, then `Unknown`; warnings, what was not run and what does not
    /// apply count as passed.
    pub fn verdict(&self) -> CheckVerdict {
        match self.results.iter().map(|r| r.verdict).min() {
            Some(worst @ (CheckVerdict::Failed | CheckVerdict::Unknown)) => worst,
            _ => CheckVerdict::Passed,
        }
    }

    /// What the report proves: its worst verdict, and `NotRun` where no check found something to be
    /// as it must be.
    pub fn conclusion(&self) -> CheckVerdict {
        let proofs = [CheckVerdict::Passed, CheckVerdict::Warning];
        match self.results.iter().any(|r| proofs.contains(&r.verdict)) {
            true => self.verdict(),
            false => self.verdict().min(CheckVerdict::NotRun),
        }
    }

    /// The results of one verdict.
    pub fn with(&self, verdict: CheckVerdict) -> impl Iterator<Item = &CheckResult> {
        self.results.iter().filter(move |r| r.verdict == verdict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_verdict_counts_and_warnings_do_not_stop() {
        let result = |evaluation: CheckOutcome| {
            evaluation.on("inventories/lab", &["n1"], Some(0), VerifyCheck::Gid)
        };
        let report = |results| VerifyReport {
            format_version: FORMAT_VERSION,
            inventory: String::new(),
            hosts: vec![],
            results,
            matrix: vec![],
            nccl: vec![],
        };
        let warning = result(CheckOutcome::warning("RW0814", "rcvd_seq_err +2"));
        let unknown = result(CheckOutcome::unknown("RW0801", "lost"));
        let failed =
            result(CheckOutcome::failed("RW0805", "no GID").next("railwright plan {inventory}"));
        assert_eq!(
            report(vec![warning.clone()]).verdict(),
            CheckVerdict::Passed
        );
        assert_eq!(
            report(vec![warning.clone(), unknown.clone()]).verdict(),
            CheckVerdict::Unknown
        );
        let all = report(vec![warning, unknown, failed]);
        assert_eq!(all.verdict(), CheckVerdict::Failed);
        let diagnostics = all.diagnostics();
        let codes: Vec<_> = diagnostics.iter().map(|d| (&*d.code, d.severity)).collect();
        assert_eq!(
            codes,
            [
                ("RW0805", Severity::Error),
                ("RW0801", Severity::Error),
                ("RW0814", Severity::Warning)
            ]
        );
        assert_eq!(diagnostics[0].next, ["railwright plan inventories/lab"]);
        assert_eq!(diagnostics[0].subject.as_deref(), Some("host n1, rail 0"));
    }

    #[test]
    fn a_host_is_proven_by_what_the_spec_asks_for_there() {
        let on = |evaluation: CheckOutcome, hosts: &[&str], check: VerifyCheck| {
            evaluation.on("inv", hosts, None, check)
        };
        let passed = || CheckOutcome::passed("well");
        let module = || VerifyCheck::Module("m/well".to_owned());
        let results = vec![
            on(passed(), &["a"], VerifyCheck::RunningModules),
            on(passed(), &["a"], VerifyCheck::Gpus),
            on(
                CheckOutcome::not_run("RW1306", "nobody to run with"),
                &["a"],
                VerifyCheck::Nccl(""),
            ),
            on(
                CheckOutcome::not_applicable("no port"),
                &["a"],
                VerifyCheck::RdmaLink,
            ),
            on(passed(), &["b"], module()),
            on(passed(), &["c", "d"], VerifyCheck::Bandwidth),
            on(
                CheckOutcome::warning("RW0814", "+2"),
                &["e"],
                VerifyCheck::Counters,
            ),
            on(CheckOutcome::failed("RW0813", "no"), &["f"], module()),
        ];
        let proven = VerifyReport {
            results,
            ..VerifyReport::of("inv", &[])
        }
        .proven();
        assert_eq!(
            proven.iter().map(String::as_str).collect::<Vec<_>>(),
            ["b", "c", "d", "e"]
        );
    }
}
