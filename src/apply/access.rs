//! Whether an identity may do what the steps of a plan do on a cluster, asked of its API server
//! before anything is changed there.
//!
//! Each right is asked for by a SelfSubjectAccessReview: a list of rules (SelfSubjectRulesReview)
//! is not complete where others than RBAC decide. First for a whole kind, and by name only where
//! that is not allowed.

use super::context::Context;
use super::trouble::NextCommands;
use railwright_base::text::{format_count, one_line};
use railwright_base::{Diagnostic, Reason, Target};
use railwright_plan::{AttributeDifference, Member, NodeKind, Plan, PlanNode};
use railwright_resource::helm_release::rights;
use railwright_resource::kubernetes_object::access::{
    AccessLevel, ApiVerb, Right, build_lease_right, build_secret_right, list_object_uses,
    of_action, of_drain, of_uncordon,
};
use railwright_resource::kubernetes_object::known_kinds::KnownKinds;
use railwright_resource::kubernetes_object::request::{KubernetesRead, ObjectName, REFUSED};
use railwright_resource::kubernetes_object::rule::{RbacRule, build_rbac_rules};
use railwright_resource::{Read, Reading, kind_named};
use railwright_transport::{Reader, TargetAccess, TransportError};
use std::collections::{BTreeMap, BTreeSet};

/// Rules that are named; the rest is counted.
const NAMED_RULES: usize = 12;

/// What was found out.
pub struct AccessCheckOutcome {
    /// Rights that are missing: nothing may be begun.
    pub refusal: Option<Diagnostic>,
    /// The server did not say.
    pub warning: Option<Diagnostic>,
}

/// Looks for what the steps of a plan need on a cluster and its identity lacks. `done` are steps
/// that need no more.
pub async fn check_access_rights(
    plan: &Plan,
    done: &BTreeSet<String>,
    cluster: &str,
    context: &Context,
    reader: &Reader,
    has_record: bool,
) -> Result<AccessCheckOutcome, TransportError> {
    let target = &context.target(cluster);
    let steps: Vec<&PlanNode> = plan
        .nodes
        .iter()
        .filter(|node| node.blocked.is_none() && !done.contains(&node.id))
        .collect();
    let mut on_cluster = steps.clone();
    on_cluster.retain(|node| node.target.as_ref() == Some(target));
    let mut needs: BTreeSet<(ObjectName, ApiVerb)> = BTreeSet::new();
    for node in &on_cluster {
        needs.extend(list_required_verbs(node));
    }
    let kinds = learn_kinds(&on_cluster, &needs, reader).await?;
    let mut rights = list_member_rights(&on_cluster, &kinds);
    for (object, verb) in &needs {
        if let Some(names) = kinds.called(object) {
            rights.extend(Right::on(object, names, *verb));
        }
    }
    for node in steps {
        rights.extend(list_node_rights(node, target));
    }
    let access = context.hosts.get(cluster);
    let access = access.and_then(TargetAccess::cluster);
    let keeps = access.map_or("", |access| access.keeps.as_str());
    rights.extend(list_keeper_rights(keeps, reader, has_record).await?);
    let (lacking, unanswered) = find_missing_rights(&rights, reader).await?;
    let lacking = build_rbac_rules(lacking.into_iter().map(|right| (right, String::new())));
    Ok(AccessCheckOutcome {
        refusal: (!lacking.is_empty()).then(|| report_missing_rights(&lacking, target, plan)),
        warning: unanswered.map(|reason| report_unknown_rights(reason.as_words(), target)),
    })
}

/// Asks the server how it calls the kinds of these objects. A kind that is not served comes with an
/// earlier step; who may not ask learns it from the steps themselves.
async fn learn_kinds(
    nodes: &[&PlanNode],
    needs: &BTreeSet<(ObjectName, ApiVerb)>,
    reader: &Reader,
) -> Result<KnownKinds, TransportError> {
    let members = nodes.iter().flat_map(|node| node.members());
    let mut kinds = KnownKinds::of(members.map(|member| &member.resource));
    let questions = kinds.questions(needs.iter().map(|(object, _)| object));
    if questions.is_empty() {
        return Ok(kinds);
    }
    let answers = reader.read(&questions).await?;
    for question in &questions {
        let _ = kinds.learn(question, &answers);
    }
    Ok(kinds)
}

/// What the kinds of the members need besides the objects that they are.
fn list_member_rights(nodes: &[&PlanNode], kinds: &KnownKinds) -> BTreeSet<Right> {
    let mut rights = BTreeSet::new();
    for member in nodes.iter().flat_map(|node| node.members()) {
        if !member.removal
            && let Some(kind) = kind_named(&member.resource.kind)
        {
            let of_kind = kind.rights(&member.resource);
            rights.extend(of_kind.into_iter().map(|(right, _)| right));
        }
        if member.resource.kind == "helm_release" {
            rights.extend(list_release_rights(member, kinds));
        }
    }
    rights
}

