//! The commands that bring a port of EOS to its desired settings, against the configuration that
//! runs; in which order they are sent is for `edit`. The errors say why there are none.

use super::config::{CLASSES, EosConfig};
use super::edit::{ANY_QUEUE, EosEdit};
use super::key::{
    ECN, EosSettingKey, GUARANTEED, MTU, NO_DROP, PFC, PRIORITY, SHUTDOWN, TRUST, WATCHDOG,
    WATCHDOG_ACTION, WATCHDOG_TIMER,
};
use super::port_view::{EosPortView, find_dscp_class};
use crate::Fact;
use crate::switch::body::Qos;
use crate::switch::configuration::{
    SwitchPortSettings as _, check_queue_numbers, has_desired_dscps,
};
use crate::switch::{EcnMarkingThresholds, PfcWatchdogSettings, SwitchError};
use railwright_base::text::one_line;

/// What a queue gets in any case, in kbit/s, so that the watchdog looks at it (the guide, section
/// 8: so little on purpose).
const FLOOR: &str = "bandwidth guaranteed 100";

/// Collects the commands for one port; what it has already is no edit.
struct EosEditBuilder<'a> {
    config: &'a EosConfig,
    view: EosPortView<'a>,
    port: &'a str,
    edits: Vec<EosEdit>,
}

impl<'a> EosEditBuilder<'a> {
    fn of(config: &'a EosConfig, port: &'a str) -> Option<Self> {
        Some(EosEditBuilder {
            config,
            view: EosPortView::of(config, port)?,
            port,
            edits: Vec::new(),
        })
    }

    /// Sets a setting of the port; the error says that its profile has it.
    fn set(&mut self, key: EosSettingKey, line: &str) -> Result<(), SwitchError> {
        if self.view.own_line(key) == Some(line) {
            return Ok(());
        }
        if let Some(of_profile) = self.view.profile_line(key) {
            return Err(self.describe_profile_conflict(of_profile, line));
        }
        let edit = EosEdit::of_port(self.port, None, key.words, line);
        self.edits.push(edit);
        Ok(())
    }

    /// Sets a setting of a queue; the error says that the profile of the port has it.
    fn set_of_queue(
        &mut self,
        queue: u64,
        key: EosSettingKey,
        line: &str,
    ) -> Result<(), SwitchError> {
        let (word, own) = self.view.own_queue_line(queue, key).unzip();
        if own == Some(line) {
            return Ok(());
        }
        if let Some(of_profile) = self.view.profile_queue_line(queue, key) {
            return Err(self.describe_profile_conflict(of_profile, line));
        }
        let section = format_queue_section(self.config, word, queue);
        let edit = EosEdit::of_port(self.port, Some(section), key.words, line);
        self.edits.push(edit);
        Ok(())
    }

    /// A command of PFC of one priority.
    fn push_pfc(&mut self, priority: u64, line: &str) {
        let edit = EosEdit::of_port(self.port, None, &format_pfc_key(priority), line);
        self.edits.push(edit);
    }

    /// Profiles are of many ports, and which goes first where both say something is written for
    /// policy maps alone.
    fn describe_profile_conflict(&self, of_profile: &str, desired: &str) -> SwitchError {
        let profile = self.view.own("service-profile").unwrap_or_default();
        SwitchError::Conflict(format!(
            "{} has the QoS profile {}, which says `{}` for all its ports: say `{desired}` there, \
             or take the profile off this port (`no service-profile`)",
            self.port,
            one_line(profile, 40),
            one_line(of_profile, 80)
        ))
    }
}

/// The section of a queue, by the word that is known.
pub fn format_queue_section(config: &EosConfig, word: Option<&str>, queue: u64) -> String {
    format!(
        "{} {queue}",
        word.or_else(|| config.queue_word()).unwrap_or(ANY_QUEUE)
    )
}

