//! `kernel_module_build` with the real git, tar, gcc, kernel headers and DKMS. The running kernel
//! is not the one whose headers the root has, so `uname` is a fake that names the latter.

use crate::rig::{Host, Root, live, resource};
use railwright_resource::complaint::find_failure_message;
use railwright_resource::{Action, DesiredResource};
use serde_json::{Value, json};

const CONF: &str = "PACKAGE_NAME=\"rail\"\n\
                    PACKAGE_VERSION=\"1.0\"\n\
                    BUILT_MODULE_NAME[0]=\"rail\"\n\
                    DEST_MODULE_LOCATION[0]=\"/updates\"\n\
                    AUTOINSTALL=\"yes\"\n\
                    MAKE[0]=\"make -C /lib/modules/${kernelver}/build \
                    M=${dkms_tree}/${PACKAGE_NAME}/${PACKAGE_VERSION}/build modules\"\n";

fn host(story: &str) -> Option<Host> {
    let host = Host::start_from(Root::Builder, story, &[])?;
    host.must(
        "k=$(basename /lib/modules/*); mv /usr/bin/uname /usr/bin/uname.real\n\
         printf '#!/bin/sh\\n[ \"$*\" = -r ] && { echo %s; exit; }\\nexec /usr/bin/uname.real \
         \"$@\"\\n' \"$k\" >/usr/bin/uname; chmod +x /usr/bin/uname\n\
         depmod -a \"$k\"; mkdir -p /srv/rail && cd /srv/rail\n\
         printf '#include <linux/module.h>\\nMODULE_LICENSE(\"GPL\");\\n' >rail.c; echo 'obj-m := \
         rail.o' >Makefile\n\
         git init -q . && git add . && git -c user.name=n -c user.email=n@example.org commit -qm \
         one && git tag 1.0-9\n\
         cd /srv && tar -cJf rail.tar.xz --exclude .git rail",
    );
    Some(host)
}

fn build(source: Value) -> DesiredResource {
    resource(
        "kernel_module_build",
        json!({ "name": "rail", "version": "1.0", "source": source, "dkms_conf": CONF }),
    )
}

fn git(revision: &str) -> DesiredResource {
    build(json!({ "git": "file:///srv/rail", "revision": revision }))
}

#[test]
fn a_git_tag_becomes_an_installed_module_and_goes_again() {
    let Some(host) = host("kernel_module_build git") else {
        return;
    };
    live(&host, &git("1.0-9"));
    host.perform(&host.diff(&git("1.0-9")).actions);
    let commit = host.must("git -C /srv/rail rev-parse HEAD");
    assert!(
        host.must("cat /usr/src/rail-1.0.railwright")
            .contains(&format!("commit {commit}"))
    );
    assert!(
        host.must("modinfo -k $(uname -r) -F filename rail")
            .contains("/updates/")
    );
    // another source of the same version is built in its place
    host.must(
        "cd /srv/rail && echo '// two' >>rail.c && git -c user.name=n -c user.email=n@example.org \
         commit -qam two",
    );
    let newer = git(commit_of(&host, "HEAD").as_str());
    let changed = host.diff(&newer);
    assert_eq!(
        changed.actions.iter().map(Action::word).collect::<Vec<_>>(),
        ["fetch_module_source", "build_module"]
    );
    host.perform(&changed.actions);
    assert!(host.diff(&newer).is_met() && !host.diff(&git("1.0-9")).is_met());
    let mut body = newer.body.clone();
    body["version"] = json!("2.0");
    body["dkms_conf"] = json!(CONF.replace("1.0", "2.0"));
    let other = resource("kernel_module_build", body);
    let change = host.diff(&other);
    assert_eq!(
        change.actions.iter().map(Action::word).collect::<Vec<_>>(),
        ["fetch_module_source", "build_module"]
    );
    host.perform(&change.actions);
    assert!(host.diff(&other).is_met());
    let kept = host.must("dkms status -m rail; ls /usr/src");
    let is_there = |version: &str| {
        kept.contains(&format!("rail/{version}")) || kept.contains(&format!("rail-{version}"))
    };
    assert!(is_there("2.0") && is_there("1.0"), "{kept}");
}

fn commit_of(host: &Host, revision: &str) -> String {
    host.must(&format!("git -C /srv/rail rev-parse {revision}"))
        .trim()
        .to_owned()
}

