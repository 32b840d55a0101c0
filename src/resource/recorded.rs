//! The form of an observation file: an identical answer of several hosts or switches stands there
//! once, under their node set. One host may stand in several entries; what it answered is all of
//! them together.

use super::observation::{Observation, TargetObservation, TargetReadFailure};
use super::{ReadResult, ReadResults};
use railwright_base::text::one_line;
use railwright_base::{Reason, Target, TargetKind, nodeset};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// An observation as it stands in a file.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "Observation")]
pub struct ObservationDocument<'a> {
    /// `FORMAT_VERSION` of the writer.
    format_version: Cow<'a, str>,
    /// When it was recorded, RFC 3339, as the shell's clock said.
    recorded_at: Cow<'a, str>,
    /// Texts of files that the spec refers to (a repository's key), by the path as the spec has it,
    /// so that a plan can be made where those files are not.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "each_once"
    )]
    texts: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
    /// By target, `host/gpu[01-16]` for several hosts, `switch/leaf[1-8]` for several switches.
    /// What a target said is what all entries with it say.
    #[serde(deserialize_with = "each_once")]
    targets: BTreeMap<String, ObservationDocumentEntry<'a>>,
}

/// The identical answers of the targets of an entry.
#[derive(Default, Serialize, Deserialize, schemars::JsonSchema)]
struct ObservationDocumentEntry<'a> {
    /// Why they could not be read at all.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    problem: Option<Cow<'a, TargetReadFailure>>,
    /// Their answers.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "each_once"
    )]
    answers: BTreeMap<Cow<'a, str>, Cow<'a, ReadResult>>,
}

/// A map in which no key stands twice: of two answers to one read nobody knows which is true.
fn each_once<'de, D, K, V>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
where
    D: Deserializer<'de>,
    K: Deserialize<'de> + Ord + AsRef<str>,
    V: Deserialize<'de>,
{
    struct EachOnce<K, V>(PhantomData<(K, V)>);
    impl<'de, K: Deserialize<'de> + Ord + AsRef<str>, V: Deserialize<'de>> Visitor<'de>
        for EachOnce<K, V>
    {
        type Value = BTreeMap<K, V>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a map")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut out = BTreeMap::new();
            while let Some(key) = map.next_key::<K>()? {
                if out.contains_key(&key) {
                    return Err(A::Error::custom(format!(
                        "the key `{}` stands there twice",
                        one_line(key.as_ref(), 80)
                    )));
                }
                let value = map.next_value()?;
                out.insert(key, value);
            }
            Ok(out)
        }
    }
    deserializer.deserialize_map(EachOnce(PhantomData))
}

impl Serialize for Observation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        fold_observation(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Observation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        unfold_observation(
            ObservationDocument::deserialize(deserializer)?,
            UNFOLDED_BYTES_MAX,
        )
        .map_err(D::Error::custom)
    }
}

impl schemars::JsonSchema for Observation {
    fn schema_name() -> Cow<'static, str> {
        ObservationDocument::schema_name()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        ObservationDocument::json_schema(generator)
    }
}

fn fold_observation(observation: &Observation) -> ObservationDocument<'_> {
    // An entry with no answer is there for each target, so that one that was asked nothing is not
    // lost.
    let mut problems: BTreeMap<Option<&TargetReadFailure>, Vec<&Target>> = BTreeMap::new();
    let mut answers: BTreeMap<(&str, &ReadResult), Vec<&Target>> = BTreeMap::new();
    for (target, found) in &observation.targets {
        problems
            .entry(found.problem.as_ref())
            .or_default()
            .push(target);
        found
            .answers
            .iter()
            .for_each(|said| answers.entry(said).or_default().push(target));
    }
    let mut targets: BTreeMap<String, ObservationDocumentEntry<'_>> = BTreeMap::new();
    for (problem, affected) in problems {
        fold_target_names(&affected)
            .for_each(|name| targets.entry(name).or_default().problem = problem.map(Cow::Borrowed));
    }
    // Many answers have the same targets: their node-set is folded once.
    let mut by_targets: BTreeMap<Vec<&Target>, Vec<(&str, &ReadResult)>> = BTreeMap::new();
    answers
        .into_iter()
        .for_each(|(said, targets)| by_targets.entry(targets).or_default().push(said));
    for (affected, said) in by_targets {
        for name in fold_target_names(&affected) {
            let part = targets.entry(name).or_default();
            part.answers.extend(
                said.iter()
                    .map(|(key, answer)| (Cow::Borrowed(*key), Cow::Borrowed(*answer))),
            );
        }
    }
    ObservationDocument {
        format_version: Cow::Borrowed(&observation.format_version),
        recorded_at: Cow::Borrowed(&observation.recorded_at),
        texts: observation
            .texts
            .iter()
            .map(|(path, text)| (Cow::Borrowed(path.as_str()), Cow::Borrowed(text.as_str())))
            .collect(),
        targets,
    }
}

