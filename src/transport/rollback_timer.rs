//! The automatic rollback on a host: below `/var/lib/railwright/rollbacks/<token>` stand what it keeps
//! (0600), the script that puts it back, and where it stands, as the name of one file: `armed`,
//! then `confirmed` or `fired`, and `reverted` after that. The renames decide: of a confirmation
//! and a revert at the same moment one finds `armed`, and the other does nothing.
//!
//! A transient timer of systemd starts the script when the time is over (monotonic: a clock that is
//! set moves nothing). Transient units are gone with a boot, so a service beside them is enabled:
//! nobody has confirmed anything when it finds the rollback still armed. It comes after the network
//! and sshd are up with what was written, puts the files back and has them read again: one way back
//! for both, rather than one that only runs when things are bad already. Neither needs a
//! `daemon-reload`, which takes its time on a host with many units.

use super::fenced_script::FOLDER;
use railwright_base::quote::quote_for_shell;
use railwright_resource::program::ENVIRONMENT;
use railwright_resource::rollback_scope::{RollbackScope, script};
use railwright_resource::switch::SwitchSystem;

/// Where unit files of the administrator lie.
const UNITS: &str = "/etc/systemd/system";

/// What brings the host up far enough for a login.
const TARGET: &str = "multi-user.target";

/// How long everything may take to be put back, in seconds; each part has a limit of its own.
const LONGEST_S: u32 = 2400;

/// What has to be up before the service puts anything back at boot: else it would be set again
/// afterwards, or could not be. A switch has a service of its own besides.
const AFTER: &str = "network.target systemd-networkd.service NetworkManager.service \
                     networking.service network.service nftables.service iptables.service \
                     netfilter-persistent.service firewalld.service ufw.service ssh.service \
                     sshd.service";

/// Keeps, arms, and only then ends with 0. `b` is the folder. 69: systemd does not run here; 75:
/// another rollback is armed, stdout its token; 74: something could not be kept or written, and
/// nothing is left of it.
pub fn render_arm_script(token: &str, scope: &RollbackScope, seconds: u32) -> String {
    let switches: Vec<&str> = SwitchSystem::ALL
        .iter()
        .filter_map(|system| system.configuration_service())
        .collect();
    let switches = switches.join(" ");
    let service = format!(
        "[Unit]\n\
         Description=railwright: takes back what nobody confirmed ({token})\n\
         After={switches} {AFTER}\n\
         [Service]\n\
         Type=oneshot\n\
         TimeoutStartSec={LONGEST_S}\n\
         ExecStart=/bin/sh {FOLDER}/rollbacks/{token}/revert\n\
         [Install]\n\
         WantedBy={TARGET}\n"
    );
    format!(
        "umask 077\n\
         [ -d /run/systemd/system ] && command -v systemd-run >/dev/null || {{ echo 'railwright: \
         systemd does not run on this host' >&2; exit 69; }}\n\
         g=$b/rollbacks; mkdir -p \"$g\" && chmod 700 \"$b\" \"$g\" || exit 74\n\
         {CLEAR}d=$g/{token}; k=$d/kept; n=railwright-rollback-{token}; w={units}\n\
         {CLEAN}fail() {{ clean; rm -rf \"$d\"; exit 74; }}\n\
         mkdir \"$d\" \"$k\" || exit 74\n\
         (\n\
         {keep}) || fail\n\
         printf %s {revert} >\"$d/revert\" && cat /proc/sys/kernel/random/boot_id >\"$d/boot\" || \
         fail\n\
         mkdir -p \"$w/{TARGET}.wants\" && printf %s {service} >\"$w/$n-boot.service\" && chmod \
         644 \"$w/$n-boot.service\" || fail\n\
         ln -s \"../$n-boot.service\" \"$w/{TARGET}.wants/$n-boot.service\" || fail\n\
         u=$(cut -d. -f1 /proc/uptime); echo $((u + {seconds})) >\"$d/armed\" || fail\n\
         sync\n\
         systemd-run --quiet --unit=\"$n\" --description=\"railwright: rollback {token}\" \
         --on-active={seconds} --timer-property=AccuracySec=1 -p Type=oneshot -p \
         TimeoutStartSec={LONGEST_S} /bin/sh \"$d/revert\" >&2 || fail\n",
        keep = script::keep_script(scope),
        revert = quote_for_shell(&render_revert_script(token, scope)),
        units = quote_for_shell(UNITS),
        service = quote_for_shell(&service),
    )
}

