//! Which releases of GPU driver, CUDA, kernel modules and RDMA stack go together: given what the
//! spec fixes of a host, the rest is chosen, or it is said which requirements exclude each other.
//! What the entries do not know is not guessed.
//!
//! `value` is a release and ranges of them, `book` what the entries say, `question` what the
//! spec requires, `search` asks PubGrub, `settle` answers without it where that is easy, `conflict`
//! finds the fewest requirements that cannot all be kept, `answer` does it for all groups of a
//! spec, `finding` tells it as a diagnostic, `cases` tries the combinations that are known.

mod answer;
mod book;
mod cases;
mod conflict;
mod finding;
mod question;
mod search;
mod settle;
mod value;

pub use answer::{Choice, SolverAnswer, SolverAnswers, solve_question};
pub use book::{Book, KnownRelease, ReleaseConstraint};
pub use cases::check_combinations;
pub use conflict::SolverConflict;
pub use finding::{CODE, ConflictFinding, Hosts, collect_conflict_findings, solve_with_waivers};
pub use question::{SolverQuestion, SpecRequirement};

#[cfg(test)]
mod tests;