/// The kinds of targets of which many are identical.
const FOLDED: [TargetKind; 2] = [TargetKind::Host, TargetKind::Switch];

/// Hosts as one node set, switches as another, every other target by itself.
fn fold_target_names(targets: &[&Target]) -> impl Iterator<Item = String> {
    let mut folded = Vec::new();
    for kind in FOLDED {
        let of_kind = targets.iter().filter(|target| target.kind == kind);
        let names: Vec<&str> = of_kind.map(|target| &*target.name).collect();
        if !names.is_empty() {
            folded.push(format!(
                "{}/{}",
                kind.word(),
                nodeset::fold_node_set(&names)
            ));
        }
    }
    for target in targets {
        if !FOLDED.contains(&target.kind) {
            folded.push(target.to_string());
        }
    }
    folded.into_iter()
}

/// What the targets of a file say, unfolded, beyond this many bytes is refused: a small file can
/// stand for any amount. 10,000 hosts of the inventory `roce-a100` are two thirds of it.
const UNFOLDED_BYTES_MAX: usize = 1 << 30;
/// What a target takes beside what it says and its name.
const TARGET_BYTES: usize = 200;
/// The texts of one problem have so many bytes at most; ours are a few lines.
const PROBLEM_BYTES_MAX: usize = 64 << 10;

fn unfold_observation(
    recorded: ObservationDocument<'_>,
    bytes_max: usize,
) -> Result<Observation, Reason> {
    let mut targets: BTreeMap<Target, TargetObservation> = BTreeMap::new();
    let mut bytes = 0usize;
    for (name, part) in recorded.targets {
        let named = of_name(&name)?;
        let problem_bytes = part.problem.as_deref().map_or(0, text_bytes);
        if problem_bytes > PROBLEM_BYTES_MAX {
            return Err(format!(
                "the problem of {name} has more than {} KiB",
                PROBLEM_BYTES_MAX >> 10
            )
            .into());
        }
        // A name is there twice while it is unfolded, and once for all entries that it stands in.
        for target in named.iter().filter(|target| !targets.contains_key(*target)) {
            bytes = bytes.saturating_add(2 * target.name.len() + TARGET_BYTES);
        }
        let own = answer_bytes(&part) + problem_bytes + size_of::<TargetObservation>();
        bytes = bytes.saturating_add(named.len().saturating_mul(own));
        if bytes > bytes_max {
            return Err(format!(
                "with {name} what its targets say is more than {} GiB",
                UNFOLDED_BYTES_MAX >> 30
            )
            .into());
        }
        for target in named {
            add_document_entry(&name, &part, targets.entry(target).or_default())?;
        }
    }
    Ok(Observation {
        format_version: recorded.format_version.into_owned(),
        recorded_at: recorded.recorded_at.into_owned(),
        texts: recorded
            .texts
            .into_iter()
            .map(|(path, text)| (path.into_owned(), text.into_owned()))
            .collect(),
        targets,
    })
}

