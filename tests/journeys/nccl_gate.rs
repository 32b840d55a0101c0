//! NCCL's tests as a gate between waves, and in `verify --nccl`: two hosts behind real OpenSSH
//! servers. No GPU is here: two made PCI functions stand for the GPUs of each host, and fakes
//! have the part of Open MPI and of `all_reduce_perf` (`tests/fakes/nccl`), by which the test
//! goes over RDMA, over TCP, moves wrong data, breaks or never ends.

use crate::host_jobs::{Pair, head};
use crate::machine::scrub;

/// Two PCI functions with NVIDIA's driver, as sysfs has them.
const GPUS: &str = "mkdir -p /sys/bus/pci/drivers/nvidia; for n in 1 2; do d=/sys/bus/pci/devices/0000:1$n:00.0; mkdir -p $d
echo 0x030200 >$d/class; echo 0x10de >$d/vendor; echo 0x20b2 >$d/device; ln -s /sys/bus/pci/drivers/nvidia $d/driver; done";

/// A file on each host, so that there is something to roll out.
const STORY: &str = "module: story\n\
                     summary: what the story needs\n\
                     resources:\n  - id: note\n    file: { path: /etc/note.conf, content: \"NOTE\\n\" }\n";

/// Two hosts with GPUs and without rails, whose gate asks for NCCL's tests.
fn pair(nccl: &str) -> Option<Pair> {
    let pair = Pair::start()?;
    let group = |name: &str, port: u16| {
        format!(
            "  - name: {name}\n    os: debian-12\n    gpu: {{ model: A100-SXM4-80GB, count: 2 }}\n    ssh: {{ address: 127.0.0.1, port: {port} }}\n"
        )
    };
    let [one, other] = pair.ports();
    // The limit of locked memory is this machine's own.
    let rollout = format!(
        "rollout: {{ gate: {{ nccl: {nccl} }} }}\nmodules: {{ memlock: {{ enabled: false }} }}\n"
    );
    pair.place.write(
        "inv/cluster.yaml",
        format!(
            "{}{}{}{rollout}",
            head(),
            group("gpu1", one),
            group("gpu2", other)
        ),
    );
    pair.hosts.iter().for_each(|host| drop(host.must(GPUS)));
    resource(&pair, "first");
    Some(pair)
}

fn resource(pair: &Pair, note: &str) {
    pair.place
        .write("inv/modules/story/module.yaml", STORY.replace("NOTE", note));
}

fn says(pair: &Pair, word: &str) {
    pair.hosts
        .iter()
        .for_each(|host| drop(host.must(&format!("echo {word} >/etc/nccl-says"))));
}

/// Applies the file of both hosts; what was said.
fn applied(pair: &Pair) -> String {
    scrub(
        &pair
            .place
            .run(&["apply", "inv", "--yes", "--target", "file /etc/note.conf"]),
    )
}

#[test]
fn a_wave_goes_on_where_nccl_proves_it_and_the_canary_comes_along() {
    let Some(pair) = pair("{ to: 8G }") else {
        return;
    };
    let said = applied(&pair);
    assert!(said.ends_with("--- exit 0 ---\n"), "{said}");
    // The canary has nobody to run with, which is told; the next wave takes it along, from whose
    // first host the test is started.
    assert!(
        said.contains("RW1307") && said.contains("when its gate came, nobody of the 1 other host"),
        "{said}"
    );
    assert!(said.contains("gpu2  gate passed"), "{said}");
    assert_eq!(
        pair.hosts[0].sh("cat /root/mpirun.txt").0,
        1,
        "nothing was started for the canary alone"
    );
    let words = pair.hosts[1].must("cat /root/mpirun.txt");
    assert!(
        words.contains("-H 127.0.0.1:2,127.0.0.1:2 ")
            && words.contains(" all_reduce_perf -b 8 -e 8G "),
        "{words}"
    );
    pair.is_clean();
}

