//! `file`, `sysctl`, `kernel_parameter` and `command` on a host.

use crate::rig::{Host, live, resource};
use railwright_resource::file::script::folder_functions;
use railwright_resource::{Action, Read, Reading, program};
use serde_json::json;
use std::path::Path;

#[test]
fn a_new_file_in_a_new_folder_comes_and_goes() {
    let Some(host) = Host::start("file", &[]) else {
        return;
    };
    // The kernel clears the bit of setuid when a file gets another owner.
    for mode in ["0640", "4750"] {
        let content = "a = \"$HOME\"\n'quoted' `x` \\n %s\n";
        let body = json!({ "path": "/etc/rail/deep er/it's.conf", "content": content, "mode": mode, "group": "adm" });
        let fresh = live(&host, &resource("file", body));
        assert!(fresh.is_absent());
    }
}

#[test]
fn a_file_that_was_there_is_taken_over_and_given_back_to_the_byte() {
    let Some(host) = Host::start("file takeover", &[]) else {
        return;
    };
    for make in [
        "printf 'old\\n'",
        "printf 'a\\377\\000b'",
        "printf 'no end of line \\303\\274'",
        "true",
    ] {
        host.must(&format!(
            "{make} >/etc/taken; chown daemon:12345 /etc/taken; chmod 4751 /etc/taken"
        ));
        let fresh = live(
            &host,
            &resource("file", json!({ "path": "/etc/taken", "content": "new" })),
        );
        assert!(!fresh.is_absent());
    }
}

/// Who makes names in a folder above a file leads root nowhere: no write, no removal, no rights of
/// a file of root's.
#[test]
fn a_link_of_a_user_leads_no_write_elsewhere() {
    let Some(host) = Host::start("file of a user", &[]) else {
        return;
    };
    host.must(
        "mkdir -p /var/opt/u/own /etc/target; ln -s /etc/target /var/opt/u/conf; ln -s \
         ../../../etc/target /var/opt/u/up; chown -h nobody /var/opt/u/*\n\
         chown nobody /var/opt/u; chmod 1777 /srv; ln -s /etc/target /srv/of-user; ln -s \
         /var/opt/u /srv/of-root; chown -h nobody /srv/of-user\n\
         echo kept >/etc/target/there; chmod 600 /etc/target/there; ln -s /etc/target/there \
         /var/opt/u/own/link; ln /etc/target/there /var/opt/u/own/twin",
    );
    let owned = |path: &str| {
        (
            path.to_owned(),
            "4755".to_owned(),
            "nobody".to_owned(),
            "nogroup".to_owned(),
        )
    };
    let mut actions = Vec::new();
    for folder in [
        "/var/opt/u/conf",
        "/var/opt/u/up",
        "/srv/of-user",
        "/srv/of-root/conf",
    ] {
        let (path, mode, owner, group) = owned(&format!("{folder}/there"));
        actions.push(Action::WriteFile {
            path: path.clone(),
            content: "theirs".to_owned(),
            mode,
            owner,
            group,
        });
        actions.push(Action::RemoveFile { path, below: None });
    }
    for action in actions {
        let (code, _, err) = host.sh(&action.script());
        assert!(
            code == 79 && err.starts_with("railwright: "),
            "{action:?}: {code} {err}"
        );
    }
    assert_eq!(
        host.must("ls -A /etc/target; cat /etc/target/there; stat -c '%a %U' /etc/target/there"),
        "there\nkept\n600 root\n"
    );
    assert_eq!(host.must("ls -A /var/opt/u/own"), "link\ntwin\n");
    let empty = |folder: &str| {
        format!(
            "mkdir -p /etc/target/empty; {}emptied {folder}/empty /var/opt; ls /etc/target",
            folder_functions()
        )
    };
    assert_eq!(host.must(&empty("/var/opt/u/conf")), "empty\nthere\n");
    assert_eq!(host.must(&empty("/etc/target")), "there\n");
    // A name that is not there is anybody's in the next moment, where everybody makes names; so may
    // be a second name of a file of root's.
    host.must("touch /srv/alone; ln /etc/target/there /srv/twin");
    for (name, whose) in [
        ("of-root", "root"),
        ("alone", "root"),
        ("of-user", "others"),
        ("nothing", "others"),
        ("twin", "others"),
    ] {
        let asked = format!(
            "{}cd /srv; if roots {name}; then echo root; else echo others; fi",
            folder_functions()
        );
        assert_eq!(host.must(&asked).trim(), whose, "{name}");
    }
}

