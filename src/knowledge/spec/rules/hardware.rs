//! What a group says about its machines: operating system, GPUs, NICs.

use super::{SpecChecker, is_one_word, management, naming, new_spec_error, truncate_user_text};
use crate::spec::hosts::{RAILS_MAX, list_placeholders, rail_netdev};
use crate::spec::model::{GpuDirect, GpuDirectPath, GpuSpec, NicFirmware, Nics, NodeGroup};

/// The longest name of a netdev: IFNAMSIZ of Linux less its final NUL.
pub const NETDEV_LENGTH_MAX: usize = 15;

/// One entry of `nodes`, its name and `ssh` apart.
pub fn check_node_group(checker: &mut SpecChecker<'_>, index: usize, group: &NodeGroup) {
    let at = format!("nodes[{index}]");
    if let Some(os) = &group.os {
        check_os(checker, &format!("{at}.os"), os);
    }
    if let Some(gpu) = &group.gpu {
        check_gpu(checker, &format!("{at}.gpu"), gpu);
    }
    if let Some(nics) = &group.nics {
        check_nics(checker, &format!("{at}.nics"), nics, group);
    }
    management::check_management(checker, &format!("{at}.management"), group);
}

fn check_os(checker: &mut SpecChecker<'_>, path: &str, os: &str) {
    let version_is_good = |version: &str| {
        version.starts_with(|c: char| c.is_ascii_digit())
            && version
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'.')
    };
    let parts = os
        .rsplit_once('-')
        .filter(|(name, version)| super::is_plain_name(name, 40) && version_is_good(version));
    if parts.is_none() {
        let effect = "packages are chosen by system and version";
        let fix =
            "write ID and VERSION_ID of /etc/os-release, such as `debian-12` or `ubuntu-22.04`";
        checker.find(
            path,
            "not NAME-VERSION",
            new_spec_error(
                "RW0120",
                format!("`{}` is no operating system", truncate_user_text(os)),
                effect,
                fix,
            ),
        );
    }
}

fn check_gpu(checker: &mut SpecChecker<'_>, at: &str, gpu: &GpuSpec) {
    if !(1..=64).contains(&gpu.count) {
        let finding = new_spec_error(
            "RW0122",
            format!("a host cannot have {} GPUs", gpu.count),
            "checks of the GPUs would never pass",
            "write how many a host has; remove `gpu` for hosts with none",
        );
        checker.find(&format!("{at}.count"), "1 to 64 is possible", finding);
    }
    if gpu.model.trim().is_empty() {
        checker.find(
            &format!("{at}.model"),
            "empty",
            new_spec_error(
                "RW0122",
                "the GPU has no model",
                "the driver is chosen by the model",
                "write it as nvidia-smi does, such as `A100-SXM4-80GB`",
            ),
        );
    }
    let driver = gpu
        .driver
        .as_deref()
        .filter(|driver| !driver.starts_with(|c: char| c.is_ascii_digit()) || !is_one_word(driver));
    if let Some(driver) = driver {
        let fix = "write its branch, such as `535`, or its release, such as `535.104.05`";
        let finding = new_spec_error(
            "RW0122",
            format!(
                "`{}` is no release of the GPU driver",
                truncate_user_text(driver)
            ),
            "no package has such a name",
            fix,
        );
        checker.find(&format!("{at}.driver"), "not a release", finding);
    }
    let is_toolkit = |cuda: &str| {
        cuda.split_once('.')
            .is_some_and(|(major, minor)| [major, minor].iter().all(|n| is_number(n)))
    };
    if let Some(cuda) = gpu.cuda.as_deref().filter(|cuda| !is_toolkit(cuda)) {
        let finding = new_spec_error(
            "RW0122",
            format!("`{}` is no release of CUDA", truncate_user_text(cuda)),
            "no package has such a name",
            "write it as 12.4",
        );
        checker.find(
            &format!("{at}.cuda"),
            "two numbers name the packages",
            finding,
        );
    }
    if let Some(direct) = &gpu.direct {
        check_direct(checker, &format!("{at}.direct"), direct);
    }
}

