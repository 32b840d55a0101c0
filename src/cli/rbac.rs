//! `railwright rbac`.

use super::rbac_roles::RoleInputs;
use super::session::open_session;
use super::{CommandFailure, Exit};
use railwright_base::text::{format_count, one_line};
use railwright_base::{Diagnostic, Reason, TargetKind, quote};
use railwright_jobs::job;
use railwright_knowledge::spec::Sources;
use railwright_plan::LastApplied;
use railwright_report::diagnostic::print_diagnostics;
use railwright_report::document::{self, RbacDocument};
use railwright_report::rbac::{CONTROLLERS, Purpose, RbacRole, RbacSubject};
use railwright_report::{self as report, out};
use railwright_resource::kubernetes_object::access::{AccessLevel, ObjectUse, list_object_uses};
use railwright_resource::kubernetes_object::build_cluster_object_name;
use railwright_resource::kubernetes_object::known_kinds::KnownKinds;
use railwright_resource::kubernetes_object::manifest;
use railwright_resource::kubernetes_object::request::KubernetesRead;
use railwright_resource::kubernetes_object::rule::build_rbac_rules;
use railwright_resource::{DesiredResource, Read};
use railwright_session::{Session, SessionRequest, SigningKeys};
use railwright_state::ClusterState;
use railwright_transport::{Reader, TargetContact, new_connector};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Print the smallest roles of Kubernetes with which railwright can plan, preview and apply this
/// inventory, or submit and prove jobs
///
/// Documents for `kubectl apply -f -`, each rule with its reason. Connects to nothing, unless a
/// kind is not one of Kubernetes itself and not defined by the inventory: then the API server is
/// asked what it calls it.
#[derive(Debug, clap::Args)]
pub struct Rbac {
    /// The inventory: a folder of YAML files
    pub inventory: PathBuf,
    /// Only this one; observe, preview and apply unless said otherwise
    #[arg(long, value_enum, value_name = "ROLE")]
    pub role: Option<RbacRoleArgument>,
    /// The namespace whose jobs it is for
    #[arg(
        short,
        long,
        value_name = "NAMESPACE",
        default_value = "default",
        value_parser = super::job::parse_kubernetes_name
    )]
    pub namespace: String,
    /// Give it to this user of the cluster, not to a service account of its own
    #[arg(long, value_name = "NAME", value_parser = parse_subject_name, requires = "role", group = "subject")]
    pub user: Option<String>,
    /// Give it to this group of users
    #[arg(long, value_name = "NAME", value_parser = parse_subject_name, requires = "role", group = "subject")]
    pub group: Option<String>,
    /// Give it to this service account, which is there already
    #[arg(
        long,
        value_name = "NAMESPACE/NAME",
        value_parser = parse_service_account,
        requires = "role",
        group = "subject"
    )]
    pub service_account: Option<RbacSubject>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// What an identity is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum RbacRoleArgument {
    /// Plan and drift, compared field by field; changes nothing
    Observe,
    /// Plan and drift, previewed by the server; a policy holds it to dry runs
    Preview,
    /// Everything that a run does
    Apply,
    /// Jobs of a namespace: submitted, watched, proven and deleted
    Jobs,
}

impl RbacRoleArgument {
    fn purpose(self) -> Purpose {
        self.level().map_or(Purpose::Jobs, Purpose::from)
    }

    /// How far it goes with the resources of the inventory; nothing where it is for something else.
    fn level(self) -> Option<AccessLevel> {
        match self {
            RbacRoleArgument::Observe => Some(AccessLevel::Observe),
            RbacRoleArgument::Preview => Some(AccessLevel::Preview),
            RbacRoleArgument::Apply => Some(AccessLevel::Apply),
            RbacRoleArgument::Jobs => None,
        }
    }
}

fn parse_subject_name(text: &str) -> Result<String, Reason> {
    match text.trim().is_empty() || text.chars().any(char::is_control) {
        true => Err("a name as the API server knows it".into()),
        false => Ok(text.to_owned()),
    }
}

