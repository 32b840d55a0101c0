//! One declared object: as a map in the module's manifest, or as the YAML text of a template file.

use super::disturbs::DeclaredDisruption;
use super::known_kinds;
use super::ownership::ATTEMPT;
use super::readiness::DeclaredReadiness;
use super::replace::{DeclaredReplacement, explain_replace_prohibition};
use super::request::ObjectName;
use super::yaml::Yaml;
use crate::body::{Body, BodyErrors, read_body};
use crate::json_fields::{read_text_at, read_text_field};
use railwright_base::Reason;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Fields that only the server writes, as JSON pointers.
const OF_THE_SERVER: [&str; 8] = [
    "/status",
    "/metadata/creationTimestamp",
    "/metadata/deletionTimestamp",
    "/metadata/generation",
    "/metadata/managedFields",
    "/metadata/resourceVersion",
    "/metadata/selfLink",
    "/metadata/uid",
];
/// A name is a DNS label or several of them with dots between, of at most so many characters (RFC
/// 1123, as the API server holds it).
const NAME_LIMIT: usize = 253;
const LABEL_LIMIT: usize = 63;

/// What is declared of an object: its manifest, and what is said beside it.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct KubernetesObjectBody {
    manifest: Option<Map<String, Value>>,
    content: Option<String>,
    /// Taken over, whoever made it.
    #[serde(default)]
    pub adopt: bool,
    /// Such as [spec.rayVersion, spec.workerGroupSpecs.template]; items of lists are left out.
    pub replace: Option<DeclaredReplacement>,
    /// { nodes, conditions: [{ type, status, reason }], fields: { path: value }, each: [{ list,
    /// field, equals, at_least }], failed: { path: value }, within_s }
    pub ready: Option<DeclaredReadiness>,
    /// { as: reboot, says: what it does to which nodes }; as: restart, link_blip, drain or reboot.
    pub disturbs: Option<DeclaredDisruption>,
    known_after: Option<String>,
    pub cluster: Option<String>,
}

impl Body for KubernetesObjectBody {
    fn find_errors(&self, errors: &mut BodyErrors) {
        errors.check_known_after(self.known_after.as_deref());
        if let Some(replace) = &self.replace {
            replace.find_errors(errors);
        }
        if let Some(disturbs) = &self.disturbs {
            disturbs.find_errors(errors);
        }
        match self.clone().take_manifest() {
            Err(reason) => errors.add("", reason.to_string(), ""),
            Ok(manifest) => {
                self.check_fields_for_kind(errors, &manifest);
                self.add_manifest_errors(errors, &manifest);
            }
        }
        if let Some(DeclaredReadiness::Criteria(ready)) = &self.ready {
            ready.find_errors(errors);
        }
    }
}

impl KubernetesObjectBody {
    /// Takes the manifest out of the body.
    pub fn take_manifest(&mut self) -> Result<Value, Reason> {
        match (self.manifest.take(), self.content.take()) {
            (Some(manifest), None) => Ok(Value::Object(manifest)),
            (None, Some(text)) => of_text(&text),
            (None, None) => Err("`manifest` or `template` is missing".into()),
            (Some(_), Some(_)) => {
                Err("an object is declared by `manifest` or by `template`, not by both".into())
            }
        }
    }

    /// Whether it may be deleted and recreated.
    pub fn is_replaced(&self) -> bool {
        self.replace
            .as_ref()
            .is_some_and(DeclaredReplacement::is_allowed)
    }

    /// Checks the fields beside the manifest that only some kinds take.
    fn check_fields_for_kind(&self, errors: &mut BodyErrors, manifest: &Value) {
        let kind = parse_object_name(manifest).map(|object| object.kind_and_group());
        let nodes = match &self.ready {
            Some(DeclaredReadiness::Criteria(ready)) => ready.nodes,
            _ => None,
        };
        errors.require(
            nodes.is_none() || kind.as_deref() == Some("DaemonSet.apps"),
            "/ready/nodes",
            "only a DaemonSet is ready on so many nodes",
            "leave `nodes` out",
        );
        let never = kind.and_then(|kind| explain_replace_prohibition(&kind));
        if let Some(why) = never.filter(|_| self.is_replaced()) {
            let message = format!("an object of this kind is never deleted to be recreated: {why}");
            errors.add("/replace", message, "");
        }
    }

    /// Notes what is wrong with the manifest where the body has it: at its place in the map, or at
    /// the text of a template as a whole.
    fn add_manifest_errors(&self, errors: &mut BodyErrors, manifest: &Value) {
        for (pointer, message, help) in check_manifest(manifest) {
            let known = manifest.pointer(pointer).map_or("", |_| pointer);
            let at = match self.content {
                Some(_) => "/content".to_owned(),
                None => format!("/manifest{known}"),
            };
            errors.add(&at, message, &help.unwrap_or_default());
        }
    }
}

