//! The `linux` line of the entry that GRUB boots by default, found in the lines of grub.cfg that
//! matter.

use railwright_base::Reason;

/// Open braces inside each other: what grub-mkconfig writes has three at most.
const DEPTH_LIMIT: usize = 16;

/// One menu entry.
#[derive(Debug, Clone, Default)]
struct GrubMenuEntry {
    title: String,
    id: String,
    /// Its place in the menu, from 0 in each submenu.
    path: Vec<usize>,
    titles: Vec<String>,
    ids: Vec<String>,
    command_line: Option<String>,
}

/// The command line of the default entry; an error says why it could not be found. `lines` are
/// those of grub.cfg, `saved` is `saved_entry` of grubenv.
pub fn default_command_line(lines: &[&str], saved: Option<&str>) -> Result<String, Reason> {
    let entries = parse_menu_entries(lines)?;
    let desired = default_entry(lines, saved);
    let entry = find_menu_entry(&entries, &desired)
        .ok_or_else(|| format!("the default entry `{desired}` is not in the boot menu"))?;
    entry
        .command_line
        .clone()
        .ok_or_else(|| format!("the boot entry `{}` has no linux line", entry.title).into())
}

/// The last plain `set default=`; those that a one-time `next_entry` sets do not count.
fn default_entry(lines: &[&str], saved: Option<&str>) -> String {
    let mut set = lines
        .iter()
        .filter_map(|line| line.trim().strip_prefix("set default="))
        .map(|value| value.trim().trim_matches('"'));
    let value = set
        .rfind(|value| !value.contains("next_entry"))
        .unwrap_or("0");
    let value = if value.contains("saved_entry") {
        saved.unwrap_or("0")
    } else {
        value
    };
    if value.is_empty() {
        "0".to_owned()
    } else {
        value.to_owned()
    }
}

fn parse_menu_entries(lines: &[&str]) -> Result<Vec<GrubMenuEntry>, Reason> {
    let mut out: Vec<GrubMenuEntry> = Vec::new();
    // each open brace: the entry or submenu that it belongs to (nothing for a function), and the
    // count inside
    let mut open: Vec<(Option<GrubMenuEntry>, usize)> = vec![(None, 0)];
    let mut current: Option<usize> = None;
    for line in lines.iter().map(|line| line.trim()) {
        let word = line.split_whitespace().next().unwrap_or_default();
        if open.len() > DEPTH_LIMIT {
            return Err(format!("the boot menu has more than {DEPTH_LIMIT} levels").into());
        }
        match word {
            "menuentry" | "submenu" => {
                let entry = next_entry(line, &mut open);
                if word == "menuentry" {
                    out.push(entry.clone());
                    current = Some(out.len() - 1);
                }
                open.push((Some(entry), 0));
            }
            "function" => open.push((None, 0)),
            "}" if open.len() > 1 => {
                open.pop();
                current = None;
            }
            "linux" | "linux16" | "linuxefi" => {
                if let Some(entry) = current.and_then(|at| out.get_mut(at)) {
                    let rest = line
                        .split_whitespace()
                        .skip(2)
                        .collect::<Vec<_>>()
                        .join(" ");
                    entry.command_line.get_or_insert(rest);
                }
            }
            _ => {}
        }
    }
    Ok(out)
}

fn next_entry(line: &str, open: &mut [(Option<GrubMenuEntry>, usize)]) -> GrubMenuEntry {
    let words = shlex::split(line.trim_end().trim_end_matches('{')).unwrap_or_default();
    let title = words.get(1).cloned().unwrap_or_default();
    let id_at = words
        .iter()
        .position(|w| w == "$menuentry_id_option" || w == "--id")
        .map(|at| at + 1);
    let id = id_at
        .and_then(|at| words.get(at).cloned())
        .unwrap_or_default();
    let mut entry = GrubMenuEntry {
        title: title.clone(),
        id: id.clone(),
        ..GrubMenuEntry::default()
    };
    if let Some((parent, count)) = open.last_mut() {
        if let Some(parent) = parent {
            (entry.path, entry.titles, entry.ids) = (
                parent.path.clone(),
                parent.titles.clone(),
                parent.ids.clone(),
            );
        }
        entry.path.push(*count);
        *count += 1;
    }
    entry.titles.push(title);
    entry.ids.push(id);
    entry
}

