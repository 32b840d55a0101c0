//! Routes of a host with eRDMA: its interfaces are further NICs of the instance, and what is not
//! RDMA leaves by the primary one.

use super::hardware::VerifyHardwareFacts;
use super::request::ExpectedRail;
use super::result::CheckOutcome;

/// Judges the default routes against the rails. The eRDMA controller gives its routes metrics from
/// 200 on for the same reason (AliyunContainerService/alibabacloud-erdma-controller:
/// internal/drivers/netdev.go).
pub fn check_default_routes(rails: &[ExpectedRail], found: &VerifyHardwareFacts) -> CheckOutcome {
    let is_rail = |netdev: &str| rails.iter().any(|rail| rail.netdev == netdev);
    let (over_rails, primary): (Vec<_>, Vec<_>) = found
        .default_routes
        .iter()
        .partition(|(netdev, _)| is_rail(netdev));
    let expected = "the default route with the lowest metric is not by an eRDMA interface";
    let best = primary.iter().min_by_key(|(_, metric)| *metric);
    let words = |route: &(String, u64)| format!("{} metric {}", route.0, route.1);
    match (over_rails.iter().min_by_key(|(_, metric)| *metric), best) {
        (None, None) => {
            CheckOutcome::not_applicable("the host has no default route").expected(expected)
        }
        (None, Some(primary)) => {
            CheckOutcome::passed(format!("default by {}", words(primary))).expected(expected)
        }
        (Some(rail), Some(primary)) if rail.1 > primary.1 => CheckOutcome::passed(format!(
            "default by {}, then {}",
            words(primary),
            words(rail)
        ))
        .expected(expected),
        // The primary interface of an instance can have eRDMA itself.
        (Some(rail), None) => CheckOutcome::passed(format!(
            "default by {}, and by no other interface",
            words(rail)
        ))
        .expected(expected),
        (Some(rail), Some(primary)) => CheckOutcome::failed(
            "RW0822",
            format!(
                "default by {}, the primary one only by {}",
                words(rail),
                words(primary)
            ),
        )
        .expected(expected)
        .effect(
            "management traffic and our own connection leave by the eRDMA interface, and are lost \
             when it is detached or its driver is loaded anew",
        )
        .next(
            "give the routes of the eRDMA interface a higher metric than those of the primary one, \
             then railwright verify {inventory}",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::CheckVerdict;

    fn judged(routes: &str) -> CheckOutcome {
        let rails = [ExpectedRail {
            rail: 0,
            netdev: "eth1".into(),
            port: "eth1".into(),
            address: None,
            mtu: None,
            mtu_max: None,
            driver: None,
        }];
        check_default_routes(
            &rails,
            &VerifyHardwareFacts::parse(&format!("@routes\n[{routes}]\n")),
        )
    }

    #[test]
    fn the_primary_interface_keeps_the_default_route() {
        let eth0 = r#"{"dst":"default","dev":"eth0","metric":100}"#;
        assert_eq!(judged(eth0).measured, "default by eth0 metric 100");
        let both = judged(&format!(
            r#"{eth0},{{"dst":"default","dev":"eth1","metric":200}}"#
        ));
        assert_eq!(
            (both.verdict, both.measured.as_str()),
            (
                CheckVerdict::Passed,
                "default by eth0 metric 100, then eth1 metric 200"
            )
        );
        let equal = judged(&format!(
            r#"{eth0},{{"dst":"default","dev":"eth1","metric":100}}"#
        ));
        assert_eq!(
            (equal.verdict, equal.code),
            (CheckVerdict::Failed, Some("RW0822"))
        );
        let taken = judged(r#"{"dst":"default","dev":"eth1"}"#);
        assert_eq!(
            (taken.verdict, taken.measured.as_str()),
            (
                CheckVerdict::Passed,
                "default by eth1 metric 0, and by no other interface"
            )
        );
        assert_eq!(judged("").verdict, CheckVerdict::NotApplicable);
    }
}