fn parse_service_account(text: &str) -> Result<RbacSubject, Reason> {
    match text.split_once('/') {
        Some((namespace, name))
            if manifest::is_subdomain(namespace) && manifest::is_subdomain(name) =>
        {
            Ok(RbacSubject::ServiceAccount {
                namespace: namespace.to_owned(),
                name: name.to_owned(),
            })
        }
        _ => Err("NAMESPACE/NAME of a service account".into()),
    }
}

impl Rbac {
    fn subject(&self) -> Option<RbacSubject> {
        let user = self.user.clone().map(|name| RbacSubject::User { name });
        user.or_else(|| self.group.clone().map(|name| RbacSubject::Group { name }))
            .or_else(|| self.service_account.clone())
    }

    /// Refuses a role for a subject that is not given one.
    fn check_subject(&self, runs_programs: bool) -> Result<(), CommandFailure> {
        let (Some(subject), Some(role)) = (self.subject(), self.role) else {
            return Ok(());
        };
        match subject.reserved(role.purpose(), runs_programs) {
            Some(reason) => Err(report_reserved_subject(&reason).into()),
            None => Ok(()),
        }
    }

    fn print(&self, cluster: &str, session: &Session, roles: &[RbacRole]) {
        match self.json {
            true => out::print_result(&document::render_json_document(&RbacDocument::of(
                cluster, roles,
            ))),
            false => out::print_result(&report::rbac::render_rbac_documents(
                cluster,
                &session.inventory.word,
                roles,
            )),
        }
    }
}

/// The role of somebody who submits jobs, which needs none of the inventory's resources.
fn build_jobs_role(arguments: &Rbac, session: &Session) -> RbacRole {
    let (namespace, spec) = (&arguments.namespace, &session.inventory.loaded.spec);
    let name = format!(
        "{}-{}",
        build_cluster_object_name(&spec.cluster),
        Purpose::Jobs.word()
    );
    let notes = vec![
        format!(
            "whoever has it runs any program in pods of the namespace {namespace}: with each of its \
             service accounts, its Secrets, and what Pod Security lets pods do on their hosts"
        ),
        format!(
            "jobs of another namespace: railwright rbac {} --role jobs -n NAMESPACE",
            session.inventory.word
        ),
    ];
    RbacRole::new(
        &name,
        Purpose::Jobs,
        arguments.subject(),
        build_rbac_rules(job::list_job_rights(namespace)),
        notes,
    )
}

/// Prints the roles; exits with 3 where rules are left out because a kind is not known.
pub async fn run(arguments: &Rbac) -> Result<Exit, CommandFailure> {
    arguments.check_subject(false)?;
    let session = open_session(
        &arguments.inventory,
        &SessionRequest::of_spec_alone().with_keys(SigningKeys::WhereAStepNeedsThem),
    )?;
    let Some(cluster) = session.inventory.loaded.kubernetes_name() else {
        return Err(report_no_cluster(&session).into());
    };
    let levels: Vec<AccessLevel> = match arguments.role {
        Some(role) => role.level().into_iter().collect(),
        None => AccessLevel::ALL.to_vec(),
    };
    if levels.is_empty() {
        if arguments.namespace == CONTROLLERS {
            return Err(report_reserved_namespace(&arguments.inventory).into());
        }
        let role = build_jobs_role(arguments, &session);
        arguments.print(cluster, &session, &[role]);
        return Ok(Exit::Done);
    }
    let last = ClusterState::load(&session.folder)?.last_applied;
    let uses = collect_object_uses(&session, &last);
    let (kinds, unnamed) = resolve_kinds(&session, &uses).await?;
    let releases = collect_helm_releases(&session, &last);
    let inputs = RoleInputs {
        session: &session,
        uses: &uses,
        kinds: &kinds,
        unnamed: &unnamed,
        releases: &releases,
    };
    let roles: Vec<RbacRole> = levels
        .into_iter()
        .map(|level| inputs.build_role(level, arguments.subject()))
        .collect();
    arguments.check_subject(roles.iter().any(RbacRole::runs_programs))?;
    arguments.print(cluster, &session, &roles);
    if unnamed.is_empty() {
        return Ok(Exit::Done);
    }
    let warning = report_unknown_kinds(&unnamed, cluster, &session.inventory.word);
    print_diagnostics(&[warning], &Sources::default());
    Ok(Exit::Incomplete)
}

