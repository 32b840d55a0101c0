//! Which hosts go in which wave: on one line where there are few, otherwise a line a wave, with
//! waves of the same size in the order of their hosts' names folded into one.

use crate::wrap::{COLUMNS, wrap_labelled_text};
use railwright_base::nodeset;
use railwright_base::text::{clean_line, format_count};
use railwright_plan::{GateCoverage, NodeKind, Plan, RolloutPolicy};
use std::collections::BTreeMap;

/// More waves than this are not put on one line.
const ON_ONE_LINE: usize = 6;
/// So many identical waves, one after the other, are one line.
const FOLDED_FROM: usize = 3;
/// More lines than this are cut; the JSON has them all.
const LINES: usize = 16;

/// The waves of a plan; nothing when no host is worked on.
pub fn render_plan_waves(plan: &Plan) -> String {
    let mut gates: BTreeMap<usize, &[String]> = BTreeMap::new();
    for node in &plan.nodes {
        if let NodeKind::Gate { hosts } = &node.kind {
            gates.insert(node.wave, hosts);
        }
    }
    render_wave_text(
        &gates.into_values().collect::<Vec<_>>(),
        &plan.rollout,
        plan.proof,
        !plan.verified_first().is_empty(),
    )
}

fn render_wave_text(
    waves: &[&[String]],
    policy: &RolloutPolicy,
    proof: GateCoverage,
    verified: bool,
) -> String {
    if waves.is_empty() {
        return String::new();
    }
    let gate = describe_gate(proof, waves.len());
    let shown: Vec<String> = waves
        .iter()
        .map(|hosts| clean_line(&nodeset::fold_node_set(hosts)))
        .collect();
    let start = format!(
        "waves    {}   {}",
        shown.join(" > "),
        format_rollout_limits(policy)
    );
    let between = if start.chars().count() + 3 + gate.chars().count() > COLUMNS {
        "\n         "
    } else {
        "   "
    };
    let plain = policy.classes.is_empty() && policy.domains.is_empty() && !verified;
    if plain && waves.len() <= ON_ONE_LINE && start.chars().count() <= COLUMNS {
        return format!("{start}{between}{gate}\n");
    }
    let head = format!(
        "{}, {gate}; {}",
        format_count(waves.len(), "wave"),
        format_rollout_limits(policy)
    );
    let lines = build_wave_lines(waves, policy, usize::from(verified));
    let more = lines.len().saturating_sub(LINES);
    let shown: String = lines
        .into_iter()
        .take(if more > 0 { LINES - 1 } else { LINES })
        .collect();
    let rest = if more > 0 {
        format!(
            "         and {} more lines: --json has every wave\n",
            more + 1
        )
    } else {
        String::new()
    };
    format!(
        "{}{shown}{rest}",
        wrap_labelled_text("waves    ", &head, COLUMNS)
    )
}

fn describe_gate(proof: GateCoverage, waves: usize) -> String {
    let proves = match proof {
        GateCoverage::Rdma => "a gate of RDMA checks",
        GateCoverage::RdmaAndNccl => "a gate of RDMA checks and NCCL's tests",
        GateCoverage::Nccl => "a gate of NCCL's tests",
        GateCoverage::ModuleChecks => "a gate of the modules' checks",
        GateCoverage::Nothing => "a gate with nothing to check (no rails, no checks)",
        GateCoverage::NotSaid => "a gate",
    };
    match waves {
        2.. => format!("{proves} after each"),
        _ => format!("then {proves}"),
    }
}

fn format_rollout_limits(policy: &RolloutPolicy) -> String {
    let lost = policy.failure_budget.map_or(String::new(), |budget| {
        format!(", stops when {budget} are lost")
    });
    format!("at most {} out of service{lost}", policy.max_unavailable)
}