#[test]
fn a_file_in_a_folder_of_its_owner_or_behind_a_link_of_root_comes_and_goes() {
    let Some(host) = Host::start("file of its owner", &[]) else {
        return;
    };
    host.must(
        "mkdir -p /var/opt/u/.ssh /srv/disk; chown -R nobody:nogroup /var/opt/u; chmod 700 \
         /var/opt/u/.ssh; ln -s ../srv/disk /opt/data",
    );
    for path in [
        "/var/opt/u/.ssh/authorized_keys",
        "/var/opt/u/.ssh/new/deep/-f",
        "/opt/data/conf/a",
        "/var/run/a",
    ] {
        let body = |mode: &str| json!({ "path": path, "content": "x\n", "mode": mode, "owner": "nobody", "group": "nogroup" });
        live(&host, &resource("file", body("0600")));
        host.perform(&host.diff(&resource("file", body("0600"))).actions);
        let other = host.diff(&resource("file", body("2750")));
        assert!(
            matches!(&other.actions[..], [Action::WriteFile { .. }]),
            "{other:?}"
        );
        host.perform(&other.actions);
        assert!(
            host.diff(&resource("file", body("2750"))).is_met(),
            "{path}"
        );
    }
    assert_eq!(
        host.must("ls -A /var/opt/u/.ssh /srv/disk/conf"),
        "/srv/disk/conf:\na\n\n/var/opt/u/.ssh:\nauthorized_keys\nnew\n"
    );
}

/// Written once more, as after a crash in the middle of a step, it must not look changed to
/// services that watch it; nor after a `chmod` or a backup. One that came with an old time must.
#[test]
fn a_file_that_is_in_sync_keeps_its_time() {
    let Some(host) = Host::start("file again", &[]) else {
        return;
    };
    let since = || {
        let read = Read::Modified {
            paths: vec!["/etc/again".to_owned()],
        };
        let answers = host.read(std::slice::from_ref(&read));
        let (_, out) = answers.output(&read).unwrap();
        let time = out.strip_suffix(" /etc/again\n").unwrap();
        time.parse::<i64>().unwrap()
    };
    let await_next_second = || {
        host.must("s=$(date +%s); while [ \"$(date +%s)\" = \"$s\" ]; do sleep 0.05; done");
    };
    let fresh = host.diff(&resource(
        "file",
        json!({ "path": "/etc/again", "content": "same\n", "mode": "0644" }),
    ));
    host.perform(&fresh.actions);
    let was = since();
    await_next_second();
    host.perform(&fresh.actions);
    assert_eq!(since(), was);
    assert_eq!(host.must("ls /etc | grep -c again").trim(), "1");
    // Its time, or where the file system tells it, when it came.
    let tells_birth = host.must("stat -c %W /etc/again").trim().len() > 1;
    let bring = "echo same >/etc/x; touch -d @1000000000.5 /etc/x; cp -p /etc/x /etc/y; mv /etc/y \
                 /etc/again";
    host.must(bring);
    assert_eq!(
        since() > was,
        tells_birth,
        "as rsync or a package brings it"
    );
    // Of one that another user had, what he has open is another file afterwards.
    for (differs, keeps_time) in [
        ("chmod 600 /etc/again", true),
        ("chown daemon /etc/again", true),
        ("echo other >/etc/again", false),
    ] {
        host.must(differs);
        let (was, inode) = (since(), host.must("stat -c %i /etc/again"));
        await_next_second();
        host.perform(&fresh.actions);
        assert_eq!(since() == was, keeps_time, "{differs}");
        assert_ne!(host.must("stat -c %i /etc/again"), inode, "{differs}");
        assert_eq!(
            host.must("stat -c '%a %U' /etc/again; cat /etc/again")
                .trim(),
            "644 root\nsame"
        );
    }
    let was = since();
    await_next_second();
    host.must("ln /etc/again /etc/other; rm /etc/other; chmod 600 /etc/again");
    assert_eq!(since(), was, "a backup, a chmod");
}