/// MTU and whether the port is up.
pub fn plan_eos_port_edits(
    config: &EosConfig,
    port: &str,
    mtu: Option<u64>,
    up: Option<bool>,
) -> Result<Vec<EosEdit>, SwitchError> {
    let Some(mut builder) = EosEditBuilder::of(config, port) else {
        return Ok(Vec::new());
    };
    if let Some(mtu) = mtu
        && builder.view.mtu() != Fact::Is(mtu)
    {
        for word in ["l2 mtu", "l2 mru"] {
            match builder.view.frame(word) {
                Fact::Is(frame) if frame < mtu => {
                    return Err(SwitchError::Conflict(format!(
                        "`{word} {frame}` of {port} lets no packet of {mtu} bytes through: raise \
                         it, or take it away (`no {word}`)"
                    )));
                }
                Fact::Unknown(why) => {
                    return Err(SwitchError::Unreadable(format!(
                        "{why}: nobody knows what {port} lets through; set it anew, or take it \
                         away (`no {word}`)"
                    )));
                }
                _ => {}
            }
        }
        builder.set(MTU, &format!("mtu {mtu}"))?;
    }
    if let Some(up) = up
        && builder.view.up() != Fact::Is(up)
    {
        builder.set(SHUTDOWN, if up { "no shutdown" } else { "shutdown" })?;
    }
    Ok(builder.edits)
}

/// Marking of a queue.
pub fn plan_eos_marking_edits(
    config: &EosConfig,
    port: &str,
    queue: u64,
    desired: EcnMarkingThresholds,
) -> Result<Vec<EosEdit>, SwitchError> {
    let Some(mut builder) = EosEditBuilder::of(config, port) else {
        return Ok(Vec::new());
    };
    if builder.view.marking(queue) != Fact::Is(desired) {
        let line = format!(
            "random-detect ecn minimum-threshold {} bytes maximum-threshold {} bytes \
             max-mark-probability {}",
            desired.min_bytes, desired.max_bytes, desired.probability_percent
        );
        builder.set_of_queue(queue, ECN, &line)?;
    }
    Ok(builder.edits)
}

/// Classes of a port.
pub fn plan_eos_qos_edits(
    config: &EosConfig,
    port: &str,
    desired: &Qos,
) -> Result<Vec<EosEdit>, SwitchError> {
    let Some(mut builder) = EosEditBuilder::of(config, port) else {
        return Ok(Vec::new());
    };
    check_queue_numbers(
        &builder.view,
        desired,
        ["class", "qos map traffic-class", ""],
    )?;
    add_dscp_map_edits(&mut builder, desired)?;
    add_pfc_edits(&mut builder, desired)?;
    for queue in desired.strict_queues() {
        add_strict_edits(&mut builder, queue)?;
    }
    if let Some(watchdog) = &desired.watchdog {
        add_watchdog_edits(&mut builder, watchdog, desired)?;
    }
    Ok(builder.edits)
}

/// Which class packets have. The map is one for the whole switch: it gets what nothing in it maps
/// yet, and nothing else.
fn add_dscp_map_edits(builder: &mut EosEditBuilder, desired: &Qos) -> Result<(), SwitchError> {
    if has_desired_dscps(&builder.view, desired) {
        return Ok(());
    }
    if let Some(by) = builder.view.classified_by() {
        return Err(SwitchError::Conflict(format!(
            "`{}` decides which class packets of {} have, and is not looked into: give them their \
             class there, or take it off the port",
            one_line(&by, 60),
            builder.port
        )));
    }
    if builder.view.trusts_dscp() != Fact::Is(true) {
        builder.set(TRUST, "qos trust dscp")?;
    }
    for (dscp, priority) in desired.dscps() {
        if find_dscp_class(builder.config, dscp) == Fact::Is(priority) {
            continue;
        }
        let line = format!("qos map dscp {dscp} to traffic-class {priority}");
        let Some((command, class)) = builder.config.mapped(CLASSES, dscp) else {
            builder.edits.push(EosEdit {
                section: Vec::new(),
                line,
                key: "qos map dscp".to_owned(),
            });
            continue;
        };
        let class = match class {
            Fact::Is(class) => format!("class {class}"),
            _ => "a class that nobody knows".to_owned(),
        };
        return Err(SwitchError::Conflict(format!(
            "DSCP {dscp} has {class} on all ports of this switch (`{}`): `{line}` changes it for \
             all of them",
            one_line(command, 60)
        )));
    }
    Ok(())
}