/// What an earlier rollback left behind goes, but for what could not be put back; one that is not
/// over yet stays in the way.
const CLEAR: &str = "for o in \"$g\"/*; do [ -d \"$o\" ] || continue\n\
                     if [ -e \"$o/armed\" ] || \
                     { [ -e \"$o/fired\" ] && [ ! -e \"$o/reverted\" ]; }; then echo \"${o##*/}\"; \
                     exit 75; fi\n\
                     { [ -e \"$o/reverted\" ] && [ -d \"$o/kept\" ]; } || rm -rf \"$o\"\n\
                     done\n";

/// Takes the units away.
const CLEAN: &str = "clean() \
                     { systemctl stop \"$n.timer\" 2>/dev/null; rm -f \"$w/multi-user.target.wants/$n-boot.service\" \"$w/$n-boot.service\"; sync; }\n";

/// Runs on the host as the service, whoever has the lock by then: what nobody has confirmed goes
/// back, and whoever takes the lock over writes nothing before it has (`watch`). A step that still
/// runs is waited for, for a while: what it does after us would stay; and none begins meanwhile.
/// What was kept stays where not all came back, since it may be the only copy. The end is told in
/// the file that is there, since a full disk takes no other, and where it takes no words either,
/// what was kept tells it. Where the rename was refused at first, room may be there for it at the
/// end. On a file system that became read-only nobody can confirm, and no end is told: all is put
/// back once, and once more with the next boot.
fn render_revert_script(token: &str, scope: &RollbackScope) -> String {
    format!(
        "{ENVIRONMENT}umask 077; cd /\n\
         d=${{0%/*}}; b=${{d%/rollbacks/*}}; k=$d/kept; n=railwright-rollback-{token}; w={units}\n\
         boot=; [ \"$(cat \"$d/boot\")\" = \"$(cat /proc/sys/kernel/random/boot_id)\" ] || boot=1\n\
         mv \"$d/armed\" \"$d/fired\" 2>/dev/null\n\
         if [ -e \"$d/fired\" ] || {{ [ -e \"$d/armed\" ] && [ ! -e \"/run/$n\" ]; }}; then\n\
         sync\n\
         if (: 9>>\"$b/step\") 2>/dev/null; then exec 9>>\"$b/step\"; flock -w {step_s} 9; fi\n\
         (\n\
         exec 9>&-\n\
         {restore}[ -n \"$failed\" ] || rm -rf \"$k\"; sync\n\
         [ -e \"$d/fired\" ] || mv \"$d/armed\" \"$d/fired\" 2>/dev/null\n\
         [ ! -e \"$d/fired\" ] || printf '%s\\n' \"$failed\" >\"$d/fired\"\n\
         mv \"$d/fired\" \"$d/reverted\" || echo >\"/run/$n\"; sync\n\
         )\n\
         exec 9>&-\n\
         fi\n\
         {CLEAN}[ -e \"$d/fired\" ] || [ -e \"$d/armed\" ] || clean\n\
         exit 0\n",
        units = quote_for_shell(UNITS),
        // A patch of a switch and its way back have no lock of their own: one has to be over before
        // the other begins.
        step_s = if scope.is_of_switch() { 600 } else { 30 },
        restore = script::restore_script(scope),
    )
}

