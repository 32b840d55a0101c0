//! Where the API server is and whom its kubeconfig names: the context that counts, its cluster with
//! its certificates and proxy, and its user; or the pod that we run in.

use super::credentials::read_credential_file;
use super::kubeconfig;
use super::proxy;
use crate::ClusterAccess;
use kube::config::{Cluster, Config, Context, Kubeconfig};
use railwright_base::Reason;
use railwright_base::text::one_line;
use railwright_resource::file::base64;
use railwright_system::environment;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use std::fmt::Display;
use std::path::Path;

/// A kubeconfig as it is used.
pub(super) struct SelectedConfig {
    /// What the client is made from.
    pub config: Config,
    /// The context that counts; nothing as a pod of the cluster itself.
    pub context: Option<String>,
    /// The file and its context, for messages.
    pub place: String,
}

impl SelectedConfig {
    /// Host and port of the server, for messages.
    pub fn address(&self) -> String {
        let url = &self.config.cluster_url;
        let usual = if url.scheme_str() == Some("http") {
            80
        } else {
            443
        };
        let (host, port) = (url.host().unwrap_or_default(), url.port_u16());
        format!("{host}:{}", port.unwrap_or(usual))
    }
}

/// What counts of the kubeconfig of a spec's cluster.
pub(super) fn select_cluster_config(cluster: &ClusterAccess) -> Result<SelectedConfig, Reason> {
    let Some((found, file)) = kubeconfig::find_kubeconfig(cluster) else {
        return within_cluster(cluster);
    };
    let kubeconfig = found?;
    let (name, context) = select_context(cluster, &kubeconfig, &file)?;
    let found = read_cluster_entry(&kubeconfig, context, &file)?;
    let user = kubeconfig
        .auth_infos
        .iter()
        .find(|named| Some(&named.name) == context.user.as_ref());
    let mut config = build_connection_config(&found, &file)?;
    config.auth_info = user
        .and_then(|named| named.auth_info.clone())
        .unwrap_or_default();
    if let Some(exec) = config
        .auth_info
        .exec
        .as_mut()
        .filter(|exec| exec.provide_cluster_info)
    {
        exec.cluster = Some(
            (&found)
                .try_into()
                .map_err(|error| kubeconfig::describe_error(&error, &file))?,
        );
    }
    Ok(SelectedConfig {
        config,
        context: Some(name.to_owned()),
        place: format!("{file} (context {})", one_line(name, 60)),
    })
}

/// The context that the spec names, else the current one of the kubeconfig, with its name.
fn select_context<'a>(
    cluster: &'a ClusterAccess,
    kubeconfig: &'a Kubeconfig,
    file: &str,
) -> Result<(&'a str, &'a Context), Reason> {
    let name = cluster
        .context
        .as_ref()
        .or(kubeconfig.current_context.as_ref())
        .filter(|name| !name.is_empty());
    let Some(name) = name else {
        return Err(format!(
            "{file} has no current context; name one of: {}",
            join_context_names(kubeconfig)
        )
        .into());
    };
    let named = kubeconfig.contexts.iter().find(|named| named.name == *name);
    let Some(context) = named.and_then(|named| named.context.as_ref()) else {
        return Err(format!(
            "{file} has no context {}; it has: {}",
            one_line(name, 60),
            join_context_names(kubeconfig)
        )
        .into());
    };
    Ok((name.as_str(), context))
}

