//! `link_ecn`: who reacts to ECN on a port, by DCQCN: the sender slows down (reaction point), the
//! receiver tells it to (notification point), with congestion notification packets of a DSCP and a
//! priority of their own. Its name is the netdev's.
//!
//! The mlx5 driver of DOCA and MLNX_OFED has files for it below `/sys/class/net/NETDEV/ecn`; the
//! kernel's own driver has none, and leaves the firmware at what it begins with, which is on for
//! every priority (ROCE_CC_PRIO_MASK_P1 is 255). The kernel forgets what was written with the
//! driver or the boot, so a unit of ours keeps it.
//!
//! Source for the files: Mellanox/nic-configuration-operator, which writes `ecn/roce_np/cnp_dscp`
//! and reads it back.

use super::keeper::{PersistenceUnit, Trigger};
use super::{
    Action, Attribute, DesiredResource, Plane, Read, ReadResults, Reading, ResourceDiff,
    ResourceKind,
};
use crate::body::{Body, BodyErrors, BodyType, read_body};
use crate::json_fields::read_text_field;
use railwright_base::Reason;
use railwright_base::quote::quote_for_shell;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The kind.
pub struct LinkEcn;

/// The desired state of a port.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LinkEcnBody {
    netdev: String,
    /// The priority of RoCE traffic, such as [3].
    priorities: BTreeSet<u64>,
    cnp_dscp: Option<u64>,
    cnp_priority: Option<u64>,
    known_after: Option<String>,
}

impl Body for LinkEcnBody {
    fn find_errors(&self, errors: &mut BodyErrors) {
        errors.check_netdev("/netdev", &self.netdev);
        errors.check_known_after(self.known_after.as_deref());
        errors.check_range("cnp_dscp", self.cnp_dscp, 0..=63);
        errors.check_range("cnp_priority", self.cnp_priority, 0..=7);
        errors.require(
            self.priorities.last().is_some_and(|highest| *highest < 8),
            "/priorities",
            "`priorities` must be a list of priorities from 0 to 7",
            "the priority of RoCE traffic, such as [3]",
        );
    }
}

impl LinkEcnBody {
    /// The fields that stand for one file each: the file, the field, and its desired value.
    fn numbers(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> {
        [
            ("roce_np/cnp_dscp", "cnp_dscp", self.cnp_dscp),
            ("roce_np/cnp_802p_prio", "cnp_priority", self.cnp_priority),
        ]
        .into_iter()
        .filter_map(|(file, field, number)| Some((file, field, number?)))
    }
}

/// Files below `ecn`, with their values.
type Files = BTreeMap<String, String>;

/// What ran before our first change.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriorLinkEcn {
    running: Files,
}

/// What a host reports.
enum LinkEcnState {
    NoNetdev,
    /// The driver has no such files; in words.
    NoEcn(&'static str),
    Files(Files),
}

/// The points, as the driver names them and as attributes are called.
const POINTS: [(&str, &str); 2] = [
    ("roce_rp", "reaction_point"),
    ("roce_np", "notification_point"),
];

impl ResourceKind for LinkEcn {
    fn name(&self) -> &'static str {
        "link_ecn"
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        read_text_field(body, "netdev").map(str::to_owned)
    }

    fn body_type(&self) -> BodyType {
        BodyType::of::<LinkEcnBody>()
    }

