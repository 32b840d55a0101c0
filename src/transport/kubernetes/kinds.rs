//! What the server calls the objects of a kind, and whether they are in a namespace: asked once of
//! a server, and again when a kind is missing, because an apply may bring it, or when its objects
//! are not found, because a removal may have taken it.

use super::act::LOOK;
use super::answer;
use super::fault::KubernetesRequestError;
use super::server::{KubernetesRequest, KubernetesServer};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use railwright_base::Reason;
use railwright_base::mutex::lock_ignoring_poison;
use railwright_base::text::one_line;
use railwright_resource::ReadResult;
use railwright_resource::kubernetes_object::request::ObjectName;
use railwright_system::clock;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// A group with many kinds lists all of them at once.
const LIST_LIMIT_BYTES: usize = 4 << 20;
/// How often a group is asked for that is listed and not served.
const LOOKS: u32 = 6;

/// One kind as the server has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiResource {
    /// `daemonsets`.
    pub plural: String,
    pub namespaced: bool,
}

/// The kinds of one group and version, by name.
pub type Group = Arc<BTreeMap<String, ApiResource>>;

/// Why the kinds of a group are not known.
#[derive(Debug, Clone)]
pub enum NotKnown {
    /// No answer.
    Trouble(KubernetesRequestError),
    /// An answer that holds for every object of the group.
    Said(ReadResult),
}

/// What is known by now.
#[derive(Default)]
pub struct Kinds {
    known: Mutex<BTreeMap<String, Group>>,
}

impl Kinds {
    /// The groups of these objects, each asked at most once.
    pub async fn of(
        &self,
        server: &KubernetesServer,
        objects: impl Iterator<Item = &ObjectName>,
    ) -> BTreeMap<String, Result<Group, NotKnown>> {
        let mut desired: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for object in objects {
            desired
                .entry(&object.api_version)
                .or_default()
                .insert(&object.kind);
        }
        let mut actual = BTreeMap::new();
        for (api_version, kinds) in desired {
            let known = self
                .known()
                .get(api_version)
                .cloned()
                .filter(|known| kinds.iter().all(|kind| known.contains_key(*kind)));
            let group = match known {
                Some(known) => Ok(known),
                None => self.asked(server, api_version).await,
            };
            actual.insert(api_version.to_owned(), group);
        }
        actual
    }

    /// Whether the server still has the kind of an object: asked again.
    pub async fn is_served(
        &self,
        server: &KubernetesServer,
        object: &ObjectName,
    ) -> Result<bool, NotKnown> {
        self.known().remove(&object.api_version);
        Ok(self
            .asked(server, &object.api_version)
            .await?
            .contains_key(&object.kind))
    }

    async fn asked(&self, server: &KubernetesServer, api_version: &str) -> Result<Group, NotKnown> {
        let Some(path) = build_group_path(api_version) else {
            return Ok(Group::default());
        };
        let call = KubernetesRequest {
            limit: LIST_LIMIT_BYTES,
            ..KubernetesRequest::get(path)
        };
        let mut looks = 1..LOOKS;
        let group = loop {
            let reply = server.ask(&call).await.map_err(NotKnown::Trouble)?;
            match (
                reply.status,
                reply
                    .json()
                    .as_ref()
                    .and_then(|list| parse_api_resources(list, api_version)),
            ) {
                (200, Some(kinds)) => break Arc::new(kinds),
                (404, _) if self.is_unlisted(server, api_version).await? => break Group::default(),
                // A group that is about to be served is listed a moment before, and one that goes a
                // moment longer.
                (404, _) if looks.next().is_some() => clock::sleep_for(LOOK).await,
                // Whoever took it for none would take the objects of all kinds for absent.
                _ => return Err(NotKnown::Said(answer::of_kinds(api_version, &reply))),
            }
        };
        self.known().insert(api_version.to_owned(), group.clone());
        Ok(group)
    }

