//! What a group says about its machines: operating system, GPUs, NICs.

use super::{SpecChecker, is_one_word, management, naming, new_spec_error, truncate_user_text};
use crate::spec::hosts::{RAILS_MAX, list_placeholders, rail_netdev};
use crate::spec::model::{GpuDirect, GpuDirectPath, GpuSpec, NicFirmware, Nics, NodeGroup};
use serde_json::Value;

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
    let is_sound = os.rsplit_once('-').is_some_and(|(name, version)| {
        super::is_plain_name(name, 40) && is_version_of_system(version)
    });
    if !is_sound {
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

fn is_version_of_system(version: &str) -> bool {
    version.starts_with(|c: char| c.is_ascii_digit())
        && version
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'.')
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
    check_gpu_releases(checker, at, gpu);
    if let Some(direct) = &gpu.direct {
        check_direct(checker, &format!("{at}.direct"), direct);
    }
}

/// The driver and the CUDA toolkit.
fn check_gpu_releases(checker: &mut SpecChecker<'_>, at: &str, gpu: &GpuSpec) {
    if let Some(driver) = gpu.driver.as_deref()
        && (!driver.starts_with(|c: char| c.is_ascii_digit()) || !is_one_word(driver))
    {
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
    if let Some(cuda) = gpu.cuda.as_deref()
        && !is_toolkit_release(cuda)
    {
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
}

/// Two numbers, as in `12.4`.
fn is_toolkit_release(text: &str) -> bool {
    let numbers = text.split_once('.');
    numbers.is_some_and(|(major, minor)| is_number(major) && is_number(minor))
}

fn is_number(text: &str) -> bool {
    (1..=4).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
}

fn check_direct(checker: &mut SpecChecker<'_>, at: &str, direct: &GpuDirect) {
    if direct.path != GpuDirectPath::NvPeerMem {
        return report_unused_direct_keys(checker, at, direct);
    }
    let effect = "the module would be built from something else than was meant";
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
    let has_sum = direct.sha256.is_some();
    let fault = find_source_fault(source, has_sum, checker.complete);
    if let Some((key, label, message, fix)) = fault {
        let finding = new_spec_error("RW0122", message, effect, fix);
        checker.find(&format!("{at}.{key}"), label, finding);
    }
}

fn report_unused_direct_keys(checker: &mut SpecChecker<'_>, at: &str, direct: &GpuDirect) {
    for (key, value) in [
        ("source", &direct.source),
        ("sha256", &direct.sha256),
        ("version", &direct.version),
    ] {
        if value.is_none() {
            continue;
        }
        let finding = new_spec_error(
            "RW0122",
            format!("`{key}` belongs to `path: nv-peer-mem`"),
            "nothing is built for this path, so it would be ignored",
            format!("remove `{key}`, or set `path: nv-peer-mem`"),
        );
        checker.find(&format!("{at}.{key}"), "not used", finding);
    }
}

const TARBALL_ENDINGS: [&str; 5] = [".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2"];

/// The key, the label, what is wrong and what to write. `complete` is false where a checksum may
/// stand in a part that did not decode.
fn find_source_fault(
    source: &str,
    has_sum: bool,
    complete: bool,
) -> Option<(&'static str, &'static str, &'static str, &'static str)> {
    if !is_one_word(source) {
        let fix = "write `URL#REVISION`, or the path or URL of a tarball";
        return Some(("source", "not a source", "this is no source", fix));
    }
    // A tarball lies on the host, or is fetched by its URL; its name says that it is one.
    let mut endings = TARBALL_ENDINGS.iter();
    if source.starts_with('/') || endings.any(|ending| source.ends_with(ending)) {
        return (complete && !has_sum).then_some((
            "source",
            "no `sha256` beside it",
            "a tarball needs its checksum",
            "add `sha256:` with what `sha256sum FILE` prints",
        ));
    }
    let revision = source.split_once('#');
    if !revision.is_some_and(|(_, revision)| is_one_word(revision)) {
        return Some((
            "source",
            "no `#REVISION`",
            "a git source needs a revision",
            "add one, such as `#1.0-9`",
        ));
    }
    has_sum.then_some((
        "sha256",
        "not used",
        "a git revision is its own checksum",
        "remove `sha256`",
    ))
}

const NICS_EFFECT: &str = "no link of these hosts would be set up";

fn check_nics(checker: &mut SpecChecker<'_>, at: &str, nics: &Nics, group: &NodeGroup) {
    let rails = nics.rails.unwrap_or(1);
    if !(1..=RAILS_MAX).contains(&rails) {
        let finding = new_spec_error(
            "RW0123",
            format!("a host cannot have {rails} rails"),
            NICS_EFFECT,
            format!("write a number from 1 to {RAILS_MAX}; remove `nics` for hosts with none"),
        );
        checker.find(&format!("{at}.rails"), "out of range", finding);
        return;
    }
    if nics.model.trim().is_empty() {
        let finding = new_spec_error(
            "RW0123",
            "the NIC has no model",
            NICS_EFFECT,
            "write it, such as `ConnectX-6` or `soft-roce`",
        );
        checker.find(&format!("{at}.model"), "empty", finding);
    }
    check_netdev_pattern(checker, &format!("{at}.netdev"), nics, rails);
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

/// The name of the port of each rail, at least one of them.
fn check_netdev_pattern(checker: &mut SpecChecker<'_>, path: &str, nics: &Nics, rails: u32) {
    let unknown = list_placeholders(&nics.netdev)
        .into_iter()
        .find(|name| *name != "rail");
    let last = rail_netdev(nics, rails - 1);
    let (label, message, fix) = if let Some(unknown) = unknown {
        let shown = truncate_user_text(unknown);
        (
            "unknown placeholder",
            format!("`{{{shown}}}` stands for nothing here"),
            "`{rail}` can be used; it counts from 0".to_owned(),
        )
    } else if rails > 1 && !nics.netdev.contains("{rail}") {
        let shown = truncate_user_text(&nics.netdev);
        (
            "the same for every rail",
            format!("{rails} rails share the netdev `{shown}`"),
            "use `{rail}` in the name, such as `ens{rail}f0np0`".to_owned(),
        )
    } else if let Some(id) = nics.vlan.filter(|_| nics.netdev.contains('.')) {
        (
            "a VLAN itself",
            format!("VLAN {id} would sit on a VLAN"),
            format!("name the port in `netdev`: the VLAN's netdev is `PORT.{id}`"),
        )
    } else if !is_netdev(&last) {
        (
            "not a netdev",
            format!("`{}` cannot be a netdev", truncate_user_text(&last)),
            format!("use letters, digits, `.`, `_` and `-`, at most {NETDEV_LENGTH_MAX}"),
        )
    } else {
        return;
    };
    let finding = new_spec_error("RW0123", message, NICS_EFFECT, fix);
    checker.find(path, label, finding);
}

fn check_firmware(checker: &mut SpecChecker<'_>, at: &str, firmware: &NicFirmware) {
    let effect = FIRMWARE_EFFECT;
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
            format!("`{}` is no setting to declare", truncate_user_text(name)),
            effect,
            fix,
        );
        checker.find(&format!("{at}.may_lack"), "not among `settings`", finding);
    }
    for (name, value) in &firmware.settings {
        check_firmware_setting(checker, &format!("{at}.settings"), name, value);
    }
}

const FIRMWARE_EFFECT: &str = "no setting of the NICs' firmware would be written";

fn check_firmware_setting(checker: &mut SpecChecker<'_>, at: &str, name: &str, value: &Value) {
    if !is_firmware_setting(name) {
        let shown = truncate_user_text(name);
        let message = format!("`{shown}` cannot be a setting of firmware");
        let fix = "write it as `mlxconfig -e query` does, such as `SRIOV_EN`";
        let finding = new_spec_error("RW0123", message, FIRMWARE_EFFECT, fix);
        return checker.find(at, "in these", finding);
    }
    let is_sound = value.is_u64() || value.is_boolean() || value.as_str().is_some_and(is_one_word);
    if !is_sound {
        let message = format!("{name} needs a number or a word");
        let fix = "such as 1, true or `ETH`";
        let finding = new_spec_error("RW0123", message, FIRMWARE_EFFECT, fix);
        checker.find(&format!("{at}.{name}"), "neither", finding);
    }
}

/// Capital letters, digits and `_`, a letter first.
fn is_firmware_setting(name: &str) -> bool {
    name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_uppercase())
        && name
            .bytes()
            .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
}

/// True for what can be the name of a netdev.
pub fn is_netdev(name: &str) -> bool {
    is_one_word(name)
        && name.len() <= NETDEV_LENGTH_MAX
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
        && !matches!(name, "." | "..")
}
