//! Settings that the kernel forgets (PFC, DSCP maps, Soft-RoCE devices, rdma_cm defaults, PCI
//! registers, interrupts) are kept by a unit of ours: a script with the commands, a oneshot unit
//! that runs it, and a udev rule that starts the unit whenever the device appears: at boot, after a
//! driver reload, after a PCI re-add. All three are files of one resource, so that removal takes
//! exactly them.

use super::{Action, Attribute, Plane, Read, ReadResults, Reading, ResourceDiff};
use railwright_base::Reason;

/// What makes the unit run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trigger {
    /// This netdev appears, or gets this name.
    Netdev(String),
    /// Any RDMA device appears; the script finds out whether it is its own. RDMA devices are
    /// renamed by udev, so none can be named here.
    RdmaDevice,
    /// This PCI function appears, or gets a driver.
    PciFunction(String),
    /// Any PCI bridge appears (class 0604); the script finds out whether it is its own.
    PciBridge,
}

/// The unit that keeps one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersistenceUnit {
    /// The kind in the names of files: `link-qos`.
    kind: &'static str,
    /// The resource's name.
    name: String,
    trigger: Trigger,
    script: String,
}

/// What of a keeper is on disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PersistenceUnitFiles {
    /// The script's text.
    pub script: Option<String>,
    unit: Option<String>,
    rule: Option<String>,
}

/// The folders of programs that OFED and DOCA bring; a unit's PATH lacks them.
const HEAD: &str = "#!/bin/sh\n\
                    # Written by railwright; changes made here are overwritten.\n\
                    PATH=$PATH:/opt/mellanox/iproute2/sbin:/opt/mellanox/ethtool/sbin\n";

impl PersistenceUnit {
    /// A keeper whose script runs `commands`, lines of sh whose values are quoted already.
    pub fn new(kind: &'static str, name: &str, trigger: Trigger, commands: &str) -> Self {
        PersistenceUnit {
            kind,
            name: name.to_owned(),
            trigger,
            script: format!("{HEAD}{commands}"),
        }
    }

    fn script_path(&self) -> String {
        format!("/etc/railwright/{}/{}.sh", self.kind, self.name)
    }

    fn unit_path(&self) -> String {
        format!("/etc/systemd/system/{}", self.unit_name())
    }

    fn unit_name(&self) -> String {
        format!("railwright-{}@{}.service", self.kind, self.name)
    }

    fn rule_path(&self) -> String {
        format!(
            "/etc/udev/rules.d/90-railwright-{}-{}.rules",
            self.kind, self.name
        )
    }

    /// Without a limit of starts: a driver that is loaded again brings ten devices within a second,
    /// and systemd refuses the sixth start in ten (systemd.unit(5), StartLimitIntervalSec).
    fn unit(&self) -> String {
        format!(
            "# Written by railwright; changes made here are overwritten.\n\
             [Unit]\n\
             Description=railwright {} {} (the kernel forgets it)\n\
             StartLimitIntervalSec=0\n\
             [Service]\n\
             Type=oneshot\n\
             ExecStart=/bin/sh {}\n",
            self.kind,
            self.name,
            self.script_path()
        )
    }

    /// A netdev that udev itself renames has its new name in NAME while the event is handled, and
    /// in KERNEL at the next boot's second look (coldplug) or when the name was there from the
    /// start.
    fn rule(&self) -> String {
        let wants = format!(
            "TAG+=\"systemd\", ENV{{SYSTEMD_WANTS}}+=\"{}\"\n",
            self.unit_name()
        );
        let lines = match &self.trigger {
            Trigger::PciFunction(address) => {
                format!("SUBSYSTEM==\"pci\", ACTION==\"add|bind\", KERNEL==\"{address}\", {wants}")
            }
            Trigger::PciBridge => format!(
                "SUBSYSTEM==\"pci\", ACTION==\"add|bind\", ATTR{{class}}==\"0x0604??\", {wants}"
            ),
            Trigger::RdmaDevice => {
                format!("SUBSYSTEM==\"infiniband\", ACTION==\"add|move\", {wants}")
            }
            Trigger::Netdev(netdev) => format!(
                "SUBSYSTEM==\"net\", ACTION==\"add|move\", KERNEL==\"{netdev}\", \
                 {wants}SUBSYSTEM==\"net\", ACTION==\"add|move\", NAME==\"{netdev}\", {wants}"
            ),
        };
        format!("# Written by railwright; changes made here are overwritten.\n{lines}")
    }

