//! `kernel_parameter`: a word of the kernel command line. Persisted in a drop-in of our own below
//! /etc/default/grub.d (Debian's family) or in the boot entries (Red Hat's, by grubby), in the
//! default boot entry for the next boot, and in effect only after a reboot.

pub mod boot;
pub mod command_line;
pub mod grub;
pub mod script;

use super::file::found::{FileContent, FileState, Regular, build_config_file_action};
use super::json_fields::read_text_field;
use super::names::is_word;
use super::{
    Action, Attribute, DesiredResource, Plane, Read, ReadResults, Reading, ResourceDiff,
    ResourceKind,
};
use crate::body::{Body, BodyErrors, BodyType, Scalar, read_body};
use boot::{Boot, BootLoaderKind, find_parameter_reading, token_reading};
use command_line::{CommandLineParameter, is_repeated};
use railwright_base::{Digest, Reason};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// The kind.
pub struct KernelParameter;

/// The desired state of the command line.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct KernelParameterBody {
    /// The name alone.
    parameter: String,
    value: Option<Scalar>,
}

impl Body for KernelParameterBody {
    fn find_errors(&self, errors: &mut BodyErrors) {
        errors.require(
            is_word(&self.parameter, "._-"),
            "/parameter",
            "this is no kernel parameter",
            "write the name alone, the value in `value`",
        );
        let clean = |Scalar(value): &Scalar| {
            !value.is_empty()
                && !value
                    .chars()
                    .any(|c| c.is_control() || "\"'`$\\".contains(c))
        };
        errors.require(
            self.value.as_ref().is_none_or(clean),
            "/value",
            "the boot loader cannot carry this value",
            "leave out quotes, `$` and backslashes",
        );
    }
}

fn parse_kernel_parameter(body: &Value) -> CommandLineParameter {
    let body: KernelParameterBody = read_body(body);
    CommandLineParameter {
        name: body.parameter,
        value: body.value.map(|value| value.0),
    }
}

/// Two declarations of `console` are two resources; two of `iommu` are a contradiction.
fn resource_name(parameter: &CommandLineParameter) -> String {
    if is_repeated(&parameter.name) {
        parameter.token()
    } else {
        parameter.name.clone()
    }
}

/// Of a parameter that counts each time it is given the value is part of the name, however long it
/// is and whatever is in it.
fn drop_in(parameter: &CommandLineParameter) -> String {
    let mut name = parameter.name.clone();
    if is_repeated(&name) {
        name.push_str(&format!(
            "-{}",
            Digest::of_bytes(parameter.token().as_bytes()).short()
        ));
    }
    format!("/etc/default/grub.d/90-railwright-{name}.cfg")
}

/// The default line comes last in a normal entry, so that ours is the one that counts.
fn drop_in_content(parameter: &CommandLineParameter) -> String {
    let token = match &parameter.value {
        Some(value) if parameter.needs_quotes() => format!("{}=\\\"{value}\\\"", parameter.name),
        _ => parameter.token(),
    };
    format!(
        "# Written by railwright; a change by hand is drift.\n\
         GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT {token}\"\n"
    )
}

/// What the three planes say of a parameter.
struct KernelParameterPlanes {
    persisted: Reading,
    next_boot: Reading,
    running: Reading,
}

impl KernelParameterPlanes {
    fn of(parameter: &CommandLineParameter, boot: &Result<Boot, Reason>) -> Self {
        let boot = match boot {
            Ok(boot) => boot,
            Err(reason) => {
                let unknown = Reading::Unknown(reason.clone());
                return KernelParameterPlanes {
                    persisted: unknown.clone(),
                    next_boot: unknown.clone(),
                    running: unknown,
                };
            }
        };
        let persisted = match boot.loader {
            BootLoaderKind::Grub => find_parameter_reading(parameter, &boot.persisted_with(None)),
            BootLoaderKind::Grubby => {
                Reading::NotApplicable("the boot entries themselves hold it".into())
            }
            BootLoaderKind::None => Reading::Absent,
        };
        let next_boot = match (&boot.next_boot, boot.loader) {
            (_, BootLoaderKind::None) => Reading::Absent,
            (Ok(tokens), _) => find_parameter_reading(parameter, tokens),
            (Err(reason), _) => Reading::Unknown(reason.clone()),
        };
        KernelParameterPlanes {
            persisted,
            next_boot,
            running: find_parameter_reading(parameter, &boot.running),
        }
    }