#[test]
fn a_wave_that_nccl_disproves_stops_the_rollout_with_the_reason() {
    let Some(pair) = pair("{ within: 10s }") else {
        return;
    };
    assert!(applied(&pair).ends_with("--- exit 0 ---\n"));
    for (word, reason) in [
        (
            "socket",
            "RW0650: the gate did not let gpu2 through: nccl transport on gpu[1-2] failed: TCP \
             sockets: NCCL found no RDMA device",
        ),
        (
            "wrong",
            "nccl data on gpu[1-2] failed: 14 elements arrived wrong",
        ),
        (
            "fails",
            "nccl on gpu[1-2] failed: it ended with exit status 2 on gpu2",
        ),
        (
            "hangs",
            "nccl on gpu[1-2] failed: it had not ended after 10 s",
        ),
    ] {
        resource(&pair, word);
        says(&pair, word);
        let said = applied(&pair);
        let unbroken = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(unbroken.contains(reason), "{word}: {said}");
        assert!(said.ends_with("--- exit 5 ---\n"), "{word}: {said}");
        pair.is_clean();
        // Fixed, the run goes on through its gate.
        says(&pair, "right");
        let resumed = pair.place.run(&["resume", "inv"]);
        assert!(resumed.ends_with("--- exit 0 ---\n"), "{word}: {resumed}");
    }
    // Without the program nothing is known, and nothing unproven lets a wave on.
    resource(&pair, "lacking");
    pair.hosts[0].must("rm /usr/bin/all_reduce_perf");
    let said = applied(&pair);
    let unbroken = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        unbroken.contains(
            "nccl on gpu[1-2] is unknown: all_reduce_perf (NVIDIA/nccl-tests) is not on gpu1"
        ),
        "{said}"
    );
    assert!(said.ends_with("--- exit 5 ---\n"), "{said}");
}

#[test]
fn verify_reports_nccl_between_all_hosts_with_gpus() {
    let Some(pair) = pair("{}") else { return };
    let said = pair.place.run(&["verify", "inv", "--nccl"]);
    assert!(said.ends_with("--- exit 0 ---\n"), "{said}");
    for line in [
        "NCCL'S TESTS",
        "   gpu[1-2]   4 ranks   RoCE   49.34 GB/s at 8 GiB\n",
        "   nccl transport gpu[1-2]   1 passed\n",
        "   nccl data    gpu[1-2]   1 passed\n",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    says(&pair, "socket");
    let json = pair.place.run(&["verify", "inv", "--nccl", "--json"]);
    for part in [
        "\"check\": \"nccl transport\"",
        "\"verdict\": \"failed\"",
        "\"transport\": \"socket\"",
        "\"busbw\": 49.34",
        "--- exit 1 ---",
    ] {
        assert!(json.contains(part), "{part}: {json}");
    }
    let named = pair
        .place
        .run(&["verify", "inv", "--nccl", "--program", "./all_reduce_perf"]);
    assert!(
        named.contains("RW1300") && named.contains("no path that is the same on every host"),
        "{named}"
    );
    pair.is_clean();
    // Without GPUs, or with one host that has them, nobody is asked.
    for (gpus, why) in [
        ("", "no host that is reached over SSH has GPUs of NVIDIA"),
        (
            "gpu: { model: A100-SXM4-80GB, count: 2 }, ",
            "n1 alone has GPUs",
        ),
    ] {
        let spec = format!(
            "{}  - {{ name: n1, os: debian-12, {gpus}ssh: {{ address: 127.0.0.1, port: 9 }} }}\n  - {{ name: n2, os: debian-12, ssh: {{ address: 127.0.0.1, port: 10 }} }}\n",
            head()
        );
        pair.place.write("inv/cluster.yaml", spec);
        let said = pair.place.run(&["verify", "inv", "--nccl"]);
        let unbroken = said.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            unbroken.contains("RW1305")
                && unbroken.contains(why)
                && unbroken.contains("no host was asked"),
            "{said}"
        );
        assert!(said.ends_with("--- exit 1 ---\n"), "{said}");
    }
}
