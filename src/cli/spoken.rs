//! What a resource is called on a command line below its target: by its address, and as the screens
//! print it, with `/` or a space behind the kind, `/` of a name as `/` or `%2F`, and an object of
//! Kubernetes with or without the group `core` and the namespace `-`.

use railwright_base::Address;

/// How a text is about a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum About {
    /// It is this resource.
    Itself,
    /// It is a field of it.
    Field(String),
    /// It is what several are in: a kind, a namespace.
    Above,
}

/// How this text is about this resource.
pub fn match_resource_name(text: &str, address: &Address) -> Option<About> {
    let text = normalize_name(text);
    let names = [
        address.path.get(1..).unwrap_or_default().join("/"),
        address.name_words(),
    ];
    let kinds = [address.kind(), address.kind_word()];
    let called = kinds.iter().flat_map(|kind| {
        names
            .iter()
            .map(move |name| format!("{}/{name}", kind.to_ascii_lowercase()))
    });
    called
        .filter_map(|called| compare_names(&text, &called))
        .min_by_key(|about| match about {
            About::Itself => 0,
            About::Field(_) => 1,
            About::Above => 2,
        })
}

fn compare_names(text: &str, called: &str) -> Option<About> {
    if text == called {
        return Some(About::Itself);
    }
    if let Some(field) = text
        .strip_prefix(called)
        .and_then(|rest| rest.strip_prefix('/'))
    {
        return Some(About::Field(field.replace('/', ".")));
    }
    called
        .strip_prefix(text)
        .filter(|rest| rest.starts_with('/'))
        .map(|_| About::Above)
}

/// `Kind name` and `Kind/na%2Fme` as `kind/na/me`.
fn normalize_name(text: &str) -> String {
    let text = unescape_segments(text.trim().trim_end_matches('/'));
    match text.split_once(|c: char| c == '/' || c.is_whitespace()) {
        Some((kind, name)) => format!("{}/{}", kind.to_ascii_lowercase(), name.trim_start()),
        None => text.to_ascii_lowercase(),
    }
}

/// What is no escape stands as it is.
fn unescape_segments(text: &str) -> String {
    let parts =
        text.split('/').map(
            |segment| match format!("host/x/{segment}").parse::<Address>() {
                Ok(address) if !segment.contains('#') => address.name().to_owned(),
                _ => segment.to_owned(),
            },
        );
    parts.collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_name_is_known() {
        let (job, space) = (
            "kube/p/ConfigMap.core/rdma/job-env",
            "kube/p/Namespace.core/-/rdma",
        );
        let (taint, file) = (
            "kube/p/node_taint/nvidia.com%2Fgpu:NoSchedule",
            "host/a/file/%2Fetc%2Fa%20b",
        );
        for (text, address, desired) in [
            ("ConfigMap.core/rdma/job-env", job, Some(About::Itself)),
            ("ConfigMap/rdma/job-env", job, Some(About::Itself)),
            ("configmap   rdma/job-env", job, Some(About::Itself)),
            (
                "ConfigMap/rdma/job-env/data/text",
                job,
                Some(About::Field("data.text".to_owned())),
            ),
            ("ConfigMap/rdma", job, Some(About::Above)),
            ("configmap", job, Some(About::Above)),
            ("ConfigMap/rdma/job", job, None),
            ("Namespace/rdma", space, Some(About::Itself)),
            ("Namespace.core/-/rdma", space, Some(About::Itself)),
            (
                "node_taint/nvidia.com/gpu:NoSchedule",
                taint,
                Some(About::Itself),
            ),
            (
                "node_taint nvidia.com%2Fgpu:NoSchedule",
                taint,
                Some(About::Itself),
            ),
            (
                "node_taint/nvidia.com/gpu:NoSchedule/effect",
                taint,
                Some(About::Field("effect".to_owned())),
            ),
            ("node_taint/nvidia.com/gpu:NoExecute", taint, None),
            ("file//etc/a b", file, Some(About::Itself)),
            ("file/%2Fetc%2Fa%20b", file, Some(About::Itself)),
            ("file /etc/a%", file, None),
            (
                "file//etc/a b/mode",
                file,
                Some(About::Field("mode".to_owned())),
            ),
        ] {
            assert_eq!(
                match_resource_name(text, &address.parse().unwrap()),
                desired,
                "{text}"
            );
        }
    }
}
