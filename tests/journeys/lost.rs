//! What a NIC keeps only until its driver is loaded anew: found to be lost, and brought back by the
//! unit at the next boot. On a fixture host; the NIC's tools are fakes.

use crate::fixture::models::MODELS;
use crate::fixture::{Fixture, repository};
use crate::machine::scrub;
use crate::server::Server;
use crate::support::Place;
use std::path::PathBuf;

const SPEC: &str = "cluster: lost
ssh: { user: root, host_keys: known_hosts, identities: [id] }
nodes:
  - { name: gpu1, os: ubuntu-22.04, ssh: { address: 127.0.0.1, port: PORT } }
";

const CLASS: &str = "module: story
summary: a lossless class on one rail
resources:
  - id: class
    link_qos: { netdev: ens0f0np0, pause: false, pfc: [3], dscp: { 26: 3, 48: 6 }, cable_length_m: 40 }
";

/// A host with its server and an inventory of it.
struct Story {
    fixture: Fixture,
    server: Server,
    place: Place,
}

impl Story {
    fn start(story: &str, besides: &[(PathBuf, &str)], prepare: &str) -> Option<Story> {
        let fixture = Fixture::start_with(story, &MODELS[0], besides)?;
        fixture.0.must(prepare);
        let server = fixture.serve(&[])?;
        let place = Place::new();
        place.write(
            "inv/cluster.yaml",
            SPEC.replace("PORT", &server.port.to_string()),
        );
        place.write("inv/id", std::fs::read(server.path("id")).unwrap());
        place.write("inv/known_hosts", server.line("ed25519") + "\n");
        place.write("inv/modules/story/module.yaml", CLASS);
        Some(Story {
            fixture,
            server,
            place,
        })
    }

    fn run(&self, words: &[&str]) -> String {
        scrub(
            &self
                .place
                .run(words)
                .replace(&format!(":{}", self.server.port), ":PORT"),
        )
    }

    fn pfc(&self) -> String {
        self.fixture.0.must("dcb -j pfc show dev ens0f0np0")
    }
}

#[test]
fn a_class_that_the_driver_lost_is_drift_and_comes_back_with_the_boot() {
    let Some(mut story) = Story::start("lost class", &[], "") else {
        return;
    };
    let applied = story.run(&["apply", "inv", "--yes"]);
    assert!(applied.ends_with("--- exit 0 ---\n"), "{applied}");
    let lossless = "\"prio_pfc\":[false,false,false,true,false,false,false,false]";
    assert!(story.pfc().contains(lossless), "{}", story.pfc());
    assert!(story.run(&["drift", "inv"]).ends_with("--- exit 0 ---\n"));

    // what a driver that is loaded anew does
    story
        .fixture
        .0
        .must("rm -rf /run/fakes/qos /run/fakes/pause");
    let lost = story.run(&["drift", "inv"]);
    assert!(
        lost.contains("pfc, running: actual none")
            && lost.contains("pause, running: actual yes")
            && lost.ends_with("--- exit 2 ---\n"),
        "{lost}"
    );
    let fixed = story.run(&["apply", "inv", "--yes"]);
    assert!(
        fixed.ends_with("--- exit 0 ---\n") && story.pfc().contains(lossless),
        "{fixed}"
    );

    story.fixture.reboot(&mut story.server);
    assert!(
        story.pfc().contains(lossless),
        "the unit did not bring it back: {}",
        story.pfc()
    );
    let whole = story.run(&["drift", "inv"]);
    assert!(whole.ends_with("--- exit 0 ---\n"), "{whole}");
}

/// As on Ubuntu 20.04 with MLNX_OFED: its iproute2 has no dcb, and the NIC's own tool stands in.
#[test]
#[ignore = "long: make test-deep"]
fn a_class_that_mlnx_qos_set_is_lost_and_comes_back_as_well() {
    let besides = [(repository("tests/fakes/mlnx_qos"), "usr/bin/mlnx_qos")];
    let without_dcb = "mkdir -p /usr/lib/fakes && mv /usr/sbin/dcb /usr/lib/fakes/";
    let Some(mut story) = Story::start("lost class of mlnx_qos", &besides, without_dcb) else {
        return;
    };
    let enabled = |story: &Story| {
        story
            .fixture
            .0
            .must("mlnx_qos -i ens0f0np0")
            .contains("enabled     0   0   0   1   0   0   0   0")
    };
    assert!(!enabled(&story));
    let applied = story.run(&["apply", "inv", "--yes"]);
    assert!(
        applied.ends_with("--- exit 0 ---\n") && enabled(&story),
        "{applied}"
    );

    story
        .fixture
        .0
        .must("rm -rf /run/fakes/qos /run/fakes/pause");
    let lost = story.run(&["drift", "inv"]);
    assert!(
        lost.contains("pfc, running: actual none") && lost.ends_with("--- exit 2 ---\n"),
        "{lost}"
    );

    story.fixture.reboot(&mut story.server);
    assert!(enabled(&story), "the unit did not bring it back");
    let whole = story.run(&["drift", "inv"]);
    assert!(whole.ends_with("--- exit 0 ---\n"), "{whole}");
}