    /// What has to be read.
    pub fn reads(&self) -> Vec<Read> {
        [self.script_path(), self.unit_path(), self.rule_path()]
            .map(|path| Read::File { path })
            .to_vec()
    }

    /// What is on disk.
    pub fn kept(&self, answers: &ReadResults) -> Result<PersistenceUnitFiles, Reason> {
        Ok(PersistenceUnitFiles {
            script: file_text(answers, &self.script_path())?,
            unit: file_text(answers, &self.unit_path())?,
            rule: file_text(answers, &self.rule_path())?,
        })
    }

    /// The value in the persisted plane: `ours` where the script on disk is ours to the letter;
    /// another one sets nothing that we could vouch for, and `other` says what can be told from its
    /// text.
    pub fn persisted(
        &self,
        kept: &Result<PersistenceUnitFiles, Reason>,
        ours: Reading,
        other: impl FnOnce(&str) -> Reading,
    ) -> Reading {
        match kept {
            Err(reason) => Reading::Unknown(reason.clone()),
            Ok(kept) if self.says_so(kept) => ours,
            Ok(PersistenceUnitFiles { script: None, .. }) => Reading::Absent,
            Ok(PersistenceUnitFiles {
                script: Some(text), ..
            }) => other(text),
        }
    }

    /// True when the script on disk is exactly ours.
    pub fn says_so(&self, kept: &PersistenceUnitFiles) -> bool {
        kept.script.as_ref() == Some(&self.script)
    }

    /// The attribute `unit`: the files that make the settings come back, each as it should be.
    pub fn attribute(&self, kept: &Result<PersistenceUnitFiles, Reason>) -> Attribute {
        let actual = match kept {
            Err(reason) => Reading::Unknown(reason.clone()),
            Ok(kept) if *kept == PersistenceUnitFiles::default() => Reading::Absent,
            Ok(kept) if *kept == self.desired() => Reading::is("in place"),
            Ok(_) => Reading::is("changed"),
        };
        Attribute::in_plane(Plane::Persisted, Reading::is("in place"), actual)
    }

    /// The attribute `unit` of a keeper that should go: none of its files is to be left.
    pub fn attribute_gone(&self, kept: &Result<PersistenceUnitFiles, Reason>) -> Attribute {
        let found = self
            .attribute(kept)
            .actual
            .persisted
            .unwrap_or(Reading::Absent);
        Attribute::in_plane(Plane::Persisted, Reading::Absent, found)
    }

    /// Adds to an undo that this keeper should go, and what removes its files.
    pub fn take_back(&self, diff: &mut ResourceDiff, answers: &ReadResults) {
        let kept = self.kept(answers);
        diff.attributes
            .insert("unit".to_owned(), self.attribute_gone(&kept));
        if let Ok(kept) = &kept {
            diff.actions = self.remove(kept);
        }
    }

    fn desired(&self) -> PersistenceUnitFiles {
        PersistenceUnitFiles {
            script: Some(self.script.clone()),
            unit: Some(self.unit()),
            rule: Some(self.rule()),
        }
    }

