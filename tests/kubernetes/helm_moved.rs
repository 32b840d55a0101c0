//! Releases that somebody else makes a revision of between our last look and our own.

use crate::helm::{Story, helm_well};
use crate::rig::ControlPlane;

const INV: &str = "inv";

/// The release of ours with a `helm` that makes a revision of somebody else once, right before the call of this pattern of a shell and number.
fn meddled<'a>(plane: &'a ControlPlane, pattern: &str, number: u32) -> Story<'a> {
    let mut story = Story::new(plane);
    story.wish("agent: { driver: compat }", "");
    story.apply();
    let (real, folder) = (plane.program("helm"), story.cluster.folder());
    let (real, folder, admin) = (real.display(), folder.display(), plane.kubeconfig("admin"));
    let theirs = format!("upgrade rails {folder}/inv/charts/rails --set agent.driver=theirs --kubeconfig {}", admin.display());
    let script = format!(
        "#!/bin/sh
case \" $* \" in
*--dry-run*) ;;
{pattern}) echo >>{folder}/count; [ $(wc -l <{folder}/count) -ne {number} ] || {real} {theirs} >/dev/null </dev/null || exit 9 ;;
esac
exec {real} \"$@\"
"
    );
    story.uses_helm(&script);
    story.wish("agent: { driver: ofed }", "");
    story
}

/// Helm is asked by the plan, by the run, by the step, and in the last moment before it begins.
pub fn a_revision_of_somebody_else_is_left_alone(plane: &ControlPlane) {
    let driver = || plane.kubectl(&["get", "configmap", "rails", "-o", "jsonpath={.data.config\\.json}"]);
    let mut story = meddled(plane, "*\" status \"*", 4);
    let said = story.told(3, &["apply", INV, "--yes"]);
    assert!(said.contains("RW0610") && said.contains("default/rails is of revision 2 by now, and 1 was looked at"), "{said}");
    assert_eq!(driver(), r#"{"driver":"theirs"}"#);
    story.uses_no_other_helm(plane);
    story.nothing();
    story.apply();
}

/// Helm has no precondition: what comes between our last look and its own is not held back, but told.
pub fn a_revision_in_the_very_last_moment_is_told(plane: &ControlPlane) {
    let story = meddled(plane, "*\" upgrade \"*", 1);
    let said = story.told(1, &["apply", INV, "--yes"]);
    let told = "somebody else made revision 2 of the release default/rails in the moment before Helm began, and ours is upon it";
    assert!(said.contains(told) && said.contains("helm -n default rollback rails 2"), "{said}");
    helm_well(plane, &["uninstall", "rails"]);
}
