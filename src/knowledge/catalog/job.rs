//! What jobs are run with, as entries: environment variables of NCCL and UCX, arguments of mpirun
//! and of the tests behind it, images of which something has to be known, and profilers that say
//! what a step waits for.

use super::table::CategoryEntry;
use crate::spec::model::KubernetesPlatform;
use railwright_base::version;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An environment variable of a job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VariableEntry {
    /// Its name, such as `NCCL_IB_TC`.
    pub name: String,
    /// Who reads it: `nccl`, `ucx`, `torchrun`, `arena`.
    pub program: String,
    /// What it decides.
    pub meaning: String,
    /// What it can be; anything where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<VariableValues>,
    /// What it is where nobody sets it, the newest release first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub defaults: Vec<VariableDefault>,
    /// What a job pays for setting it.
    pub cost: String,
    /// What pages recommend, and what is to be said of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// Where this is said.
    pub source: String,
}

/// What a variable can be: a number in a range, or one of some words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VariableValues {
    /// The least number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<i64>,
    /// The largest number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<i64>,
    /// Words, in any case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<String>,
}

impl VariableValues {
    /// Whether a value is one of them.
    pub fn holds(&self, value: &str) -> bool {
        let mut words = self.words.iter();
        if words.any(|word| word.eq_ignore_ascii_case(value)) {
            return true;
        }
        if self.from.is_none() && self.to.is_none() {
            return false;
        }
        let Ok(number) = value.trim().parse::<i64>() else {
            return false;
        };
        self.from.is_none_or(|from| number >= from) && self.to.is_none_or(|to| number <= to)
    }

    /// In words: `0 to 255`, `one of INFO, WARN`.
    pub fn in_words(&self) -> String {
        let mut choices = Vec::new();
        match (self.from, self.to) {
            (Some(from), Some(to)) => choices.push(format!("{from} to {to}")),
            (Some(from), None) => choices.push(format!("{from} and more")),
            (None, Some(to)) => choices.push(format!("at most {to}")),
            (None, None) => {}
        }
        if !self.words.is_empty() {
            choices.push(format!("one of {}", self.words.join(", ")));
        }
        choices.join(", or ")
    }
}

/// What a variable is where nobody sets it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VariableDefault {
    /// The value.
    pub value: String,
    /// The first release with it; from the beginning on where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
}

impl VariableDefault {
    fn in_words(&self) -> String {
        match &self.since {
            Some(since) => format!("{} since {since}", self.value),
            None => self.value.clone(),
        }
    }
}

impl VariableEntry {
    /// Its defaults in words; those of one release where it is known. Nothing where no entry of it
    /// says any.
    pub fn default_in_words(&self, release: Option<&str>) -> Option<String> {
        if let Some(release) = release {
            let release = version::parse_version_numbers(release);
            for default in &self.defaults {
                let since = default.since.as_deref().unwrap_or_default();
                if version::parse_version_numbers(since) <= release {
                    return Some(default.value.clone());
                }
            }
        }
        if self.defaults.is_empty() {
            return None;
        }
        let defaults = self.defaults.iter().map(VariableDefault::in_words);
        Some(defaults.collect::<Vec<_>>().join(", "))
    }
}

impl CategoryEntry for VariableEntry {
    const KEY: &'static str = "variable";
    fn name(&self) -> &str {
        &self.name
    }
    fn source(&self) -> &str {
        &self.source
    }
    fn in_words(&self, field: &str) -> Option<String> {
        match field {
            "values" => self.values.as_ref().map(VariableValues::in_words),
            "defaults" => self.default_in_words(None),
            _ => None,
        }
    }
    fn find_fault(&self) -> Option<String> {
        let values = self.values.as_ref()?;
        if let (Some(from), Some(to)) = (values.from, values.to)
            && from > to
        {
            return Some("the least number is above the largest".to_owned());
        }
        let wrong = self
            .defaults
            .iter()
            .find(|default| !values.holds(&default.value))?;
        Some(format!("its default {} is none of its values", wrong.value))
    }
}