    /// Writes the files that differ.
    pub fn write(&self, kept: &PersistenceUnitFiles) -> Vec<Action> {
        let mut actions = Vec::new();
        let script = self.script.clone();
        for (path, mode, content, found) in [
            (self.script_path(), "0755", script, &kept.script),
            (self.unit_path(), "0644", self.unit(), &kept.unit),
            (self.rule_path(), "0644", self.rule(), &kept.rule),
        ] {
            if found.as_ref() != Some(&content) {
                actions.push(Action::WriteFile {
                    path,
                    content,
                    mode: mode.to_owned(),
                    owner: "root".to_owned(),
                    group: "root".to_owned(),
                });
            }
        }
        if kept.unit != Some(self.unit()) {
            actions.push(Action::ReloadSystemd);
        }
        actions
    }

    /// Removes the files that are there; the rule first, so that nothing starts a unit that is
    /// gone.
    pub fn remove(&self, kept: &PersistenceUnitFiles) -> Vec<Action> {
        // The folder of the scripts is ours; an empty one is nothing to leave behind.
        let files = [
            (self.rule_path(), &kept.rule, None),
            (self.unit_path(), &kept.unit, None),
            (self.script_path(), &kept.script, Some("/etc".to_owned())),
        ];
        let there = files.into_iter().filter(|(_, text, _)| text.is_some());
        let mut actions: Vec<Action> = there
            .map(|(path, _, below)| Action::RemoveFile { path, below })
            .collect();
        if kept.unit.is_some() {
            actions.push(Action::ReloadSystemd);
        }
        actions
    }
}

/// The text of a file from its `Read::File`; `None` when there is none.
fn file_text(answers: &ReadResults, path: &str) -> Result<Option<String>, Reason> {
    match answers.output(&Read::File {
        path: path.to_owned(),
    })? {
        (0, out) => Ok(Some(
            out.split_once('\n').map_or("", |(_, text)| text).to_owned(),
        )),
        (1, _) => Ok(None),
        (code, _) => Err(format!("{path} could not be read (status {code})").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_are_these() {
        let keeper = PersistenceUnit::new(
            "link-qos",
            "ens1",
            Trigger::Netdev("ens1".to_owned()),
            "dcb pfc set dev 'ens1' prio-pfc all:off 3:on\n",
        );
        let text: Vec<String> = keeper
            .write(&PersistenceUnitFiles::default())
            .into_iter()
            .map(|action| match action {
                Action::WriteFile {
                    path,
                    content,
                    mode,
                    ..
                } => format!("--- {path} {mode}\n{content}"),
                other => format!("--- {}\n", other.word()),
            })
            .collect();
        insta::assert_snapshot!(text.concat(), @r#"
        --- /etc/railwright/link-qos/ens1.sh 0755
        #!/bin/sh
        # Written by railwright; changes made here are overwritten.
        PATH=$PATH:/opt/mellanox/iproute2/sbin:/opt/mellanox/ethtool/sbin
        dcb pfc set dev 'ens1' prio-pfc all:off 3:on
        --- /etc/systemd/system/railwright-link-qos@ens1.service 0644
        # Written by railwright; changes made here are overwritten.
        [Unit]
        Description=railwright link-qos ens1 (the kernel forgets it)
        StartLimitIntervalSec=0
        [Service]
        Type=oneshot
        ExecStart=/bin/sh /etc/railwright/link-qos/ens1.sh
        --- /etc/udev/rules.d/90-railwright-link-qos-ens1.rules 0644
        # Written by railwright; changes made here are overwritten.
        SUBSYSTEM=="net", ACTION=="add|move", KERNEL=="ens1", TAG+="systemd", ENV{SYSTEMD_WANTS}+="railwright-link-qos@ens1.service"
        SUBSYSTEM=="net", ACTION=="add|move", NAME=="ens1", TAG+="systemd", ENV{SYSTEMD_WANTS}+="railwright-link-qos@ens1.service"
        --- reload_systemd
        "#);
        assert_eq!(keeper.write(&keeper.desired()), []);
        assert_eq!(keeper.remove(&keeper.desired()).len(), 4);
    }
}
