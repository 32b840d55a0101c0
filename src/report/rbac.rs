//! Roles of Kubernetes for an identity of ours, as documents for `kubectl apply -f -` and as JSON.

use super::yaml::{self, Comments};
use railwright_base::Digest;
use railwright_base::text::one_line;
use railwright_resource::kubernetes_object::access::{AccessLevel, NAMESPACE, PREVIEWS_ALONE};
use railwright_resource::kubernetes_object::rule::RbacRule;
use railwright_resource::node_probe::EXEC;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Where the accounts of Kubernetes' own controllers are.
pub const CONTROLLERS: &str = "kube-system";

/// Whose rights they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "kind")]
pub enum RbacSubject {
    /// A user of the cluster.
    User {
        /// As the server knows it.
        name: String,
    },
    /// A group of users.
    Group {
        /// As the server knows it.
        name: String,
    },
    /// A service account.
    ServiceAccount {
        /// Where it is.
        namespace: String,
        /// Its name.
        name: String,
    },
}

/// What an identity is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Plan and drift, compared field by field.
    Observe,
    /// Plan and drift, previewed by the server.
    Preview,
    /// Everything that a run does.
    Apply,
    /// Jobs of a namespace: submitted, watched, proven and deleted.
    Jobs,
}

impl RbacSubject {
    /// What the names of its roles and its policy end in: two subjects have two of them, and one
    /// that is applied replaces no other's. Nothing for the service account that is made for a
    /// role.
    fn suffix(&self) -> String {
        let (RbacSubject::User { name }
        | RbacSubject::Group { name }
        | RbacSubject::ServiceAccount { name, .. }) = self;
        let shown: String = name.chars().take(30).map(simplify_character).collect();
        format!("{}-{}", shown.trim_matches('-'), Digest::of(self).short())
    }

    /// Why it is nobody whom a role of ours may be given to: the server's own names are of whole
    /// groups of users, or of parts of the server, and so are the service accounts of its
    /// controllers (kubernetes.io/docs/reference/access-authn-authz/rbac, "Controller roles"). To
    /// these only reads are added, and no program that is run in a pod.
    pub fn reserved(&self, purpose: Purpose, runs_programs: bool) -> Option<String> {
        let (what, name) = match self {
            RbacSubject::User { name } => ("user", name),
            RbacSubject::Group { name } => ("group", name),
            RbacSubject::ServiceAccount { namespace, name } => {
                let is_reserved =
                    namespace == CONTROLLERS && (purpose != Purpose::Observe || runs_programs);
                return is_reserved.then(|| {
                    format!(
                        "the service account {namespace}/{name} is in the namespace of Kubernetes' \
                         own controllers"
                    )
                });
            }
        };
        let who = match (what, name.as_str()) {
            // Whom kubeadm gives the rights of cluster-admin to
            // (kubernetes.io/docs/setup/best-practices/certificates).
            ("user", "kubernetes-admin" | "kubernetes-super-admin")
            | ("group", "kubeadm:cluster-admins") => "an administrator of the cluster",
            _ if !name.starts_with("system:") => return None,
            (_, "system:authenticated") => "everybody whom the API server knows",
            (_, "system:unauthenticated" | "system:anonymous") => {
                "everybody whom the API server does not know"
            }
            (_, "system:masters") => "the administrators of the cluster",
            ("group", name) if name.starts_with("system:serviceaccounts") => {
                "every service account, those of controllers among them"
            }
            (_, "system:nodes") => "the kubelets of all nodes",
            ("user", name) if name.starts_with("system:serviceaccount:") => {
                "a service account, which --service-account NAMESPACE/NAME names"
            }
            _ => "a part of Kubernetes itself",
        };
        Some(format!("the {what} {} is {who}", one_line(name, 120)))
    }

    fn describe(&self) -> String {
        match self {
            RbacSubject::User { name } => format!("the user {}", one_line(name, 120)),
            RbacSubject::Group { name } => {
                format!("every user of the group {}", one_line(name, 120))
            }
            RbacSubject::ServiceAccount { namespace, name } => {
                format!("the service account {namespace}/{name}")
            }
        }
    }
}

fn simplify_character(c: char) -> char {
    if c.is_ascii_alphanumeric() {
        c.to_ascii_lowercase()
    } else {
        '-'
    }
}

impl From<AccessLevel> for Purpose {
    fn from(level: AccessLevel) -> Self {
        match level {
            AccessLevel::Observe => Purpose::Observe,
            AccessLevel::Preview => Purpose::Preview,
            AccessLevel::Apply => Purpose::Apply,
        }
    }
}

