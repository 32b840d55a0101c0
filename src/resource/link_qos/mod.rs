//! `link_qos`: PFC, traffic classes, DSCP map, global pause and cable length of a netdev, through
//! `dcb` (or `mlnx_qos` where there is no `dcb`). Its name is the netdev's. The kernel forgets all
//! of it at a reboot, a driver reload and a firmware reset, so a unit of ours keeps it. Trust has
//! no setting of its own: it follows from the DSCP map, as mlx5 does it.

pub mod dcb;
pub mod mlnx;
pub mod settings;

use super::keeper::{PersistenceUnit, PersistenceUnitFiles, Trigger};
use super::sections::{self, Section, find_section};
use super::{
    Action, Attribute, DesiredResource, Disruption, Fact, Plane, Read, ReadResults, Reading,
    ResourceDiff, ResourceKind,
};
use crate::body::{BodyType, read_body};
use crate::json_fields::read_text_field;
use railwright_base::Reason;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use settings::{LinkQosBody, Settings};

/// The kind.
pub struct LinkQos;

const NO_TOOL: &str = "the host has neither `dcb` nor `mlnx_qos`";

/// The step that brings `ethtool` and nothing besides: neither a netdev nor `dcb`.
const ETHTOOL: &str = "package/ethtool";

/// What a resource may come to need once its programs are there.
const ANNOUNCED: [&str; 5] = [
    "reload_systemd",
    "set_dcb",
    "set_mlnx_qos",
    "set_pause",
    "write_file",
];

/// The program that sets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QosTool {
    Dcb,
    Mlnx,
}

/// What the host reports about the netdev.
struct RunningQos {
    settings: Settings,
    /// What is known of global pause where `settings` has none.
    no_pause: Reading,
    /// The program that shows pause is there.
    has_ethtool: bool,
    tool: QosTool,
    /// The firmware owns DCBX.
    foreign_dcbx: bool,
    /// lldpad runs, and whether it keeps PFC as desired.
    lldpad_agrees: Option<bool>,
}

impl RunningQos {
    /// A setting as it runs, by its name.
    fn read_setting(&self, name: &str) -> Reading {
        match self.settings.values().remove(name) {
            Some(value) => Reading::Is(value),
            None if name == "pause" => self.no_pause.clone(),
            None => Reading::Unknown("the program gave no answer that could be read".into()),
        }
    }
}

/// What ran before our first change.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriorLinkQos {
    running: Settings,
}

/// The answer about one netdev.
enum LinkQosState {
    /// No such netdev.
    NoNetdev,
    /// Neither program is there.
    NoTool,
    /// The device has no such settings, with the reason.
    NoDcb(String),
    /// The settings of its port cannot be read through this netdev or program, with the reason.
    Unreadable(String),
    /// The settings that run.
    Runs(Box<RunningQos>),
}

impl ResourceKind for LinkQos {
    fn name(&self) -> &'static str {
        "link_qos"
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        read_text_field(body, "netdev").map(str::to_owned)
    }

    fn body_type(&self) -> BodyType {
        BodyType::of::<LinkQosBody>()
    }

    fn reads(&self, resource: &DesiredResource) -> Vec<Read> {
        let body = read_body::<LinkQosBody>(&resource.body);
        let mut reads = vec![build_link_qos_read(&body.netdev)];
        // the script's text does not change where it lies
        reads.extend(build_link_qos_unit(&body, QosTool::Dcb).reads());
        reads
    }

    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        let body = &read_body::<LinkQosBody>(&resource.body);
        let missing = match decode_link_qos_state(body, answers) {
            Err(reason) => return same_everywhere(body, Reading::Unknown(reason)),
            Ok(LinkQosState::Runs(running)) => return diff_link_qos(resource, answers, &running),
            Ok(LinkQosState::NoDcb(reason) | LinkQosState::Unreadable(reason)) if body.optional => {
                return same_everywhere(body, Reading::NotApplicable(reason.into()));
            }
            Ok(LinkQosState::NoDcb(reason) | LinkQosState::Unreadable(reason)) => {
                return ResourceDiff {
                    refusal: Some(format!(
                        "{reason}; the fabric stays without a lossless class on this link \
                         (`optional: true` accepts that)"
                    )),
                    ..same_everywhere(body, Reading::Absent)
                };
            }
            Ok(LinkQosState::NoNetdev) => format!("there is no netdev {}", body.netdev),
            Ok(LinkQosState::NoTool) => {
                "the host has neither `dcb` (iproute2 5.11 or newer) nor `mlnx_qos`".to_owned()
            }
        };
        let mut diff = same_everywhere(body, Reading::Absent);
        let step = body.known_after.clone();
        let step = step
            .filter(|step| step != ETHTOOL)
            .or_else(|| resource.naming());
        diff.wait_for_or_refuse(step, &ANNOUNCED, || missing);
        diff
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> ResourceDiff {
        plan_link_qos_undo(&read_body(&last_applied.body), before, answers)
    }

    fn can_read_before(&self, before: &Value) -> bool {
        PriorLinkQos::deserialize(before).is_ok()
    }

    fn open_fields(&self) -> &'static [&'static str] {
        &["pfc", "ets", "dscp", "pause", "cable_length_m"]
    }

    fn after_kinds(&self) -> &'static [&'static str] {
        &["package", "kernel_module", "kernel_module_build", "link"]
    }
}

