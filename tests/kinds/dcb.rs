//! The script that sets a lossless class, with a fake dcb that fails as the real one does
//! when the second turns between two of its requests.

use railwright_resource::Action;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

/// Says this once, then takes everything, and notes what it was asked.
fn told(complaint: &str) -> (i32, String) {
    let folder = tempfile::tempdir().unwrap();
    let fake = format!(
        "#!/bin/sh\n\
         cd {folder}\n\
         echo \"$@\" >>asked\n\
         [ -e said ] && exit 0\n\
         : >said\n\
         echo '{complaint}' >&2\n\
         exit 1\n",
        folder = folder.path().display()
    );
    let program = folder.path().join("dcb");
    fs::write(&program, fake).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let script = Action::SetDcb {
        commands: vec![
            words("pfc set dev ens1 prio-pfc all:off 3:on"),
            words("dcbx set dev ens1 host"),
        ],
    }
    .script();
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let ended = Command::new("sh")
        .args(["-c", &script])
        .env("PATH", path)
        .output()
        .unwrap();
    (
        ended.status.code().unwrap(),
        fs::read_to_string(folder.path().join("asked")).unwrap(),
    )
}

#[test]
fn a_reply_out_of_sequence_is_no_failure_and_anything_else_is() {
    let pfc = "pfc set dev ens1 prio-pfc all:off 3:on\n";
    assert_eq!(
        told("Attribute write: Protocol error"),
        (0, format!("{pfc}{pfc}dcbx set dev ens1 host\n"))
    );
    assert_eq!(
        told("Attribute write: Operation not supported"),
        (1, pfc.to_owned())
    );
}