/// What emptying a node of this cluster needs, and giving it back.
fn list_node_rights(node: &PlanNode, cluster: &Target) -> Vec<Right> {
    let rights = match (node.on_node_of(cluster), &node.kind) {
        (Some(name), NodeKind::Drain { .. }) => of_drain(name),
        (Some(name), _) => of_uncordon(name),
        (None, _) => Vec::new(),
    };
    rights.into_iter().map(|(right, _)| right).collect()
}

/// What a step does with which object. It is read before and after.
fn list_required_verbs(node: &PlanNode) -> Vec<(ObjectName, ApiVerb)> {
    let mut verbs = list_read_verbs(node);
    let NodeKind::Change {
        members,
        actions,
        announced,
        ..
    } = &node.kind
    else {
        return verbs;
    };
    for action in actions.iter() {
        verbs.extend(of_action(action));
    }
    let mut patched: BTreeSet<ObjectName> = BTreeSet::new();
    for (object, verb) in &verbs {
        if *verb == ApiVerb::Patch {
            patched.insert(object.clone());
        }
    }
    let is_later = actions.is_empty() && !announced.is_empty();
    for member in members.iter() {
        match kind_named(&member.resource.kind) {
            Some(kind) if is_later => verbs.extend(kind.changes(&member.resource, member.removal)),
            _ if lacks_object(member) => {
                for object_use in list_object_uses(&member.resource, !member.removal) {
                    if patched.contains(&object_use.object) {
                        verbs.push((object_use.object, ApiVerb::Create));
                    }
                }
            }
            _ => (),
        }
    }
    verbs
}

fn list_read_verbs(node: &PlanNode) -> Vec<(ObjectName, ApiVerb)> {
    let mut verbs = Vec::new();
    for member in node.members() {
        for object_use in list_object_uses(&member.resource, !member.removal) {
            if let Some(verb) = object_use.looks() {
                verbs.push((object_use.object, verb));
            }
        }
    }
    verbs
}

fn lacks_object(member: &Member) -> bool {
    member
        .differences
        .iter()
        .any(|difference| difference.actual == Reading::Absent && difference.attribute == "object")
}

/// What Helm does for a release: to its own records, and to the objects that the plan names; what
/// goes with a release stands in the action that uninstalls it. Whatever else it touches is not
/// known here.
fn list_release_rights(member: &Member, kinds: &KnownKinds) -> BTreeSet<Right> {
    let records = rights::of_records(&member.resource, AccessLevel::Apply);
    let mut needed: BTreeSet<Right> = records.into_iter().map(|(right, _)| right).collect();
    if member.removal {
        return needed;
    }
    let mut is_new = false;
    for difference in &member.differences {
        is_new |= difference.attribute == "release" && difference.actual == Reading::Absent;
        if let Some(of_change) = list_change_rights(difference, kinds) {
            needed.extend(of_change);
        }
    }
    let makes_namespace = member.resource.body.get("create_namespace");
    if is_new && makes_namespace == Some(&serde_json::Value::Bool(true)) {
        needed.insert(Right {
            namespace: None,
            group: String::new(),
            resource: "namespaces".to_owned(),
            name: None,
            verb: ApiVerb::Create,
        });
    }
    needed
}

/// What a change of one of a release's objects needs; nothing where its kind is not known.
fn list_change_rights(difference: &AttributeDifference, kinds: &KnownKinds) -> Option<Vec<Right>> {
    let (object, field) = rights::parse_changed_object(&difference.attribute)?;
    let verb = match (field, &difference.desired) {
        (None, Reading::Absent) => ApiVerb::Delete,
        (None, _) => ApiVerb::Create,
        (Some(_), _) => ApiVerb::Patch,
    };
    let right = Right::on(&object, kinds.called(&object)?, verb)?;
    let get = Right {
        verb: ApiVerb::Get,
        ..right.clone()
    };
    if verb != ApiVerb::Create {
        return Some(vec![get, right]);
    }
    // A create is a POST, whose path has no name; what was made is compared by a dry run of a
    // patch.
    let patch = Right {
        verb: ApiVerb::Patch,
        ..right.clone()
    };
    Some(vec![get, patch, right.of_all()])
}