#[test]
fn a_file_too_large_to_keep_is_named_and_a_link_is_refused() {
    let Some(host) = Host::start("file too large", &[]) else {
        return;
    };
    host.must("head -c 300000 /dev/zero >/etc/large; ln -s /etc/passwd /etc/linked");
    let large = host.diff(&resource(
        "file",
        json!({ "path": "/etc/large", "content": "" }),
    ));
    assert!(
        large.residue[0].contains("(300000 bytes) is too large"),
        "{large:?}"
    );
    let linked = host.diff(&resource(
        "file",
        json!({ "path": "/etc/linked", "content": "" }),
    ));
    assert!(
        linked
            .refusal
            .unwrap()
            .contains("a symbolic link at /etc/linked")
    );
}

#[test]
fn a_read_only_file_system_leaves_the_old_file() {
    let Some(host) = Host::start("file read-only", &[]) else {
        return;
    };
    host.must("mkdir /etc/rails");
    host.mount(&["-t", "tmpfs", "none"], "/etc/rails");
    host.must("echo old >/etc/rails/note");
    host.mount(&["-o", "remount,ro"], "/etc/rails");
    let resource = resource("file", json!({ "path": "/etc/rails/note", "content": "x" }));
    let fresh = host.diff(&resource);
    let (code, _, err) = host.sh(&fresh.actions[0].script());
    assert!(
        code != 0 && err.contains("Read-only file system"),
        "{code} {err}"
    );
    assert_eq!(host.diff(&resource).fingerprint(), fresh.fingerprint());
}

#[test]
fn a_sysctl_is_written_now_and_for_later() {
    let Some(host) = Host::start("sysctl", &[]) else {
        return;
    };
    // both belong to the network namespace of the host alone
    host.must("echo 0 >/proc/sys/net/ipv4/conf/lo/rp_filter");
    live(
        &host,
        &resource(
            "sysctl",
            json!({ "key": "net.ipv4.conf.lo.rp_filter", "value": 2 }),
        ),
    );
    live(
        &host,
        &resource(
            "sysctl",
            json!({ "key": "net.ipv4.tcp_rmem", "value": "4096 65536 4194304" }),
        ),
    );
    let desired = resource(
        "sysctl",
        json!({ "key": "net.ipv4.conf.lo.rp_filter", "value": 1 }),
    );
    host.must(
        "mkdir -p /run/sysctl.d; echo 'net.ipv4.conf.*.rp_filter = 1' >/run/sysctl.d/50-all.conf",
    );
    assert_eq!(
        host.diff(&desired).attributes["value"].actual.persisted,
        Some(Reading::is("1"))
    );
    host.must(
        "mkdir -p /etc/sysctl.d; echo 'net/ipv4/conf/lo/rp_filter=0' >/etc/sysctl.d/99-late.conf",
    );
    assert!(
        host.diff(&desired)
            .refusal
            .unwrap()
            .starts_with("/etc/sysctl.d/99-late.conf sets")
    );
}