/// Confirms the change: 0 its rollback is disarmed; 1 there is no such rollback; 75 it is being put
/// back, or was, or it cannot be confirmed.
pub fn render_disarm_script(token: &str) -> String {
    format!(
        "d=$b/rollbacks/{token}; n=railwright-rollback-{token}; w={UNITS}\n\
         {CLEAN}[ -d \"$d\" ] || exit 1\n\
         mv \"$d/armed\" \"$d/confirmed\" 2>/dev/null || [ -e \"$d/confirmed\" ] || {{ for f in \
         armed fired reverted; do [ ! -e \"$d/$f\" ] || exit 75; done; clean; rm -rf \"$d\"; exit \
         1; }}\n\
         sync; clean; rm -rf \"$d\"\n"
    )
}

/// Has everything put back now, and does not wait for it. 1: there is no such rollback. Of one
/// whose time is over the unit of the boot alone is left.
pub fn render_rollback_now_script(token: &str) -> String {
    format!(
        "[ -e \"$b/rollbacks/{token}/armed\" ] || exit 1\n\
         n=railwright-rollback-{token}; systemctl --no-block start \"$n.service\" || systemctl \
         --no-block start \"$n-boot.service\"\n"
    )
}

/// How it stands: `armed SECONDS-LEFT`, `reverting`, or `reverted` with the names of what could not
/// be put back, and where it was kept. 1: there is no such rollback.
pub fn render_rollback_status_script(token: &str) -> String {
    format!("d=$b/rollbacks/{token}\n{STANDING}standing || exit 1\n")
}

const STANDING: &str = "standing() {\n\
                        if [ -e \"$d/reverted\" ]; then echo \"reverted $(cat \"$d/reverted\")$([ \
                        ! -d \"$d/kept\" ] || echo \" (what was there before is in $d/kept)\")\"\n\
                        elif [ -e \"$d/fired\" ]; then echo reverting\n\
                        elif [ -e \"$d/armed\" ]; then\n\
                        u=$(cut -d. -f1 /proc/uptime); l=$(($(cat \"$d/armed\") - u))\n\
                        [ \"$(cat \"$d/boot\")\" = \"$(cat /proc/sys/kernel/random/boot_id)\" ] && \
                        [ $l -gt 0 ] || l=0\n\
                        echo \"armed $l\"\n\
                        else return 1; fi\n\
                        }\n";