    fn attribute(self, desired: [Reading; 3]) -> Attribute {
        let [persisted, next_boot, running] = desired;
        Attribute::in_plane(Plane::Persisted, persisted, self.persisted)
            .and(Plane::NextBoot, next_boot, self.next_boot)
            .and(Plane::Running, running, self.running)
    }
}

fn set_reboot_and_transaction(attribute: &Attribute, diff: &mut ResourceDiff) {
    diff.needs_reboot = attribute
        .differences()
        .iter()
        .any(|(plane, ..)| *plane == Plane::Running);
    diff.transaction = Some("boot_loader".to_owned());
}

impl ResourceKind for KernelParameter {
    fn name(&self) -> &'static str {
        "kernel_parameter"
    }

    fn takes_effect_at_boot(&self) -> bool {
        true
    }

    fn address_name(&self, body: &Value) -> Option<String> {
        read_text_field(body, "parameter").map(|_| resource_name(&parse_kernel_parameter(body)))
    }

    fn body_type(&self) -> BodyType {
        BodyType::of::<KernelParameterBody>()
    }

    fn reads(&self, resource: &DesiredResource) -> Vec<Read> {
        vec![
            Read::Boot,
            Read::File {
                path: drop_in(&parse_kernel_parameter(&resource.body)),
            },
        ]
    }

    fn diff(&self, resource: &DesiredResource, answers: &ReadResults) -> ResourceDiff {
        let parameter = parse_kernel_parameter(&resource.body);
        let boot = Boot::of(answers);
        let own = FileState::at(&drop_in(&parameter), answers);
        let planes = KernelParameterPlanes::of(&parameter, &boot);
        let before = json!({
            "persisted": planes.persisted,
            "next_boot": planes.next_boot,
            "running": planes.running,
            "drop_in": own.remember(),
        });
        let mut diff = ResourceDiff {
            before,
            ..ResourceDiff::default()
        };
        let desired = token_reading(&parameter.token());
        let attribute = planes.attribute([desired.clone(), desired.clone(), desired]);
        set_reboot_and_transaction(&attribute, &mut diff);
        if let Ok(boot) = &boot {
            plan_parameter_change(&parameter, boot, &attribute, &mut diff);
        }
        diff.attributes.insert("value".to_owned(), attribute);
        diff
    }

    fn undo(
        &self,
        last_applied: &DesiredResource,
        before: &Value,
        answers: &ReadResults,
    ) -> ResourceDiff {
        let parameter = parse_kernel_parameter(&last_applied.body);
        let path = drop_in(&parameter);
        let (boot, now) = (Boot::of(answers), FileState::at(&path, answers));
        let planes = KernelParameterPlanes::of(&parameter, &boot);
        let mut diff = ResourceDiff::default();
        let desired = desired_back(&parameter, before, &boot, &planes);
        let back = desired[1].clone();
        let next_boot_differs = desired[1] != planes.next_boot;
        if matches!(
            boot,
            Ok(Boot {
                loader: BootLoaderKind::Grubby,
                ..
            })
        ) {
            if next_boot_differs {
                diff.actions = grubby_undo(&parameter, &back);
            }
        } else {
            let (actions, residue) =
                FileState::remembered(before.get("drop_in")).restore(&path, &now);
            diff.actions = actions;
            diff.residue = residue.into_iter().collect();
            if next_boot_differs || !diff.actions.is_empty() {
                diff.actions.push(Action::UpdateBootLoader);
            }
        }
        let attribute = planes.attribute(desired);
        set_reboot_and_transaction(&attribute, &mut diff);
        diff.attributes.insert("value".to_owned(), attribute);
        diff
    }

    fn can_read_before(&self, before: &Value) -> bool {
        ["persisted", "next_boot", "running"]
            .iter()
            .all(|plane| Reading::deserialize(&before[plane]).is_ok())
            && FileState::deserialize(&before["drop_in"]).is_ok()
    }

    fn after_kinds(&self) -> &'static [&'static str] {
        &["package"]
    }
}

