//! Which releases of GPU driver, CUDA, kernel modules and RDMA stack go together: given what the spec fixes of a host, the
//! rest is chosen, or it is said which of the wishes exclude each other. What the rows do not know is not guessed.
//!
//! `value` is a release and ranges of them, `book` what the rows say, `question` what the spec wishes, `search` asks PubGrub,
//! `settle` answers without it where that is easy, `conflict` finds the fewest wishes that cannot all be kept, `answer` does it
//! for all groups of a spec, `finding` tells it as a diagnostic, `cases` tries the combinations that are known.

mod answer;
mod book;
mod cases;
mod conflict;
mod finding;
mod question;
mod search;
mod settle;
mod value;

pub use answer::{Answer, Answers, Choice, answer};
pub use book::{Book, Fact, Known};
pub use cases::untrue;
pub use conflict::Conflict;
pub use finding::{CODE, Hosts, Told, answers, findings};
pub use question::{Question, Wish};

#[cfg(test)]
mod tests;