fn build_wave_lines(waves: &[&[String]], policy: &RolloutPolicy, canaries: usize) -> Vec<String> {
    let domain_of = policy.domain_of();
    let mut lines = Vec::new();
    let mut first = 0;
    while first < waves.len() {
        let size = waves[first].len();
        let identical = waves[first..]
            .iter()
            .take_while(|hosts| {
                hosts.len() == size
                    && find_domain(&domain_of, hosts) == find_domain(&domain_of, waves[first])
            })
            .count();
        let hosts = waves[first..first + identical].concat();
        let many = first > canaries && identical >= FOLDED_FROM && is_in_order(&hosts);
        let taken = if many { identical } else { 1 };
        let hosts = if many {
            nodeset::fold_node_set(&hosts)
        } else {
            nodeset::fold_node_set(waves[first])
        };
        let number = if many {
            format!("{}-{}", first + 1, first + taken)
        } else {
            (first + 1).to_string()
        };
        let mut notes = Vec::new();
        if first < canaries {
            notes.push("out of service, verified first".to_owned());
        } else if first == canaries {
            notes.push(describe_canary(policy));
        } else if let Some(domain) = find_domain(&domain_of, waves[first]) {
            notes.push(domain.to_owned());
        }
        if many {
            notes.push(format!("{size} at a time, in this order"));
        }
        let notes = if notes.is_empty() {
            String::new()
        } else {
            format!(" ({})", notes.join("; "))
        };
        lines.push(wrap_labelled_text(
            &format!("         {number:<8} "),
            &format!("{hosts}{notes}"),
            COLUMNS,
        ));
        first += taken;
    }
    lines
}

fn find_domain<'p>(domain_of: &BTreeMap<String, &'p str>, hosts: &[String]) -> Option<&'p str> {
    domain_of.get(hosts.first()?).copied()
}

fn describe_canary(policy: &RolloutPolicy) -> String {
    match policy.classes.len() {
        0 => "canary".to_owned(),
        classes => format!(
            "canary: {} of each of {classes} hardware classes",
            policy.canary.clamp(1, policy.max_unavailable.max(1))
        ),
    }
}

/// True when the folded names, unfolded, are in the order that the hosts have.
fn is_in_order(hosts: &[String]) -> bool {
    nodeset::expand_node_set(&nodeset::fold_node_set(hosts)).is_ok_and(|unfolded| unfolded == hosts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(sets: &[&str], policy: &RolloutPolicy) -> String {
        let waves: Vec<Vec<String>> = sets
            .iter()
            .map(|set| nodeset::expand_node_set(set).unwrap())
            .collect();
        render_wave_text(
            &waves.iter().map(Vec::as_slice).collect::<Vec<_>>(),
            policy,
            GateCoverage::Rdma,
            false,
        )
    }

    #[test]
    fn a_thousand_hosts_are_a_few_lines_that_say_where_each_goes() {
        let policy = RolloutPolicy {
            canary: 1,
            max_unavailable: 2,
            ..RolloutPolicy::default()
        };
        assert_eq!(
            shown(&["n1", "n[2-3]"], &policy),
            "waves    n1 > n[2-3]   at most 2 out of service   a gate of RDMA checks after each\n"
        );
        let policy = RolloutPolicy {
            failure_budget: Some(5),
            ..policy
        };
        let domains = [("r1", "n[0002-0500]"), ("r2", "n[0501-1000]")]
            .map(|(key, set)| (key.to_owned(), set.to_owned()));
        let classes = [("a", "n[0001-0500]"), ("b", "n[0501-1000]")]
            .map(|(key, set)| (key.to_owned(), set.to_owned()));
        let policy = RolloutPolicy {
            classes: classes.into(),
            domains: domains.into(),
            ..policy
        };
        let mut sets = vec!["n[0001,0501]".to_owned()];
        for first in (2..=491).step_by(10) {
            sets.push(format!("n[{first:04}-{:04}]", first + 9));
        }
        sets.extend(
            (502..=991)
                .step_by(10)
                .map(|first| format!("n[{first:04}-{:04}]", first + 9)),
        );
        insta::assert_snapshot!(shown(&sets.iter().map(String::as_str).collect::<Vec<_>>(), &policy), @r##"
        waves    99 waves, a gate of RDMA checks after each; at most 2 out of service, stops when 5 are lost
                 1        n[0001,0501] (canary: 1 of each of 2 hardware classes)
                 2-50     n[0002-0491] (r1; 10 at a time, in this order)
                 51-99    n[0502-0991] (r2; 10 at a time, in this order)
        "##);
        // Names in another order than the folded ones cannot be folded without losing who goes
        // first.
        insta::assert_snapshot!(shown(&["a", "z1", "y1", "x1", "w[1-2]"], &policy), @r##"
        waves    5 waves, a gate of RDMA checks after each; at most 2 out of service, stops when 5 are lost
                 1        a (canary: 1 of each of 2 hardware classes)
                 2        z1
                 3        y1
                 4        x1
                 5        w[1-2]
        "##);
        let many: Vec<String> = (0..40).map(|n| format!("h{}", 99 - n)).collect();
        assert_eq!(
            shown(
                &many.iter().map(String::as_str).collect::<Vec<_>>(),
                &policy
            )
            .lines()
            .count(),
            1 + LINES
        );
    }
}
