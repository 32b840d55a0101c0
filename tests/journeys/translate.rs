//! `translate`: commands of wiki pages as lines of the spec, as a user sees them.

use crate::support::Place;
use std::io::Write as _;
use std::process::Stdio;

/// The commands of a guide to RoCE version 2 with GPUDirect, step by step, as it has them.
const GUIDE: &str = "\
# 1. packages
sudo apt-get install -y mofed
sudo reboot
sudo ibdev2netdev
sudo ibstat
sudo ip link set dev ethX mtu 9000
sudo apt-get install -y mofed
sudo apt-get install -y nvidia-driver-535 nvidia-dkms-535
# 2. devices
sudo ibdev2netdev
sudo ibstat
# 4. MTU
sudo ip link set dev ethX mtu 9000
# 5. GPUDirect RDMA
git clone https://github.com/Mellanox/nv_peer_memory.git
cd nv_peer_memory && git checkout 1.0-9
make && sudo insmod ./nv_peer_mem.ko
# 6. the sender
sudo ib_write_bw -d mlx5_0 -F
# the receiver
sudo ib_write_bw -d mlx5_0 -F
ib_read_lat
ibv_devinfo
";

#[test]
fn a_guide_to_gpudirect_becomes_a_spec() {
    let place = Place::new();
    place.write("guide.sh", GUIDE);
    insta::assert_snapshot!(place.run(&["translate", "--file", "guide.sh"]), @r#"
    $ railwright translate --file guide.sh
    2, 7: sudo apt-get install -y mofed
      spec
        nodes:
          - rdma_stack:
              flavour: doca
      does       installs DOCA for hosts, the successor of MLNX_OFED, from a package repository that you
                 name under `repositories`, and plans the reboot that brings its drivers into effect;
                 `flavour: mlnx-ofed` on systems that DOCA has left behind
      why        no repository has a package `mofed`; MLNX_OFED ended as a product of its own with
                 24.10, and what is installed does not run until the drivers are loaded anew
      by         modules doca-ofed, openibd, package-repositories; rules RW2406, RW2407; drift: package,
                 systemd_unit
      source     NVIDIA DOCA documentation, DOCA Profiles; Oracle, Installing DOCA OFED (Session Monitor
                 6.1)

    3: sudo reboot
      does       plans one reboot for all changes of a host that need it, a few hosts at a time, and
                 goes on once the host has come back with what was wanted
      why        `rollout` says how many hosts may be out of service; no line asks for a reboot
      by         modules openibd, iommu, nvidia-driver
      source     torvalds/linux: Documentation/admin-guide/sysctl/kernel.rst (random, boot_id)

    4, 10: sudo ibdev2netdev
      does       verify asks every host whether the port of each rail is active and which netdev it
                 belongs to
      why        ibdev2netdev comes with OFED only and lists NICs of one vendor, so it never shows
                 eRDMA, Soft-RoCE or Intel NICs
      by         modules rdma-core, ofed-devices; verify: netdev, rdma link; drift: rdma_link
      source     knneth/mlnx-ofa_kernel: ofed_scripts/ibdev2netdev

    5, 11: sudo ibstat
      does       verify asks every host whether the port of each rail is active; drift tells a device
                 that is gone
      why        an answer from one host says nothing of the others
      by         modules rdma-core, ofed-devices; verify: rdma link; drift: rdma_link
      source     ibstat(8), rdma-link(8)

    6, 13: sudo ip link set dev ethX mtu 9000
      spec
        fabric:
          mtu: 9000
        nodes:
          - nics:
              netdev: ethX
      does       sets it on every rail, on the running netdev and in the files of whatever keeps the
                 netdev after a reboot, and proves that whole packets pass between hosts
      why        the command alone is gone after a reboot; the NIC takes as RDMA MTU the largest of 256
                 to 4096 that fits below the netdev's with 96 bytes to spare
      by         module jumbo-mtu; rules RW2103, RW2104, RW2921; verify: netdev, path mtu; drift: link
      source     torvalds/linux: include/rdma/ib_addr.h

    8: sudo apt-get install -y nvidia-driver-535 nvidia-dkms-535
      spec
        nodes:
          - gpu:
              driver: "535"
      does       installs driver and DKMS packages of branch 535 together, after the RDMA stack, with
                 nouveau out of the way, and checks that what runs is of this branch
      why        the peer memory symbols of the RDMA stack are looked for while the driver is built: one
                 that was built before it loads nvidia-peermem with `Invalid argument`
      by         modules nvidia-driver, kernel-build; rules RW2401, RW2402, RW2403; drift: package,
                 kernel_module
      source     NVIDIA/gpu-operator#2868; Mellanox/nv_peer_memory#63

    15: git clone https://github.com/Mellanox/nv_peer_memory.git
    16: git checkout 1.0-9
    17: make
    17: sudo insmod ./nv_peer_mem.ko
      the same
        nodes:
          - gpu:
              direct:
                path: nv-peer-mem
                source: "https://github.com/Mellanox/nv_peer_memory.git#1.0-9"
                version: "1.0-9"
      better
        nodes:
          - gpu:
              direct:
                path: peermem
      does       loads nvidia-peermem, a part of NVIDIA's driver since 470, now, at boot and after each
                 restart of openibd; with `path: nv-peer-mem` it builds revision 1.0-9 by DKMS instead
                 of make and insmod
      why        what insmod loads is gone after a reboot and is not built for the next kernel;
                 nvidia-peermem took the place of nv_peer_mem, whose releases before 1.2 belong to an
                 OFED older than 5.1
      by         modules nvidia-peermem, nv-peer-mem; rules RW2301, RW2306, RW2307; drift:
                 kernel_module_build
      source     Mellanox/nv_peer_memory#46, #51; NVIDIA GPUDirect RDMA User Manual 1.8

    16: cd nv_peer_memory
      does       nothing: it is about the shell that runs the script

    19, 21: sudo ib_write_bw -d mlx5_0 -F
    22: ib_read_lat
      does       verify starts the server on one host, waits until it listens, runs the client with the
                 server's address on the other and ends both, for every rail; the spec says what is
                 enough
      why        without the address of a server this command is one itself and waits for a client: run
                 like this on both ends, both wait for ever and nothing is measured
      by         module perftest; verify: bandwidth, latency
      source     linux-rdma/perftest: man/perftest.1

    23: ibv_devinfo
      does       verify asks every host whether the port of each rail is active, and sends RDMA traffic
                 from each host to itself
      why        the list is empty where the library of the device is missing, although the kernel has
                 the device
      by         modules rdma-core, erdma-driver; verify: rdma link, loopback; drift: rdma_link
      source     linux-rdma/rdma-core: libibverbs

    ALL TOGETHER, for the spec ----------------------------------------------------------------------
      fabric:
        mtu: 9000
      nodes:
        - gpu:
            direct:
              path: peermem
            driver: "535"
          nics:
            netdev: ethX
          rdma_stack:
            flavour: doca

    These are parts of a spec: `fabric` has a `kind` too, each entry of `nodes` a `name`, `gpu` and
    `nics` a `model`; `railwright validate` says what is missing.

    19 commands, all understood. Nothing was run.
    --- exit 0 ---
    "#);
}

#[test]
fn one_command_is_one_answer() {
    let place = Place::new();
    insta::assert_snapshot!(place.run(&["translate", "apt-get install -y mofed"]), @r#"
    $ railwright translate apt-get install -y mofed
    1: apt-get install -y mofed
      spec
        nodes:
          - rdma_stack:
              flavour: doca
      does       installs DOCA for hosts, the successor of MLNX_OFED, from a package repository that you
                 name under `repositories`, and plans the reboot that brings its drivers into effect;
                 `flavour: mlnx-ofed` on systems that DOCA has left behind
      why        no repository has a package `mofed`; MLNX_OFED ended as a product of its own with
                 24.10, and what is installed does not run until the drivers are loaded anew
      by         modules doca-ofed, openibd, package-repositories; rules RW2406, RW2407; drift: package,
                 systemd_unit
      source     NVIDIA DOCA documentation, DOCA Profiles; Oracle, Installing DOCA OFED (Session Monitor
                 6.1)

    These are parts of a spec: `fabric` has a `kind` too, each entry of `nodes` a `name`, `gpu` and
    `nics` a `model`; `railwright validate` says what is missing.

    1 command, all understood. Nothing was run.
    --- exit 0 ---
    "#);
    insta::assert_snapshot!(place.run(&["translate", "nvidia-smi"]), @r#"
    $ railwright translate nvidia-smi
    1: nvidia-smi
      does       verify compares branch, kernel modules and number of GPUs with the spec
      why        installed is not loaded; the driver that runs can be older than its packages
      by         module nvidia-driver; drift: package, kernel_module
      source     NVIDIA Driver Installation Guide, Kernel Modules

    1 command, all understood. Nothing was run.
    --- exit 0 ---
    "#);
}

#[test]
fn what_is_not_known_is_said_plainly() {
    let place = Place::new();
    let script = "frobnicate --now\n\
                  apt-get install -y perftest emacs; mlnx_qos -i ens1 --pfc 0,0,0,1,0,0,0,0 \
                  --cable_len 7\n\
                  make\n";
    insta::assert_snapshot!(place.run(&["translate", script]), @r#"
    $ railwright translate frobnicate --now
    apt-get install -y perftest emacs; mlnx_qos -i ens1 --pfc 0,0,0,1,0,0,0,0 --cable_len 7
    make

    1: frobnicate --now
      not known  no translation of this command

    2: apt-get install -y perftest emacs
      does       installs it on every host of a fabric of kind rocev2, infiniband or erdma, without a
                 line in the spec
      why        verify and the gates between waves measure with it
      by         module perftest; verify: bandwidth, latency, loopback; drift: package
      source     linux-rdma/perftest: README

    2: apt-get install -y perftest emacs
      not known  no translation of this part of it
      left over  `emacs`

    2: mlnx_qos -i ens1 --pfc 0,0,0,1,0,0,0,0 --cable_len 7
      spec
        fabric:
          lossless:
            priority: 3
        nodes:
          - nics:
              netdev: ens1
      does       turns PFC on for priority 3 of every rail, by dcb or mlnx_qos, whichever the host has,
                 and keeps it by a unit
      why        nothing of it survives a reboot or a reload of the driver, and a node with one wrong
                 bit is silent about it
      by         module roce-qos; rules RW2122, RW2123, RW2922, RW2923; drift: link_qos
      source     Mellanox/mlnx-tools: python/mlnx_qos; dcb-pfc(8)
      left over  `--cable_len`, `7`

    3: make
      does       nothing by this line alone, because what is built cannot be seen from it; kernel
                 modules are built by DKMS
      why        what make builds for the kernel that runs is not built for the next one
      by         module nv-peer-mem; drift: kernel_module_build
      source     Mellanox/nv_peer_memory#46, #51

    These are parts of a spec: `fabric` has a `kind` too, each entry of `nodes` a `name`, `gpu` and
    `nics` a `model`; `railwright validate` says what is missing.

    4 commands, 4 of them not understood, or not wholly. Nothing was run.
    --- exit 3 ---
    "#);
}

#[test]
fn two_commands_that_differ_are_warned_of() {
    let place = Place::new();
    let said = place.run(&[
        "translate",
        "ip link set ens1 mtu 9000; ip link set ens1 mtu 4200",
    ]);
    assert!(
        said.contains("warning RW1036: the commands say 9000 and 4200 for `fabric.mtu`"),
        "{said}"
    );
    assert!(said.ends_with("--- exit 0 ---\n"), "{said}");
}

#[test]
fn the_standard_input_is_a_script_too() {
    let place = Place::new();
    for words in [&["translate", "-"][..], &["translate", "--file", "-"]] {
        let mut child = place
            .command(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(b"export NCCL_IB_TC=106\n")
            .unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert!(
            String::from_utf8(output.stdout)
                .unwrap()
                .contains("NCCL_IB_TC: \"106\"")
        );
    }
}

#[test]
fn what_cannot_be_read_is_an_error() {
    let place = Place::new();
    place
        .write("latin.sh", b"echo \xff\n")
        .write("empty.sh", "# nothing\n");
    let screens = [
        &["--file", "nowhere.sh"][..],
        &["--file", "latin.sh"],
        &["--file", "empty.sh"],
        &["echo 'a"],
    ];
    let screens: Vec<String> = screens
        .iter()
        .map(|words| place.run(&[&["translate"], *words].concat()))
        .collect();
    insta::assert_snapshot!(screens.join("\n"), @r#"
    $ railwright translate --file nowhere.sh
    --- stderr ---
    error RW1033: nowhere.sh cannot be read: No such file or directory (os error 2)
      state:  nothing was run
      next:   name a script of at most 256 KiB
    --- exit 1 ---

    $ railwright translate --file latin.sh
    --- stderr ---
    error RW1033: latin.sh is not UTF-8 from byte 5 on
      state:  nothing was run
      next:   save the file as UTF-8
    --- exit 1 ---

    $ railwright translate --file empty.sh
    --- stderr ---
    error RW1033: there is no command to translate
      next:   give a command as one argument, or a script: railwright translate --file script.sh
    --- exit 1 ---

    $ railwright translate echo 'a
    --- stderr ---
    error RW1034: a quote of the command in line 1 is not closed
      state:  nothing was run
      next:   close it; what follows it cannot be told apart
    --- exit 1 ---
    "#);
    assert!(place.run(&["translate"]).ends_with("--- exit 64 ---\n"));
}

#[test]
fn nothing_of_a_script_is_run() {
    let place = Place::new();
    let said = place.run(&[
        "translate",
        "touch made; echo $(touch made) `touch made` > made",
    ]);
    assert!(
        said.ends_with("--- exit 3 ---\n") && !place.path().join("made").exists(),
        "{said}"
    );
}

/// A page around the commands is counted, and environments for different NICs are not one.
#[test]
fn a_whole_page_is_told_from_its_commands() {
    let place = Place::new();
    let page = "RDMA on the platform\n\
                更新時間:2025\n\
                \n\
                NIC type 1\n\
                export NCCL_IB_HCA=mlx5\n\
                \n\
                NIC type 2\n\
                export NCCL_IB_DISABLE=1\n\
                export NCCL_IB_HCA=\n";
    place.write("page.txt", page);
    let said = place.run(&["translate", "--file", "page.txt"]);
    assert!(
        said.contains("4 lines are text and no command: 1-2, 4, 7\n3 commands, all understood."),
        "{said}"
    );
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let apart = "they exclude each other: the first is for NICs of type 1 (GU8TEF, GU8TF, GX8SF), \
                 the second for NICs of type 2 (P16EN)";
    assert!(words.contains(apart), "{said}");
    place.write("prose.txt", "Nothing but words\n");
    assert!(
        place
            .run(&["translate", "--file", "prose.txt"])
            .contains("RW1033")
    );
}

/// A job is no line of a spec, and there is a command for it.
#[test]
fn a_line_of_arena_names_the_command_that_reads_it() {
    let place = Place::new();
    let said = place.run(&[
        "translate",
        "arena submit pytorch --name=a --image=own/a:1 --gpus=1 'torchrun main.py'",
    ]);
    assert!(
        said.contains("railwright job from-arena") && said.ends_with("--- exit 0 ---\n"),
        "{said}"
    );
    let said = place.run(&[
        "translate",
        "arena submit mpijob --name=a --image=own/a:1 mpirun",
    ]);
    assert!(
        said.contains("only trainings of PyTorch are translated")
            && said.ends_with("--- exit 3 ---\n"),
        "{said}"
    );
}
