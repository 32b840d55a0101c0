//! Releases that somebody else makes a revision of between our last look and our own.

use crate::helm::{Story, helm_well, program};
use crate::rig::ControlPlane;

const INV: &str = "inv";

/// Somebody else's revision, and somebody else's release of the same name.
const REVISION: &[&str] = &["upgrade rails CHART --set agent.driver=theirs"];
const ANEW: &[&str] = &[
    "uninstall rails --wait",
    "install rails CHART --set agent.driver=theirs",
];
/// The second look, of the step, has read Helm's record and the objects by then.
const AFTER_THE_LAST_LOOK: (&str, u32) = ("*\" upgrade \"*\" --dry-run=\"*", 2);
/// What is only undone is not rendered; its record was read by then, and its objects are next.
const IN_THE_LAST_LOOK_AT_A_REMOVAL: (&str, u32) = ("*\" get metadata \"*", 2);
/// No dry run has a description.
const RIGHT_BEFORE_THE_UPGRADE: (&str, u32) = ("*\" --description=\"*", 1);

/// The release of ours with a `helm` that somebody else uses once, right before the call of this
/// pattern of a shell and number.
fn meddled<'a>(
    plane: &'a ControlPlane,
    theirs: &[&str],
    (pattern, number): (&str, u32),
) -> Story<'a> {
    let mut story = Story::new(plane);
    story.resource("agent: { driver: compat }", "");
    story.apply();
    let (real, folder) = (program(plane), story.cluster.folder());
    let (real, folder, admin) = (real.display(), folder.display(), plane.kubeconfig("admin"));
    let call = |words: &&str| {
        format!("{real} {words} --kubeconfig {}", admin.display())
            .replace("CHART", &format!("{folder}/inv/charts/rails"))
    };
    let theirs = theirs.iter().map(call).collect::<Vec<_>>().join(" && ");
    let script = format!(
        "#!/bin/sh
case \" $* \" in
{pattern}) echo >>{folder}/count; [ $(wc -l <{folder}/count) -ne {number} ] || {{ {theirs}; }} >/dev/null </dev/null || exit 9 ;;
esac
exec {real} \"$@\"
"
    );
    story.uses_helm(&script);
    story.resource("agent: { driver: ofed }", "");
    story
}

fn driver(plane: &ControlPlane) -> String {
    plane.kubectl(&[
        "get",
        "configmap",
        "rails",
        "-o",
        "jsonpath={.data.config\\.json}",
    ])
}

pub fn a_revision_of_somebody_else_is_left_alone(plane: &ControlPlane) {
    let mut story = meddled(plane, REVISION, AFTER_THE_LAST_LOOK);
    let said = story.told(3, &["apply", INV, "--yes"]);
    assert!(
        said.contains("RW0610")
            && said.contains("default/rails is of revision 2 by now, and 1 was looked at"),
        "{said}"
    );
    assert_eq!(driver(plane), r#"{"driver":"theirs"}"#);
    story.uses_no_other_helm(plane);
    story.nothing();
    story.apply();
}

/// Its number is the same, and it is neither upgraded nor uninstalled.
pub fn a_release_of_somebody_else_with_the_same_number_is_left_alone(plane: &ControlPlane) {
    for goes in [false, true] {
        let moment = match goes {
            true => IN_THE_LAST_LOOK_AT_A_REMOVAL,
            false => AFTER_THE_LAST_LOOK,
        };
        let story = meddled(plane, ANEW, moment);
        if goes {
            story.nothing();
        }
        let said = story.told(3, &["apply", INV, "--yes"]);
        let why = match goes {
            true => "the cluster is not as it was when the plan was made",
            false => "revision 1 of the release default/rails is another one than was looked at",
        };
        assert!(said.contains("RW0610") && said.contains(why), "{said}");
        assert_eq!(driver(plane), r#"{"driver":"theirs"}"#, "{goes}");
        helm_well(plane, &["uninstall", "rails", "--wait"]);
    }
}

/// Helm has no precondition: what comes between our last look and its own is not prevented, but
/// reported.
pub fn a_revision_in_the_very_last_moment_is_told(plane: &ControlPlane) {
    let story = meddled(plane, REVISION, RIGHT_BEFORE_THE_UPGRADE);
    let said = story.told(1, &["apply", INV, "--yes"]);
    let told = "somebody else made revision 2 of the release default/rails in the moment before \
                Helm began, and ours is upon it";
    assert!(
        said.contains(told) && said.contains("helm -n default rollback rails 2"),
        "{said}"
    );
    helm_well(plane, &["uninstall", "rails"]);
}