    fn reads(&self, resource: &DesiredResource) -> Vec<Read> {
        let body = read_body::<LinkEcnBody>(&resource.body);
        let mut reads = vec![build_link_ecn_read(&body)];
        reads.extend(build_link_ecn_unit(&body).reads());
        reads
    }

    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        let body = &read_body::<LinkEcnBody>(&resource.body);
        let why = match decode_link_ecn_state(body, answers) {
            Err(reason) => return diff_uniform_ecn(body, &Reading::Unknown(reason)),
            Ok(LinkEcnState::Files(files)) => return diff_ecn_files(body, &files, answers),
            Ok(LinkEcnState::NoNetdev) => format!("there is no netdev {}", body.netdev),
            Ok(LinkEcnState::NoEcn(why)) => format!("{}: {why}", body.netdev),
        };
        // It comes with the step that the resource names, or something is wrong.
        let mut diff = diff_uniform_ecn(body, &Reading::Absent);
        let announced = ["reload_systemd", "set_link_ecn", "write_file"];
        diff.wait_or_refuse(resource, &announced, || why);
        diff
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> ResourceDiff {
        let body = &read_body::<LinkEcnBody>(&last_applied.body);
        let state = match decode_link_ecn_state(body, answers) {
            Err(reason) => return ResourceDiff::unknown_undo(Plane::Running, before, reason),
            Ok(state) => state,
        };
        let mut diff = ResourceDiff {
            before: before.clone(),
            ..ResourceDiff::default()
        };
        build_link_ecn_unit(body).take_back(&mut diff, answers);
        let prior = PriorLinkEcn::deserialize(before).unwrap_or_default();
        // Without the netdev or its driver there is nothing that could hold a value.
        let LinkEcnState::Files(now) = state else {
            return diff;
        };
        let old: Files = (prior.running.into_iter())
            .filter(|(file, _)| build_desired_ecn_files(body).contains_key(file))
            .collect();
        for (file, value) in &old {
            let attribute = Attribute::in_plane(
                Plane::Running,
                Reading::is(value.as_str()),
                build_running_reading(&now, file),
            );
            diff.attributes.insert(file.replace('/', "_"), attribute);
        }
        push_set_ecn_action(
            body,
            old.into_iter()
                .filter(|(file, value)| now.get(file) != Some(value))
                .collect(),
            &mut diff,
        );
        diff
    }

    fn can_read_before(&self, before: &Value) -> bool {
        PriorLinkEcn::deserialize(before).is_ok()
    }

    fn open_fields(&self) -> &'static [&'static str] {
        &["cnp_dscp", "cnp_priority"]
    }

    fn after_kinds(&self) -> &'static [&'static str] {
        &["package", "kernel_module", "kernel_module_build", "link"]
    }
}

/// One reading for all attributes.
fn diff_uniform_ecn(body: &LinkEcnBody, reading: &Reading) -> ResourceDiff {
    diff_link_ecn(body, |_| reading.clone(), reading)
}

fn diff_ecn_files(body: &LinkEcnBody, files: &Files, answers: &ReadResults) -> ResourceDiff {
    let keeper = build_link_ecn_unit(body);
    let kept = keeper.kept(answers);
    let on_disk = keeper.persisted(&kept, Reading::is("in sync"), |_| Reading::is("otherwise"));
    let mut diff = diff_link_ecn(body, |file| build_running_reading(files, file), &on_disk);
    diff.attributes
        .insert("unit".to_owned(), keeper.attribute(&kept));
    let (mut running, mut differs) = (Files::new(), Files::new());
    for (file, value) in build_desired_ecn_files(body) {
        let found = files.get(&file);
        if let Some(found) = found {
            running.insert(file.clone(), found.clone());
        }
        if found != Some(&value) {
            differs.insert(file, value);
        }
    }
    diff.before = serde_json::to_value(PriorLinkEcn { running }).unwrap_or_default();
    if let (Ok(kept), false) = (kept, diff.has_unknown()) {
        diff.actions = keeper.write(&kept);
        push_set_ecn_action(body, differs, &mut diff);
    }
    diff
}

fn build_link_ecn_read(body: &LinkEcnBody) -> Read {
    Read::LinkEcn {
        netdev: body.netdev.clone(),
    }
}

/// Both points are on for the desired priorities; what other priorities do is left alone.
fn build_desired_ecn_files(body: &LinkEcnBody) -> Files {
    let mut files = Files::new();
    for (point, _) in POINTS {
        files.extend(
            body.priorities
                .iter()
                .map(|priority| (format!("{point}/enable/{priority}"), "1".to_owned())),
        );
    }
    let numbers = body.numbers();
    files.extend(numbers.map(|(file, _, number)| (file.to_owned(), number.to_string())));
    files
}

fn build_link_ecn_unit(body: &LinkEcnBody) -> PersistenceUnit {
    let netdev = &body.netdev;
    PersistenceUnit::new(
        "link-ecn",
        netdev,
        Trigger::Netdev(netdev.to_owned()),
        &set_script(netdev, &build_desired_ecn_files(body)),
    )
}

fn decode_link_ecn_state(
    body: &LinkEcnBody,
    answers: &ReadResults,
) -> Result<LinkEcnState, Reason> {
    let (code, out) = answers.output(&build_link_ecn_read(body))?;
    let mut lines = out.lines();
    match (code, lines.next()) {
        (1, _) => Ok(LinkEcnState::NoNetdev),
        (0, Some("ecn")) => {
            let pairs = lines.filter_map(|line| line.split_once(' '));
            let files = pairs.map(|(file, value)| (file.to_owned(), value.trim().to_owned()));
            Ok(LinkEcnState::Files(files.collect()))
        }
        (0, Some("virtual-function")) => Ok(LinkEcnState::NoEcn(
            "it is a virtual function; the physical function of a port has ECN",
        )),
        (0, None) => Ok(LinkEcnState::NoEcn(
            "its driver has no settings of ECN; the mlx5_core of DOCA and MLNX_OFED has",
        )),
        _ => Err("the answer makes no sense".into()),
    }
}