/// Which priorities pause, and no others.
fn add_pfc_edits(builder: &mut EosEditBuilder, desired: &Qos) -> Result<(), SwitchError> {
    let pfc = desired.pfc();
    if builder.view.pfc() == Fact::Is(pfc.clone()) {
        return Ok(());
    }
    check_pfc_can_be_set(builder)?;
    let own = builder.view.own_priorities();
    let of_profile = builder.view.profile_priorities();
    for (priority, line) in &of_profile {
        if !pfc.contains(priority) {
            let all: Vec<String> = pfc.iter().copied().map(format_pfc_command).collect();
            return Err(builder.describe_profile_conflict(line, &all.join("` and `")));
        }
    }
    for priority in own.iter().filter(|priority| !pfc.contains(*priority)) {
        builder.push_pfc(*priority, &format_pfc_removal(*priority));
    }
    for priority in pfc {
        let is_there =
            own.contains(&priority) || of_profile.iter().any(|(other, _)| *other == priority);
        if !is_there {
            builder.push_pfc(priority, &format_pfc_command(priority));
        }
    }
    if builder.view.line(PFC) != Some(PFC.words) {
        builder.set(PFC, PFC.words)?;
    }
    Ok(())
}

/// The error names what would keep PFC of the port from being what is desired.
fn check_pfc_can_be_set(builder: &EosEditBuilder) -> Result<(), SwitchError> {
    if builder.config.has_all_pfc_off() {
        return Err(SwitchError::Conflict(
            "PFC is off on all ports of this switch (`priority-flow-control all off`): take that \
             away first"
                .to_owned(),
        ));
    }
    if let Some(line) = builder.view.odd_pfc() {
        return Err(SwitchError::Unreadable(format!(
            "`{}` of {} makes no sense, and may pause anything: take it away first",
            one_line(line, 60),
            builder.port
        )));
    }
    Ok(())
}

/// The words that name PFC of a priority: `priority-flow-control priority 3`.
pub fn format_pfc_key(priority: u64) -> String {
    format!("{} {priority}", NO_DROP.words)
}

fn format_pfc_command(priority: u64) -> String {
    format!("{} {priority} no-drop", NO_DROP.words)
}

/// The command that takes PFC from a priority.
pub fn format_pfc_removal(priority: u64) -> String {
    format!("{} {priority} no-drop", NO_DROP.without)
}

/// A queue that goes before those below it.
fn add_strict_edits(builder: &mut EosEditBuilder, queue: u64) -> Result<(), SwitchError> {
    match builder.view.in_turn(queue) {
        None => match builder.view.is_strict(queue) {
            Fact::Unknown(why) => Err(SwitchError::Unreadable(format!(
                "{why}: say it anew, or take it away (`default priority`)"
            ))),
            _ => Ok(()),
        },
        Some(other) if other == queue => builder.set_of_queue(queue, PRIORITY, PRIORITY.words),
        Some(other) => Err(SwitchError::Conflict(format!(
            "queue {other} of {} is served in turn (`no priority`), and takes the queues below it \
             along, {queue} too: let it be strict (`priority strict`), or take a priority above it",
            builder.port
        ))),
    }
}

/// The port's own times, so that those of other ports stay as they are. It looks at queues with
/// guaranteed bandwidth alone.
fn add_watchdog_edits(
    builder: &mut EosEditBuilder,
    watchdog: &PfcWatchdogSettings,
    desired: &Qos,
) -> Result<(), SwitchError> {
    if watchdog.action != "drop" {
        return Err(SwitchError::Unsupported(format!(
            "the watchdog of EOS drops, keeps what is in the queue (`no-drop`), or takes the port \
             down (`errdisable`), and cannot be set to {}: take `action` out of `watchdog`",
            watchdog.action
        )));
    }
    let actual = builder.view.watchdog().map(|(_, settings)| settings);
    if actual != Fact::Is(watchdog.clone()) {
        builder.set(WATCHDOG, WATCHDOG.words)?;
        builder.set(WATCHDOG_ACTION, &format!("{} drop", WATCHDOG_ACTION.words))?;
        let timer = format!(
            "{} timeout {} polling-interval auto recovery-time {}",
            WATCHDOG_TIMER.words,
            format_seconds(watchdog.detection_ms),
            format_seconds(watchdog.restoration_ms)
        );
        builder.set(WATCHDOG_TIMER, &timer)?;
    }
    for queue in desired.pfc() {
        if builder.view.any_queue_line(queue, GUARANTEED).is_none() {
            builder.set_of_queue(queue, GUARANTEED, FLOOR)?;
        }
    }
    Ok(())
}

/// `0.2`.
fn format_seconds(milliseconds: u64) -> String {
    let text = format!("{}.{:03}", milliseconds / 1000, milliseconds % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
