//! The configuration space of a PCI function, from the bytes that the kernel shows: capabilities
//! are found as the PCI and PCI Express specifications chain them. The bytes are a host's word, so
//! that no chain is followed for ever.
//!
//! Numbers: the Linux kernel, `include/uapi/linux/pci_regs.h` (PCI_CAP_ID_EXP, PCI_EXP_DEVCTL,
//! PCI_EXP_DEVCTL_READRQ, PCI_EXT_CAP_ID_ACS, PCI_ACS_CAP, PCI_ACS_CTRL and the bits of ACS).

use railwright_base::Reason;

/// The whole space of a PCI Express function.
const SPACE_BYTES: usize = 4096;
/// What anybody may read; the rest is root's (`pci_read_config` asks for CAP_SYS_ADMIN).
const OPEN_BYTES: usize = 64;
/// Where the space of conventional PCI ends, and the extended capabilities begin.
const EXTENDED: usize = 0x100;

/// The bits of the ACS control word, by the names that `lspci` has for them.
pub const ACS_BITS: [(u16, &str); 7] = [
    (0x01, "SrcValid"),
    (0x02, "TransBlk"),
    (0x04, "ReqRedir"),
    (0x08, "CmpltRedir"),
    (0x10, "UpstreamFwd"),
    (0x20, "EgressCtrl"),
    (0x40, "DirectTrans"),
];
/// All of them: what NVIDIA's guide to NCCL sets to 0.
pub const ACS_ALL: u16 = 0x7f;
/// Request redirect, completion redirect and egress control: what the kernel's
/// `pci=disable_acs_redir=` clears.
pub const ACS_REDIRECT: u16 = 0x2c;
/// The maximum read request in the device control word.
pub const READ_REQUEST_MASK: u16 = 0x7000;

/// The configuration space of one function, as far as it was shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PciConfigSpace(Vec<u8>);

impl PciConfigSpace {
    /// From the lines of `od -A x -t x1`, where a `*` stands for more lines like the one before.
    /// The error fits after "unknown:".
    pub fn of_dump(lines: &[&str]) -> Result<Self, Reason> {
        let bytes = parse_dump(lines).filter(|bytes| bytes.len() >= OPEN_BYTES);
        let bytes = bytes.ok_or("its configuration space could not be read")?;
        match bytes.len() {
            OPEN_BYTES => Err(
                "only root reads more than the first 64 bytes of its configuration space".into(),
            ),
            _ if bytes.iter().take(4).all(|byte| *byte == 0xff) => {
                Err("the device does not answer".into())
            }
            _ => Ok(PciConfigSpace(bytes)),
        }
    }

    /// The lines of `od -A x -t x1` for a space of these bytes.
    pub fn dump(bytes: &[u8]) -> String {
        let mut out = String::new();
        let mut before: Option<&[u8]> = None;
        let mut told = false;
        for (row, chunk) in bytes.chunks(16).enumerate() {
            if before == Some(chunk) {
                out.push_str(if told { "" } else { "*\n" });
                told = true;
                continue;
            }
            let words: String = chunk.iter().map(|byte| format!(" {byte:02x}")).collect();
            out.push_str(&format!("{:06x}{words}\n", row * 16));
            (before, told) = (Some(chunk), false);
        }
        format!("{out}{:06x}\n", bytes.len())
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.0.get(at).copied()
    }

    fn word(&self, at: usize) -> Option<u16> {
        Some(u16::from_le_bytes([self.byte(at)?, self.byte(at + 1)?]))
    }

    /// Where a capability begins. The list ends by itself after 48 entries: more do not fit.
    fn capability(&self, desired: u8) -> Option<usize> {
        const HAS_LIST: u16 = 0x10;
        if self.word(0x06)? & HAS_LIST == 0 {
            return None;
        }
        let mut at = usize::from(self.byte(0x34)? & 0xfc);
        for _ in 0..48 {
            if at < OPEN_BYTES {
                return None;
            }
            if self.byte(at)? == desired {
                return Some(at);
            }
            at = usize::from(self.byte(at + 1)? & 0xfc);
        }
        None
    }