/// An argument of the programs that start a job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ArgumentEntry {
    /// The argument without its value, as in `-mca coll_hcoll_enable`; one of a test with the
    /// program before it, `nccl-tests -b`.
    pub name: String,
    /// Why it is there.
    pub reason: String,
    /// What it costs, and whom.
    pub cost: String,
    /// Where this is said.
    pub source: String,
}

impl CategoryEntry for ArgumentEntry {
    const KEY: &'static str = "argument";
    fn name(&self) -> &str {
        &self.name
    }
    fn source(&self) -> &str {
        &self.source
    }
}

/// An image of which something has to be known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageEntry {
    /// The image, with its tag; without one it is about every tag.
    pub name: String,
    /// True where its maker gives it for a trial only.
    #[serde(default)]
    pub demo: bool,
    /// The release of Ray in it; `tag` where the tag begins with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ray: Option<String>,
    /// What else has to be known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Where this is said.
    pub source: String,
}

impl ImageEntry {
    /// The release of Ray in an image of this entry.
    pub fn ray_of(&self, image: &str) -> Option<String> {
        match self.ray.as_deref()? {
            "tag" => {
                let (_, tag) = image
                    .rsplit_once(':')
                    .filter(|(_, tag)| !tag.contains('/'))?;
                let digits = tag.chars().take_while(|c| c.is_ascii_digit() || *c == '.');
                let release: String = digits.collect();
                (release.matches('.').count() == 2).then_some(release)
            }
            release => Some(release.to_owned()),
        }
    }
}

impl CategoryEntry for ImageEntry {
    const KEY: &'static str = "image";
    fn name(&self) -> &str {
        &self.name
    }
    fn source(&self) -> &str {
        &self.source
    }
}

/// A profiler of trainings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProfilerEntry {
    /// Its name.
    pub name: String,
    /// What it shows of a training.
    pub shows: String,
    /// How it is run.
    pub run: String,
    /// The only platform that has it; every one where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<KubernetesPlatform>,
    /// Where this is said.
    pub source: String,
}

impl CategoryEntry for ProfilerEntry {
    const KEY: &'static str = "profiler";
    fn name(&self) -> &str {
        &self.name
    }
    fn source(&self) -> &str {
        &self.source
    }
}

/// The entry of an image: of its name and tag, else of its name alone. A digest behind it says
/// nothing more.
pub fn image_of<'a>(
    entries: &'a super::CatalogTable<ImageEntry>,
    image: &str,
) -> Option<&'a ImageEntry> {
    let image = image.split('@').next().unwrap_or(image);
    let bare = match image.rsplit_once(':') {
        Some((bare, tag)) if !tag.contains('/') => bare,
        _ => image,
    };
    entries.get(image).or_else(|| entries.get(bare))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_the_release() {
        let default = |value: &str, since: Option<&str>| VariableDefault {
            value: value.into(),
            since: since.map(str::to_owned),
        };
        let defaults = vec![
            default("20", Some("2.23")),
            default("18", Some("2.14")),
            default("14", None),
        ];
        let entry = VariableEntry {
            defaults,
            ..VariableEntry::default()
        };
        for (release, said) in [
            (Some("2.21.5"), "18"),
            (Some("2.23.0"), "20"),
            (Some("2.12"), "14"),
        ] {
            assert_eq!(
                entry.default_in_words(release).as_deref(),
                Some(said),
                "{release:?}"
            );
        }
        assert_eq!(
            entry.default_in_words(None).as_deref(),
            Some("20 since 2.23, 18 since 2.14, 14")
        );
    }

    #[test]
    fn the_release_of_ray_is_read_from_a_tag() {
        let entry = ImageEntry {
            ray: Some("tag".into()),
            ..ImageEntry::default()
        };
        let cases = [
            ("rayproject/ray:2.40.0-py310-gpu", Some("2.40.0")),
            ("rayproject/ray:latest", None),
            ("registry:5000/ray", None),
            ("rayproject/ray:2.9", None),
        ];
        for (image, release) in cases {
            assert_eq!(entry.ray_of(image).as_deref(), release, "{image}");
        }
    }
}