/// A pod may have any service account of its namespace, and mount any Secret of it.
fn report_reserved_namespace(inventory: &Path) -> Diagnostic {
    Diagnostic::error(
        "RW1247",
        format!(
            "jobs of {CONTROLLERS} have the rights of Kubernetes' own controllers: no role is given"
        ),
    )
    .effect(
        "whoever submits a job runs any program, with any service account and any Secret of its \
         namespace",
    )
    .state("no role was printed; nothing was asked or changed")
    .next(format!(
        "name the namespace of the jobs: railwright rbac {} --role jobs -n NAMESPACE",
        quote::quote_path(inventory)
    ))
}

fn report_reserved_subject(reason: &str) -> Diagnostic {
    Diagnostic::error("RW1247", format!("{reason}: no role is given to it"))
        .effect(
            "its rights would be those of all of them, and the policy of the role preview would \
             refuse every write of all of them",
        )
        .state("no role was printed; nothing was asked or changed")
        .next(
            "name a user, a group or a service account of your own: --user ann, --group oncall, \
             --service-account ci/runner",
        )
        .next("or leave it out: each role then comes with a service account of its own")
}

fn report_no_cluster(session: &Session) -> Diagnostic {
    Diagnostic::error(
        "RW1037",
        format!(
            "the inventory {} names no Kubernetes cluster",
            session.inventory.word
        ),
    )
    .state("nothing was asked or changed")
    .next(
        "name it in the spec: kubernetes: { name: prod, kubeconfig: FILE }; lines of sudoers for \
         hosts: railwright sudoers",
    )
}

/// Objects that are desired, and those that were applied and are desired no longer.
fn collect_object_uses(session: &Session, last: &LastApplied) -> Vec<ObjectUse> {
    let mut uses = Vec::new();
    for resource in &session.desired.resources {
        if resource.address.target.kind == TargetKind::Kube {
            uses.extend(list_object_uses(resource, true));
        }
    }
    for (address, applied) in last.not_in_spec(&session.desired.resources) {
        if address.target.kind == TargetKind::Kube {
            uses.extend(list_object_uses(&applied.resource(address), false));
        }
    }
    uses
}

/// The releases of Helm that are desired, and those that were applied and are desired no longer.
fn collect_helm_releases(session: &Session, last: &LastApplied) -> Vec<DesiredResource> {
    let desired = session.desired.resources.iter();
    let mut releases: Vec<DesiredResource> = desired
        .filter(|resource| resource.kind == "helm_release")
        .cloned()
        .collect();
    for (address, applied) in last.not_in_spec(&session.desired.resources) {
        if applied.kind == "helm_release" {
            releases.push(applied.resource(address));
        }
    }
    releases
}

/// A kind of which no rule can be written yet.
pub(super) struct UnresolvedKind {
    /// With its group.
    kind: String,
    /// Why the server did not say what it calls it.
    reason: Reason,
}

impl UnresolvedKind {
    /// In a role that goes without its rules.
    pub(super) fn note(&self, inventory: &str) -> String {
        format!(
            "left out: rules for {}, of which the API server did not say what it calls it ({}); \
             once it does, run railwright rbac {inventory} again",
            one_line(&self.kind, 80),
            one_line(self.reason.as_words(), 160)
        )
    }
}