impl Purpose {
    /// The word on the command line and in names.
    pub fn word(self) -> &'static str {
        match self {
            Purpose::Observe => AccessLevel::Observe.word(),
            Purpose::Preview => AccessLevel::Preview.word(),
            Purpose::Apply => AccessLevel::Apply.word(),
            Purpose::Jobs => "jobs",
        }
    }
}

/// One identity with all that it may do.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "GrantedRole")]
pub struct RbacRole {
    /// What it is for.
    pub role: Purpose,
    /// Whose it is.
    pub subject: RbacSubject,
    /// What it may do, with the reasons.
    pub rules: Vec<RbacRule>,
    /// What `kubectl apply -f -` takes, in this order.
    pub documents: Vec<Value>,
    /// Told to the one who applies them.
    pub notes: Vec<String>,
    #[serde(skip)]
    comments: Vec<Comments>,
}

const GROUP: &str = "rbac.authorization.k8s.io";

impl RbacRole {
    /// Of this name in the cluster, followed by that of its subject. A service account that is ours
    /// is made with it, and bears the name alone.
    pub fn new(
        name: &str,
        role: Purpose,
        subject: Option<RbacSubject>,
        rules: Vec<RbacRule>,
        mut notes: Vec<String>,
    ) -> Self {
        let own = RbacSubject::ServiceAccount {
            namespace: NAMESPACE.to_owned(),
            name: name.to_owned(),
        };
        let is_own = subject.is_none();
        let subject = subject.unwrap_or(own);
        let name = &if is_own {
            name.to_owned()
        } else {
            format!("{name}-{}", subject.suffix())
        };
        let mut documents: Vec<(Value, Comments)> = Vec::new();
        if is_own {
            documents.push((build_service_account(name), Comments::new()));
            notes.insert(
                0,
                format!("its token: kubectl -n {NAMESPACE} create token {name}"),
            );
        }
        if role == Purpose::Preview {
            let runs_programs = rules.iter().any(|rule| rule.resource == EXEC);
            for document in build_dry_run_policy(name, &subject, runs_programs) {
                documents.push((document, Comments::new()));
            }
            notes.extend(describe_policy_limits(&subject));
        }
        let mut rules_by_namespace: BTreeMap<Option<&String>, Vec<&RbacRule>> = BTreeMap::new();
        for rule in &rules {
            rules_by_namespace
                .entry(rule.namespace.as_ref())
                .or_default()
                .push(rule);
        }
        for (namespace, rules) in rules_by_namespace {
            documents.extend(build_role_and_binding(name, namespace, &subject, &rules));
        }
        let (documents, comments) = documents.into_iter().unzip();
        RbacRole {
            role,
            subject,
            rules,
            documents,
            notes,
            comments,
        }
    }

    /// Whether it lets programs be run in pods.
    pub fn runs_programs(&self) -> bool {
        self.rules.iter().any(|rule| rule.resource == EXEC)
    }

    fn render(&self) -> String {
        let mut out = format!(
            "# --- {}: {}\n",
            self.role.word(),
            describe_purpose(self.role)
        );
        for note in &self.notes {
            out.push_str(&format!("# {}\n", one_line(note, 400)));
        }
        for (document, comments) in self.documents.iter().zip(&self.comments) {
            if let Some(map) = document.as_object() {
                out.push_str(&format!(
                    "---\n{}",
                    yaml::render_yaml_document(map, comments)
                ));
            }
        }
        out
    }
}

fn build_service_account(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": { "name": name, "namespace": NAMESPACE },
    })
}

/// What whoever applies the policy of dry runs has to know of it.
fn describe_policy_limits(subject: &RbacSubject) -> [String; 2] {
    [
        "the policy needs Kubernetes 1.30; without it a dry run and a write are one right"
            .to_owned(),
        format!(
            "the policy refuses {} every write of the whole cluster that is no dry run, whatever \
             other roles allow, but of admission policies and webhooks themselves, about which the \
             server asks none: with a role that may delete these it could take the policy away",
            subject.describe()
        ),
    ]
}

fn describe_purpose(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Observe => "plan and drift, compared field by field; it changes nothing",
        Purpose::Preview => {
            "plan and drift, previewed by the server in dry runs; it changes nothing"
        }
        Purpose::Apply => "everything that a run does",
        Purpose::Jobs => "jobs of a namespace: submitted, watched, proven and deleted",
    }
}

