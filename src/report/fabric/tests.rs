//! The screen and the picture of small and of large fabrics.

use super::{FabricSubject, document::FabricDocument, render_fabric_screen, svg};
use quick_xml::events::Event;
use railwright_verify::fabric::FabricDevice;
use railwright_verify::fabric::sample_for_tests::{Fabric, Size};
use unicode_width::UnicodeWidthStr as _;

fn with<T>(fabric: &Fabric, show: impl Fn(&FabricSubject) -> T) -> T {
    let (desired, report) = fabric.evaluated();
    show(&FabricSubject {
        inventory: "inv",
        recorded: None,
        desired: &desired,
        report: &report,
    })
}

/// The screen, of which no line is too long.
fn shown(fabric: &Fabric) -> String {
    let text = with(fabric, render_fabric_screen);
    let long: Vec<&str> = text.lines().filter(|line| line.width() > 100).collect();
    assert_eq!(long, [""; 0]);
    text
}

fn one_host() -> Fabric {
    Fabric::of(Size {
        pods: 1,
        hosts: 1,
        rails: 2,
        spines: 0,
    })
}

fn two_pods() -> Fabric {
    Fabric::of(Size {
        pods: 2,
        hosts: 8,
        rails: 8,
        spines: 4,
    })
}

/// Pods of 40 hosts, 25 of them.
fn thousand() -> Fabric {
    Fabric::of(Size {
        pods: 25,
        hosts: 40,
        rails: 8,
        spines: 8,
    })
}

#[test]
fn one_host_on_two_leaves() {
    insta::assert_snapshot!(shown(&one_host()));
}

#[test]
fn two_identical_pods_are_one() {
    insta::assert_snapshot!(shown(&two_pods()));
}

#[test]
fn two_pods_with_something_of_everything() {
    let mut fabric = two_pods();
    let running = "switch:running";
    fabric.bend("leaf3", running, "\"mtu\":\"9216\"", "\"mtu\":\"1500\"");
    fabric.bend(
        "leaf9",
        running,
        "\"pfc_enable\":\"3\"",
        "\"pfc_enable\":\"4\"",
    );
    fabric.bend(
        "gpu12",
        "link_counters:second",
        "rx_prio3_buf_discard 0",
        "rx_prio3_buf_discard 17",
    );
    fabric.bend("gpu13", "link_qos:ens6f0np0", "[26,3]", "[26,0]");
    fabric.bend("spine2", "switch_counters:second", "operational", "stormed");
    fabric.devices.insert(
        "leaf12".to_owned(),
        FabricDevice::Silent("is not reachable: no route to host (RW0401)".to_owned()),
    );
    insta::assert_snapshot!(shown(&fabric));
}

#[test]
fn a_thousand_hosts_fit_on_a_screen() {
    let mut fabric = thousand();
    fabric.bend("gpu0123", "link:ens5f0np0", "carrier=1", "carrier=0");
    let text = shown(&fabric);
    assert!(text.lines().count() < 60, "{text}");
    insta::assert_snapshot!(text);
}

/// Every element is closed, and every text is one that XML can have.
fn parses(text: &str) {
    let mut reader = quick_xml::Reader::from_str(text);
    let (mut open, mut lines) = (0i64, 0);
    loop {
        match reader.read_event().unwrap() {
            Event::Start(_) => open += 1,
            Event::End(_) => open -= 1,
            Event::Empty(element) => lines += i32::from(element.name().as_ref() == "line"),
            Event::Eof => break,
            _ => {}
        }
    }
    assert!(
        open == 0 && lines > 0 && text.contains("xmlns=\"http://www.w3.org/2000/svg\""),
        "{text}"
    );
}

#[test]
fn the_picture_is_xml_whatever_devices_say() {
    insta::assert_snapshot!("svg_one_host", with(&one_host(), svg::render_fabric_svg));
    parses(&with(&two_pods(), svg::render_fabric_svg));
    parses(&with(&thousand(), svg::render_fabric_svg));
    let mut fabric = one_host();
    fabric.devices.insert(
        "leaf1".to_owned(),
        FabricDevice::Silent("<b>&\u{1b}[2J\u{ffff}".to_owned()),
    );
    parses(&with(&fabric, svg::render_fabric_svg));
    assert!(!shown(&fabric).contains('\u{1b}'));
}

#[test]
fn the_document_has_all_links() {
    let json = with(&two_pods(), |subject| {
        serde_json::to_value(FabricDocument::of(subject)).unwrap()
    });
    assert_eq!(
        (json["links"].as_array().unwrap().len(), &json["verdict"]),
        (192, &"passed".into())
    );
    assert_eq!(
        json["links"][0]["from"]["mtu"],
        serde_json::json!({ "is": 9000 })
    );
    assert_eq!(
        json["links"][0]["from"]["marking"],
        serde_json::json!({ "not_applicable": "a NIC marks nothing" })
    );
}