fn build_link_qos_read(netdev: &str) -> Read {
    Read::LinkQos {
        netdev: netdev.to_owned(),
    }
}

fn build_qos_commands(
    tool: QosTool,
    netdev: &str,
    desired: &Settings,
    now: &Settings,
) -> Vec<Vec<String>> {
    match tool {
        QosTool::Dcb => dcb::build_dcb_commands(netdev, desired, now),
        QosTool::Mlnx => mlnx::build_mlnx_qos_commands(netdev, desired, now),
    }
}

/// The script sets everything from nothing: pause off before PFC on, because they exclude each
/// other.
fn build_link_qos_unit(body: &LinkQosBody, tool: QosTool) -> PersistenceUnit {
    let desired = body.build_settings();
    let netdev = &body.netdev;
    let pause = desired
        .pause
        .map(|on| dcb::pause_script(netdev, on))
        .unwrap_or_default();
    let commands = build_qos_commands(tool, netdev, &desired, &Settings::default());
    let commands = match tool {
        QosTool::Dcb => dcb::set_script(&commands),
        QosTool::Mlnx => mlnx::set_script(&commands),
    };
    PersistenceUnit::new(
        "link-qos",
        netdev,
        Trigger::Netdev(netdev.to_owned()),
        &format!("{pause}{commands}"),
    )
}

/// What runs on a netdev that no resource declares: all that the program reports, all DSCPs
/// included. It is absent where the driver has no data centre bridging, and not applicable where it
/// cannot be read through this netdev or program.
pub fn decode_running_qos(answers: &ReadResults, netdev: &str) -> Fact<Settings> {
    let all = Settings {
        dscp: Some((0..64).map(|dscp| (dscp, 0)).collect()),
        ..Settings::default()
    };
    match found_on(netdev, &all, answers) {
        Err(why) => Fact::Unknown(why),
        Ok(LinkQosState::NoNetdev) => Fact::Unknown(format!("there is no netdev {netdev}").into()),
        Ok(LinkQosState::NoTool) => Fact::Unknown(NO_TOOL.into()),
        Ok(LinkQosState::NoDcb(_)) => Fact::Absent,
        Ok(LinkQosState::Unreadable(why)) => Fact::NotApplicable(why.into()),
        Ok(LinkQosState::Runs(running)) => Fact::Is(running.settings),
    }
}

fn decode_link_qos_state(
    body: &LinkQosBody,
    answers: &ReadResults,
) -> Result<LinkQosState, Reason> {
    found_on(&body.netdev, &body.build_settings(), answers)
}

