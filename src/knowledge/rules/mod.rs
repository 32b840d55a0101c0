//! Static checks across layers, before anything is touched: rules as data (`modules/rules/*.yaml`),
//! each with its code, what it does to the fabric, a fix and the source of the fact behind it. A
//! user's own rules are in `<inventory>/modules/rules`.
//!
//! `facts` is what a rule can look at: the spec with the catalogue's rows joined in, one entry a
//! class of hosts that are alike, `switch_facts` the same of switches, `job_subject` of a job that
//! is about to be run. `sort` is what of it one rule looks at. `load` reads rules and checks every
//! name of theirs, `raw_rule` checks their words, `judge` applies them, `waiver` says what is
//! accepted for a while, `cases` tries a rule by its own.

mod cases;
pub mod facts;
mod job_subject;
mod judge;
mod load;
mod raw_rule;
mod rule;
mod sort;
mod switch_facts;
mod waiver;

pub use cases::check_rule_cases;
pub use job_subject::{JobSubject, SubjectFacts};
pub use judge::{
    Beyond, RuleFinding, RulesReport, asked_of_job, evaluate_rules, judge_job, judge_with,
};
pub use load::{RULES_FOLDER, load_rules};
pub use rule::{Rule, RuleProblems, RuleScope, RuleSet};
pub use waiver::{WaivedFinding, list_waived_hosts};
