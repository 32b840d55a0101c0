//! Routes of a host with eRDMA: its interfaces are further NICs of the instance, and what is not
//! RDMA leaves by the primary one.

use super::hardware::VerifyHardwareFacts;
use super::request::ExpectedRail;
use super::result::CheckOutcome;

/// Compares the default routes with the rails. The eRDMA controller gives its routes metrics from
/// 200 on for the same reason (AliyunContainerService/alibabacloud-erdma-controller:
/// internal/drivers/netdev.go).
pub fn check_default_routes(rails: &[ExpectedRail], found: &VerifyHardwareFacts) -> CheckOutcome {
    let expected = "the default route with the lowest metric is not by an eRDMA interface";
    let (mut over_rails, mut others) = (Vec::new(), Vec::new());
    for route in &found.default_routes {
        if rails.iter().any(|rail| rail.netdev == route.0) {
            over_rails.push(route);
        } else {
            others.push(route);
        }
    }
    let by_rail = over_rails.into_iter().min_by_key(|(_, metric)| *metric);
    let primary = others.into_iter().min_by_key(|(_, metric)| *metric);
    let words = match (by_rail, primary) {
        (None, None) => {
            return CheckOutcome::not_applicable("the host has no default route")
                .expected(expected);
        }
        (None, Some(primary)) => format!("default by {}", describe_route(primary)),
        (Some(rail), Some(primary)) if rail.1 > primary.1 => format!(
            "default by {}, then {}",
            describe_route(primary),
            describe_route(rail)
        ),
        // The primary interface of an instance can have eRDMA itself.
        (Some(rail), None) => format!(
            "default by {}, and by no other interface",
            describe_route(rail)
        ),
        (Some(rail), Some(primary)) => {
            return report_route_by_rail(rail, primary).expected(expected);
        }
    };
    CheckOutcome::passed(words).expected(expected)
}

fn describe_route((netdev, metric): &(String, u64)) -> String {
    format!("{netdev} metric {metric}")
}

fn report_route_by_rail(rail: &(String, u64), primary: &(String, u64)) -> CheckOutcome {
    CheckOutcome::failed(
        "RW0822",
        format!(
            "default by {}, the primary one only by {}",
            describe_route(rail),
            describe_route(primary)
        ),
    )
    .effect(
        "management traffic and our own connection leave by the eRDMA interface, and are lost when \
         it is detached or its driver is loaded anew",
    )
    .next(
        "give the routes of the eRDMA interface a higher metric than those of the primary one, \
         then railwright verify {inventory}",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::CheckVerdict;

    fn evaluated(routes: &str) -> CheckOutcome {
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
        assert_eq!(evaluated(eth0).measured, "default by eth0 metric 100");
        let both = evaluated(&format!(
            r#"{eth0},{{"dst":"default","dev":"eth1","metric":200}}"#
        ));
        assert_eq!(
            (both.verdict, both.measured.as_str()),
            (
                CheckVerdict::Passed,
                "default by eth0 metric 100, then eth1 metric 200"
            )
        );
        let equal = evaluated(&format!(
            r#"{eth0},{{"dst":"default","dev":"eth1","metric":100}}"#
        ));
        assert_eq!(
            (equal.verdict, equal.code),
            (CheckVerdict::Failed, Some("RW0822"))
        );
        let taken = evaluated(r#"{"dst":"default","dev":"eth1"}"#);
        assert_eq!(
            (taken.verdict, taken.measured.as_str()),
            (
                CheckVerdict::Passed,
                "default by eth1 metric 0, and by no other interface"
            )
        );
        assert_eq!(evaluated("").verdict, CheckVerdict::NotApplicable);
    }
}