/// The documents of all roles, with what they are for.
pub fn render_rbac_documents(cluster: &str, inventory: &str, roles: &[RbacRole]) -> String {
    let head = format!(
        "# What railwright may do on the Kubernetes cluster {} for {inventory}: apply with kubectl \
         apply -f -\n",
        one_line(cluster, 80),
        inventory = one_line(inventory, 200)
    );
    roles.iter().fold(head, |out, role| out + &role.render())
}

/// The rules of one namespace, or of the whole cluster, and who has them.
fn build_role_and_binding(
    name: &str,
    namespace: Option<&String>,
    subject: &RbacSubject,
    rules: &[&RbacRule],
) -> [(Value, Comments); 2] {
    let prefix = if namespace.is_some() { "" } else { "Cluster" };
    let mut metadata = json!({ "name": name });
    if let Some(namespace) = namespace {
        metadata["namespace"] = json!(namespace);
    }
    let api_version = format!("{GROUP}/v1");
    let own: Vec<Value> = rules.iter().map(|rule| build_rule(rule)).collect();
    let kind = format!("{prefix}Role");
    let role = json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": metadata,
        "rules": own,
    });
    let binding = json!({
        "apiVersion": api_version,
        "kind": format!("{prefix}RoleBinding"),
        "metadata": metadata,
        "roleRef": { "apiGroup": GROUP, "kind": kind, "name": name },
        "subjects": [build_subject(subject)],
    });
    let mut comments = Comments::new();
    for (index, rule) in rules.iter().enumerate() {
        let reasons = rule.reasons.iter().cloned().collect();
        comments.insert(format!("/rules/{index}"), reasons);
    }
    [(role, comments), (binding, Comments::new())]
}

fn build_rule(rule: &RbacRule) -> Value {
    let verbs: Vec<&str> = rule.verbs.iter().map(|verb| verb.word()).collect();
    let mut out =
        json!({ "apiGroups": [rule.group], "resources": [rule.resource], "verbs": verbs });
    if !rule.names.is_empty() {
        out["resourceNames"] = json!(rule.names);
    }
    out
}

fn build_subject(subject: &RbacSubject) -> Value {
    match subject {
        RbacSubject::User { name } => json!({ "kind": "User", "apiGroup": GROUP, "name": name }),
        RbacSubject::Group { name } => json!({ "kind": "Group", "apiGroup": GROUP, "name": name }),
        RbacSubject::ServiceAccount { namespace, name } => {
            json!({ "kind": "ServiceAccount", "namespace": namespace, "name": name })
        }
    }
}

/// Refuses this identity everything that is stored. It stands before the rights that it holds back.
/// Reviews of what somebody may do are no dry runs and store nothing
/// (kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy). Where its role
/// lets it run programs in pods, which nothing stores, the policy does so too.
fn build_dry_run_policy(name: &str, subject: &RbacSubject, runs_programs: bool) -> [Value; 2] {
    let (title, who) = build_subject_condition(subject);
    let dry = "has(request.dryRun) && request.dryRun";
    let exec = r#"request.operation == "CONNECT" && request.resource.resource == "pods" && request.subResource == "exec""#;
    let expression = if runs_programs {
        format!("({dry}) || ({exec})")
    } else {
        dry.to_owned()
    };
    let reviews = match_all_resources(&["authentication.k8s.io", "authorization.k8s.io"]);
    let spec = json!({
        "failurePolicy": "Fail",
        "matchConditions": [{ "name": title, "expression": who }],
        "matchConstraints": {
            "resourceRules": [match_all_resources(&["*"])],
            "excludeResourceRules": [reviews],
        },
        "validations": [{ "expression": expression, "message": PREVIEWS_ALONE }],
    });
    let binding = json!({ "policyName": name, "validationActions": ["Deny"] });
    [
        build_admission_document(name, "ValidatingAdmissionPolicy", spec),
        build_admission_document(name, "ValidatingAdmissionPolicyBinding", binding),
    ]
}

fn match_all_resources(groups: &[&str]) -> Value {
    json!({
        "apiGroups": groups,
        "apiVersions": ["*"],
        "operations": ["*"],
        "resources": ["*/*"],
    })
}

fn build_admission_document(name: &str, kind: &str, spec: Value) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": { "name": name },
        "spec": spec,
    })
}

