//! What EOS has to be told for a wish: commands against the configuration that runs. The errors say
//! why a wish cannot be had.

use super::config::{CLASSES, EosConfig};
use super::edit::{ANY_QUEUE, EosEdit};
use super::key::{
    ECN, EosSettingKey, GUARANTEED, MTU, NO_DROP, PFC, PRIORITY, SHUTDOWN, TRUST, WATCHDOG,
    WATCHDOG_ACTION, WATCHDOG_TIMER,
};
use super::port_view::{EosPortView, class_of, parse_no_drop_priority};
use crate::Fact;
use crate::switch::body::Qos;
use crate::switch::configuration::SwitchPortSettings as _;
use crate::switch::{EcnMarkingThresholds, PfcWatchdogSettings};
use railwright_base::text::one_line;

/// What a queue gets in any case, in kbit/s, so that the watchdog looks at it (the guide, section
/// 8: so little on purpose).
const FLOOR: &str = "bandwidth guaranteed 100";

/// Collects what a port is told; what it says already is no edit.
struct Teller<'a> {
    config: &'a EosConfig,
    view: EosPortView<'a>,
    port: &'a str,
    edits: Vec<EosEdit>,
}

impl<'a> Teller<'a> {
    fn of(config: &'a EosConfig, port: &'a str) -> Option<Self> {
        Some(Teller {
            config,
            view: EosPortView::of(config, port)?,
            port,
            edits: Vec::new(),
        })
    }

    fn push(&mut self, queue: Option<String>, key: &str, line: &str) {
        let section = std::iter::once(format!("interface {}", self.port))
            .chain(queue)
            .collect();
        self.edits.push(EosEdit {
            section,
            line: line.to_owned(),
            key: key.to_owned(),
        });
    }

    /// A setting of the port; the error says that its profile has it.
    fn tell(&mut self, key: EosSettingKey, line: &str) -> Result<(), String> {
        if self.view.own_line(key) != Some(line) {
            self.free(self.view.profile_line(key), line)?;
            self.push(None, key.words, line);
        }
        Ok(())
    }

    /// A setting of a queue.
    fn tell_queue(&mut self, queue: u64, key: EosSettingKey, line: &str) -> Result<(), String> {
        let own = self.view.own_queue_line(queue, key);
        if own.map(|(_, line)| line) != Some(line) {
            let of_profile = self
                .view
                .profile()
                .and_then(|profile| self.view.queue_line(&profile, queue, key));
            self.free(of_profile.map(|(_, line)| line), line)?;
            let section = queue_section(self.config, own.map(|(word, _)| word), queue);
            self.push(Some(section), key.words, line);
        }
        Ok(())
    }

    /// Profiles are of many ports, and which goes first where both say something is written for
    /// policy maps alone.
    fn free(&self, of_profile: Option<&str>, wanted: &str) -> Result<(), String> {
        let Some(said) = of_profile else {
            return Ok(());
        };
        let profile = self.view.own("service-profile").unwrap_or_default();
        Err(format!(
            "{} has the QoS profile {}, which says `{}` for all its ports: say `{wanted}` there, \
             or take the profile off this port (`no service-profile`)",
            self.port,
            one_line(profile, 40),
            one_line(said, 80)
        ))
    }
}

/// The section of a queue, by the word that is known.
pub fn queue_section(config: &EosConfig, word: Option<&str>, queue: u64) -> String {
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
) -> Result<Vec<EosEdit>, String> {
    let Some(mut teller) = Teller::of(config, port) else {
        return Ok(Vec::new());
    };
    if let Some(mtu) = mtu.filter(|mtu| teller.view.mtu() != Fact::Is(*mtu)) {
        for word in ["l2 mtu", "l2 mru"] {
            match teller.view.frame(word) {
                Fact::Is(frame) if frame < mtu => {
                    return Err(format!(
                        "`{word} {frame}` of {port} lets no packet of {mtu} bytes through: raise \
                         it, or take it away (`no {word}`)"
                    ));
                }
                Fact::Unknown(why) => {
                    return Err(format!(
                        "{why}: nobody knows what {port} lets through; set it anew, or take it \
                         away (`no {word}`)"
                    ));
                }
                _ => {}
            }
        }
        teller.tell(MTU, &format!("mtu {mtu}"))?;
    }
    if let Some(up) = up.filter(|up| teller.view.up() != Fact::Is(*up)) {
        teller.tell(SHUTDOWN, if up { "no shutdown" } else { "shutdown" })?;
    }
    Ok(teller.edits)
}