fn is_number(text: &str) -> bool {
    (1..=4).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
}

fn check_direct(checker: &mut SpecChecker<'_>, at: &str, direct: &GpuDirect) {
    let effect = "the module would be built from something else than was meant";
    let said = [
        ("source", &direct.source),
        ("sha256", &direct.sha256),
        ("version", &direct.version),
    ];
    if direct.path != GpuDirectPath::NvPeerMem {
        for (key, _) in said.iter().filter(|(_, value)| value.is_some()) {
            let finding = new_spec_error(
                "RW0122",
                format!("`{key}` belongs to `path: nv-peer-mem`"),
                "nothing is built for this path, so it would be ignored",
                format!("remove `{key}`, or set `path: nv-peer-mem`"),
            );
            checker.find(&format!("{at}.{key}"), "not used", finding);
        }
        return;
    }
    if let Some(sum) = direct
        .sha256
        .as_deref()
        .filter(|sum| sum.len() != 64 || !sum.bytes().all(|b| b.is_ascii_hexdigit()))
    {
        let finding = new_spec_error(
            "RW0122",
            format!("`{}` is no SHA-256", truncate_user_text(sum)),
            effect,
            "write 64 hexadecimal digits, as `sha256sum FILE` prints them",
        );
        checker.find(
            &format!("{at}.sha256"),
            "not 64 hexadecimal digits",
            finding,
        );
    }
    let Some(source) = direct.source.as_deref() else {
        return;
    };
    // A tarball lies on the host, or is fetched by its URL; its name says that it is one.
    let has_name_of_one = [".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2"]
        .iter()
        .any(|ending| source.ends_with(ending));
    let (is_tarball, has_revision) = (
        source.starts_with('/') || has_name_of_one,
        source
            .split_once('#')
            .is_some_and(|(_, revision)| is_one_word(revision)),
    );
    let (path, label, message, fix) = match () {
        () if !is_one_word(source) => (
            "source",
            "not a source",
            "this is no source",
            "write `URL#REVISION`, or the path or URL of a tarball",
        ),
        () if checker.complete && is_tarball && direct.sha256.is_none() => (
            "source",
            "no `sha256` beside it",
            "a tarball needs its checksum",
            "add `sha256:` with what `sha256sum FILE` prints",
        ),
        () if !is_tarball && !has_revision => (
            "source",
            "no `#REVISION`",
            "a git source needs a revision",
            "add one, such as `#1.0-9`",
        ),
        () if !is_tarball && direct.sha256.is_some() => (
            "sha256",
            "not used",
            "a git revision is its own checksum",
            "remove `sha256`",
        ),
        () => return,
    };
    checker.find(
        &format!("{at}.{path}"),
        label,
        new_spec_error("RW0122", message, effect, fix),
    );
}