/// The name of a condition, and the CEL expression that is true for requests of the subject.
fn build_subject_condition(subject: &RbacSubject) -> (&'static str, String) {
    // JSON's texts are texts of CEL.
    match subject {
        RbacSubject::User { name } => (
            "user",
            format!(
                "has(request.userInfo.username) && request.userInfo.username == {}",
                json!(name)
            ),
        ),
        RbacSubject::Group { name } => (
            "group",
            format!(
                "has(request.userInfo.groups) && {} in request.userInfo.groups",
                json!(name)
            ),
        ),
        RbacSubject::ServiceAccount { namespace, name } => {
            let user = json!(format!("system:serviceaccount:{namespace}:{name}"));
            (
                "account",
                format!("has(request.userInfo.username) && request.userInfo.username == {user}"),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use railwright_resource::kubernetes_object::access::of_keeper;
    use railwright_resource::kubernetes_object::rule::build_rbac_rules;

    #[test]
    fn to_accounts_of_controllers_only_reads_are_added() {
        let of = |namespace: &str| RbacSubject::ServiceAccount {
            namespace: namespace.to_owned(),
            name: "node-controller".to_owned(),
        };
        for purpose in [
            Purpose::Observe,
            Purpose::Preview,
            Purpose::Apply,
            Purpose::Jobs,
        ] {
            for runs_programs in [false, true] {
                let is_taken = purpose == Purpose::Observe && !runs_programs;
                assert_eq!(
                    of("kube-system").reserved(purpose, runs_programs).is_none(),
                    is_taken,
                    "{purpose:?} {runs_programs}"
                );
                assert_eq!(of("ci").reserved(purpose, runs_programs), None);
            }
        }
    }

    #[test]
    fn each_subject_has_names_of_its_own() {
        let names = |subject: Option<RbacSubject>| {
            let role = RbacRole::new(
                "railwright-train-preview",
                Purpose::Preview,
                subject,
                Vec::new(),
                Vec::new(),
            );
            let all: Vec<String> = role
                .documents
                .iter()
                .map(|document| document["metadata"]["name"].as_str().unwrap().to_owned())
                .collect();
            assert!(
                all.iter().all(|name| *name == all[0] && name.len() <= 253),
                "{all:?}"
            );
            all[0].clone()
        };
        let user = |name: &str| {
            Some(RbacSubject::User {
                name: name.to_owned(),
            })
        };
        let group = |name: &str| {
            Some(RbacSubject::Group {
                name: name.to_owned(),
            })
        };
        let all = [
            None,
            user("ann"),
            group("ann"),
            user("Ann"),
            group("oidc:on \"call\""),
        ]
        .map(names);
        assert_eq!(all[0], "railwright-train-preview");
        assert!(
            all[1].starts_with("railwright-train-preview-ann-"),
            "{all:?}"
        );
        assert_eq!(
            all.iter().collect::<std::collections::BTreeSet<_>>().len(),
            all.len(),
            "{all:?}"
        );
    }

    #[test]
    fn what_is_printed_is_what_the_documents_say() {
        let rules = build_rbac_rules(of_keeper("train", AccessLevel::Preview));
        let strange = RbacSubject::Group {
            name: "oidc:on \"call\"".to_owned(),
        };
        let roles = [
            RbacRole::new(
                "railwright-train-preview",
                Purpose::Preview,
                Some(strange),
                rules.clone(),
                Vec::new(),
            ),
            RbacRole::new(
                "railwright-train-observe",
                Purpose::Observe,
                None,
                rules,
                vec!["a\nb".to_owned()],
            ),
        ];
        let text = render_rbac_documents("prod", "inv", &roles);
        let read: Vec<Value> = text
            .split("---\n")
            .skip(1)
            .map(|part| serde_yaml::from_str(part).unwrap())
            .collect();
        let documents: Vec<Value> = roles
            .iter()
            .flat_map(|role| role.documents.clone())
            .collect();
        assert_eq!(read, documents, "{text}");
        let kinds: Vec<&str> = documents
            .iter()
            .map(|document| document["kind"].as_str().unwrap())
            .collect();
        assert_eq!(
            kinds,
            [
                "ValidatingAdmissionPolicy",
                "ValidatingAdmissionPolicyBinding",
                "Role",
                "RoleBinding",
                "ServiceAccount",
                "Role",
                "RoleBinding"
            ]
        );
        assert!(
            text.contains(
                "  # Lease railwright-train, the lock of a run\n  - apiGroups: [coordination.k8s.io]"
            ),
            "{text}"
        );
        let condition = documents[0]["spec"]["matchConditions"][0]["expression"]
            .as_str()
            .unwrap();
        assert_eq!(
            condition,
            r#"has(request.userInfo.groups) && "oidc:on \"call\"" in request.userInfo.groups"#
        );
    }
}