/// Ends with 78 while a rollback is armed or puts something back, with a line `TOKEN armed
/// SECONDS-LEFT` or `TOKEN reverting` for each.
pub fn render_pending_rollback_check() -> String {
    format!(
        "{STANDING}c=0\n\
         for d in \"$b\"/rollbacks/*; do [ -d \"$d\" ] || continue\n\
         case $(standing) in armed*|reverting) echo \"${{d##*/}} $(standing)\"; c=78 ;; esac\n\
         done\n\
         exit $c\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use railwright_resource::Action;
    use std::path::Path;
    use std::process::Command;

    fn run(words: &[&str]) -> String {
        let output = Command::new("sh").args(words).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    /// A rollback of a file, with what it keeps, whose timer has expired; what puts it back.
    fn armed(below: &Path, token: &str, path: &str) -> String {
        let action = Action::WriteFile {
            path: path.to_owned(),
            content: "ours\n".to_owned(),
            mode: "0644".to_owned(),
            owner: "root".to_owned(),
            group: "root".to_owned(),
        };
        let scope = RollbackScope::over(&[action], []).unwrap();
        let folder = below.join("rollbacks").join(token);
        std::fs::create_dir_all(folder.join("kept")).unwrap();
        let revert = render_revert_script(token, &scope);
        for (name, text) in [
            ("kept/0", "theirs\n"),
            ("armed", "1\n"),
            ("boot", "x\n"),
            ("revert", revert.as_str()),
        ] {
            std::fs::write(folder.join(name), text).unwrap();
        }
        folder.join("revert").display().to_string()
    }

    fn reverts(below: &Path, token: &str, path: &str) {
        run(&[&armed(below, token, path)]);
    }

    /// Puts a file back in a mount namespace, after `mounts`; what `look` prints then. `$t` is the
    /// folder of all, `$d` that of the rollback. Nothing without root.
    #[cfg(target_os = "linux")]
    fn reverts_within(mounts: &str, look: &str) -> Option<String> {
        let below = tempfile::tempdir().unwrap();
        let path = below.path().join("plain");
        std::fs::write(&path, "ours\n").unwrap();
        let revert = armed(below.path(), "t", &path.display().to_string());
        let script = format!(
            "t={}; d=$t/rollbacks/t; b=$t; for m in /run /etc; do mount -t tmpfs t $m || exit; done\n\
             w={UNITS}; mkdir -p $w; : >$w/railwright-rollback-t-boot.service\n\
             {mounts}\n\
             sh {revert} 2>/dev/null\n\
             {look}",
            below.path().display()
        );
        let output = Command::new("unshare")
            .args(["-m", "sh", "-c", &script])
            .output()
            .unwrap();
        let is_required = std::env::var("RAILWRIGHT_REQUIRE_RIGS").is_ok_and(|value| value == "1");
        assert!(
            output.status.success() || !is_required,
            "no mount namespace"
        );
        output
            .status
            .success()
            .then(|| String::from_utf8(output.stdout).unwrap())
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_disk_that_takes_no_file_does_not_keep_a_rollback_from_its_end() {
        let mounts = "c=/run/c; cp -a $t $c; mount -t tmpfs -o nr_inodes=40 t $t; cp -a $c/. $t; \
                      n=0; while echo >$t/$n; do n=$((n + 1)); done 2>/dev/null";
        let look = format!("cat $t/plain; {}", render_rollback_status_script("t"));
        if let Some(seen) = reverts_within(mounts, &look) {
            let (file, state) = seen.split_once('\n').unwrap();
            assert_eq!(file, "ours");
            assert!(
                state.starts_with("reverted ") && state.contains("rollbacks/t/kept)"),
                "{state}"
            );
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_read_only_file_system_does_not_keep_a_rollback_from_what_it_can_put_back() {
        let mounts = "mount --bind $d $d && mount -o remount,bind,ro $d";
        // Neither a rollback nor a confirmation takes away what the next boot does.
        let look = format!(
            "cat $t/plain; (\n{}); echo $?; ls $w $d",
            render_disarm_script("t")
        );
        if let Some(seen) = reverts_within(mounts, &look) {
            let left = "railwright-rollback-t-boot.service";
            assert!(seen.starts_with("theirs\n75\n"), "{seen}");
            assert!(seen.contains(left) && seen.contains("armed"), "{seen}");
        }
    }

    #[test]
    fn what_could_not_be_put_back_stays_kept_and_is_named() {
        let below = tempfile::tempdir().unwrap();
        let at = |name: &str| below.path().join(name).display().to_string();
        std::fs::create_dir_all(at("etc/in-the-way/of-it")).unwrap();
        std::fs::write(at("etc/plain"), "ours\n").unwrap();
        reverts(below.path(), "good", &at("etc/plain"));
        reverts(below.path(), "bad", &at("etc/in-the-way"));
        let stands = |token: &str| {
            let script = render_rollback_status_script(token);
            run(&["-c", &format!("b={}\n{script}", below.path().display())])
        };
        assert_eq!(std::fs::read(at("etc/plain")).unwrap(), b"theirs\n");
        assert_eq!(stands("good").trim_end(), "reverted");
        let (path, kept) = (at("etc/in-the-way"), at("rollbacks/bad/kept"));
        let said = format!("reverted  {path} (what was there before is in {kept})\n");
        assert_eq!(stands("bad"), said);
        // Where a full disk takes no names, what was kept still says so.
        std::fs::write(at("rollbacks/bad/reverted"), "").unwrap();
        assert!(stands("bad").contains("(what was there before is in "));
        // The next rollback comes, and clears what is over.
        run(&["-c", &format!("g={}\n{CLEAR}", at("rollbacks"))]);
        assert_eq!(
            std::fs::read(at("rollbacks/bad/kept/0")).unwrap(),
            b"theirs\n"
        );
        assert!(!Path::new(&at("rollbacks/good")).exists());
    }
}
