//! The desired state of a unit.

use crate::Action;
use crate::action::UnitVerb;
use crate::body::{Body, BodyErrors};
use crate::names::{is_clean_path, is_word};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

const SUFFIXES: [&str; 8] = [
    ".service",
    ".socket",
    ".target",
    ".timer",
    ".mount",
    ".path",
    ".slice",
    ".automount",
];

/// The desired state of a unit.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UnitBody {
    /// With its suffix, such as openibd.service.
    pub(super) name: String,
    pub(super) content: Option<String>,
    /// Texts by file name, for example 10-memlock: "[Service]\nLimitMEMLOCK=infinity\n".
    #[serde(default)]
    dropins: BTreeMap<String, String>,
    pub(super) enabled: Option<bool>,
    pub(super) active: Option<bool>,
    pub(super) masked: Option<bool>,
    /// Paths of files whose change makes a restart pending.
    #[serde(default)]
    pub(super) restart_on: Vec<String>,
    pub(super) rollback_timer: Option<bool>,
}

impl UnitBody {
    /// The files of ours: attribute, path, content.
    pub(super) fn list_files(&self) -> Vec<(String, String, String)> {
        let unit = &self.name;
        let own = self.content.iter().map(|content| {
            (
                "content".to_owned(),
                format!("/etc/systemd/system/{unit}"),
                content.clone(),
            )
        });
        let dropins = self.dropins.iter().map(|(file, content)| {
            let path = format!(
                "/etc/systemd/system/{unit}.d/{}.conf",
                file.trim_end_matches(".conf")
            );
            (format!("dropin {file}"), path, content.clone())
        });
        own.chain(dropins).collect()
    }

    /// What the files of ours set this to; the last one counts.
    pub(super) fn find_setting(&self, name: &str) -> Option<&str> {
        let texts = self.content.iter().chain(self.dropins.values());
        texts
            .flat_map(|text| text.lines())
            .filter_map(|line| {
                line.trim()
                    .strip_prefix(name)?
                    .trim_start()
                    .strip_prefix('=')
            })
            .map(str::trim)
            .next_back()
    }

    /// Whether it starts at boot, runs or is masked is ours to decide.
    pub(super) fn declares_state(&self) -> bool {
        let states = [self.enabled, self.active, self.masked];
        states.iter().any(Option::is_some)
    }

    /// Every path whose change makes a restart pending.
    pub(super) fn list_restart_triggers(&self) -> Vec<String> {
        self.list_files()
            .into_iter()
            .map(|(_, path, _)| path)
            .chain(self.restart_on.iter().cloned())
            .collect()
    }

    pub(super) fn build_action(&self, verb: UnitVerb) -> Action {
        Action::Unit {
            name: self.name.clone(),
            verb,
        }
    }

    fn check_content(&self, errors: &mut BodyErrors) {
        let Some(content) = &self.content else { return };
        let install = content.lines().any(|line| line.trim() == "[Install]");
        errors.require(
            install || self.enabled != Some(true),
            "/content",
            "the unit is to be enabled but has no [Install] section",
            "add [Install] with WantedBy=",
        );
        errors.require(
            self.masked != Some(true),
            "/masked",
            "a unit with `content` cannot be masked",
            "leave one of the two out",
        );
    }

    fn check_files(&self, errors: &mut BodyErrors) {
        for file in self.dropins.keys() {
            errors.require(
                !self.dropins.contains_key(&format!("{file}.conf")),
                &format!("/dropins/{file}"),
                &format!("`{file}.conf` is the same file"),
                "leave one of the two out",
            );
            errors.require(
                is_word(file, "._-"),
                &format!("/dropins/{file}"),
                "a drop-in is a file name with text",
                "for example 10-memlock: \"[Service]\\nLimitMEMLOCK=infinity\\n\"",
            );
        }
        errors.require(
            self.restart_on.iter().all(|path| is_clean_path(path)),
            "/restart_on",
            "this is no absolute path",
            "for example /etc/service.conf",
        );
    }
}

impl Body for UnitBody {
    fn find_errors(&self, errors: &mut BodyErrors) {
        errors.require(
            is_word(&self.name, "._@:\\-")
                && SUFFIXES.iter().any(|suffix| self.name.ends_with(suffix)),
            "/name",
            "this is no unit name",
            "write it with its suffix, such as openibd.service",
        );
        self.check_content(errors);
        self.check_files(errors);
        errors.require(
            !self.list_files().is_empty() || self.declares_state(),
            "",
            "nothing is declared for the unit",
            "give `content`, `dropins`, `enabled`, `active` or `masked`",
        );
    }
}