#[test]
fn a_setting_that_the_kernel_does_not_have_says_so() {
    let Some(host) = Host::start("sysctl missing", &[]) else {
        return;
    };
    let action = Action::SetSysctl {
        key: "net.ipv4.no_such_thing".into(),
        value: "1".into(),
    };
    let (code, _, err) = host.sh(&action.script());
    assert_eq!(
        (code, err.as_str()),
        (
            66,
            "railwright: the kernel has no setting net.ipv4.no_such_thing\n"
        )
    );
    let (code, _, err) = host.sh(&Action::SetSysctl {
        key: "net.ipv4.ip_forward".into(),
        value: "many".into(),
    }
    .script());
    assert!(
        code == 1
            && err
                .contains("railwright: the kernel refused the value many for net.ipv4.ip_forward"),
        "{err}"
    );
}

/// The real grub-mkconfig; grub-probe is a fake, because an overlay has no disk below it.
fn with_boot_loader(host: &Host) {
    host.must(
        "printf '%s\\n' '#!/bin/sh' 'case \"$*\" in *device*) echo /dev/vda1;; *fs_uuid*) echo \
         11111111-2222-3333-4444-555555555555;; *compat*|*hints*) ;; *) echo ext2;; esac' \
         >/usr/sbin/grub-probe\n\
         chmod +x /usr/sbin/grub-probe; : >/boot/vmlinuz-6.1.0-37-amd64; : \
         >/boot/initrd.img-6.1.0-37-amd64\n\
         printf \
         'GRUB_DEFAULT=0\\nGRUB_DISTRIBUTOR=Debian\\nGRUB_CMDLINE_LINUX_DEFAULT=\"quiet\"\\nGRUB_CMDLINE_LINUX=\"console=tty0\"\\n' \
         >/etc/default/grub\n\
         mkdir -p /boot/grub; update-grub </dev/null",
    );
}

#[test]
fn a_kernel_parameter_reaches_the_next_boot() {
    let Some(host) = Host::start("kernel_parameter", &[]) else {
        return;
    };
    with_boot_loader(&host);
    for (body, shown) in [
        (
            json!({ "parameter": "iommu", "value": "pt" }),
            " quiet iommu=pt",
        ),
        (
            json!({ "parameter": "console", "value": "ttyS0,115200" }),
            " quiet console=ttyS0,115200",
        ),
        (json!({ "parameter": "nosmt" }), " quiet nosmt"),
        (
            json!({ "parameter": "dyndbg", "value": "file a.c +p" }),
            " quiet dyndbg=\"file a.c +p\"",
        ),
    ] {
        let resource = resource("kernel_parameter", body);
        let before = (host.tree(), host.must("cat /boot/grub/grub.cfg"));
        let fresh = host.diff(&resource);
        assert!(
            fresh.needs_reboot && !fresh.has_unknown() && fresh.refusal.is_none(),
            "{fresh:#?}"
        );
        host.perform(&fresh.actions);
        assert!(
            host.must("grep -m 1 '^[[:space:]]*linux' /boot/grub/grub.cfg")
                .trim_end()
                .ends_with(shown),
            "{shown}"
        );
        let applied = host.diff(&resource);
        let planes = &applied.attributes["value"];
        assert_eq!(
            (&planes.actual.persisted, &planes.actual.next_boot),
            (&planes.desired.persisted, &planes.desired.next_boot)
        );
        assert!(
            applied.actions.is_empty() && applied.needs_reboot,
            "only the reboot is pending: {applied:#?}"
        );
        host.perform(&host.undo(&resource, &fresh.before).actions);
        let undone = host.undo(&resource, &fresh.before);
        assert!(undone.is_met() && undone.actions.is_empty(), "{undone:#?}");
        assert_eq!(before, (host.tree(), host.must("cat /boot/grub/grub.cfg")));
    }
}

#[test]
fn a_host_that_was_never_a_machine_has_no_boot_loader() {
    let Some(host) = Host::start("kernel_parameter refusal", &[]) else {
        return;
    };
    host.must("rm -f /usr/sbin/update-grub");
    let refused = host.diff(&resource(
        "kernel_parameter",
        json!({ "parameter": "iommu", "value": "pt" }),
    ));
    assert!(refused.refusal.unwrap().contains("no boot loader"));
}