fn build_running_reading(files: &Files, file: &str) -> Reading {
    files.get(file).map_or(Reading::Absent, |value| {
        Reading::is(railwright_base::text::one_line(value, 20))
    })
}

/// An attribute a point, with the priorities that are on, and one a number.
fn diff_link_ecn(
    body: &LinkEcnBody,
    running: impl Fn(&str) -> Reading,
    on_disk: &Reading,
) -> ResourceDiff {
    let mut diff = ResourceDiff::default();
    for (point, name) in POINTS {
        let (mut on, mut unclear) = (Vec::new(), None);
        for priority in &body.priorities {
            match running(&format!("{point}/enable/{priority}")) {
                Reading::Is(Value::String(flag)) if flag == "1" => on.push(*priority),
                Reading::Is(Value::String(_)) => {}
                reading => unclear = unclear.or(Some(reading)),
            }
        }
        let found = unclear.unwrap_or_else(|| Reading::is(json!(on)));
        let attribute = build_ecn_attribute(json!(body.priorities), found, on_disk);
        diff.attributes.insert(name.to_owned(), attribute);
    }
    for (file, field, number) in body.numbers() {
        let mut found = running(file);
        if let Reading::Is(Value::String(text)) = &found
            && let Ok(number) = text.parse::<u64>()
        {
            found = Reading::is(number);
        }
        let attribute = build_ecn_attribute(json!(number), found, on_disk);
        diff.attributes.insert(field.to_owned(), attribute);
    }
    diff
}

/// `on_disk`: what the unit keeps, which is one reading for all.
fn build_ecn_attribute(value: Value, running: Reading, on_disk: &Reading) -> Attribute {
    let desired = Reading::Is(value);
    let persisted = if *on_disk == Reading::is("in sync") {
        desired.clone()
    } else {
        on_disk.clone()
    };
    Attribute::in_plane(Plane::Persisted, desired.clone(), persisted).and(
        Plane::Running,
        desired,
        running,
    )
}

fn push_set_ecn_action(body: &LinkEcnBody, settings: Files, diff: &mut ResourceDiff) {
    if !settings.is_empty() {
        diff.actions.push(Action::SetLinkEcn {
            netdev: body.netdev.clone(),
            settings,
        });
    }
}

/// The files and their values; the world may read them.
pub fn read_script(netdev: &str) -> String {
    format!(
        r#"n={netdev}; d="$R/sys/class/net/$n"; [ -d "$d" ] || exit 1
[ -d "$d/ecn" ] || {{ [ ! -e "$d/device/physfn" ] || echo virtual-function; exit 0; }}
echo ecn
for f in roce_rp/enable/0 roce_rp/enable/1 roce_rp/enable/2 roce_rp/enable/3 roce_rp/enable/4 roce_rp/enable/5 roce_rp/enable/6 roce_rp/enable/7 \
roce_np/enable/0 roce_np/enable/1 roce_np/enable/2 roce_np/enable/3 roce_np/enable/4 roce_np/enable/5 roce_np/enable/6 roce_np/enable/7 \
roce_np/cnp_dscp roce_np/cnp_802p_prio; do
v=; {{ read -r v <"$d/ecn/$f"; }} 2>/dev/null; [ -z "$v" ] || printf '%s %s\n' "$f" "$v"; done
exit 0
"#,
        netdev = quote_for_shell(netdev)
    )
}

/// Writes each, and says which one the driver refuses.
pub fn set_script(netdev: &str, settings: &BTreeMap<String, String>) -> String {
    let mut script = format!("d=/sys/class/net/{}/ecn\n", quote_for_shell(netdev));
    for (file, value) in settings {
        script.push_str(&format!(
            "printf '%s\\n' {value} >\"$d\"/{file} || {{ echo railwright: the driver refuses \
             {value} for {file} >&2; exit 1; }}\n",
            file = quote_for_shell(file),
            value = quote_for_shell(value),
        ));
    }
    script
}

#[cfg(test)]
mod tests;