/// Plans what makes a parameter persist and come with the next boot, where it does not.
fn plan_parameter_change(
    parameter: &CommandLineParameter,
    boot: &Boot,
    attribute: &Attribute,
    diff: &mut ResourceDiff,
) {
    let differences = attribute.differences();
    let [persisted, next_boot] = [Plane::Persisted, Plane::NextBoot]
        .map(|plane| differences.iter().any(|(other, ..)| *other == plane));
    match boot.loader {
        BootLoaderKind::Grubby if next_boot && parameter.needs_quotes() => {
            let why = "grubby writes a value without quotes, and GRUB ends a word at a blank and \
                       at each of `;&|<>{}`: set it by hand";
            diff.refusal = Some(why.to_owned());
            diff.needs_reboot = false;
        }
        BootLoaderKind::Grubby if next_boot => {
            diff.actions.push(Action::SetKernelArgument {
                argument: parameter.token(),
                present: true,
            });
        }
        BootLoaderKind::None if !differences.is_empty() => {
            let why = "no boot loader that railwright knows (GRUB with update-grub, or grubby) is \
                       on this host";
            diff.refusal = Some(why.to_owned());
            diff.needs_reboot = false;
        }
        _ if persisted => plan_drop_in(parameter, boot, diff),
        _ if next_boot => diff.actions.push(Action::UpdateBootLoader),
        _ => {}
    }
}

/// Writes our drop-in, unless a file that is read after it would win.
fn plan_drop_in(parameter: &CommandLineParameter, boot: &Boot, diff: &mut ResourceDiff) {
    let (path, content) = (drop_in(parameter), drop_in_content(parameter));
    let later = boot.persisted_with(Some((&path, &content)));
    if find_parameter_reading(parameter, &later) != token_reading(&parameter.token()) {
        diff.refusal = Some(format!(
            "a file below /etc/default/grub.d that is read after {path} sets {} otherwise; change \
             it first",
            parameter.name
        ));
    }
    diff.actions = vec![
        build_config_file_action(&path, content),
        Action::UpdateBootLoader,
    ];
}

/// What was there before us, where that is known.
fn read_kept_reading(before: &Value, plane: &str) -> Option<Reading> {
    let reading = serde_json::from_value::<Reading>(before.get(plane)?.clone()).ok()?;
    matches!(reading, Reading::Is(_) | Reading::Absent).then_some(reading)
}

/// What the planes come to without us: as it was before, or, where somebody else has set the
/// parameter since, as that one set it.
fn desired_back(
    parameter: &CommandLineParameter,
    before: &Value,
    boot: &Result<Boot, Reason>,
    planes: &KernelParameterPlanes,
) -> [Reading; 3] {
    let mut earlier = [
        read_kept_reading(before, "persisted").unwrap_or_else(|| planes.persisted.clone()),
        read_kept_reading(before, "next_boot").unwrap_or_else(|| planes.next_boot.clone()),
        read_kept_reading(before, "running").unwrap_or_else(|| planes.running.clone()),
    ];
    // Only a boot changes what runs, and brings what the next one had then.
    if earlier[2] != planes.running {
        earlier[2] = earlier[1].clone();
    }
    let Ok(boot) = boot else { return earlier };
    let others = match boot.loader {
        BootLoaderKind::Grub => {
            let own = match FileState::remembered(before.get("drop_in")) {
                FileState::Regular(Regular {
                    content: FileContent::Text(text),
                    ..
                }) => text,
                _ => String::new(),
            };
            let others = find_parameter_reading(
                parameter,
                &boot.persisted_with(Some((&drop_in(parameter), &own))),
            );
            (others != earlier[0]).then(|| [others.clone(), others.clone(), others])
        }
        BootLoaderKind::Grubby => {
            let next = &planes.next_boot;
            let is_of_others = ![&earlier[1], &token_reading(&parameter.token())].contains(&next);
            is_of_others.then(|| [earlier[0].clone(), next.clone(), next.clone()])
        }
        BootLoaderKind::None => None,
    };
    others.unwrap_or(earlier)
}

