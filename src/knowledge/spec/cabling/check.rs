//! Who a cable is plugged into: hosts, NICs and switches of the spec, and each port once.

use super::unfold::CablingLine;
use super::{Cable, CableEnd, Errors};
use crate::spec::hosts::Host;
use crate::spec::load::LoadedSpec;
use crate::spec::source::SourceText;
use railwright_base::nodeset::fold_node_set;
use railwright_base::suggest::find_nearest_word;
use railwright_base::text::one_line;
use railwright_base::{Diagnostic, Label};
use railwright_resource::switch::SwitchSystem;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;

const EFFECT: &str = "this line says of no NIC where it is plugged in";

struct CablingChecker<'a> {
    loaded: &'a LoadedSpec,
    source: &'a SourceText,
    switches: BTreeSet<&'a str>,
    /// The systems of those that are reached.
    systems: HashMap<&'a str, SwitchSystem>,
    errors: &'a mut Errors,
}

/// The cables of these lines; what names nobody, or names a port twice, is an error.
pub fn check_cables(
    loaded: &LoadedSpec,
    source: &SourceText,
    lines: Vec<CablingLine>,
    errors: &mut Errors,
) -> Vec<Cable> {
    let mut checker = CablingChecker {
        loaded,
        source,
        switches: BTreeSet::new(),
        systems: HashMap::new(),
        errors,
    };
    for switch in &loaded.switches {
        checker.switches.insert(&switch.name);
        if switch.reach.is_some()
            && let Some(group) = loaded.spec.switches.get(switch.group)
            && let Some(os) = group.os
        {
            checker.systems.insert(&switch.name, os);
        }
    }
    for line in &lines {
        if checker.errors.is_full() {
            break;
        }
        checker.check_line(line);
    }
    checker.check_each_port_once(&lines);
    lines.into_iter().flat_map(|line| line.cables).collect()
}