/// A name is a number, a title or an id, with `>` between the levels of submenus. A name that leads
/// to a submenu boots its first entry.
fn find_menu_entry<'a>(entries: &'a [GrubMenuEntry], desired: &str) -> Option<&'a GrubMenuEntry> {
    let steps: Vec<&str> = desired.split('>').collect();
    let by_steps = entries.iter().find(|entry| entry.is_at(&steps));
    by_steps.or_else(|| {
        entries
            .iter()
            .find(|entry| entry.id == desired || entry.title == desired)
    })
}

impl GrubMenuEntry {
    /// True where these steps lead to the entry, or to a submenu around it.
    fn is_at(&self, steps: &[&str]) -> bool {
        steps.len() <= self.path.len()
            && steps.iter().enumerate().all(|(level, step)| {
                step.parse() == Ok(self.path[level])
                    || *step == self.titles[level]
                    || (!step.is_empty() && *step == self.ids[level])
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // made by grub-mkconfig 2.06 of Debian 12, cut to the lines that `Read::Boot` carries
    const DEBIAN: &str = r#"   set default="${next_entry}"
   set default="DEFAULT"
function savedefault {
}
function load_video {
}
menuentry 'Debian GNU/Linux' --class debian --class gnu-linux $menuentry_id_option 'gnulinux-simple-aaaa' {
	linux	/boot/vmlinuz-6.1.0-37-amd64 root=UUID=aaaa ro  quiet iommu=pt
}
submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option 'gnulinux-advanced-aaaa' {
	menuentry 'Debian GNU/Linux, with Linux 6.1.0-37-amd64' --class debian $menuentry_id_option 'gnulinux-6.1.0-37-amd64-advanced-aaaa' {
		linux	/boot/vmlinuz-6.1.0-37-amd64 root=UUID=aaaa ro  quiet iommu=pt
	}
	menuentry 'Debian GNU/Linux, with Linux 6.1.0-37-amd64 (recovery mode)' $menuentry_id_option 'gnulinux-6.1.0-37-amd64-recovery-aaaa' {
		linux	/boot/vmlinuz-6.1.0-37-amd64 root=UUID=aaaa ro single
	}
}
menuentry 'UEFI Firmware Settings' $menuentry_id_option 'uefi-firmware' {
}
"#;

    fn default_of(default: &str, saved: Option<&str>) -> Result<String, Reason> {
        let text = DEBIAN.replace("DEFAULT", default);
        default_command_line(&text.lines().collect::<Vec<_>>(), saved)
    }

    #[test]
    fn finds_the_entry_that_would_boot() {
        let normal = "root=UUID=aaaa ro quiet iommu=pt";
        for (default, saved, desired) in [
            ("0", None, normal),
            ("1>1", None, "root=UUID=aaaa ro single"),
            ("1", None, normal),
            (
                "gnulinux-advanced-aaaa>gnulinux-6.1.0-37-amd64-recovery-aaaa",
                None,
                "root=UUID=aaaa ro single",
            ),
            ("Debian GNU/Linux", None, normal),
            ("${saved_entry}", Some("1>0"), normal),
            ("${saved_entry}", None, normal),
        ] {
            assert_eq!(
                default_of(default, saved).as_deref(),
                Ok(desired),
                "{default} {saved:?}"
            );
        }
        assert!(
            default_of("gone", None)
                .unwrap_err()
                .as_words()
                .contains("`gone` is not in the boot menu")
        );
        assert!(
            default_of("2", None)
                .unwrap_err()
                .as_words()
                .contains("has no linux line")
        );
    }

    #[test]
    fn a_menu_without_an_end_is_refused_at_once() {
        let lines = vec!["submenu "; 74_000];
        assert_eq!(
            default_command_line(&lines, None),
            Err("the boot menu has more than 16 levels".into())
        );
    }

    proptest::proptest! {
        #[test]
        fn no_menu_panics(text in "(menuentry 'a' |submenu b |\\{|\\}|function|linux|set \
                                   default=|>|1|\n\
                                   ){0,40}") {
            let _ = default_command_line(&text.lines().collect::<Vec<_>>(), Some("1>0"));
        }
    }
}
