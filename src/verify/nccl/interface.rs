//! The interface `hpn0` of a pod of Alibaba Container Compute Service, as `ifconfig` or `ip
//! address` print it into a log.
//!
//! Sources: Alibaba Cloud Container Compute Service documentation, 24 July 2025 (`ifconfig | grep
//! hpn -A 8`); net-tools and iproute2 for the two newer forms.

/// Lines below the first that can be about the interface.
const BELOW_MAX: usize = 12;

/// What was seen of `hpn0`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Interface {
    /// The line that names it.
    pub line: u64,
    /// It is switched on.
    pub is_up: bool,
    /// It has a carrier.
    pub is_running: bool,
    /// It has an IPv6 address of its link.
    pub has_link_address: bool,
    /// It has one that is valid everywhere.
    pub has_global_address: bool,
}

impl Interface {
    /// As the page shows it.
    pub fn is_ready(&self) -> bool {
        self.is_up && self.is_running && self.has_link_address && self.has_global_address
    }
}

/// Reads it.
#[derive(Debug, Default)]
pub struct Hpn0InterfaceReader {
    /// What was seen.
    pub seen: Option<Interface>,
    left: usize,
}

impl Hpn0InterfaceReader {
    /// A line that names it anywhere.
    pub fn named(&mut self, text: &str, line: u64) {
        let mut words = text
            .split_whitespace()
            .map(|word| word.split('@').next().unwrap_or(word).trim_end_matches(':'));
        let is_it = match words.next() {
            Some("hpn0") => true,
            Some(index) if index.bytes().all(|byte| byte.is_ascii_digit()) => {
                words.next() == Some("hpn0")
            }
            _ => false,
        };
        if is_it {
            self.seen = Some(Interface {
                line,
                ..Interface::default()
            });
            self.left = BELOW_MAX;
            self.take(text);
        }
    }

    /// Any other line; what is about the interface stands right below it, indented.
    pub fn below(&mut self, text: &str) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        if text.starts_with([' ', '\t']) {
            self.take(text);
        } else {
            self.left = 0;
        }
    }

    fn take(&mut self, text: &str) {
        let Some(seen) = &mut self.seen else { return };
        let words: Vec<&str> = text
            .split(|c: char| c.is_whitespace() || "<>,".contains(c))
            .filter(|word| !word.is_empty())
            .collect();
        let is_inet6 = words.contains(&"inet6");
        for word in words {
            match word {
                "UP" => seen.is_up = true,
                "RUNNING" | "LOWER_UP" => seen.is_running = true,
                "Scope:Link" | "link" if is_inet6 => seen.has_link_address = true,
                "Scope:Global" | "global" if is_inet6 => seen.has_global_address = true,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<Interface> {
        let mut reader = Hpn0InterfaceReader::default();
        for (number, line) in text.lines().enumerate() {
            match line.contains("hpn0") {
                true => reader.named(line, number as u64 + 1),
                false => reader.below(line),
            }
        }
        reader.seen
    }

    #[test]
    fn three_forms_say_the_same() {
        let page = "hpn0      Link encap:Ethernet  HWaddr 00:16:3e:00:00:01\n          inet6 addr: fe80::1/64 Scope:Link\n          inet6 addr: 2408:4005::1/128 Scope:Global\n          UP BROADCAST RUNNING MULTICAST  MTU:1500  Metric:1\n";
        let newer = "hpn0: flags=4163<UP,BROADCAST,RUNNING,MULTICAST>  mtu 1500\n        inet6 fe80::1  prefixlen 64  scopeid 0x20<link>\n        inet6 2408:4005::1  prefixlen 128  scopeid 0x0<global>\n";
        let iproute = "3: hpn0@if7: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP\n    link/ether 00:16:3e:00:00:01 brd ff:ff:ff:ff:ff:ff\n    inet6 2408:4005::1/128 scope global\n    inet6 fe80::1/64 scope link\n";
        for text in [page, newer, iproute] {
            assert!(of(text).unwrap().is_ready(), "{text}");
        }
        assert!(!of(&page.replace(" RUNNING", "")).unwrap().is_ready());
        let other = format!(
            "{}lo        Link encap:Local\n          inet6 addr: ::1 Scope:Global\n",
            page.replace("Scope:Global", "Scope:Site")
        );
        assert!(
            !of(&other).unwrap().has_global_address,
            "the next interface is another one"
        );
        assert_eq!(of("NCCL_SOCKET_IFNAME=hpn0\n"), None);
    }
}
