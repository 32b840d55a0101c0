//! Rules that are waived for a while: whose, by whom, why, and until when. Whether there is such a
//! rule is asked where the rules are known.

use super::acceptance::{check_exception_fields, suggest_host};
use super::{SpecChecker, new_spec_error, truncate_user_text};
use crate::spec::hosts::Host;
use crate::spec::model::Spec;
use railwright_base::nodeset::expand_node_set;
use std::collections::BTreeSet;

const CODE: &str = "RW0131";
const EFFECT: &str = "nothing would be waived by it, and what it is meant for would count";

/// Every entry of `rules.waive`.
pub fn check_waivers(checker: &mut SpecChecker<'_>, spec: &Spec, hosts: &[Host]) {
    let known: BTreeSet<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
    for (index, waiver) in spec.rules.waive.iter().enumerate() {
        let at = format!("rules.waive[{index}]");
        let texts = [
            ("code", &waiver.code),
            ("reason", &waiver.reason),
            ("owner", &waiver.owner),
        ];
        check_exception_fields(
            checker,
            (CODE, EFFECT),
            &at,
            "of this waiver",
            &texts,
            &waiver.until,
        );
        let Some(nodes) = waiver.nodes.as_deref().filter(|nodes| *nodes != "*") else {
            continue;
        };
        let (label, message, fix) = match expand_node_set(nodes) {
            Err(problem) => (
                problem.message,
                "this is no node-set".to_owned(),
                "a node-set looks like `gpu[001-064]`; `*` stands for all".to_owned(),
            ),
            Ok(names) => {
                let Some(unknown) = names.iter().find(|name| !known.contains(name.as_str())) else {
                    continue;
                };
                let near = suggest_host(unknown, &known);
                (
                    "of this cluster".to_owned(),
                    format!("there is no host `{}`{near}", truncate_user_text(unknown)),
                    "name hosts of `nodes`".to_owned(),
                )
            }
        };
        checker.find(
            &format!("{at}.nodes"),
            &label,
            new_spec_error(CODE, message, EFFECT, fix),
        );
    }
}