    /// Where an extended capability begins.
    fn extended_capability(&self, desired: u16) -> Option<usize> {
        let mut at = EXTENDED;
        for _ in 0..(SPACE_BYTES - EXTENDED) / 8 {
            let (id, next) = (self.word(at)?, self.word(at + 2)? >> 4);
            match id {
                0 | 0xffff => return None,
                id if id == desired => return Some(at),
                _ => at = usize::from(next) & 0xffc,
            }
            if at < EXTENDED {
                return None;
            }
        }
        None
    }

    /// The maximum read request in bytes; none for a function without PCI Express capability.
    pub fn max_read_request(&self) -> Option<u32> {
        let control = self.word(self.capability(0x10)? + 8)?;
        Some(128 << ((control & READ_REQUEST_MASK) >> 12))
    }

    /// The ACS control word; none for a function without the capability.
    pub fn acs(&self) -> Option<u16> {
        self.word(self.extended_capability(0x0d)? + 6)
    }
}

/// The bytes in the lines of `od -A x -t x1`; none where they make no sense.
fn parse_dump(lines: &[&str]) -> Option<Vec<u8>> {
    let mut bytes: Vec<u8> = Vec::new();
    let mut repeats = false;
    for line in lines {
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else { continue };
        if first == "*" {
            repeats = true;
            continue;
        }
        let at = usize::from_str_radix(first, 16).ok()?;
        if at > SPACE_BYTES {
            return None;
        }
        if repeats {
            let last = bytes.get(bytes.len().saturating_sub(16)..)?.to_vec();
            if last.is_empty() || !bytes.len().is_multiple_of(16) {
                return None;
            }
            while bytes.len() < at {
                bytes.extend(&last);
            }
            repeats = false;
        }
        if at != bytes.len() {
            return None;
        }
        for word in words.take(16) {
            bytes.push(u8::from_str_radix(word, 16).ok()?);
        }
    }
    Some(bytes)
}

/// A space such as a simulated host shows: power management at 0x40, PCI Express at 0x60 with these
/// bits of the device control word, error reporting at 0x100, and with an ACS word its capability
/// at 0x148.
pub fn build_simulated_config_space(device_control: u16, acs: Option<u16>) -> Vec<u8> {
    let mut bytes = vec![0; SPACE_BYTES];
    let mut words: Vec<(usize, u16)> = vec![
        (0x00, 0x15b3),
        (0x06, 0x0010),
        (0x34, 0x0040),
        (0x40, 0x6001),
        (0x60, 0x0010),
        (0x68, device_control),
        (0x100, 0x0001),
    ];
    if let Some(word) = acs {
        words.extend([
            (0x102, 0x1481),
            (0x148, 0x000d),
            (0x14a, 0x0001),
            (0x14c, 0x005f),
            (0x14e, word),
        ]);
    }
    for (at, word) in words {
        for (place, byte) in bytes.iter_mut().skip(at).zip(word.to_le_bytes()) {
            *place = byte;
        }
    }
    bytes
}

/// The names of the bits that are set in an ACS control word, `none` where there are none.
pub fn acs_words(word: u16) -> String {
    let set: Vec<&str> = ACS_BITS
        .iter()
        .filter(|(bit, _)| word & bit != 0)
        .map(|(_, name)| *name)
        .collect();
    if set.is_empty() {
        "none".to_owned()
    } else {
        set.join("+")
    }
}

/// True for `0000:3b:00.0`, as the kernel writes it.
pub fn is_address(text: &str) -> bool {
    let parts: Vec<&str> = text.split(':').collect();
    let [domain, bus, rest] = parts.as_slice() else {
        return false;
    };
    let Some((slot, function)) = rest.split_once('.') else {
        return false;
    };
    (4..=8).contains(&domain.len())
        && (bus.len(), slot.len(), function.len()) == (2, 2, 1)
        && is_small_hex(domain)
        && is_small_hex(bus)
        && is_small_hex(slot)
        && function.chars().all(|c| ('0'..='7').contains(&c))
}

fn is_small_hex(text: &str) -> bool {
    text.chars()
        .all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c))
}

