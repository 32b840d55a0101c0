//! A command works with one API server from its beginning to its end. Which context of the
//! kubeconfig counts, and where its cluster is, is decided when the file is first read. It is read
//! again for new tokens: another current context changes nothing by then, and a context that leads
//! to another server is refused.

use super::cluster_config::{SelectedConfig, select_cluster_config};
use crate::ClusterAccess;
use kube::config::Config;
use railwright_base::Reason;
use railwright_base::mutex::lock_ignoring_poison;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The servers of a command, by the kubeconfig and the context that the spec names.
pub(super) struct ServerPins(Mutex<BTreeMap<PinKey, PinnedServer>>);

type PinKey = (Option<String>, Option<String>);

/// Of this process, which is one command.
pub(super) static PINS: ServerPins = ServerPins(Mutex::new(BTreeMap::new()));

/// How a server is reached and known.
#[derive(Debug, Clone, PartialEq)]
struct PinnedServer {
    /// Nothing for the cluster that we run in.
    context: Option<String>,
    /// Host and port, for messages.
    address: String,
    url: http::Uri,
    proxy: Option<http::Uri>,
    authority: Option<Vec<Vec<u8>>>,
    certificate_name: Option<String>,
    accepts_any_certificate: bool,
}

impl PinnedServer {
    fn from_selected(selected: &SelectedConfig) -> Self {
        let Config {
            cluster_url,
            proxy_url,
            root_cert,
            tls_server_name,
            accept_invalid_certs,
            ..
        } = &selected.config;
        PinnedServer {
            context: selected.context.clone(),
            address: selected.address(),
            url: cluster_url.clone(),
            proxy: proxy_url.clone(),
            authority: root_cert.clone(),
            certificate_name: tls_server_name.clone(),
            accepts_any_certificate: *accept_invalid_certs,
        }
    }

    fn describe_change(&self, now: &PinnedServer) -> String {
        if self.address == now.address {
            format!(
                "tells another way to {} by now (context, URL, proxy, certificate authority or \
                 name) than this command began with",
                now.address
            )
        } else {
            format!(
                "leads to {} by now, and this command works with {} since it began",
                now.address, self.address
            )
        }
    }
}

impl ServerPins {
    /// What counts of the kubeconfig now, of the context that was decided at first.
    ///
    /// # Errors
    /// Where it cannot be used, and where it leads to another server than at first.
    pub(super) fn select_config(&self, cluster: &ClusterAccess) -> Result<SelectedConfig, Reason> {
        let key = (cluster.kubeconfig.clone(), cluster.context.clone());
        let decided = lock_ignoring_poison(&self.0)
            .get(&key)
            .and_then(|pinned| pinned.context.clone());
        let access = ClusterAccess {
            context: decided.or_else(|| cluster.context.clone()),
            ..cluster.clone()
        };
        let selected = select_cluster_config(&access)?;
        let now = PinnedServer::from_selected(&selected);
        let mut pins = lock_ignoring_poison(&self.0);
        let pinned = pins.entry(key).or_insert_with(|| now.clone());
        if *pinned == now {
            return Ok(selected);
        }
        Err(format!(
            "the kubeconfig {}: nothing was sent there; put it back, or begin again, with a \
             `context:` in the spec that nobody changes: {}",
            pinned.describe_change(&now),
            selected.place
        )
        .into())
    }
}