/// The lock is taken and let go, the record written; what is there already is not made.
async fn list_keeper_rights(
    keeps: &str,
    reader: &Reader,
    has_record: bool,
) -> Result<Vec<Right>, TransportError> {
    let (lease, secret) = (build_lease_right(keeps), build_secret_right(keeps));
    let mut out = vec![
        lease(ApiVerb::Get),
        lease(ApiVerb::Update),
        secret(ApiVerb::Get),
        secret(ApiVerb::Patch),
    ];
    let object = ObjectName {
        api_version: "coordination.k8s.io/v1".to_owned(),
        kind: "Lease".to_owned(),
        namespace: lease(ApiVerb::Get).namespace,
        name: keeps.to_owned(),
    };
    let question = Read::Kubernetes(KubernetesRead::Object(object));
    let answers = reader.read(std::slice::from_ref(&question)).await?;
    // Where it cannot be read, a rule may be missing for both.
    if !matches!(answers.output(&question), Ok((0, _))) {
        out.extend([ApiVerb::Patch, ApiVerb::Create].map(&lease));
    }
    if !has_record {
        out.push(secret(ApiVerb::Create));
    }
    Ok(out)
}

/// The rights that are lacking, and why the server did not say of some.
async fn find_missing_rights(
    rights: &BTreeSet<Right>,
    reader: &Reader,
) -> Result<(BTreeSet<Right>, Option<Reason>), TransportError> {
    let whole: BTreeSet<Right> = rights.iter().map(|right| right.clone().of_all()).collect();
    let of_whole = query_access_reviews(&whole, reader).await?;
    let (mut lacking, mut named) = (BTreeSet::new(), BTreeSet::new());
    for right in rights {
        if of_whole.get(&right.clone().of_all()) != Some(&Ok(false)) {
            continue;
        }
        if right.name.is_some() {
            named.insert(right.clone());
        } else {
            lacking.insert(right.clone());
        }
    }
    let of_named = query_access_reviews(&named, reader).await?;
    for (right, allowed) in &of_named {
        if *allowed == Ok(false) {
            lacking.insert(right.clone());
        }
    }
    let mut answers = of_whole.into_values().chain(of_named.into_values());
    Ok((lacking, answers.find_map(Result::err)))
}

/// Whether each is allowed; why the server did not say otherwise.
async fn query_access_reviews(
    rights: &BTreeSet<Right>,
    reader: &Reader,
) -> Result<BTreeMap<Right, Result<bool, Reason>>, TransportError> {
    if rights.is_empty() {
        return Ok(BTreeMap::new());
    }
    let questions: Vec<Read> = rights
        .iter()
        .map(|right| Read::Kubernetes(KubernetesRead::Access(right.clone())))
        .collect();
    let answers = reader.read(&questions).await?;
    let mut reviews = BTreeMap::new();
    for (right, question) in rights.iter().zip(&questions) {
        let allowed = match answers.output(question) {
            Ok((0, _)) => Ok(true),
            Ok((REFUSED, _)) => Ok(false),
            Ok((_, out)) => Err(one_line(out, 200).into()),
            Err(reason) => Err(reason),
        };
        reviews.insert(right.clone(), allowed);
    }
    Ok(reviews)
}

fn report_missing_rights(lacking: &[RbacRule], target: &Target, plan: &Plan) -> Diagnostic {
    let next = NextCommands::of(plan);
    let are = if lacking.len() == 1 { "is" } else { "are" };
    let message = format!(
        "our identity may not do all that this plan does on the cluster {}: {} {are} missing in \
         its roles",
        target.name,
        format_count(lacking.len(), "rule")
    );
    let mut refusal = Diagnostic::error("RW0646", message)
        .on(target.to_string())
        .effect(
            "the run would end half way: what is allowed done, the rest refused by the API server",
        )
        .state("nothing was changed");
    for rule in lacking.iter().take(NAMED_RULES) {
        let place = match &rule.namespace {
            Some(namespace) => format!("a Role in namespace {namespace}"),
            None => "a ClusterRole".to_owned(),
        };
        refusal = refusal.next(format!("add to the rules of {place}: {}", rule.line()));
    }
    if lacking.len() > NAMED_RULES {
        refusal = refusal.next(format!(
            "and {} more",
            format_count(lacking.len() - NAMED_RULES, "rule")
        ));
    }
    refusal.next(format!(
        "all that a run needs: {}; then run the same command again",
        next.rbac()
    ))
}

fn report_unknown_rights(reason: &str, target: &Target) -> Diagnostic {
    Diagnostic::warning(
        "RW0647",
        format!("the API server did not say what we are allowed: {reason}"),
    )
    .on(target.to_string())
    .effect(
        "a right that is missing shows only when its step is refused, after earlier steps were \
         done",
    )
    .state("the run goes on")
    .next("give the identity the role system:basic-user, which lets it ask what it may do")
}
