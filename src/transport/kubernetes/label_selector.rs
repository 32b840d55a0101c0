//! Whether labels are those that a selector asks for: what a server lists is compared with what it
//! was asked for (kubernetes.io/docs/concepts/overview/working-with-objects/labels).

use serde_json::Value;

/// Whether an object with these labels is selected. `selector`: terms with commas between them,
/// `a=b`, `a!=b`, `a in (b,c)`, `a notin (b,c)`, `a`, `!a`.
pub(super) fn selects_labels(selector: &str, labels: Option<&Value>) -> bool {
    let label = |name: &str| labels?.get(name.trim())?.as_str();
    for term in split_terms(selector) {
        let term = term.trim();
        let is_met = if let Some((name, values)) = term.split_once(" notin ") {
            label(name).is_none_or(|value| !is_among(value, values))
        } else if let Some((name, values)) = term.split_once(" in ") {
            label(name).is_some_and(|value| is_among(value, values))
        } else if let Some((name, value)) = term.split_once("!=") {
            label(name) != Some(value)
        } else if let Some((name, value)) = term.split_once('=') {
            label(name) == Some(value)
        } else if let Some(name) = term.strip_prefix('!') {
            label(name).is_none()
        } else {
            label(term).is_some()
        };
        if !is_met {
            return false;
        }
    }
    true
}

/// Commas within brackets divide values.
fn split_terms(selector: &str) -> impl Iterator<Item = &str> {
    let mut is_within = false;
    selector.split(move |c| {
        is_within = c == '(' || (is_within && c != ')');
        c == ',' && !is_within
    })
}

fn is_among(value: &str, values: &str) -> bool {
    let values = values.trim().trim_start_matches('(').trim_end_matches(')');
    values.split(',').any(|one| one.trim() == value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn terms_are_met_as_the_server_meets_them() {
        let labels = json!({ "app": "a", "tier": "b" });
        for (selector, is_met) in [
            ("app=a,tier=b", true),
            ("app=a,tier=c", false),
            ("app!=b,none!=x", true),
            ("app!=a", false),
            ("app in (x,a),tier notin (x,y)", true),
            ("app in (x,y)", false),
            ("none in (a)", false),
            ("none notin (a)", true),
            ("tier notin (a,b)", false),
            ("app,!none", true),
            ("none", false),
            ("!app", false),
        ] {
            assert_eq!(
                selects_labels(selector, Some(&labels)),
                is_met,
                "{selector}"
            );
        }
        assert!(!selects_labels("app=a", None) && selects_labels("app!=a", None));
    }
}