#[cfg(test)]
impl ServerPins {
    /// Those of a command of its own.
    pub(super) fn begin() -> &'static Self {
        Box::leak(Box::new(ServerPins(Mutex::default())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TransportError;
    use crate::kubernetes::identity::tests::quoting;
    use crate::kubernetes::{KEPT_FOR, KubernetesConnector};
    use railwright_resource::file::base64;
    use std::path::Path;

    /// Two contexts, each with a cluster of its own name.
    fn two_contexts(current: &str, first: &str, second: &str) -> String {
        format!(
            "current-context: {current}\n\
             clusters:\n\
             - {{name: one, cluster: {{server: \"{first}}}}}\n\
             - {{name: two, cluster: {{server: \"{second}\"}}}}\n\
             contexts:\n\
             - {{name: one, context: {{cluster: one, user: u}}}}\n\
             - {{name: two, context: {{cluster: two, user: u}}}}\n"
        )
    }

    fn access(kubeconfig: &Path) -> ClusterAccess {
        ClusterAccess {
            kubeconfig: Some(kubeconfig.display().to_string()),
            ..ClusterAccess::default()
        }
    }

    #[test]
    fn a_command_stays_with_the_server_that_its_kubeconfig_named_first() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        let (cluster, pins) = (access(&file), ServerPins::begin());
        let ca = |body: &str| {
            let pem = format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n");
            let data = base64::encode_base64_text(pem.as_bytes());
            format!("https://one:6443\", certificate-authority-data: \"{data}\"")
        };
        let first = ca("AAAA");
        let select = |current: &str, first: &str, second: &str| {
            std::fs::write(&file, two_contexts(current, first, second)).unwrap();
            pins.select_config(&cluster)
                .map(|selected| (selected.context.clone().unwrap(), selected.address()))
        };
        let one = Ok(("one".to_owned(), "one:6443".to_owned()));
        assert_eq!(select("one", &first, "https://two"), one);
        assert_eq!(select("two", &first, "https://two"), one, "switched");
        assert_eq!(select("gone", &first, "https://three"), one);
        let elsewhere = "leads to two:443 by now, and this command works with one:6443 since it";
        let other_way = "tells another way to one:6443 by now";
        for (changed, words) in [
            ("https://two\"".to_owned(), elsewhere),
            ("https://one:6443/other\"".to_owned(), other_way),
            ("https://one:6443\"".to_owned(), other_way),
            (ca("BBBB"), other_way),
            (format!("{first}, tls-server-name: two"), other_way),
            (format!("{first}, proxy-url: \"http://p\""), other_way),
            (
                format!("{first}, insecure-skip-tls-verify: true"),
                other_way,
            ),
        ] {
            let refused = select("one", &changed, "https://two").unwrap_err();
            assert!(
                refused.as_words().contains(words) && refused.as_words().contains("`context:`"),
                "{changed}: {refused}"
            );
        }
        assert_eq!(select("two", &first, "https://two"), one, "put back");
        let named = ClusterAccess {
            context: Some("two".to_owned()),
            ..cluster.clone()
        };
        let named = pins.select_config(&named).unwrap();
        assert_eq!(named.address(), "two:443", "another cluster of the spec");
        let text =
            two_contexts("two", &first, "https://two").replace("- {name: one,", "- {name: x,");
        std::fs::write(&file, text).unwrap();
        let refused = pins.select_config(&cluster).err().unwrap();
        assert!(
            refused.as_words().contains("has no context one"),
            "{refused}"
        );
    }

    /// `helm` would find the kubeconfig by itself.
    #[test]
    fn a_kubeconfig_that_appears_in_a_pod_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        let (cluster, pins) = (access(&file), ServerPins::begin());
        std::fs::write(&file, two_contexts("one", "https://one\"", "https://two")).unwrap();
        let mut within = PinnedServer::from_selected(&select_cluster_config(&cluster).unwrap());
        within.context = None;
        let key = (cluster.kubeconfig.clone(), None);
        pins.0.lock().unwrap().insert(key, within);
        assert!(pins.select_config(&cluster).is_err());
    }

    /// Tokens are read again after a while, and what else the file says by then counts no more.
    #[tokio::test]
    async fn a_new_connection_is_to_the_server_of_the_first_one_or_none() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        let (one, two) = (quoting("200 OK"), quoting("200 OK"));
        let write = |current: &str, first: &str| {
            std::fs::write(&file, two_contexts(current, &format!("{first}\""), &two)).unwrap();
        };
        let connector = KubernetesConnector::default();
        let address_after_a_while = async || {
            tokio::time::pause();
            tokio::time::advance(KEPT_FOR).await;
            tokio::time::resume();
            let server = connector.server("prod", &access(&file)).await;
            server.map(|server| format!("http://{}", server.address))
        };
        write("one", &one);
        assert_eq!(address_after_a_while().await, Ok(one.clone()));
        write("two", &one);
        assert_eq!(address_after_a_while().await, Ok(one.clone()), "switched");
        write("one", &two);
        let refused = address_after_a_while().await.unwrap_err();
        assert!(
            matches!(&refused, TransportError::NoIdentity { reason, .. } if reason.as_words().contains("nothing was sent there")),
            "{refused}"
        );
        write("two", &one);
        assert_eq!(address_after_a_while().await, Ok(one), "put back");
    }
}