/// Adds an entry of the file to what is known of one of its targets. The error names what the file
/// says twice.
fn add_document_entry(
    name: &str,
    entry: &ObservationDocumentEntry<'_>,
    found: &mut TargetObservation,
) -> Result<(), Reason> {
    if let Some(new) = entry.problem.as_deref() {
        if found.problem.as_ref().is_some_and(|old| old != new) {
            return Err(format!("{name} has a second reason why it could not be read").into());
        }
        found.problem = Some(new.clone());
    }
    let mut answers = ReadResults::default();
    for (key, answer) in &entry.answers {
        if found.answers.by_key(key).is_some() {
            return Err(format!("{name} has a second answer to {key}").into());
        }
        answers.insert(key.as_ref(), answer.clone().into_owned());
    }
    found.answers.merge(answers);
    Ok(())
}

fn answer_bytes(entry: &ObservationDocumentEntry<'_>) -> usize {
    let answers = entry.answers.iter();
    answers
        .map(|(key, answer)| key.len() + answer.out.len() + size_of::<ReadResult>())
        .sum()
}

fn text_bytes(problem: &TargetReadFailure) -> usize {
    let TargetReadFailure {
        code,
        message,
        shared_message,
        next,
    } = problem;
    [code, message, shared_message]
        .into_iter()
        .chain(next)
        .map(|text| text.len() + size_of::<String>())
        .sum()
}