#[test]
fn a_command_runs_until_its_probe_is_satisfied() {
    let Some(host) = Host::start("command", &[]) else {
        return;
    };
    let resource = resource(
        "command",
        json!({ "name": "mark", "run": "printf 9000 >/etc/mark; exit 0", "read": { "probe": "cat /etc/mark", "expect": 9000 }, "creates": "/etc/mark" }),
    );
    let fresh = host.diff(&resource);
    assert!(fresh.is_absent());
    host.perform(&fresh.actions);
    assert!(host.diff(&resource).is_met());
    assert!(host.undo(&resource, &fresh.before).residue[0].contains("stays"));
}

/// Recorded trees are read below a root prefix, and busybox is all that a host may have.
#[test]
fn busybox_answers_as_dash_does_below_a_root_prefix() {
    let Some(host) = Host::start(
        "busybox",
        &[(Path::new("/usr/bin/busybox"), "usr/bin/busybox")],
    ) else {
        return;
    };
    host.must(
        "mkdir -p /tree/etc/sysctl.d /tree/proc/sys/net/core /tree/etc/default/grub.d \
         /tree/etc/modprobe.d /tree/sys/module/ib_core/parameters /bb\n\
         busybox --install -s /bb; cd /tree; echo 42 >proc/sys/net/core/rmem_max; echo \
         'net.core.rmem_max=7' >etc/sysctl.d/10-a.conf\n\
         printf 'a\\377' >etc/binary; ln -s x etc/link; echo quiet >proc/cmdline; echo \
         'GRUB_CMDLINE_LINUX=\"a=b\"' >etc/default/grub\n\
         mkdir -p boot/grub proc/sys/kernel usr/sbin; printf 'menuentry x \
         {\\n linux /v a=b\\n}\\n' >boot/grub/grub.cfg; echo 6.1 >proc/sys/kernel/osrelease\n\
         printf '#!/bin/sh\\n' >usr/sbin/update-grub; chmod +x usr/sbin/update-grub\n\
         echo 'ib_core 4096 2 rdma_rxe, Live 0x0' >proc/modules; echo Y \
         >sys/module/ib_core/parameters/netns_mode; echo 'options ib-core netns_mode=0' \
         >etc/modprobe.d/a.conf\n",
    );
    let file = |path: &str| Read::File { path: path.into() };
    let reads = [
        file("/etc/binary"),
        file("/etc/link"),
        file("/etc/none/none"),
        Read::Sysctl {
            key: "net.core.rmem_max".into(),
        },
        Read::Boot,
        Read::KernelModule {
            name: "ib_core".into(),
        },
        Read::Modified {
            paths: vec!["/etc/binary".into()],
        },
    ];
    let script = program::render_read_program(&reads, "/tree", "feedc0ffee");
    let (_, dash, _) = host.sh(&script);
    host.must(&format!("cat >/program <<'THE END'\n{script}\nTHE END"));
    let busybox = host.must(
        "env -i PATH=/bb:/nowhere LC_ALL=C /bb/sh -c 'PATH=/bb; export PATH; sed s/^PATH=.*// \
         /program | /bb/sh -s'",
    );
    let parse = |text: &str| program::parse_program_answers(&reads, "feedc0ffee", text.as_bytes());
    let (dash, busybox) = (parse(&dash), parse(&busybox));
    assert_eq!(dash, busybox);
    for read in &reads {
        assert!(dash.output(read).is_ok(), "{}", read.key());
    }
    assert!(
        dash.output(&reads[3])
            .unwrap()
            .1
            .contains("running\t42\nfile\t/etc/sysctl.d/10-a.conf\nline\t/etc/sysctl.d/10-a.conf:net.core.rmem_max=7\n")
    );
    assert!(
        dash.output(&reads[5])
            .unwrap()
            .1
            .contains("loaded\tib_core 4096 2"),
        "{:?}",
        dash.output(&reads[5])
    );
}