fn grubby_undo(parameter: &CommandLineParameter, earlier: &Reading) -> Vec<Action> {
    let earlier = match earlier {
        Reading::Is(Value::String(value)) => Some(CommandLineParameter {
            name: parameter.name.clone(),
            value: Some(value.clone()),
        }),
        Reading::Is(_) => Some(CommandLineParameter {
            name: parameter.name.clone(),
            value: None,
        }),
        _ => None,
    };
    match earlier {
        Some(earlier) => vec![Action::SetKernelArgument {
            argument: earlier.token(),
            present: true,
        }],
        None => vec![Action::SetKernelArgument {
            argument: parameter.token(),
            present: false,
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::{answered, resource};

    fn boot(running: &str, default: &str, next: &str) -> String {
        format!(
            "running\t{running}\n\
             loader\tgrub\n\
             default\t/etc/default/grub\n\
             set\tGRUB_CMDLINE_LINUX_DEFAULT=\"{default}\"\n\
             menu\tset default=\"0\"\n\
             menu\tmenuentry 'Debian' {{\n\
             menu\t\tlinux /vmlinuz root=/dev/vda1 ro {next}\n\
             menu\t}}\n"
        )
    }

    /// With our drop-in.
    fn with_own(boot: &str) -> String {
        let path = drop_in(&CommandLineParameter {
            name: "iommu".to_owned(),
            value: None,
        });
        let own = format!(
            "default\t{path}\n\
             set\tGRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT iommu=pt\"\n\
             menu\tset"
        );
        boot.replacen("menu\tset", &own, 1)
    }

    fn diff_from(out: &str) -> ResourceDiff {
        let resource = resource(
            &KernelParameter,
            json!({ "parameter": "iommu", "value": "pt" }),
        );
        KernelParameter.diff(
            &resource,
            &answered(&[
                (&Read::Boot, 0, out),
                (
                    &KernelParameter.reads(&resource)[1],
                    1,
                    "folder /etc/default\n",
                ),
            ]),
        )
    }

    #[test]
    fn each_plane_asks_for_its_own_step() {
        let words = |a: &ResourceDiff| {
            (
                a.actions
                    .iter()
                    .map(Action::word)
                    .collect::<Vec<_>>()
                    .join(" "),
                a.needs_reboot,
            )
        };
        for (running, default, next, actions, reboot) in [
            (
                "ro quiet",
                "quiet",
                "quiet",
                "write_file update_boot_loader",
                true,
            ),
            ("ro", "quiet iommu=pt", "quiet", "update_boot_loader", true),
            ("ro", "quiet iommu=pt", "quiet iommu=pt", "", true),
            ("ro iommu=pt", "quiet iommu=pt", "quiet iommu=pt", "", false),
            (
                "ro iommu=pt",
                "quiet",
                "quiet",
                "write_file update_boot_loader",
                false,
            ),
            (
                "ro iommu=off",
                "iommu=off",
                "iommu=off",
                "write_file update_boot_loader",
                true,
            ),
        ] {
            assert_eq!(
                words(&diff_from(&boot(running, default, next))),
                (actions.to_owned(), reboot),
                "{running}|{default}|{next}"
            );
        }
    }

    /// GRUB's script ends a word there (GRUB manual, "Shell-like scripting").
    #[test]
    fn what_ends_a_word_for_grub_is_quoted_and_read_back() {
        let acs = json!({ "parameter": "pci", "value": format!("disable_acs_redir={}", vec!["0000:17:00.0"; 24].join(";")) });
        let resource = resource(&KernelParameter, acs);
        let parameter = parse_kernel_parameter(&resource.body);
        let content = drop_in_content(&parameter);
        assert!(
            content.contains(&format!(
                "pci=\\\"{}\\\"\"",
                parameter.value.clone().unwrap()
            )),
            "{content}"
        );
        assert!(
            drop_in(&parameter).len() < 100
                && drop_in(&parameter)
                    != drop_in(&CommandLineParameter {
                        value: Some("nomsi".into()),
                        ..parameter.clone()
                    })
        );
        let reads = KernelParameter.reads(&resource);
        let diff_from = |out: &str| {
            KernelParameter.diff(
                &resource,
                &answered(&[
                    (&Read::Boot, 0, out),
                    (&reads[1], 1, "folder /etc/default\n"),
                ]),
            )
        };
        let (quoted, plain) = (
            parameter.token().replacen("pci=", "pci=\"", 1) + "\"",
            parameter.token(),
        );
        let line = content
            .lines()
            .nth(1)
            .unwrap()
            .replace("GRUB_CMDLINE_LINUX_DEFAULT ", "");
        let default = line.split_once('=').unwrap().1.trim_matches('"');
        assert!(
            diff_from(&boot(
                &format!("ro {plain}"),
                &default.replace("$", ""),
                &quoted
            ))
            .is_met()
        );
        let grubby = diff_from("running\tro\nloader\tgrubby\ngrubby\targs=\"ro\"\n");
        assert!(grubby.refusal.unwrap().contains("without quotes") && grubby.actions.is_empty());
    }

    #[test]
    fn a_host_without_a_known_boot_loader_is_refused() {
        let container = diff_from("running\tro quiet\nloader\tnone\n");
        assert!(container.refusal.unwrap().contains("no boot loader") && !container.needs_reboot);
    }

    #[test]
    fn grubby_keeps_the_entries_on_the_red_hat_family() {
        // `grubby --info=DEFAULT` of Rocky 9
        let out = "running\tBOOT_IMAGE=(hd0,gpt2)/vmlinuz ro\n\
                   loader\tgrubby\n\
                   grubby\tindex=0\n\
                   grubby\targs=\"ro crashkernel=1G-4G:192M\"\n\
                   grubby\troot=\"UUID=1\"\n";
        let diff = diff_from(out);
        assert_eq!(
            diff.actions,
            [Action::SetKernelArgument {
                argument: "iommu=pt".into(),
                present: true
            }]
        );
        assert!(
            diff_from(
                &out.replace("192M", "192M iommu=pt")
                    .replace(" ro\n", " ro iommu=pt\n")
            )
            .is_met()
        );
    }

    #[test]
    fn undo_takes_the_drop_in_away_and_owes_a_reboot() {
        let resource = resource(
            &KernelParameter,
            json!({ "parameter": "iommu", "value": "pt" }),
        );
        let before = diff_from(&boot("ro", "quiet", "quiet")).before;
        assert!(KernelParameter.can_read_before(&before));
        let own = "644 root root 3 regular file\nx\n";
        let out = with_own(&boot("ro iommu=pt", "quiet", "quiet iommu=pt"));
        let undone = KernelParameter.undo(
            &resource,
            &before,
            &answered(&[
                (&Read::Boot, 0, &out),
                (&KernelParameter.reads(&resource)[1], 0, own),
            ]),
        );
        assert_eq!(
            undone.actions.iter().map(Action::word).collect::<Vec<_>>(),
            ["remove_file", "update_boot_loader"]
        );
        assert!(undone.needs_reboot && undone.residue.is_empty());
    }
    #[test]
    fn undo_leaves_what_somebody_else_set_since() {
        let resource = resource(
            &KernelParameter,
            json!({ "parameter": "iommu", "value": "pt" }),
        );
        let undo = |before: &str, now: &str, own: (i32, &str)| {
            let before = diff_from(before).before;
            KernelParameter.undo(
                &resource,
                &before,
                &answered(&[
                    (&Read::Boot, 0, now),
                    (&KernelParameter.reads(&resource)[1], own.0, own.1),
                ]),
            )
        };
        let (there, gone) = (
            (0, "644 root root 3 regular file\nx\n"),
            (1, "folder /etc/default\n"),
        );
        let plain = boot("ro", "quiet", "quiet");
        let first = undo(
            &plain,
            &with_own(&boot(
                "ro iommu=pt",
                "quiet iommu=on",
                "quiet iommu=on iommu=pt",
            )),
            there,
        );
        assert_eq!(
            first.actions.iter().map(Action::word).collect::<Vec<_>>(),
            ["remove_file", "update_boot_loader"]
        );
        let then = undo(
            &plain,
            &boot("ro iommu=pt", "quiet iommu=on", "quiet iommu=on"),
            gone,
        );
        assert!(then.actions.is_empty() && then.needs_reboot, "{then:?}");
        assert!(
            undo(
                &plain,
                &boot("ro iommu=on", "quiet iommu=on", "quiet iommu=on"),
                gone
            )
            .is_met()
        );
        let was_set = boot("ro iommu=on", "quiet iommu=on", "quiet iommu=on");
        assert!(
            undo(&was_set, &boot("ro", "quiet", "quiet"), gone).is_met(),
            "it left the file of others since"
        );
        // Somebody had set it and not rebooted yet: no boot brings back what ran then.
        let was_to_come = boot("ro", "quiet iommu=on", "quiet iommu=on");
        let rebooted = undo(&was_to_come, &was_set, gone);
        assert!(rebooted.is_met(), "{rebooted:?}");
        let grubby = |running: &str, next: &str| {
            format!(
                "running\t{running}\nloader\tgrubby\ngrubby\tindex=0\ngrubby\targs=\"{next}\"\n"
            )
        };
        let changed = undo(
            &grubby("ro", "ro"),
            &grubby("ro iommu=on", "ro iommu=on"),
            gone,
        );
        assert!(
            changed.actions.is_empty() && changed.is_met(),
            "{changed:?}"
        );
        let ours = undo(
            &grubby("ro", "ro"),
            &grubby("ro iommu=pt", "ro iommu=pt"),
            gone,
        );
        assert_eq!(
            ours.actions,
            [Action::SetKernelArgument {
                argument: "iommu=pt".into(),
                present: false
            }]
        );
    }
}