/// Marking of a queue.
pub fn plan_eos_marking_edits(
    config: &EosConfig,
    port: &str,
    queue: u64,
    wanted: EcnMarkingThresholds,
) -> Result<Vec<EosEdit>, String> {
    let Some(mut teller) = Teller::of(config, port) else {
        return Ok(Vec::new());
    };
    if teller.view.marking(queue) != Fact::Is(wanted) {
        let line = format!(
            "random-detect ecn minimum-threshold {} bytes maximum-threshold {} bytes \
             max-mark-probability {}",
            wanted.min_bytes, wanted.max_bytes, wanted.probability_percent
        );
        teller.tell_queue(queue, ECN, &line)?;
    }
    Ok(teller.edits)
}

/// Classes of a port.
pub fn plan_eos_qos_edits(
    config: &EosConfig,
    port: &str,
    wanted: &Qos,
) -> Result<Vec<EosEdit>, String> {
    let Some(mut teller) = Teller::of(config, port) else {
        return Ok(Vec::new());
    };
    for class in &wanted.classes {
        match teller.view.queue(class.priority) {
            Fact::Is(queue) if queue != class.priority => {
                return Err(format!(
                    "packets of class {} leave by queue {queue} (qos map traffic-class, one for \
                     all ports of the switch): take a priority that has the queue of its number, \
                     or change the map for all ports",
                    class.priority
                ));
            }
            Fact::Unknown(why) => {
                return Err(format!(
                    "by which queue packets of class {} leave is not known: {why}",
                    class.priority
                ));
            }
            _ => {}
        }
    }
    add_dscp_map_edits(&mut teller, wanted)?;
    add_pfc_edits(&mut teller, wanted)?;
    for class in wanted.classes.iter().filter(|class| class.strict) {
        go_first(&mut teller, class.priority)?;
    }
    if let Some(watchdog) = &wanted.watchdog {
        add_watchdog_edits(&mut teller, watchdog, wanted)?;
    }
    Ok(teller.edits)
}

/// Which class packets have. The map is one for the whole switch: it is told what nobody said yet,
/// and nothing else.
fn add_dscp_map_edits(teller: &mut Teller, wanted: &Qos) -> Result<(), String> {
    let dscps: Vec<(u64, u64)> = wanted
        .classes
        .iter()
        .flat_map(|class| class.dscp.iter().map(|dscp| (*dscp, class.priority)))
        .collect();
    if dscps
        .iter()
        .all(|(dscp, priority)| teller.view.priority(*dscp) == Fact::Is(*priority))
    {
        return Ok(());
    }
    if let Some(by) = teller.view.classified_by() {
        let (port, by) = (teller.port, one_line(&by, 60));
        return Err(format!(
            "`{by}` decides which class packets of {port} have, and is not looked into: give them \
             their class there, or take it off the port"
        ));
    }
    if teller.view.trusts_dscp() != Fact::Is(true) {
        teller.tell(TRUST, "qos trust dscp")?;
    }
    for (dscp, priority) in dscps
        .into_iter()
        .filter(|(dscp, priority)| class_of(teller.config, *dscp) != Fact::Is(*priority))
    {
        let line = format!("qos map dscp {dscp} to traffic-class {priority}");
        let of_all = |said: &str, words: &str| {
            Err(format!(
                "DSCP {dscp} has {words} on all ports of this switch (`{}`): `{line}` changes it \
                 for all of them",
                one_line(said, 60)
            ))
        };
        match teller.config.mapped(CLASSES, dscp) {
            Some((said, Fact::Is(class))) => return of_all(said, &format!("class {class}")),
            Some((said, _)) => return of_all(said, "a class that nobody knows"),
            None => {}
        }
        teller.edits.push(EosEdit {
            section: Vec::new(),
            line,
            key: "qos map dscp".to_owned(),
        });
    }
    Ok(())
}

