//! A story with an operator, in a network of its own: some operators listen on ports that no flag
//! moves (mpi-operator's health is on 8080 of every address, cmd/mpi-operator/app/server.go), and
//! none of them should be heard by others.

use crate::software::Software;
use nix::sched::{CloneFlags, unshare};
use std::panic::resume_unwind;
use std::process::Command;

/// Tells the story where the operator of this name is built; says that it is skipped where it is
/// not. The network is that of the story's own thread and of everything that the thread starts.
pub fn apart(name: &str, story: impl FnOnce(&Software) + Send) {
    let Some(software) = Software::find(name) else {
        return;
    };
    let told = std::thread::scope(|scope| {
        let teller = scope.spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            assert!(
                Command::new("ip")
                    .args(["link", "set", "lo", "up"])
                    .status()
                    .unwrap()
                    .success()
            );
            story(&software);
        });
        teller.join()
    });
    told.unwrap_or_else(|panic| resume_unwind(panic));
}
