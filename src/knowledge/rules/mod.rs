//! Static checks across layers, before anything is touched: rules as data (`modules/rules/*.yaml`),
//! each with its code, what it does to the fabric, a fix and the source of the fact behind it. A
//! user's own rules are in `<inventory>/modules/rules`.
//!
//! `facts` is what a rule can look at: the spec with the catalogue joined in, one entry an
//! equivalence class of hosts, `switch_facts` that of switches, `job_subject` of a job that
//! is about to be run. `sort` is what of it one rule looks at. `load` reads rules and checks every
//! name of theirs, `raw_rule` checks their words, `evaluation` applies them, `waiver` says what is
//! accepted for a while, `cases` tries a rule by its own.

mod cases;
mod evaluation;
pub mod facts;
mod job_subject;
mod load;
mod raw_rule;
mod rule;
mod sort;
mod switch_facts;
mod waiver;

pub use cases::check_rule_cases;
pub use evaluation::{
    Beyond, RuleFinding, RulesReport, asked_of_job, evaluate_job, evaluate_rules, evaluate_with,
};
pub use job_subject::{JobSubject, SubjectFacts};
pub use load::{RULES_FOLDER, load_rules};
pub use rule::{Rule, RuleProblems, RuleScope, RuleSet};
pub use waiver::{WaivedFinding, list_waived_hosts};