/// Which priorities pause, and no others.
fn add_pfc_edits(teller: &mut Teller, wanted: &Qos) -> Result<(), String> {
    let pfc = wanted.pfc();
    if teller.view.pfc() == Fact::Is(pfc.clone()) {
        return Ok(());
    }
    check_pfc_can_be_set(teller)?;
    let profile = teller.view.profile();
    let of_profile: Vec<(u64, &str)> = profile
        .iter()
        .flat_map(|profile| teller.config.lines(&[profile]))
        .filter_map(|line| Some((parse_no_drop_priority(line)?, line)))
        .collect();
    let format_no_drop = |priority: &u64| format!("{} {priority} no-drop", NO_DROP.words);
    if let Some((_, other)) = of_profile
        .iter()
        .find(|(priority, _)| !pfc.contains(priority))
    {
        let all: Vec<String> = pfc.iter().map(format_no_drop).collect();
        return teller.free(Some(other), &all.join("` and `"));
    }
    let own: Vec<(u64, &str)> = teller.view.own_priorities().collect();
    for (priority, _) in own.iter().filter(|(priority, _)| !pfc.contains(priority)) {
        let key = format!("{} {priority}", NO_DROP.words);
        teller.push(None, &key, &without_pfc(*priority));
    }
    for priority in &pfc {
        let mut there = own.iter().chain(&of_profile);
        if there.any(|(there, _)| there == priority) {
            continue;
        }
        let key = format!("{} {priority}", NO_DROP.words);
        teller.push(None, &key, &format_no_drop(priority));
    }
    if teller.view.own_line(PFC).or(teller.view.profile_line(PFC)) != Some(PFC.words) {
        teller.tell(PFC, PFC.words)?;
    }
    Ok(())
}

/// The error names what would keep PFC of the port from being what is told.
fn check_pfc_can_be_set(teller: &Teller) -> Result<(), String> {
    if teller
        .config
        .lines(&[])
        .any(|line| line == "priority-flow-control all off")
    {
        return Err(
            "PFC is off on all ports of this switch (`priority-flow-control all off`): take that \
             away first"
                .to_owned(),
        );
    }
    if let Some(line) = teller.view.odd_pfc() {
        return Err(format!(
            "`{}` of {} makes no sense, and may pause anything: take it away first",
            one_line(line, 60),
            teller.port
        ));
    }
    Ok(())
}

/// Takes PFC from a priority.
pub fn without_pfc(priority: u64) -> String {
    format!("{} {priority} no-drop", NO_DROP.without)
}

/// A queue that goes before those below it.
fn go_first(teller: &mut Teller, queue: u64) -> Result<(), String> {
    match teller.view.in_turn(queue) {
        None => match teller.view.is_strict(queue) {
            Fact::Unknown(why) => Err(format!(
                "{why}: say it anew, or take it away (`default priority`)"
            )),
            _ => Ok(()),
        },
        Some(other) if other == queue => teller.tell_queue(queue, PRIORITY, PRIORITY.words),
        Some(other) => Err(format!(
            "queue {other} of {} is served in turn (`no priority`), and takes the queues below it \
             along, {queue} too: let it be strict (`priority strict`), or take a priority above it",
            teller.port
        )),
    }
}

/// The port's own times, so that those of other ports stay as they are. It looks at queues with
/// guaranteed bandwidth alone.
fn add_watchdog_edits(
    teller: &mut Teller,
    watchdog: &PfcWatchdogSettings,
    wanted: &Qos,
) -> Result<(), String> {
    if watchdog.action != "drop" {
        return Err(format!(
            "the watchdog of EOS drops, keeps what is in the queue (`no-drop`), or takes the port \
             down (`errdisable`), and cannot be told to {}: take `action` out of `watchdog`",
            watchdog.action
        ));
    }
    if teller.view.watchdog().map(|(_, found)| found) != Fact::Is(watchdog.clone()) {
        teller.tell(WATCHDOG, WATCHDOG.words)?;
        teller.tell(WATCHDOG_ACTION, &format!("{} drop", WATCHDOG_ACTION.words))?;
        let (timeout, recovery) = (
            format_seconds(watchdog.detection_ms),
            format_seconds(watchdog.restoration_ms),
        );
        let timer = format!(
            "{} timeout {timeout} polling-interval auto recovery-time {recovery}",
            WATCHDOG_TIMER.words
        );
        teller.tell(WATCHDOG_TIMER, &timer)?;
    }
    for queue in wanted.pfc() {
        let of_profile = teller
            .view
            .profile()
            .and_then(|profile| teller.view.queue_line(&profile, queue, GUARANTEED));
        if teller
            .view
            .own_queue_line(queue, GUARANTEED)
            .or(of_profile)
            .is_none()
        {
            teller.tell_queue(queue, GUARANTEED, FLOOR)?;
        }
    }
    Ok(())
}

/// `0.2`.
fn format_seconds(milliseconds: u64) -> String {
    let text = format!("{}.{:03}", milliseconds / 1000, milliseconds % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