#[test]
fn an_archive_is_proven_before_it_is_unpacked() {
    let Some(host) = host("kernel_module_build archive") else {
        return;
    };
    let sha256 = host
        .must("sha256sum </srv/rail.tar.xz | cut -d' ' -f1")
        .trim()
        .to_owned();
    let archive = |sha256: &str| json!({ "archive": "/srv/rail.tar.xz", "sha256": sha256 });
    let wrong = host.diff(&build(archive(&"0".repeat(64))));
    let (code, _, err) = host.sh(&wrong.actions[0].script());
    assert!(
        code == 77
            && find_failure_message(&err)
                .unwrap()
                .contains("nothing of it was unpacked"),
        "{err}"
    );
    assert!(host.diff(&build(archive(&sha256))).is_absent());
    live(&host, &build(archive(&sha256)));
    let body =
        json!({ "name": "rail", "version": "1.0", "source": archive(&sha256), "dkms": false });
    live(&host, &resource("kernel_module_build", body));
}

#[test]
fn what_is_missing_is_named() {
    let Some(host) = host("kernel_module_build missing") else {
        return;
    };
    let gone = |resource: &DesiredResource| {
        let (code, _, err) = host.sh(&host.diff(resource).actions[0].script());
        (code, find_failure_message(&err).unwrap_or(err))
    };
    assert_eq!(
        gone(&git("no-such-tag")),
        (66, "the repository has no revision no-such-tag".to_owned())
    );
    assert_eq!(
        gone(&git(&"a".repeat(40))),
        (
            66,
            format!("the repository has no revision {}", "a".repeat(40))
        )
    );
    let nowhere = build(json!({ "git": "file:///srv/none", "revision": "main" }));
    assert_eq!(
        gone(&nowhere).1,
        "the repository file:///srv/none could not be fetched"
    );

    let resource = git("1.0-9");
    let actions = host.diff(&resource).actions;
    host.perform(&actions[..1]);
    host.must("echo '#error the rails do not fit' >>/usr/src/rail-1.0/rail.c");
    let fails = |host: &Host| {
        let (code, _, err) = host.sh(&actions[1].script());
        (code, find_failure_message(&err).unwrap_or(err))
    };
    let (code, sentence) = fails(&host);
    assert!(
        code == 1
            && sentence.contains("rail 1.0 does not build for")
            && sentence.contains("the rails do not fit"),
        "{sentence}"
    );
    host.must("rm /lib/modules/*/build");
    let (code, sentence) = fails(&host);
    assert!(
        code == 66 && sentence.contains("add the package linux-headers-"),
        "{sentence}"
    );
    host.must("mv /usr/bin/gcc /usr/bin/gcc.gone");
    assert!(fails(&host).1.starts_with("gcc is not on this host"));
    let half = host.undo(&resource, &json!({ "tree": false }));
    host.perform(&half.actions);
    assert!(host.undo(&resource, &json!({ "tree": false })).is_met());
}

/// The layout of Mellanox/nv_peer_memory at tag 1.0-9 as its public files have it, in words of
/// ours: `all` first takes the symbol versions of the NVIDIA driver's module by a script beside it,
/// then the header of the driver or one of its own, then the symbols of MLNX_OFED; `PWD`, `KVER`
/// and `KDIR` are set in the Makefile; its DKMS configuration names version 1.0 and builds for the
/// kernel that runs.
const LAYOUT: &str = r##"mkdir -p /srv/nv_peer_memory && cd /srv/nv_peer_memory
cat >Makefile <<'END'
obj-m += nv_peer_mem.o
OFA_KERNEL ?= $(shell test -d /usr/src/ofa_kernel/default && echo /usr/src/ofa_kernel/default)
ccflags-y += -I$(OFA_KERNEL)/include
PWD := $(shell pwd)
KVER := $(shell uname -r)
KDIR := /lib/modules/$(KVER)/build
all: symvers
	cp -f $(PWD)/compat_nv-p2p.h $(PWD)/nv-p2p.h
	cp -rf $(OFA_KERNEL)/Module.symvers .
	cat nv.symvers >> Module.symvers
	make -C $(KDIR) M=$(PWD) modules
clean:
	make -C $(KDIR) M=$(PWD) clean
install:
	false
symvers:
	$(PWD)/create_nv.symvers.sh $(KVER)
END
cat >create_nv.symvers.sh <<'END'
#!/bin/bash
f=$(/sbin/modinfo -k "$1" -F filename nvidia 2>/dev/null)
[ -n "$f" ] || { echo '-E- Cannot locate nvidia modules!' >&2; echo 'CUDA driver must be installed before installing this package!' >&2; exit 1; }
nm "$f" | awk '/ T nvidia_p2p_/ { printf "0x00000000\t%s\tnvidia\tEXPORT_SYMBOL\t\n", $3 }' >nv.symvers
END
chmod +x create_nv.symvers.sh
echo 'int nvidia_p2p_get_pages(void);' >compat_nv-p2p.h
cat >nv_peer_mem.c <<'END'
#include <linux/module.h>
#include <rdma/peer_mem.h>
#include "nv-p2p.h"
static int __init begin(void) { return nvidia_p2p_get_pages() + ib_register_peer_memory_client(); }
module_init(begin);
MODULE_LICENSE("Dual BSD/GPL");
END
printf 'PACKAGE_NAME="nv_peer_mem"\nPACKAGE_VERSION="1.0"\nBUILT_MODULE_NAME[0]="nv_peer_mem"\nDEST_MODULE_LOCATION[0]="/kernel/../updates/"\nMAKE="make all && make install"\n' >dkms.conf
git init -q . && git add . && git -c user.name=n -c user.email=n@example.org commit -qm one && git tag 1.0-9
"##;

