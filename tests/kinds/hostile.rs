//! No value reaches a shell unquoted: every read and action with values that would run something if
//! it did.

use crate::rig::Host;
use railwright_resource::action::{PackageManager, PackageVersion, UnitVerb};
use railwright_resource::interrupt_affinity::script::InterruptBinding;
use railwright_resource::kernel_module_build::source::{ModuleBuildTool, ModuleSource};
use railwright_resource::pci_setting::script::{PciRegister, PciWrite};
use railwright_resource::{Action, Read, program};

const HOSTILE: [&str; 6] = [
    "$(touch /pwned)",
    "/touch \\/pwned;#/e;#",
    "`touch /pwned`",
    "';touch /pwned;'",
    "\";touch /pwned;\"",
    "x/p;s/.*/touch \\/pwned/e;s|.|x|e touch /pwned|\n touch /pwned",
];

fn reads(v: &str) -> Vec<Read> {
    let text = || v.to_owned();
    let lists = |manager| Read::RepositoryLists {
        manager,
        name: text(),
        url: text(),
        suite: text(),
    };
    vec![
        Read::File { path: text() },
        Read::File {
            path: format!("/etc/{v}"),
        },
        Read::Sysctl { key: text() },
        Read::KernelModule { name: text() },
        lists(PackageManager::Apt),
        lists(PackageManager::Dnf),
        Read::Packages {
            names: vec![text(), text()],
        },
        Read::Unit { name: text() },
        Read::Modified {
            paths: vec![text()],
        },
        Read::Boot,
        Read::PciDevice { device: text() },
        Read::PciBridges,
        Read::Interrupts { netdev: text() },
        Read::ModuleBuild {
            name: text(),
            version: text(),
            module: text(),
        },
    ]
}

fn actions(v: &str) -> Vec<Action> {
    let text = || v.to_owned();
    let path = || format!("/tmp/{v}");
    let mut out = vec![
        Action::WriteFile {
            path: path(),
            content: text(),
            mode: text(),
            owner: text(),
            group: text(),
        },
        Action::WriteBinaryFile {
            path: path(),
            base64: text(),
            mode: text(),
            owner: text(),
            group: text(),
        },
        Action::RemoveFile {
            path: path(),
            below: None,
        },
        Action::RemoveFile {
            path: path(),
            below: Some(text()),
        },
        Action::SetSysctl {
            key: text(),
            value: text(),
        },
        Action::LoadModule {
            name: text(),
            parameters: [(text(), text())].into(),
        },
        Action::UnloadModule { name: text() },
        Action::SetKernelArgument {
            argument: text(),
            present: true,
        },
        Action::Unit {
            name: text(),
            verb: UnitVerb::Start,
        },
        Action::SetPci {
            writes: vec![PciWrite {
                address: text(),
                register: PciRegister::DeviceControl,
                value: 0,
                mask: 0x7000,
            }],
        },
        Action::SetInterrupts {
            interrupts: vec![InterruptBinding {
                number: 0,
                cpus: text(),
            }],
        },
        Action::BuildModule {
            name: text(),
            version: text(),
            module: text(),
            builder: ModuleBuildTool::Dkms,
        },
        Action::BuildModule {
            name: text(),
            version: text(),
            module: text(),
            builder: ModuleBuildTool::Make,
        },
        Action::RemoveModuleBuild {
            name: text(),
            version: text(),
            module: text(),
        },
    ];
    for source in [
        ModuleSource::Git {
            url: text(),
            revision: text(),
        },
        ModuleSource::Archive {
            location: text(),
            sha256: text(),
        },
    ] {
        out.push(Action::FetchModuleSource {
            name: text(),
            version: text(),
            source,
            dkms_conf: Some(text()),
            digest: text(),
        });
    }
    for manager in [PackageManager::Apt, PackageManager::Dnf] {
        out.push(Action::InstallPackages {
            manager,
            packages: vec![PackageVersion {
                name: text(),
                version: Some(text()),
            }],
        });
        out.push(Action::RemovePackages {
            manager,
            names: vec![text()],
        });
        out.push(Action::ReleasePackages {
            manager,
            names: vec![text()],
            purge: true,
        });
        out.push(Action::HoldPackages {
            manager,
            names: vec![text()],
            hold: true,
        });
        out.push(Action::RefreshPackages {
            manager,
            repository: Some(text()),
        });
        out.push(Action::ForgetPackageLists {
            manager,
            name: text(),
            url: text(),
            suite: text(),
        });
    }
    out
}

#[test]
fn hostile_values_run_nothing() {
    let Some(host) = Host::start("hostile values", &[]) else {
        return;
    };
    for value in HOSTILE {
        host.sh(&program::render_read_program(
            &reads(value),
            "",
            "feedc0ffee",
        ));
        for action in actions(value) {
            let script = action.script();
            host.sh(&script);
            assert_eq!(host.sh("[ ! -e /pwned ]").0, 0, "{script}");
        }
        assert_eq!(host.sh("[ ! -e /pwned ]").0, 0, "a read ran {value:?}");
    }
    // the control: what does run leaves its mark
    host.sh(&Action::RunCommand {
        script: HOSTILE[0].to_owned(),
        limit_s: 5,
        environment: Default::default(),
        input: None,
    }
    .script());
    assert_ne!(host.sh("[ ! -e /pwned ]").0, 0);
}