    /// Whether the server's own list of its groups leaves this one out. Of a path that it does not
    /// know it has no word of its own, and anything between says the same.
    async fn is_unlisted(
        &self,
        server: &KubernetesServer,
        api_version: &str,
    ) -> Result<bool, NotKnown> {
        let path = if api_version.contains('/') {
            "/apis"
        } else {
            "/api"
        };
        let call = KubernetesRequest {
            limit: LIST_LIMIT_BYTES,
            ..KubernetesRequest::get(path.to_owned())
        };
        let reply = server.ask(&call).await.map_err(NotKnown::Trouble)?;
        let list = reply.json().filter(|_| reply.status == 200);
        match list.as_ref().and_then(parse_group_versions) {
            Some(listed) => Ok(!listed.contains(api_version)),
            None => Err(NotKnown::Said(answer::of_kinds(api_version, &reply))),
        }
    }

    fn known(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Group>> {
        lock_ignoring_poison(&self.known)
    }
}

/// The groups and versions of a list of groups (`APIGroupList`), or of the versions that are in
/// none (`APIVersions`). An entry of another shape is none that is missing.
fn parse_group_versions(list: &Value) -> Option<BTreeSet<&str>> {
    if let Some(versions) = list.get("versions") {
        return versions.as_array()?.iter().map(Value::as_str).collect();
    }
    let mut all = BTreeSet::new();
    for group in list.get("groups")?.as_array()? {
        for version in group.get("versions")?.as_array()? {
            all.insert(version.get("groupVersion")?.as_str()?);
        }
    }
    Some(all)
}

/// Subresources (`pods/log`) are left out: they have kinds of other things. An entry of another
/// shape is no kind that is missing, nor is a list of another group and version one of this.
fn parse_api_resources(list: &Value, api_version: &str) -> Option<BTreeMap<String, ApiResource>> {
    if list.get("kind")? != "APIResourceList" || list.get("groupVersion")? != api_version {
        return None;
    }
    let mut all = BTreeMap::new();
    for entry in list.get("resources")?.as_array()? {
        let (name, kind) = (entry.get("name")?.as_str()?, entry.get("kind")?.as_str()?);
        let namespaced = entry.get("namespaced")?.as_bool()?;
        if let Some(plural) = encode_path_segment(name) {
            all.insert(kind.to_owned(), ApiResource { plural, namespaced });
        }
    }
    Some(all)
}

/// Where a group's objects are: `/api/v1`, `/apis/apps/v1`.
fn build_group_path(api_version: &str) -> Option<String> {
    match api_version.split_once('/') {
        None => Some(format!("/api/{}", encode_path_segment(api_version)?)),
        Some((group, version)) => Some(format!(
            "/apis/{}/{}",
            encode_path_segment(group)?,
            encode_path_segment(version)?
        )),
    }
}

/// The path of one object, or why it has none.
pub fn build_object_path(object: &ObjectName, resource: &ApiResource) -> Result<String, Reason> {
    let root = build_group_path(&object.api_version)
        .ok_or_else(|| format!("{:?} is no group and version", object.api_version))?;
    let (name, plural) = (encode_object_name(&object.name)?, &resource.plural);
    match (&object.namespace, resource.namespaced) {
        (Some(namespace), true) => Ok(format!(
            "{root}/namespaces/{}/{plural}/{name}",
            encode_object_name(namespace)?
        )),
        (None, true) => Err(format!(
            "objects of the kind {} are in a namespace, and none is named",
            object.kind
        )
        .into()),
        (Some(_), false) => Err(format!(
            "objects of the kind {} are of the whole cluster: `metadata.namespace` has to go",
            object.kind
        )
        .into()),
        (None, false) => Ok(format!("{root}/{plural}/{name}")),
    }
}

/// The path of all objects of a kind, in the namespace that the name has.
pub fn list_path(object: &ObjectName, resource: &ApiResource) -> Result<String, Reason> {
    let one = ObjectName {
        name: "all".to_owned(),
        ..object.clone()
    };
    Ok(build_object_path(&one, resource)?
        .trim_end_matches("/all")
        .to_owned())
}

/// What stands for itself in a query: the unreserved characters (RFC 3986, section 2.3).
const UNRESERVED: AsciiSet = NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// What stands for itself in names of objects.
const OF_NAMES: AsciiSet = UNRESERVED.remove(b':').add(b'~');

/// A value of a query.
pub fn query_value(text: &str) -> String {
    utf8_percent_encode(text, &UNRESERVED).to_string()
}

fn encode_object_name(text: &str) -> Result<String, Reason> {
    encode_path_segment(text).ok_or_else(|| {
        let shown = one_line(&format!("{text:?}"), 80);
        format!("{shown} is no name of an object").into()
    })
}

/// What stands between two slashes: no name can lead to another object than it says.
fn encode_path_segment(text: &str) -> Option<String> {
    if text.is_empty()
        || text.len() > 253
        || text == "."
        || text == ".."
        || text.contains(['/', '%', '\\'])
        || text.contains(char::is_control)
    {
        return None;
    }
    Some(utf8_percent_encode(text, &OF_NAMES).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostLink as _;
    use crate::kubernetes::tests::{daemon_set, link};
    use railwright_resource::Read;
    use railwright_resource::kubernetes_object::request::{
        ABSENT, KubernetesRead, NO_KIND, NOT_SAID,
    };
    use serde_json::json;

    /// What stands between us says the same of what it does not know, in any words.
    #[tokio::test(start_paused = true)]
    async fn a_group_is_unknown_and_an_object_absent_only_by_the_servers_own_word() {
        let object = Read::Kubernetes(KubernetesRead::Object(daemon_set()));
        let groups = |version: &str| {
            json!({ "kind": "APIGroupList", "groups": [{ "versions": [{ "groupVersion": version }] }] }).to_string()
        };
        for (list, of_list, code) in [
            (404, "404 page not found".to_owned(), NOT_SAID),
            (200, "{}".to_owned(), NOT_SAID),
            (200, groups("apps/v1"), NOT_SAID),
            (200, groups("batch/v1"), NO_KIND),
        ] {
            let said = of_list.clone();
            let (link, _) = link(move |_, path, _| match path {
                "/apis" => (list, Vec::new(), said.clone()),
                _ => (404, Vec::new(), "404 page not found".to_owned()),
            });
            let answers = link.read(std::slice::from_ref(&object)).await.unwrap();
            assert_eq!(answers.output(&object).unwrap().0, code, "{list} {of_list}");
        }
        for (said, code) in [
            (r#"{"error":"no route"}"#, NOT_SAID),
            (r#"{"kind":"Status","message":"no route"}"#, NOT_SAID),
            (r#"{"kind":"Status","reason":"NotFound"}"#, ABSENT),
        ] {
            let (link, _) = link(move |_, path, _| match path {
                "/apis/apps/v1" => crate::kubernetes::tests::kinds(),
                _ => (404, Vec::new(), said.to_owned()),
            });
            let answers = link.read(std::slice::from_ref(&object)).await.unwrap();
            assert_eq!(answers.output(&object).unwrap().0, code, "{said}");
        }
    }

    #[test]
    fn a_name_leads_to_its_own_object_and_to_no_other() {
        let object = |name: &str, namespace: Option<&str>| ObjectName {
            api_version: "apps/v1".to_owned(),
            kind: "DaemonSet".to_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.to_owned(),
        };
        let resource = |namespaced| ApiResource {
            plural: "daemonsets".to_owned(),
            namespaced,
        };
        let of =
            |name: &str, namespace| build_object_path(&object(name, namespace), &resource(true));
        assert_eq!(
            of("a", Some("n")).unwrap(),
            "/apis/apps/v1/namespaces/n/daemonsets/a"
        );
        assert_eq!(
            build_object_path(&object("system:a", None), &resource(false)).unwrap(),
            "/apis/apps/v1/daemonsets/system:a"
        );
        assert!(of("a?x b", Some("n")).unwrap().ends_with("/a%3Fx%20b"));
        for name in ["", ".", "..", "a/b", "a%2fb", "a\nb", "../../secrets/x"] {
            assert!(
                of(name, Some("n")).is_err() && of("a", Some(name)).is_err(),
                "{name}"
            );
        }
        assert!(of("a", None).unwrap_err().as_words().contains("namespace"));
        assert!(
            build_object_path(&object("a", Some("n")), &resource(false))
                .unwrap_err()
                .as_words()
                .contains("whole cluster")
        );
    }
}