/// The object that a body declares.
pub fn parse_manifest(body: &Value) -> Result<Value, Reason> {
    read_body::<KubernetesObjectBody>(body).take_manifest()
}

/// The most values that aliases in a manifest may stand for: what a template writes is counted by
/// its bytes, and a hundred of them can stand for a million values.
const ALIASED_VALUES_MAX: usize = 1_000;

/// The object that a text of YAML makes.
pub fn of_text(text: &str) -> Result<Value, Reason> {
    match parse_yaml(text)? {
        manifest @ Value::Object(_) => Ok(manifest),
        _ => Err("the template makes no map".into()),
    }
}

/// The value that a text of YAML makes; null where nothing is in it.
pub fn parse_yaml(text: &str) -> Result<Value, Reason> {
    // `0644` is a mode, as kubectl reads it.
    let options = serde_yaml::options! {
        legacy_octal_numbers: true,
        alias_limits: serde_yaml::alias_limits! { max_total_replayed_events: ALIASED_VALUES_MAX },
    };
    match serde_yaml::from_str_with_options::<Yaml>(text, options) {
        Ok(Yaml(value)) => Ok(value),
        Err(error) => Err(format!(
            "the template makes no YAML: {}",
            first_line(&error.to_string())
        )
        .into()),
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Which object a manifest is about.
pub fn parse_object_name(manifest: &Value) -> Option<ObjectName> {
    let name = manifest.pointer("/metadata/name")?.as_str()?;
    parse_object_named(manifest, name.to_owned())
}

/// The object of this name that is of the kind and in the namespace of a manifest.
pub fn parse_object_named(manifest: &Value, name: String) -> Option<ObjectName> {
    let namespace = read_text_at(manifest, "/metadata/namespace");
    Some(ObjectName {
        api_version: read_text_field(manifest, "apiVersion")?.to_owned(),
        kind: read_text_field(manifest, "kind")?.to_owned(),
        namespace: namespace.map(str::to_owned),
        name,
    })
}

/// Where, what is wrong, and what would be right.
pub type Problem = (&'static str, String, Option<String>);

fn check_manifest(manifest: &Value) -> Vec<Problem> {
    let mut out: Vec<Problem> = Vec::new();
    check_identity(manifest, &mut out);
    check_object_name(manifest, &mut out);
    check_namespace(manifest, &mut out);
    out.extend(super::labels::check_labels_and_annotations(manifest));
    check_kind(manifest, &mut out);
    out
}

fn text_at<'v>(manifest: &'v Value, pointer: &str) -> &'v str {
    read_text_at(manifest, pointer).unwrap_or_default()
}

/// Checks what every object has, and what only the server writes.
fn check_identity(manifest: &Value, out: &mut Vec<Problem>) {
    for (pointer, name) in [
        ("/apiVersion", "apiVersion"),
        ("/kind", "kind"),
        ("/metadata/name", "metadata.name"),
    ] {
        if text_at(manifest, pointer).is_empty() {
            let message = format!("`{name}` must be a text that is not empty");
            out.push((pointer, message, None));
        }
    }
    for pointer in OF_THE_SERVER {
        if manifest.pointer(pointer).is_some() {
            let name = pointer[1..].replace('/', ".");
            let message = format!("`{name}` is written by the server alone");
            out.push((pointer, message, Some("leave it out".to_owned())));
        }
    }
}

fn check_object_name(manifest: &Value, out: &mut Vec<Problem>) {
    let name = text_at(manifest, "/metadata/name");
    if !name.is_empty() && !is_name(manifest, name) {
        let message = format!("the API server takes no object named `{name}`");
        out.push(("/metadata/name", message, Some(NAME_HELP.to_owned())));
    }
}

fn check_namespace(manifest: &Value, out: &mut Vec<Problem>) {
    let namespace = manifest.pointer("/metadata/namespace");
    if let Some(namespace) = namespace.filter(|value| !value.as_str().is_some_and(is_label)) {
        let message = format!("the API server takes no namespace named {namespace}");
        out.push(("/metadata/namespace", message, Some(LABEL_HELP.to_owned())));
    }
    let is_missing = parse_object_name(manifest)
        .is_some_and(|object| object.namespace.is_none() && known_kinds::is_namespaced(&object));
    if is_missing {
        let kind = text_at(manifest, "/kind");
        let message = format!("objects of the kind {kind} are in a namespace, and none is named");
        let help = "name it: `metadata: { name: ..., namespace: default }`";
        out.push(("/metadata/namespace", message, Some(help.to_owned())));
    }
}

/// Checks what is taken of some kinds only: no secrets, no lock of a run, and texts alone in a
/// ConfigMap.
fn check_kind(manifest: &Value, out: &mut Vec<Problem>) {
    match text_at(manifest, "/kind") {
        "Secret" => out.push(new_problem(
            "/kind",
            "a Secret would stand in plans and recordings for all to read",
            "make it by other means, and name it in the object that uses it",
        )),
        "Lease"
            if text_at(manifest, "/metadata/namespace") == "kube-system"
                && text_at(manifest, "/metadata/name").starts_with("railwright-") =>
        {
            out.push(new_problem(
                "/metadata/name",
                "this is the lock of a run",
                "give it another name",
            ));
        }
        "ConfigMap" => {
            let data = manifest.get("data").and_then(Value::as_object);
            for (key, value) in data.into_iter().flatten() {
                if !value.is_string() {
                    let message =
                        format!("`data.{key}` must be a text: the values of a ConfigMap are");
                    out.push(new_problem("/data", &message, "quote it"));
                }
            }
        }
        _ => {}
    }
}

fn new_problem(pointer: &'static str, message: &str, help: &str) -> Problem {
    (pointer, message.to_owned(), Some(help.to_owned()))
}

const NAME_HELP: &str =
    "small letters, digits, `-` and `.`, a letter or digit at both ends of each part, at most 253";
const LABEL_HELP: &str =
    "small letters, digits and `-`, a letter or digit at both ends, at most 63";

/// Roles and bindings take any name that is a path segment; services take a label that begins with
/// a letter.
fn is_name(manifest: &Value, name: &str) -> bool {
    if text_at(manifest, "/apiVersion").starts_with("rbac.authorization.k8s.io/") {
        return name != "." && name != ".." && !name.contains(['/', '%']);
    }
    match text_at(manifest, "/kind") {
        "Namespace" => is_label(name),
        // Names of DaemonSets and values of labels are made of it (Mellanox/network-operator-docs,
        // "Naming Requirements").
        "NicNodePolicy" => is_subdomain(name) && name.len() <= 30,
        "Service" => is_label(name) && name.starts_with(|c: char| c.is_ascii_lowercase()),
        _ => is_subdomain(name),
    }
}

/// A DNS subdomain, as most names of objects are.
pub fn is_subdomain(name: &str) -> bool {
    name.len() <= NAME_LIMIT && name.split('.').all(is_part)
}

/// A DNS label, as the names of namespaces are.
pub fn is_label(name: &str) -> bool {
    name.len() <= LABEL_LIMIT && is_part(name)
}

fn is_part(part: &str) -> bool {
    let is_plain = part
        .chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    !part.is_empty() && is_plain && !part.starts_with('-') && !part.ends_with('-')
}

/// The object without what only the server writes, and without what kubectl, the controllers and we
/// note for ourselves.
pub fn without_servers_part(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(map) = object.as_object_mut() {
        map.remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for pointer in OF_THE_SERVER
            .iter()
            .filter_map(|pointer| pointer.strip_prefix("/metadata/"))
        {
            metadata.remove(pointer);
        }
        let annotations = metadata
            .get_mut("annotations")
            .and_then(Value::as_object_mut);
        if annotations.is_some_and(is_empty_without_notes) {
            metadata.remove("annotations");
        }
    }
    object
}

/// What kubectl, the controllers (kubernetes.io/docs/reference/labels-annotations-taints) and we
/// note for ourselves.
const NOTES: [&str; 4] = [
    "deployment.kubernetes.io/revision",
    "deprecated.daemonset.template.generation",
    "kubectl.kubernetes.io/last-applied-configuration",
    ATTEMPT,
];

fn is_empty_without_notes(annotations: &mut Map<String, Value>) -> bool {
    annotations.retain(|name, _| !NOTES.contains(&name.as_str()));
    annotations.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BodyError;
    use crate::body::check_body;
    use serde_json::json;

    fn named(api_version: &str, kind: &str, name: &str) -> Vec<BodyError> {
        check_body::<KubernetesObjectBody>(
            &json!({ "manifest": { "apiVersion": api_version, "kind": kind, "metadata": { "name": name, "namespace": "default" } } }),
        )
    }

    #[test]
    fn an_object_of_a_namespaced_kind_names_its_namespace() {
        let of = |api_version: &str, kind: &str| {
            check_body::<KubernetesObjectBody>(
                &json!({ "manifest": { "apiVersion": api_version, "kind": kind, "metadata": { "name": "a" } } }),
            )
        };
        assert_eq!(
            of("v1", "ConfigMap")
                .iter()
                .map(|error| error.pointer.as_str())
                .collect::<Vec<_>>(),
            ["/manifest"]
        );
        assert_eq!(
            (of("v1", "Namespace"), of("example.org/v1", "ConfigMap")),
            (vec![], vec![]),
            "others are asked of the server"
        );
    }

    #[test]
    fn what_aliases_of_a_manifest_stand_for_is_bounded() {
        let of = |count: usize| {
            of_text(&format!(
                "a: &a [x, x, x, x, x, x, x, x]\nz: [{}]\n",
                vec!["*a"; count].join(", ")
            ))
        };
        assert_eq!(of(20).unwrap()["z"].as_array().unwrap().len(), 20);
        assert!(
            of(200).unwrap_err().as_words().contains("alias"),
            "{:?}",
            of(200)
        );
    }

    #[test]
    fn names_that_the_server_would_refuse_are_refused_here() {
        for (kind, name) in [
            ("ConfigMap", "rdma-devices"),
            ("DaemonSet", "a.b-c.9"),
            ("Service", "web"),
            ("Namespace", "9lives"),
        ] {
            assert_eq!(named("v1", kind, name), [], "{kind} {name}");
        }
        assert_eq!(
            named(
                "rbac.authorization.k8s.io/v1",
                "ClusterRole",
                "system:Observe"
            ),
            []
        );
        for (kind, name) in [
            ("ConfigMap", "RDMA"),
            ("DaemonSet", "-a"),
            ("DaemonSet", "a..b"),
            ("Service", "9web"),
            ("Namespace", "a.b"),
            ("Pod", "a_b"),
        ] {
            let errors = named("v1", kind, name);
            assert_eq!(
                errors
                    .iter()
                    .map(|error| error.pointer.as_str())
                    .collect::<Vec<_>>(),
                ["/manifest/metadata/name"],
                "{kind} {name}"
            );
        }
        assert_eq!(named("v1", "ConfigMap", &"a".repeat(254)).len(), 1);
        let policy = |length: usize| {
            named(
                "mellanox.com/v1alpha1",
                "NicNodePolicy",
                &"a".repeat(length),
            )
            .len()
        };
        assert_eq!((policy(30), policy(31)), (0, 1));
    }

    #[test]
    fn what_only_the_server_writes_is_refused() {
        let body = json!({ "manifest": {
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "a", "namespace": "B", "uid": "x" }, "data": { "n": 5 }, "status": {} } });
        let mut pointers: Vec<String> = check_body::<KubernetesObjectBody>(&body)
            .into_iter()
            .map(|error| error.pointer)
            .collect();
        pointers.sort();
        assert_eq!(
            pointers,
            [
                "/manifest/data",
                "/manifest/metadata/namespace",
                "/manifest/metadata/uid",
                "/manifest/status"
            ]
        );
    }

    #[test]
    fn a_secret_is_not_taken() {
        assert_eq!(named("v1", "Secret", "a")[0].pointer, "/manifest/kind");
    }

    #[test]
    fn a_template_is_yaml_of_one_object() {
        let text = json!({ "content": "apiVersion: apps/v1\n\
                                       kind: DaemonSet\n\
                                       metadata: { name: a, namespace: b }\n" });
        let name = parse_object_name(&parse_manifest(&text).unwrap()).unwrap();
        assert_eq!(
            (name.to_string().as_str(), name.group(), name.version()),
            ("DaemonSet.apps b/a", "apps", "v1")
        );
        let mode = parse_manifest(
            &json!({ "content": "kind: x\nmode: 0644\nplain: 10\nname: \"0644\"\n" }),
        )
        .unwrap();
        assert_eq!(
            (&mode["mode"], &mode["plain"], &mode["name"]),
            (&json!(420), &json!(10), &json!("0644"))
        );
        let keys = "on: { yes: [ { no: off } ] }\n\"n\": 3\nOff: 4\n0644: 5\n8080: 6\n";
        let go = json!({ "true": { "true": [{ "false": false }] }, "n": 3, "false": 4, "420": 5, "8080": 6 });
        assert_eq!(
            of_text(keys).unwrap(),
            go,
            "keys without quotes are values of YAML 1.1, as Go has it"
        );
        assert!(of_text("? [a]\n: b\n").is_err());
        assert!(of_text("1: a\n\"1\": b\n").is_err(), "one key to Go");
        for text in ["- a\n", "a: [\n", "a: 1\na: 2\n", "a: 1\n---\nb: 2\n"] {
            assert_eq!(
                check_body::<KubernetesObjectBody>(&json!({ "content": text })).len(),
                1,
                "{text}"
            );
        }
        assert_eq!(check_body::<KubernetesObjectBody>(&json!({})).len(), 1);
    }
}