/// What the server calls the kinds, and those that nobody knows; it is asked only about what
/// nothing here tells.
async fn resolve_kinds(
    session: &Session,
    uses: &[ObjectUse],
) -> Result<(KnownKinds, Vec<UnresolvedKind>), CommandFailure> {
    let mut kinds = KnownKinds::of(&session.desired.resources);
    let questions = kinds.questions(uses.iter().map(|one| &one.object));
    if questions.is_empty() {
        return Ok((kinds, Vec::new()));
    }
    let access = session
        .inventory
        .accesses()
        .find(|access| access.cluster().is_some());
    let access = access.ok_or_else(|| report_no_cluster(session))?;
    let answered = match new_connector(TargetContact::begin()).connect(&access).await {
        Ok(link) => Reader::new(link).read(&questions).await,
        Err(error) => Err(error),
    };
    let mut unnamed: BTreeMap<String, Reason> = BTreeMap::new();
    for question in &questions {
        let learned = match &answered {
            Ok(answers) => kinds.learn(question, answers),
            Err(error) => Err(error.one_line().into()),
        };
        if let (Err(reason), Read::Kubernetes(KubernetesRead::Kind(object))) = (learned, question) {
            unnamed.insert(object.kind_and_group(), reason);
        }
    }
    let unnamed = unnamed.into_iter();
    let unresolved = unnamed.map(|(kind, reason)| UnresolvedKind { kind, reason });
    Ok((kinds, unresolved.collect()))
}

fn report_unknown_kinds(unnamed: &[UnresolvedKind], cluster: &str, inventory: &str) -> Diagnostic {
    let some: Vec<String> = unnamed
        .iter()
        .take(4)
        .map(|one| one_line(&one.kind, 80))
        .collect();
    let more = if unnamed.len() > 4 {
        format!(" and {} more", format_count(unnamed.len() - 4, "kind"))
    } else {
        String::new()
    };
    let reasons: BTreeSet<&str> = unnamed.iter().map(|one| one.reason.as_words()).collect();
    let reason = one_line(&reasons.into_iter().collect::<Vec<_>>().join("; "), 300);
    let what = format!(
        "what the API server calls {}{more} is not known here, and it did not say: {reason}",
        some.join(", ")
    );
    Diagnostic::warning("RW1038", what)
        .on(format!("kube/{cluster}"))
        .effect(
            "the roles lack the rules for it: a rule names a kind by its plural, and a guess may \
             allow another kind",
        )
        .state("all other rules were printed; nothing was changed")
        .next(format!(
            "once the kind is served, for the rest: railwright rbac {inventory}"
        ))
        .next(
            "where the server could not be asked, give a kubeconfig with which it can: \
             kubernetes.kubeconfig, or KUBECONFIG",
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn parsed(words: &[&str]) -> Result<Option<RbacSubject>, Reason> {
        let all = ["railwright", "rbac", "inv"].iter().chain(words);
        match crate::cli::CliArguments::try_parse_from(all) {
            Ok(crate::cli::CliArguments {
                command: crate::cli::CliCommand::Rbac(rbac),
            }) => Ok(rbac.subject()),
            Ok(_) => Err("another command".into()),
            Err(error) => Err(error.to_string().into()),
        }
    }

    /// One identity for all three would be bound to dry runs and allowed to apply at the same time.
    #[test]
    fn a_subject_is_of_one_role() {
        assert_eq!(parsed(&[]), Ok(None));
        assert_eq!(
            parsed(&["--role", "apply", "--user", "ann"]),
            Ok(Some(RbacSubject::User {
                name: "ann".to_owned()
            }))
        );
        let account = RbacSubject::ServiceAccount {
            namespace: "ci".to_owned(),
            name: "runner.x".to_owned(),
        };
        assert_eq!(
            parsed(&["--role", "preview", "--service-account", "ci/runner.x"]),
            Ok(Some(account))
        );
        for words in [
            &["--user", "ann"][..],
            &["--role", "apply", "--user", "ann", "--group", "g"],
            &["--role", "apply", "--service-account", "runner"],
            &["--role", "apply", "--service-account", "ci/Runner"],
            &["--role", "apply", "--service-account", "ci/a/b"],
            &["--role", "apply", "--user", "a\nb"],
            &["--role", "apply", "--group", " "],
        ] {
            assert!(parsed(words).is_err(), "{words:?}");
        }
    }
}
