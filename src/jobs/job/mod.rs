//! Jobs as they stand in a cluster. `kind` is which objects do jobs and what they say of
//! themselves, `look` asks the cluster, `keeps` says why a pod does not run, `view` is a job at one
//! moment and what changed since the one before, `log` the lines that came since, `progress`
//! whether they go on, `submit` makes objects and `delete` takes them away again. `rights` is what
//! all of this has to be allowed.

mod delete;
mod keeps;
mod kind;
mod log;
mod look;
mod progress;
mod rights;
mod submit;
mod view;

pub use delete::{
    Deletable, JobObjects, ListedObject, ObjectDeletionOutcome, delete_job_object, objects_of,
};
pub use keeps::find_pod_wait_reason;
pub use kind::{JOB_LABEL, JobKind, Phase, build_ray_selector};
pub use log::Tail;
pub use look::{ClusterJob, JobListing, JobReader};
pub use progress::{JobProgress, STALLED_S, Stall};
pub use rights::list_job_rights;
pub use submit::{JobSubmissionOutcome, Submission, parse_submission, submit_job};
pub use view::{JobView, PodWaitReason};