impl CablingChecker<'_> {
    fn check_line(&mut self, line: &CablingLine) {
        let [at_host, at_nic, at_switch, at_port] = &line.spans;
        self.check_host_names(line, at_host);
        self.check_switch_names(line, at_switch);
        self.check_nics(line, at_nic);
        self.check_loops(line, at_switch);
        for (is_from, span) in [(true, at_nic), (false, at_port)] {
            self.check_port_names(line, is_from, span);
        }
    }

    fn check_host_names(&mut self, line: &CablingLine, at: &Range<usize>) {
        let names = line.cables.iter().map(|cable| &cable.from.device);
        let mut unknown = list_distinct_names(names);
        unknown.retain(|name| self.loaded.host(name).is_none() && !self.switches.contains(name));
        if unknown.is_empty() {
            return;
        }
        let known = self.loaded.hosts.iter().map(|host| host.name.as_str());
        let next = "name hosts of `nodes`, or a switch where the cable is between two";
        let error = new_unknown_name_error("RW0152", "host", &unknown, known, next);
        self.errors.add(self.point_at(error, at, "not in the spec"));
    }

    fn check_switch_names(&mut self, line: &CablingLine, at: &Range<usize>) {
        let names = line.cables.iter().map(|cable| &cable.to.device);
        let mut unknown = list_distinct_names(names);
        unknown.retain(|name| !self.switches.contains(name));
        if unknown.is_empty() {
            return;
        }
        let next = if unknown.iter().any(|name| self.loaded.host(name).is_some()) {
            "hosts stand in the first column, the switch in the third"
        } else if self.switches.is_empty() {
            "the spec has no switches: write them in `switches`, such as `- \
             { name: \"leaf[1-8]\" }`"
        } else {
            "name switches of `switches`"
        };
        let known = self.switches.iter().copied();
        let error = new_unknown_name_error("RW0154", "switch", &unknown, known, next);
        self.errors.add(self.point_at(error, at, "not in the spec"));
    }

    /// A cable has two ends.
    fn check_loops(&mut self, line: &CablingLine, at: &Range<usize>) {
        let looped = list_distinct_names(
            line.cables
                .iter()
                .filter(|cable| cable.from.device == cable.to.device)
                .map(|cable| &cable.to.device),
        );
        if !looped.is_empty() {
            let error = Diagnostic::error(
                "RW0173",
                format!(
                    "{} is plugged into itself",
                    truncate_user_text(&fold_node_set(&looped))
                ),
            )
            .effect(
                "a link of a switch to itself joins nothing, and carries in a circle what is \
                 flooded",
            )
            .next("correct one of the two ends, or take the cable out");
            self.errors
                .add(self.point_at(error, at, "the same switch at both ends"));
        }
    }

    /// Ports of switches that are reached, which are planned for by their names. One that nobody
    /// reaches may be called by an alias.
    fn check_port_names(&mut self, line: &CablingLine, is_from: bool, at: &Range<usize>) {
        let mut wrong: Vec<(&CableEnd, SwitchSystem)> = Vec::new();
        for cable in &line.cables {
            let end = if is_from { &cable.from } else { &cable.to };
            if let Some(os) = self.systems.get(end.device.as_str())
                && !os.has_port_named(&end.port)
            {
                wrong.push((end, *os));
            }
        }
        let Some((first, os)) = wrong.first() else {
            return;
        };
        let ports: Vec<&str> = wrong
            .iter()
            .filter(|(_, other)| other == os)
            .map(|(end, _)| end.port.as_str())
            .collect();
        let what = format!(
            "{} has no port that is called {}: {} calls them {}",
            first.device,
            truncate_user_text(&fold_node_set(&ports)),
            os.name(),
            os.port_name_examples()
        );
        let error = Diagnostic::error("RW0172", what)
            .effect("nothing can be read or set on a port by a name that the switch does not have")
            .next(format!(
                "name it as the switch does; `{}` on it lists them",
                os.port_list_command()
            ));
        self.errors
            .add(self.point_at(error, at, &format!("no name of {}", os.name())));
    }

    /// NICs that their hosts do not have: one error a line, for as many hosts as it is so.
    fn check_nics(&mut self, line: &CablingLine, at: &Range<usize>) {
        let mut absent: BTreeMap<&str, Vec<&Host>> = BTreeMap::new();
        for cable in &line.cables {
            let Some(host) = self.loaded.host(&cable.from.device) else {
                continue;
            };
            if !host.netdevs.iter().any(|rail| rail.port == cable.from.port) {
                absent.entry(&cable.from.port).or_default().push(host);
            }
        }
        let Some((nic, hosts)) = absent.first_key_value() else {
            return;
        };
        let Some(first) = hosts.first() else { return };
        let rails = first.netdevs.iter();
        let of_host: Vec<&str> = rails.map(|rail| rail.port.as_str()).collect();
        let near = suggest_name(nic, of_host.iter().copied());
        let names: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
        let verb = if names.len() == 1 { "has" } else { "have" };
        let next = match of_host.as_slice() {
            [] => format!(
                "the spec gives {} no NICs: write them in `nics` of its group",
                truncate_user_text(&first.name)
            ),
            all => format!(
                "name the netdev of a rail: {}",
                one_line(&fold_node_set(all), 120)
            ),
        };
        let error = Diagnostic::error(
            "RW0153",
            format!(
                "{} {verb} no NIC `{}`{near}",
                truncate_user_text(&fold_node_set(&names)),
                truncate_user_text(nic)
            ),
        );
        self.errors
            .add(self.point_at(error.effect(EFFECT).next(next), at, "no rail of it"));
    }

    /// A port has one cable.
    fn check_each_port_once(&mut self, lines: &[CablingLine]) {
        let mut first: HashMap<&CableEnd, &CablingLine> = HashMap::new();
        for line in lines {
            let mut again: BTreeMap<(bool, u32), (&CablingLine, Vec<&CableEnd>)> = BTreeMap::new();
            let ends = line.cables.iter();
            for (is_from, end) in ends.flat_map(|cable| [(true, &cable.from), (false, &cable.to)]) {
                let Some(other) = first.insert(end, line) else {
                    continue;
                };
                let is_nic = is_from && self.loaded.host(&end.device).is_some();
                let key = (!is_nic, other.number);
                let (_, ends) = again.entry(key).or_insert((other, Vec::new()));
                ends.push(end);
            }
            for ((is_port, _), (other, ends)) in again {
                if self.errors.is_full() {
                    return;
                }
                let error = self.new_doubled_port_error(is_port, line, other, &ends);
                self.errors.add(error);
            }
        }
    }

    fn new_doubled_port_error(
        &self,
        is_port: bool,
        line: &CablingLine,
        other: &CablingLine,
        ends: &[&CableEnd],
    ) -> Diagnostic {
        let (code, what) = if is_port {
            ("RW0156", "the port")
        } else {
            ("RW0155", "the NIC")
        };
        let devices: Vec<&str> = ends.iter().map(|end| end.device.as_str()).collect();
        let ports: Vec<&str> = ends.iter().map(|end| end.port.as_str()).collect();
        let error = Diagnostic::error(
            code,
            format!(
                "{what} {} {} is plugged in twice",
                truncate_user_text(&fold_node_set(&devices)),
                truncate_user_text(&fold_node_set(&ports))
            ),
        )
        .effect("a port has one cable, so one of the two lines is wrong, and nobody can tell which")
        .next("look at the cable, and correct one of the two");
        let ends: HashSet<&CableEnd> = ends.iter().copied().collect();
        let span = find_port_span(line, &ends);
        let error = error.at(self.source.name(), span, "again here");
        if line.number == other.number {
            error
        } else {
            let span = find_port_span(other, &ends);
            error.at(self.source.name(), span, "first here")
        }
    }

    fn point_at(&self, error: Diagnostic, span: &Range<usize>, text: &str) -> Diagnostic {
        error.labelled(Label {
            file: self.source.name().to_owned(),
            span: span.clone(),
            text: text.to_owned(),
        })
    }
}

/// The field in which these ends stand: of a cable between switches a port may stand on either
/// side.
fn find_port_span(line: &CablingLine, ends: &HashSet<&CableEnd>) -> Range<usize> {
    let is_from = line.cables.iter().any(|cable| ends.contains(&cable.from));
    line.spans[if is_from { 1 } else { 3 }].clone()
}

/// Each name once, in their order.
fn list_distinct_names<'n>(names: impl Iterator<Item = &'n String>) -> Vec<&'n str> {
    let mut seen = BTreeSet::new();
    names
        .map(String::as_str)
        .filter(|name| seen.insert(*name))
        .collect()
}

fn new_unknown_name_error<'k>(
    code: &'static str,
    what: &str,
    unknown: &[&str],
    known: impl Iterator<Item = &'k str>,
    next: impl Into<String>,
) -> Diagnostic {
    let near = match unknown.first() {
        Some(name) => suggest_name(name, known),
        None => String::new(),
    };
    Diagnostic::error(
        code,
        format!(
            "there is no {what} `{}`{near}",
            truncate_user_text(&fold_node_set(unknown))
        ),
    )
    .effect(EFFECT)
    .next(next)
}

/// The end of a message: which of the known names may have been meant.
fn suggest_name<'k>(name: &str, known: impl Iterator<Item = &'k str>) -> String {
    match find_nearest_word(name, known) {
        Some(near) => format!("; did you mean `{near}`?"),
        None => String::new(),
    }
}

fn truncate_user_text(text: &str) -> String {
    one_line(text, 60)
}