fn join_context_names(kubeconfig: &Kubeconfig) -> String {
    kubeconfig
        .contexts
        .iter()
        .map(|named| one_line(&named.name, 60))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Where the cluster of a context is; a certificate authority that is named by its file is read.
fn read_cluster_entry(
    kubeconfig: &Kubeconfig,
    context: &Context,
    file: &str,
) -> Result<Cluster, Reason> {
    let named = kubeconfig
        .clusters
        .iter()
        .find(|named| named.name == context.cluster);
    let Some(found) = named.and_then(|named| named.cluster.as_ref()) else {
        return Err(format!(
            "{file} does not say where the cluster {} is",
            one_line(&context.cluster, 60)
        )
        .into());
    };
    let mut found = found.clone();
    if let Some(path) = found
        .certificate_authority
        .take()
        .filter(|path| !path.is_empty() && !is_stated(&found.certificate_authority_data))
    {
        let pem = read_credential_file(Path::new(&path))
            .map_err(|reason| unknown_authority(file, reason))?;
        found.certificate_authority_data = Some(base64::encode_base64_text(&pem));
    }
    Ok(found)
}

/// How the server is reached and known. The library would take this from the file as well, but with
/// proxies of its own mind, and not at all where NO_PROXY ends in a comma.
fn build_connection_config(cluster: &Cluster, file: &str) -> Result<Config, Reason> {
    let url = cluster
        .server
        .as_deref()
        .and_then(|server| server.parse::<http::Uri>().ok());
    let url = url
        .filter(|url| url.host().is_some())
        .ok_or_else(|| format!("{file} has no address of the API server"))?;
    let environment = proxy::ProxyEnvironment {
        proxy: read_proxy_variable("HTTPS_PROXY"),
        without: read_proxy_variable("NO_PROXY"),
    };
    let proxy = proxy::select_proxy(
        cluster.proxy_url.as_deref(),
        &environment,
        url.host().unwrap_or_default(),
        url.port_u16().unwrap_or(443),
    );
    let mut config = Config::new(url);
    config.proxy_url = match proxy.map(|proxy| proxy.parse()) {
        Some(Err(_)) => {
            return Err(
                "the address of the proxy cannot be read: see HTTPS_PROXY, and proxy-url in the \
                 kubeconfig"
                    .into(),
            );
        }
        Some(Ok(proxy)) => Some(proxy),
        None => None,
    };
    config.root_cert =
        decode_certificate_authority(cluster).map_err(|reason| unknown_authority(file, reason))?;
    config.accept_invalid_certs = cluster.insecure_skip_tls_verify.unwrap_or(false);
    config.tls_server_name = cluster.tls_server_name.clone();
    Ok(config)
}

/// The certificates that the server's must be of; those of this machine when the kubeconfig names
/// none.
fn decode_certificate_authority(cluster: &Cluster) -> Result<Option<Vec<Vec<u8>>>, &'static str> {
    let Some(data) = cluster
        .certificate_authority_data
        .as_ref()
        .filter(|data| !data.is_empty())
    else {
        return Ok(None);
    };
    let pem = base64::decode_base64_text(data).ok_or("it is no base64")?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem)
        .map(|one| one.map(|der| der.to_vec()))
        .collect();
    let certificates = certificates.map_err(|_| "it is no PEM")?;
    if certificates.is_empty() {
        Err("it holds no certificate in PEM")
    } else {
        Ok(Some(certificates))
    }
}

fn unknown_authority(file: &str, reason: impl Display) -> String {
    format!("the certificate authority that {file} names: {reason}")
}

fn is_stated(text: &Option<String>) -> bool {
    text.as_ref().is_some_and(|text| !text.is_empty())
}

/// As a pod of the cluster itself.
fn within_cluster(cluster: &ClusterAccess) -> Result<SelectedConfig, Reason> {
    let nowhere = "there is no kubeconfig: name one as `kubernetes: { kubeconfig: FILE }`, or set \
                   KUBECONFIG, or write ~/.kube/config";
    if cluster.context.is_some() || environment::read_variable("KUBERNETES_SERVICE_HOST").is_none()
    {
        return Err(nowhere.to_owned().into());
    }
    let config = Config::incluster()
        .map_err(|error| format!("the service account of this pod cannot be used: {error}"))?;
    Ok(SelectedConfig {
        config,
        context: None,
        place: "the service account of this pod".to_owned(),
    })
}

fn read_proxy_variable(name: &str) -> Option<String> {
    environment::read_variable(name).or_else(|| environment::read_variable(&name.to_lowercase()))
}