fn of_name(name: &str) -> Result<Vec<Target>, Reason> {
    let several = FOLDED
        .iter()
        .find_map(|kind| Some((*kind, name.strip_prefix(kind.word())?.strip_prefix('/')?)));
    match several {
        Some((kind, names)) if names.contains(['[', ',']) => {
            let names =
                nodeset::expand_node_set(names).map_err(|error| format!("{name}: {error}"))?;
            Ok(names
                .into_iter()
                .map(|name| Target {
                    kind,
                    name: name.into(),
                })
                .collect())
        }
        _ => name
            .parse()
            .map(|target| vec![target])
            .map_err(|error| format!("{name}: {error}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AnswerStatus;
    use proptest::prelude::*;

    fn answer(out: &str) -> ReadResult {
        ReadResult {
            status: AnswerStatus::Exit(0),
            out: out.to_owned(),
        }
    }

    fn observation(said: &[(u8, u8, u8)], silent: &[u8]) -> Observation {
        let mut all = Observation::at("2026-01-01T00:00:00Z".to_owned());
        for (host, key, out) in said {
            // names that count on, and names that do not
            let name = if host % 3 == 0 {
                format!("{}", char::from(b'a' + host))
            } else {
                format!("gpu{host:02}")
            };
            let kind = if *host >= 10 {
                TargetKind::Switch
            } else {
                TargetKind::Host
            };
            let found = all
                .targets
                .entry(Target {
                    kind,
                    name: name.into(),
                })
                .or_default();
            found
                .answers
                .insert(format!("sysctl:{key}"), answer(&out.to_string()));
        }
        for host in silent {
            let trouble = TargetReadFailure {
                code: "RW0401".into(),
                message: format!("{host} is away"),
                shared_message: "away".into(),
                next: vec![],
            };
            all.targets
                .entry(Target::host(format!("n{host}")))
                .or_default()
                .problem = Some(trouble);
        }
        all
    }

    #[test]
    fn what_hosts_answer_identically_stands_there_once() {
        let all = observation(
            &[
                (1, 1, 7),
                (2, 1, 7),
                (5, 1, 7),
                (5, 2, 0),
                (4, 1, 8),
                (10, 1, 7),
                (11, 1, 7),
            ],
            &[],
        );
        let written = serde_json::to_value(&all).unwrap();
        let keys: Vec<&String> = written["targets"].as_object().unwrap().keys().collect();
        assert_eq!(
            keys,
            [
                "host/gpu04",
                "host/gpu05",
                "host/gpu[01-02,04-05]",
                "host/gpu[01-02,05]",
                "switch/gpu[10-11]"
            ]
        );
        assert_eq!(serde_json::from_value::<Observation>(written).unwrap(), all);
    }

    #[test]
    fn two_answers_of_one_host_to_one_question_are_refused() {
        let part = |out: &str| serde_json::json!({ "answers": { "sysctl:a": { "status": { "exit": 0 }, "out": out } } });
        let text = serde_json::json!({ "format_version": "3.0", "recorded_at": "", "targets": { "host/a[1-2]": part("1"), "host/a1": part("2") } });
        let refused = serde_json::from_value::<Observation>(text)
            .unwrap_err()
            .to_string();
        assert!(
            refused.contains("has a second answer to sysctl:a"),
            "{refused}"
        );
    }

    #[test]
    fn a_small_file_that_stands_for_too_much_is_refused() {
        let answers = serde_json::json!({ "sysctl:a": { "status": { "exit": 0 }, "out": "x".repeat(100_000) } });
        let text = serde_json::json!({ "format_version": "3.0", "recorded_at": "", "targets": { "host/a[1-50000]": { "answers": answers } } });
        let refused = serde_json::from_value::<Observation>(text)
            .unwrap_err()
            .to_string();
        assert!(refused.contains("is more than 1 GiB"), "{refused}");
    }

    #[test]
    fn the_name_of_a_target_counts_once() {
        let long = "x".repeat(200);
        for (names, bytes_max, is_taken) in [
            (vec![format!("{long}[1-1000]")], 1_000_000, true),
            (vec![format!("{long}[1-1000]")], 550_000, false),
            (
                vec!["n[1-1000]".to_owned(), "m[1-1000]".to_owned()],
                1_000_000,
                true,
            ),
            (
                vec![format!("{long}a[1-1000]"), format!("{long}b[1-1000]")],
                1_100_000,
                false,
            ),
            (
                vec![format!("{long}[1-1000]"), format!("{long}[1-999]")],
                1_100_000,
                true,
            ),
        ] {
            let targets: BTreeMap<String, _> = names
                .iter()
                .map(|name| (format!("host/{name}"), serde_json::json!({})))
                .collect();
            let text = serde_json::json!({ "format_version": "3.0", "recorded_at": "", "targets": targets });
            let unfolded =
                unfold_observation(ObservationDocument::deserialize(text).unwrap(), bytes_max);
            assert_eq!(unfolded.is_ok(), is_taken, "{names:?} {:?}", unfolded.err());
        }
    }

    fn of_problem(name: &str, problem: &TargetReadFailure) -> Result<Observation, Reason> {
        let text = serde_json::json!({ "format_version": "3.0", "recorded_at": "", "targets": { name: { "problem": problem } } });
        serde_json::from_value(text).map_err(|error| error.to_string().into())
    }

    #[test]
    fn a_problem_counts_for_each_target_that_has_it() {
        let long = |length: usize| "x".repeat(length);
        let small = TargetReadFailure {
            code: "RW0401".into(),
            message: "away".into(),
            shared_message: "away".into(),
            next: vec![],
        };
        assert_eq!(
            of_problem("host/n[1-1000]", &small).unwrap().targets.len(),
            1000
        );
        for large in [
            TargetReadFailure {
                message: long(20_000),
                ..small.clone()
            },
            TargetReadFailure {
                shared_message: long(20_000),
                ..small.clone()
            },
            TargetReadFailure {
                next: vec![long(10_000), long(10_000)],
                ..small.clone()
            },
        ] {
            let refused = of_problem("host/n[1-100000]", &large).unwrap_err();
            assert!(
                refused.as_words().contains("is more than 1 GiB"),
                "{refused}"
            );
        }
        let refused = of_problem(
            "host/n1",
            &TargetReadFailure {
                message: long(100_000),
                ..small
            },
        )
        .unwrap_err();
        assert!(
            refused
                .as_words()
                .contains("the problem of host/n1 has more than 64 KiB"),
            "{refused}"
        );
    }

    proptest! {
        #[test]
        fn what_is_written_is_what_is_read(said in proptest::collection::vec((0u8..12, 0u8..4, 0u8..3), 0..60), silent in proptest::collection::vec(0u8..4, 0..4)) {
            let all = observation(&said, &silent);
            let text = serde_json::to_string(&all).unwrap();
            prop_assert_eq!(serde_json::from_str::<Observation>(&text).unwrap(), all);
        }
    }
}