fn found_on(
    netdev: &str,
    desired: &Settings,
    answers: &ReadResults,
) -> Result<LinkQosState, Reason> {
    let (code, out) = answers.output(&build_link_qos_read(netdev))?;
    if code == 1 {
        return Ok(LinkQosState::NoNetdev);
    }
    let sections = sections::parse_sections(out);
    if find_section(&sections, "virtual-function").is_some() {
        return Ok(LinkQosState::Unreadable(format!(
            "{netdev} is a virtual function; only the physical function of a port has PFC"
        )));
    }
    let lldpad_agrees = dcb::lldpad_agrees(&sections, desired);
    let foreign_dcbx = dcb::foreign_dcbx(&sections) == Some(true);
    let no_pause = dcb::explain_missing_pause(&sections);
    let has_ethtool = find_section(&sections, "pause").is_some();
    if let Some(section) = find_section(&sections, "mlnx_qos") {
        let Some(mut settings) = mlnx::parse_mlnx_qos_settings(section, desired) else {
            return Ok(LinkQosState::Unreadable(format!(
                "mlnx_qos has no answer for {netdev}: it knows NVIDIA NICs only"
            )));
        };
        settings.pause = dcb::parse_dcb_settings(&sections).pause;
        return Ok(LinkQosState::Runs(Box::new(RunningQos {
            settings,
            no_pause,
            has_ethtool,
            tool: QosTool::Mlnx,
            foreign_dcbx,
            lldpad_agrees,
        })));
    }
    let Some(pfc) = find_section(&sections, "pfc") else {
        return Ok(LinkQosState::NoTool);
    };
    let settings = dcb::parse_dcb_settings(&sections);
    if pfc.code() != Some(0) {
        return no_answer(netdev, pfc);
    }
    Ok(LinkQosState::Runs(Box::new(RunningQos {
        settings,
        no_pause,
        has_ethtool,
        tool: QosTool::Dcb,
        foreign_dcbx,
        lldpad_agrees,
    })))
}

/// `dcb` says `Attribute read: Operation not supported` for a device without DCB; anything else is
/// not known to mean that.
fn no_answer(netdev: &str, section: &Section<'_>) -> Result<LinkQosState, Reason> {
    let said = section.text();
    if said.contains("Operation not supported") || said.contains("not supported") {
        return Ok(LinkQosState::NoDcb(format!(
            "the driver of {netdev} has no data centre bridging (dcb: Operation not supported)"
        )));
    }
    Err(format!(
        "dcb gave no answer: {}",
        railwright_base::text::one_line(&said, 120)
    )
    .into())
}

fn same_everywhere(body: &LinkQosBody, found: Reading) -> ResourceDiff {
    let mut diff = ResourceDiff::default();
    for (name, value) in body.build_settings().values() {
        let attribute = Attribute::in_plane(
            Plane::Persisted,
            Reading::Is(value.clone()),
            found.clone(),
        )
        .and(Plane::Running, Reading::Is(value), found.clone());
        diff.attributes.insert(name.to_owned(), attribute);
    }
    diff
}

fn diff_link_qos(
    resource: &DesiredResource,
    answers: &ReadResults,
    running: &RunningQos,
) -> ResourceDiff {
    let body = &read_body::<LinkQosBody>(&resource.body);
    let RunningQos {
        settings: now,
        tool,
        foreign_dcbx,
        lldpad_agrees,
        ..
    } = running;
    let (tool, foreign_dcbx, lldpad_agrees) = (*tool, *foreign_dcbx, *lldpad_agrees);
    let desired = body.build_settings();
    let keeper = build_link_qos_unit(body, tool);
    let kept = keeper.kept(answers);
    let mut diff = ResourceDiff {
        attributes: diff_qos_settings(
            &desired,
            running,
            &decode_persisted_qos(&desired, &keeper, tool, &kept),
        ),
        ..ResourceDiff::default()
    };
    diff.attributes
        .insert("unit".to_owned(), keeper.attribute(&kept));
    if foreign_dcbx {
        let attribute =
            Attribute::in_plane(Plane::Running, Reading::is("host"), Reading::is("firmware"));
        diff.attributes.insert("dcbx".to_owned(), attribute);
    }
    let before = PriorLinkQos {
        running: now.clone(),
    };
    diff.before = serde_json::to_value(before).unwrap_or_default();
    let Ok(kept) = kept else { return diff };
    if diff.is_met() || diff.has_unknown() {
        if desired.pause.is_some() && !diff.only_unknown() {
            hold_until_pause_is_known(resource, running, &mut diff);
        }
        return diff;
    }
    if lldpad_agrees == Some(false) {
        diff.refusal = Some(lldpad_refusal(&body.netdev, &desired));
        return diff;
    }
    diff.actions = keeper.write(&kept);
    diff.actions.extend(running_actions(
        &body.netdev,
        tool,
        &desired,
        now,
        foreign_dcbx,
    ));
    record_qos_disruption(&body.netdev, &desired, now, &mut diff);
    diff
}

