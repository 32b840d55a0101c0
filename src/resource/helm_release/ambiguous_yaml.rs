//! What two readers of YAML read differently, in the text that a chart renders: what Helm makes of
//! it would stand in no plan.

use railwright_base::Reason;
use serde_yaml::granit_parser::{Event, Options, Parser, ScalarStyle};

/// Words that our reader takes for a truth value in any case, and Helm's in three spellings of each
/// (kubernetes-sigs/yaml: goyaml.v2/resolve.go, `resolveMapList`).
const TRUTH_VALUES: [&str; 6] = ["yes", "no", "on", "off", "true", "false"];

/// Whether a text holds a line break that is none to every reader: YAML 1.1, which Go reads, ends a
/// line at each of these, and YAML 1.2 does not (yaml.org/spec/1.1, section 4.1.4;
/// yaml.org/spec/1.2.2, section 5.4).
pub fn has_ambiguous_line_break(text: &str) -> bool {
    text.replace("\r\n", "\n")
        .contains(['\r', '\u{85}', '\u{2028}', '\u{2029}'])
}

/// Refuses what the reader of Helm takes otherwise than ours, in a document that ours can read.
pub(super) fn refuse_ambiguous_yaml(text: &str) -> Result<(), Reason> {
    let mut options = Options::default();
    options.set_emit_comments(false);
    for event in Parser::new_from_str_with_options(text, options) {
        let found = match event {
            Ok((event, _)) => find_ambiguity(&event),
            Err(_) => Some("a document that only some readers can read".to_owned()),
        };
        if let Some(found) = found {
            return Err(format!(
                "the chart renders {found}, which readers of YAML do not agree on, and what \
                 Helm makes of it is not known: write out what is meant, with texts in quotes"
            )
            .into());
        }
    }
    Ok(())
}

fn find_ambiguity(event: &Event<'_>) -> Option<String> {
    match event {
        Event::Scalar(_, _, _, Some(_))
        | Event::SequenceStart(_, _, Some(_))
        | Event::MappingStart(_, _, Some(_)) => Some("an explicit tag (`!!str`)".to_owned()),
        // Go merges where it stands, over the keys before it (kubernetes-sigs/yaml:
        // goyaml.v2/decode.go, `mapping`); elsewhere the keys of the map itself win.
        Event::Scalar(word, ScalarStyle::Plain, _, None) if &**word == "<<" => {
            Some("the merge key `<<`".to_owned())
        }
        Event::Scalar(word, ScalarStyle::Plain, _, None) if is_misspelled_truth_value(word) => {
            Some(format!("the word `{word}` without quotes"))
        }
        _ => None,
    }
}

/// `yEs`, and not `yes`, `Yes` or `YES`.
fn is_misspelled_truth_value(word: &str) -> bool {
    let is_one = TRUTH_VALUES
        .iter()
        .any(|known| known.eq_ignore_ascii_case(word));
    let rest = word.get(1..).unwrap_or_default();
    is_one
        && rest.contains(|c: char| c.is_ascii_uppercase())
        && word.contains(|c: char| c.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::refuse_ambiguous_yaml;

    /// Ours lets the keys of a map win over `<<` wherever it stands, and Go what comes last.
    #[test]
    fn what_two_readers_of_yaml_take_otherwise_is_refused() {
        for text in [
            "items: []\n<<: { items: [ { kind: ClusterRoleBinding } ] }\n",
            "spec: [ { image: good, <<: { image: evil } } ]\n",
            "a: &merge <<\n*merge : { items: [] }\n",
            "!!merge <<: { items: [] }\n",
            "! \"<<\": { items: [] }\n",
            "a: !!int \"017\"\n",
            "items: !!seq []\n",
            "spec: !mine { a: 1 }\n",
            "a: tRue\n",
            "yES: a\n",
        ] {
            let refused = refuse_ambiguous_yaml(text);
            assert!(
                refused.is_err_and(|why| why.as_words().contains("readers of YAML")),
                "{text}"
            );
        }
        for text in [
            "",
            "# a\n",
            "a: &a { b: 1 }\nc: *a\n\"<<\": { b: 2 }\n",
            "a: [ yes, Yes, YES, n, \"tRue\", 017, 1_000, << a ]\nb: |\n  <<: a !!str\n",
        ] {
            assert_eq!(refuse_ambiguous_yaml(text), Ok(()), "{text}");
        }
    }
}
