//! A user of this machine without rights.

use std::fs;
use std::process::{Command, Stdio};

/// A user of this machine, for the time of the test.
pub struct User(pub String);

impl User {
    /// None where this rig has no `useradd` or no `sudo`, after saying so.
    pub fn add(name: String) -> Option<User> {
        let sudo = Command::new("sudo").arg("-V").output().is_ok();
        let made = Command::new("useradd")
            .args(["-M", "-N", "-s", "/bin/sh", "-p", "*", &name])
            .stderr(Stdio::null())
            .status();
        let user = made
            .is_ok_and(|status| status.success())
            .then_some(User(name))
            .filter(|_| sudo);
        if user.is_none() {
            assert!(
                std::env::var("RAILWRIGHT_REQUIRE_RIGS").as_deref() != Ok("1"),
                "sudo and useradd are required"
            );
            println!("SKIPPED: the rig `openssh` has no sudo or useradd here");
        }
        user
    }

    /// The user's own file of sudoers; it goes with the user.
    pub fn sudoers(&self) -> String {
        format!("/etc/sudoers.d/{}", self.0)
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.sudoers());
        let _ = Command::new("userdel")
            .args(["-f", &self.0])
            .stderr(Stdio::null())
            .status();
    }
}