/// PFC does not come on beside a pause that nobody knows.
fn hold_until_pause_is_known(
    resource: &DesiredResource,
    running: &RunningQos,
    diff: &mut ResourceDiff,
) {
    let Reading::Unknown(reason) = running.read_setting("pause") else {
        return;
    };
    if running.has_ethtool {
        diff.refusal = Some(reason.to_string());
    } else {
        diff.wait_or_refuse(resource, &ANNOUNCED, || reason.to_string());
    }
}

fn lldpad_refusal(netdev: &str, desired: &Settings) -> String {
    let list: Vec<String> = desired
        .pfc
        .iter()
        .flatten()
        .map(ToString::to_string)
        .collect();
    let enabled = if list.is_empty() {
        "none".to_owned()
    } else {
        list.join(",")
    };
    format!(
        "lldpad runs and will overwrite PFC of {netdev}, at the latest after the next boot: stop \
         it (`systemctl disable --now lldpad.socket lldpad`), or tell it the same: `lldptool -T -i \
         {netdev} -V PFC willing=no enabled={enabled}`"
    )
}

/// What the script on disk sets; ours sets the desired state, even where that takes no command (an
/// empty DSCP map).
fn decode_persisted_qos(
    desired: &Settings,
    keeper: &PersistenceUnit,
    tool: QosTool,
    kept: &Result<PersistenceUnitFiles, Reason>,
) -> Result<Settings, Reason> {
    let kept = kept.as_ref().map_err(Clone::clone)?;
    if keeper.says_so(kept) {
        return Ok(desired.clone());
    }
    let text = kept.script.as_deref().unwrap_or_default();
    Ok(match tool {
        QosTool::Dcb => dcb::decode_script(text),
        QosTool::Mlnx => mlnx::decode_script(text),
    })
}

fn diff_qos_settings(
    desired: &Settings,
    running: &RunningQos,
    persisted: &Result<Settings, Reason>,
) -> std::collections::BTreeMap<String, Attribute> {
    let mut all = std::collections::BTreeMap::new();
    for (name, value) in desired.values() {
        let actual = running.read_setting(name);
        let disk = match persisted {
            Err(reason) => Reading::Unknown(reason.clone()),
            Ok(settings) => settings
                .values()
                .remove(name)
                .map_or(Reading::Absent, Reading::Is),
        };
        let desired = Reading::Is(value);
        all.insert(
            name.to_owned(),
            Attribute::in_plane(Plane::Persisted, desired.clone(), disk).and(
                Plane::Running,
                desired,
                actual,
            ),
        );
    }
    all
}

/// Pause goes off before PFC comes on, and comes on only after PFC went off.
fn running_actions(
    netdev: &str,
    tool: QosTool,
    desired: &Settings,
    now: &Settings,
    foreign_dcbx: bool,
) -> Vec<Action> {
    let mut commands = build_qos_commands(tool, netdev, desired, now);
    if foreign_dcbx && tool == QosTool::Dcb {
        commands.insert(
            0,
            ["dcbx", "set", "dev", netdev, "host", "ieee"]
                .map(str::to_owned)
                .to_vec(),
        );
    }
    let set = (!commands.is_empty()).then_some(match tool {
        QosTool::Dcb => Action::SetDcb { commands },
        QosTool::Mlnx => Action::SetMlnxQos { commands },
    });
    let pause = desired
        .pause
        .filter(|on| now.pause.is_some_and(|actual| actual != *on))
        .map(|on| Action::SetPause {
            netdev: netdev.to_owned(),
            on,
        });
    if desired.pause == Some(true) {
        set.into_iter().chain(pause).collect()
    } else {
        pause.into_iter().chain(set).collect()
    }
}