/// A fake of the NVIDIA driver's module, which has the symbols and nothing behind them, built
/// by the kernel's own make.
const DRIVER: &str = r##"mkdir -p /root/nvidia && cd /root/nvidia && k=$(uname -r)
printf '#include <linux/module.h>\nint nvidia_p2p_get_pages(void);\nint nvidia_p2p_get_pages(void) { return 0; }\nEXPORT_SYMBOL(nvidia_p2p_get_pages);\nMODULE_LICENSE("GPL");\n' >nvidia.c
echo 'obj-m := nvidia.o' >Makefile && make -C /lib/modules/$k/build M=$PWD modules >/dev/null
mkdir -p /lib/modules/$k/updates/dkms && cp nvidia.ko /lib/modules/$k/updates/dkms/ && depmod -a $k
"##;

/// A fake of MLNX_OFED's sources: the header and the symbol of its peer memory interface.
const OFED: &str = r##"mkdir -p /usr/src/ofa_kernel/default/include/rdma && cd /usr/src/ofa_kernel/default
echo 'int ib_register_peer_memory_client(void);' >include/rdma/peer_mem.h
printf '0x00000000\tib_register_peer_memory_client\tdrivers/infiniband/core/ib_core\tEXPORT_SYMBOL\t\n' >Module.symvers
"##;

/// What the shipped module declares for a source.
fn of_module(source: &str) -> DesiredResource {
    let text = format!(
        "cluster: c\n\
         nodes:\n  - {{ name: n1, os: debian-12, gpu: {{ model: A100, count: 1, direct: {{ path: \
         nv-peer-mem, source: \"{source}\" }} }} }}\n"
    );
    let loaded =
        railwright_knowledge::spec::load_spec(vec![railwright_knowledge::spec::SourceFile {
            name: "a.yaml".into(),
            text,
        }]);
    let loaded = loaded.unwrap_or_else(|problems| panic!("{:?}", problems.diagnostics));
    let modules = railwright_knowledge::module::load_modules(
        railwright_knowledge::module::collect_shipped_modules(),
    )
    .unwrap_or_else(|problems| panic!("{:?}", problems.diagnostics));
    let desired = railwright_knowledge::module::compute_desired_state(
        &loaded,
        &Default::default(),
        &Default::default(),
        &modules,
        &std::collections::BTreeMap::new(),
    )
    .unwrap();
    desired
        .resources
        .into_iter()
        .find(|resource| resource.kind == "kernel_module_build")
        .unwrap()
}

#[test]
#[ignore = "long: make test-deep"]
fn nv_peer_mem_is_built_from_its_tag_and_says_what_it_misses() {
    let Some(host) = host("kernel_module_build nv_peer_mem") else {
        return;
    };
    host.must(LAYOUT);
    let resource = of_module("file:///srv/nv_peer_memory#1.0-9");
    let actions = host.diff(&resource).actions;
    host.perform(&actions[..1]);
    let why = || {
        let (code, _, err) = host.sh(&actions[1].script());
        assert_eq!(code, 1, "{err}");
        find_failure_message(&err).unwrap()
    };
    assert!(
        why().ends_with("CUDA driver must be installed before installing this package!"),
        "{}",
        why()
    );
    host.must(DRIVER);
    assert!(why().contains("cannot stat '/Module.symvers'"), "{}", why());
    host.must(OFED);
    host.perform(&actions[1..]);
    assert!(host.diff(&resource).is_met());
    let kept = host.must(
        "modinfo -k $(uname -r) -F filename nv_peer_mem; modinfo -k $(uname -r) -F depends \
         nv_peer_mem; dkms status",
    );
    assert!(
        kept.contains("/updates/dkms/nv_peer_mem.ko")
            && kept.contains("nv_peer_mem/1.0-9")
            && kept.contains("nvidia"),
        "{kept}"
    );
    host.perform(&host.undo(&resource, &json!({ "tree": false })).actions);
    assert!(
        host.must("dkms status; ls /usr/src")
            .lines()
            .all(|line| !line.contains("nv_peer_mem"))
    );
}