/// The field of the device control word for a maximum read request in bytes; none for a size that
/// there is not.
pub fn read_request_field(bytes: u64) -> Option<u16> {
    (0u16..6)
        .find(|step| 128u64 << step == bytes)
        .map(|step| step << 12)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn capabilities_are_found_where_the_chains_lead() {
        let dump = PciConfigSpace::dump(&build_simulated_config_space(0x2000, Some(0x1d)));
        let config = PciConfigSpace::of_dump(&dump.lines().collect::<Vec<_>>()).unwrap();
        assert_eq!(
            (config.max_read_request(), config.acs()),
            (Some(512), Some(0x1d))
        );
        let plain = PciConfigSpace::of_dump(
            &PciConfigSpace::dump(&build_simulated_config_space(0x5000, None))
                .lines()
                .collect::<Vec<_>>(),
        )
        .unwrap();
        assert_eq!((plain.max_read_request(), plain.acs()), (Some(4096), None));
        assert_eq!(acs_words(0x1d), "SrcValid+ReqRedir+CmpltRedir+UpstreamFwd");
    }

    /// A virtio NIC of a virtual machine without PCI Express: five vendor capabilities and MSI-X,
    /// 256 bytes.
    #[test]
    fn a_function_without_pci_express_has_neither() {
        let config =
            PciConfigSpace::of_dump(&include_str!("tests/virtio.txt").lines().collect::<Vec<_>>())
                .unwrap();
        assert_eq!((config.max_read_request(), config.acs()), (None, None));
    }

    /// A virtio NIC of QEMU behind a root port: PCI Express at the end of a chain of eight
    /// capabilities.
    #[test]
    fn a_function_of_pci_express_is_read_as_a_kernel_shows_it() {
        let config = PciConfigSpace::of_dump(
            &include_str!("tests/express.txt")
                .lines()
                .collect::<Vec<_>>(),
        )
        .unwrap();
        assert_eq!((config.max_read_request(), config.acs()), (Some(128), None));
    }

    #[test]
    fn what_is_not_all_there_is_unknown() {
        let told =
            |text: &str| PciConfigSpace::of_dump(&text.lines().collect::<Vec<_>>()).unwrap_err();
        assert!(
            told(&PciConfigSpace::dump(
                &build_simulated_config_space(0, None)[..64]
            ))
            .as_words()
            .contains("only root")
        );
        assert!(
            told(&PciConfigSpace::dump(&[0xff; 256]))
                .as_words()
                .contains("does not answer")
        );
        for text in [
            "",
            "000000 zz",
            "000010 00",
            "*\n000100",
            "ffffffff 00",
            "000000 00 00\n*\n000f00\n",
            "000000 00\n000002 00\n",
        ] {
            told(text);
        }
    }

    #[test]
    fn addresses_and_sizes_are_what_they_should_be() {
        assert!(is_address("0000:3b:00.0") && is_address("10000:e1:1f.7"));
        for bad in [
            "3b:00.0",
            "0000:3b:00.8",
            "0000:3B:00.0",
            "0000:3b:00.0 ",
            "0000:3b:00",
            "0000:3b:0.0",
            "",
        ] {
            assert!(!is_address(bad), "{bad}");
        }
        assert_eq!(
            (read_request_field(128), read_request_field(4096)),
            (Some(0), Some(0x5000))
        );
        assert_eq!(
            (
                read_request_field(8192),
                read_request_field(0),
                read_request_field(500)
            ),
            (None, None, None)
        );
    }

    proptest! {
        #[test]
        fn no_dump_panics_and_no_chain_is_followed_for_ever(bytes in proptest::collection::vec(any::<u8>(), 0..4200), text in "[0-9a-f* \n]{0,80}") {
            let dump = PciConfigSpace::dump(&bytes);
            if let Ok(config) = PciConfigSpace::of_dump(&dump.lines().collect::<Vec<_>>()) {
                prop_assert_eq!(&config.0, &bytes);
                let _ = (config.max_read_request(), config.acs());
            }
            let _ = PciConfigSpace::of_dump(&text.lines().collect::<Vec<_>>());
        }
    }
}