fn record_qos_disruption(
    netdev: &str,
    desired: &Settings,
    now: &Settings,
    diff: &mut ResourceDiff,
) {
    let changes = diff.actions.iter().any(|action| {
        matches!(
            action,
            Action::SetDcb { .. } | Action::SetMlnxQos { .. } | Action::SetPause { .. }
        )
    });
    if !changes {
        return;
    }
    diff.disruption = Disruption::Reload;
    // The Linux kernel: drivers/net/ethernet/mellanox/mlx5/core/en_dcbnl.c,
    // `mlx5e_dcbnl_ieee_setpfc` toggles the port's link.
    if desired.pfc.is_some() && desired.pfc != now.pfc {
        diff.disruption = Disruption::LinkBlip;
        diff.interrupts_netdevs = vec![netdev.to_owned()];
        diff.interrupts.push(format!(
            "the link of {netdev} goes down and comes back, because mlx5 takes it down to change \
             PFC"
        ));
    }
    if desired.dscp.is_some() && has_dscp_map(desired) != has_dscp_map(now) {
        diff.disruption = Disruption::LinkBlip;
        diff.interrupts_netdevs = vec![netdev.to_owned()];
        diff.interrupts.push(format!(
            "RDMA traffic on {netdev} stops for about 1 s, because what it trusts changes"
        ));
    }
}

fn has_dscp_map(settings: &Settings) -> bool {
    settings.dscp.as_ref().is_some_and(|dscp| !dscp.is_empty())
}

/// What an undo starts from; nothing where no netdev or driver is there that could hold a setting.
fn read_settings_to_undo(
    body: &LinkQosBody,
    answers: &ReadResults,
) -> Result<Option<Box<RunningQos>>, Reason> {
    match decode_link_qos_state(body, answers)? {
        LinkQosState::Runs(running) => Ok(Some(running)),
        LinkQosState::NoNetdev | LinkQosState::NoDcb(_) => Ok(None),
        LinkQosState::NoTool => Err(NO_TOOL.into()),
        LinkQosState::Unreadable(reason) => Err(reason.into()),
    }
}

/// What ran before comes back, and our files go.
fn plan_link_qos_undo(body: &LinkQosBody, before: &Value, answers: &ReadResults) -> ResourceDiff {
    let running = match read_settings_to_undo(body, answers) {
        Err(reason) => return ResourceDiff::unknown_undo(Plane::Running, before, reason),
        Ok(running) => running,
    };
    let mut diff = ResourceDiff {
        before: before.clone(),
        ..ResourceDiff::default()
    };
    let tool = running
        .as_ref()
        .map_or(QosTool::Dcb, |running| running.tool);
    build_link_qos_unit(body, tool).take_back(&mut diff, answers);
    let compared = body.build_settings();
    let old = PriorLinkQos::deserialize(before);
    let (Some(running), Ok(PriorLinkQos { running: old })) = (running, old) else {
        diff.residue = vec![format!(
            "PFC, traffic classes and DSCP map of {} stay until its driver is loaded again",
            body.netdev
        )];
        return diff;
    };
    let then = Settings {
        pfc: old.pfc.filter(|_| compared.pfc.is_some()),
        ets: old.ets.filter(|_| compared.ets.is_some()),
        dscp: old.dscp.filter(|_| compared.dscp.is_some()),
        pause: old.pause.filter(|_| compared.pause.is_some()),
        cable_length_m: old
            .cable_length_m
            .filter(|_| compared.cable_length_m.is_some()),
    };
    for (name, value) in then.values() {
        let found = running.read_setting(name);
        if let Reading::Unknown(reason) = found {
            return ResourceDiff::unknown_undo(Plane::Running, before, reason);
        }
        diff.attributes.insert(
            name.to_owned(),
            Attribute::in_plane(Plane::Running, Reading::Is(value), found),
        );
    }
    let now = &running.settings;
    diff.actions
        .extend(running_actions(&body.netdev, tool, &then, now, false));
    record_qos_disruption(&body.netdev, &then, now, &mut diff);
    diff
}

#[cfg(test)]
mod tests;