fn check_nics(checker: &mut SpecChecker<'_>, at: &str, nics: &Nics, group: &NodeGroup) {
    let effect = "no link of these hosts would be set up";
    let rails = nics.rails.unwrap_or(1);
    if !(1..=RAILS_MAX).contains(&rails) {
        let finding = new_spec_error(
            "RW0123",
            format!("a host cannot have {rails} rails"),
            effect,
            format!("write a number from 1 to {RAILS_MAX}; remove `nics` for hosts with none"),
        );
        checker.find(&format!("{at}.rails"), "out of range", finding);
        return;
    }
    if nics.model.trim().is_empty() {
        checker.find(
            &format!("{at}.model"),
            "empty",
            new_spec_error(
                "RW0123",
                "the NIC has no model",
                effect,
                "write it, such as `ConnectX-6` or `soft-roce`",
            ),
        );
    }
    let path = format!("{at}.netdev");
    if let Some(unknown) = list_placeholders(&nics.netdev)
        .into_iter()
        .find(|name| *name != "rail")
    {
        let finding = new_spec_error(
            "RW0123",
            format!(
                "`{{{}}}` stands for nothing here",
                truncate_user_text(unknown)
            ),
            effect,
            "`{rail}` can be used; it counts from 0",
        );
        checker.find(&path, "unknown placeholder", finding);
    } else if rails > 1 && !nics.netdev.contains("{rail}") {
        let finding = new_spec_error(
            "RW0123",
            format!(
                "{rails} rails share the netdev `{}`",
                truncate_user_text(&nics.netdev)
            ),
            effect,
            "use `{rail}` in the name, such as `ens{rail}f0np0`",
        );
        checker.find(&path, "the same for every rail", finding);
    } else if let Some(id) = nics.vlan.filter(|_| nics.netdev.contains('.')) {
        let fix = format!("name the port in `netdev`: the VLAN's netdev is `PORT.{id}`");
        checker.find(
            &path,
            "a VLAN itself",
            new_spec_error(
                "RW0123",
                format!("VLAN {id} would sit on a VLAN"),
                effect,
                fix,
            ),
        );
    } else if !is_netdev(&rail_netdev(nics, rails - 1)) {
        let fix = format!("use letters, digits, `.`, `_` and `-`, at most {NETDEV_LENGTH_MAX}");
        checker.find(
            &path,
            "not a netdev",
            new_spec_error(
                "RW0123",
                format!(
                    "`{}` cannot be a netdev",
                    truncate_user_text(&rail_netdev(nics, rails - 1))
                ),
                effect,
                fix,
            ),
        );
    }
    if let Some(id) = nics.vlan {
        management::check_id(checker, &format!("{at}.vlan"), id);
    }
    if let Some(firmware) = &nics.firmware {
        check_firmware(checker, &format!("{at}.firmware"), firmware);
    }
    if let Some(naming) = &nics.naming {
        naming::check_nic_naming(checker, &format!("{at}.naming"), nics, naming, group);
    }
}

fn check_firmware(checker: &mut SpecChecker<'_>, at: &str, firmware: &NicFirmware) {
    let effect = "no setting of the NICs' firmware would be written";
    if firmware.settings.is_empty() {
        let finding = new_spec_error(
            "RW0123",
            "there is no setting of firmware",
            effect,
            "write one, such as `SRIOV_EN: 1`, or remove `firmware`",
        );
        checker.find(&format!("{at}.settings"), "empty", finding);
    }
    if let Some(name) = firmware
        .may_lack
        .iter()
        .find(|name| !firmware.settings.contains_key(*name))
    {
        let fix = "write it under `settings`, or remove it here";
        let finding = new_spec_error(
            "RW0123",
            format!(
                "`{}` is no setting that is wished for",
                truncate_user_text(name)
            ),
            effect,
            fix,
        );
        checker.find(&format!("{at}.may_lack"), "not among `settings`", finding);
    }
    for (name, value) in &firmware.settings {
        let path = format!("{at}.settings.{name}");
        let is_name = name.len() <= 64
            && name
                .bytes()
                .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
        if !is_name || !name.starts_with(|c: char| c.is_ascii_uppercase()) {
            let fix = "write it as `mlxconfig -e query` does, such as `SRIOV_EN`";
            let finding = new_spec_error(
                "RW0123",
                format!(
                    "`{}` cannot be a setting of firmware",
                    truncate_user_text(name)
                ),
                effect,
                fix,
            );
            checker.find(&format!("{at}.settings"), "in these", finding);
        } else if !(value.is_u64() || value.is_boolean() || value.as_str().is_some_and(is_one_word))
        {
            let finding = new_spec_error(
                "RW0123",
                format!("{name} needs a number or a word"),
                effect,
                "such as 1, true or `ETH`",
            );
            checker.find(&path, "neither", finding);
        }
    }
}

/// True for what can be the name of a netdev.
pub fn is_netdev(name: &str) -> bool {
    let good = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    is_one_word(name)
        && name.len() <= NETDEV_LENGTH_MAX
        && name.bytes().all(good)
        && !matches!(name, "." | "..")
}
