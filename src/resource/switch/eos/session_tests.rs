//! The configure session of a change, beside somebody else on the switch.

use super::edit::EosEdit;

const PORT: &str = "Ethernet1/1";

/// A configure session takes the place of all that runs: what somebody else sets on another port
/// while it is made would be taken back by its commit, and a comparison shows it in words of ours.
#[test]
fn what_others_set_on_other_ports_while_a_session_is_made_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("runs", "interface Ethernet4/1\n   mtu 1500\nend\n");
    write(
        "FastCli",
        "#!/bin/sh\n\
         case $4 in show\\ running*) cat runs ;; \
         *sessions\\ detail*) echo '{}' ;; *description*) echo '{\"interfaceDescriptions\": {}}' ;; \
         show\\ session-config*) cp later runs; printf '+   mtu 9000\\n-   mtu 4321\\n' ;; \
         *commit*) echo commit >>told ;; esac\n",
    );
    let may_run = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path().join("FastCli"), may_run).unwrap();
    let edits = [EosEdit::of_port(PORT, None, "mtu", "mtu 9000")];
    let run = |later: &str| {
        write("told", "");
        write("later", later);
        let path = format!("{}:{}", folder.path().display(), env!("PATH"));
        let script = crate::switch::eos::script::edit_script(&edits);
        let mut sh = std::process::Command::new("sh");
        let sh = sh.args(["-c", &script]).env("PATH", path);
        let status = sh.current_dir(folder.path()).output().unwrap().status;
        let told = std::fs::read_to_string(folder.path().join("told")).unwrap();
        (status.code(), told)
    };
    let other_port = "interface Ethernet4/1\n   mtu 4321\nend\n";
    assert_eq!(run(other_port), (Some(65), String::new()));
    assert_eq!(
        run(other_port),
        (Some(0), "commit\n".to_owned()),
        "set before the session began"
    );
}
