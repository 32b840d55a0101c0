//! The reboot of a host, a moment after the answer: the connection that asks for it still gets its
//! exit status.

/// Hands the reboot to a timer of systemd, or where there is none to a process of its own. A host
/// that is going down already is left to it.
pub fn render_reboot_script() -> String {
    "set -u\n\
     if [ -d /run/systemd/system ] && command -v systemd-run >/dev/null 2>&1; then\n\
     [ \"$(systemctl is-system-running 2>/dev/null)\" != stopping ] || exit 0\n\
     systemd-run --quiet --collect --on-active=2 --timer-property=AccuracySec=100ms systemctl \
     reboot && exit 0\n\
     fi\n\
     r=\n\
     for c in shutdown reboot; do command -v $c >/dev/null 2>&1 && { r=$c; break; }; done\n\
     case $r in shutdown) r='shutdown -r now' ;; reboot) ;; *) echo 'no program to reboot with' \
     >&2; exit 69 ;; esac\n\
     d=; command -v setsid >/dev/null 2>&1 && d=setsid\n\
     $d sh -c \"sleep 2; $r\" </dev/null >/dev/null 2>&1 &\n\
     exit 0\n"
        .to_owned()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    /// With a path in which there is nothing to reboot with: this machine must not go down with the
    /// test.
    #[test]
    fn a_host_that_cannot_reboot_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let shell = ["/bin/sh", "/usr/bin/sh"]
            .into_iter()
            .find(|p| std::path::Path::new(p).exists())
            .unwrap();
        let mut child = Command::new(shell)
            .arg("-s")
            .env("PATH", folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(super::render_reboot_script().as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(69));
        assert!(String::from_utf8_lossy(&output.stderr).contains("no program to reboot with"));
    }
}
