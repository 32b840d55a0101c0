//! Findings that differ in nothing but their host become one finding about a node-set.

use indexmap::IndexMap;
use railwright_base::Diagnostic;
use railwright_base::nodeset::fold_node_set;

/// Stands for the host's name while findings are compared; cannot be in a name.
const HOST: &str = "\u{1}";

/// The findings in their order, identical ones joined at the place of the first.
pub fn fold_diagnostics(diagnostics: &[Diagnostic]) -> Vec<Diagnostic> {
    let mut groups: IndexMap<String, (Diagnostic, Vec<&str>)> = IndexMap::new();
    for (index, diagnostic) in diagnostics.iter().enumerate() {
        match find_host(diagnostic) {
            Some(host) => {
                let template = replace_host(diagnostic, host, HOST);
                let key = format!("{template:?}");
                groups
                    .entry(key)
                    .or_insert_with(|| (template, Vec::new()))
                    .1
                    .push(host);
            }
            None => {
                groups.insert(format!("{index}"), (diagnostic.clone(), Vec::new()));
            }
        }
    }
    groups
        .into_values()
        .map(|(template, hosts)| replace_host(&template, HOST, &fold_node_set(&hosts)))
        .collect()
}

/// The host of a subject such as `host/gpu-001, step reboot`.
fn find_host(diagnostic: &Diagnostic) -> Option<&str> {
    let rest = diagnostic.subject.as_deref()?.strip_prefix("host/")?;
    let host = &rest[..rest.find(['/', ',', ' ', '#']).unwrap_or(rest.len())];
    (!host.is_empty()).then_some(host)
}

fn replace_host(diagnostic: &Diagnostic, from: &str, to: &str) -> Diagnostic {
    let mut renamed = diagnostic.clone();
    let optional = [
        &mut renamed.subject,
        &mut renamed.effect,
        &mut renamed.state,
    ];
    let texts = optional.into_iter().flatten().chain(&mut renamed.next);
    for text in texts.chain([&mut renamed.message]) {
        *text = replace_word(text, from, to);
    }
    renamed
}

/// Replaces whole names only: `n1` is not a part of `n10` or of `gpu-n1`.
fn replace_word(text: &str, from: &str, to: &str) -> String {
    let (mut out, mut rest, mut before) = (String::new(), text, None);
    while let Some(at) = rest.find(from) {
        let end = at + from.len();
        let left = rest[..at].chars().next_back().or(before);
        let whole = !left.is_some_and(is_name_character)
            && !rest[end..].chars().next().is_some_and(is_name_character);
        out.push_str(&rest[..at]);
        out.push_str(if whole { to } else { from });
        before = from.chars().next_back();
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

fn is_name_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}
