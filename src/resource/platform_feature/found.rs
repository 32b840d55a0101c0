//! Decodes what a host reports of the virtual functions of a NIC.

use crate::{Read, ReadResults, sections};
use railwright_base::Reason;

/// Whether the virtual functions of a NIC have memory of the PCI bus.
#[derive(Debug, PartialEq, Eq)]
pub enum VirtualFunctions {
    /// There is no such netdev.
    NoNetdev,
    /// The NIC offers none.
    None,
    /// None can be made: their memory has no place on the bus.
    NoRoom,
    /// There is a place for their memory.
    Room,
}

/// Decodes the answer to `Read::VirtualFunctions`; the error is a reason that fits after
/// "unknown:".
///
/// A BAR that got no place begins at 0. The kernel makes virtual functions only where each of their
/// BARs has one (Source: Linux, drivers/pci/iov.c, `sriov_enable`: "not enough MMIO resources for
/// SR-IOV").
pub fn virtual_functions(netdev: &str, answers: &ReadResults) -> Result<VirtualFunctions, Reason> {
    let (code, out) = answers.output(&Read::VirtualFunctions {
        netdev: netdev.to_owned(),
    })?;
    if code == 1 {
        return Ok(VirtualFunctions::NoNetdev);
    }
    let sections = sections::parse_sections(out);
    let (Some(functions), Some("end")) = (sections.first(), sections.last().map(|last| last.word))
    else {
        return Err("the answer of the host is not complete".into());
    };
    if functions
        .value("total")
        .and_then(|total| total.trim().parse::<u32>().ok())
        .unwrap_or(0)
        == 0
    {
        return Ok(VirtualFunctions::None);
    }
    let bars: Vec<(u64, u64)> = functions
        .lines
        .iter()
        .filter_map(|line| parse_bar_range(line.strip_prefix("bar=")?))
        .collect();
    if bars.is_empty() {
        return Err(format!(
            "the kernel does not show where the memory of the virtual functions of {netdev} is"
        )
        .into());
    }
    let mut used = bars
        .iter()
        .filter(|(start, end)| (*start, *end) != (0, 0))
        .peekable();
    let has_room = used.peek().is_some() && used.all(|(start, _)| *start != 0);
    Ok(if has_room {
        VirtualFunctions::Room
    } else {
        VirtualFunctions::NoRoom
    })
}

/// Where a BAR begins and ends.
fn parse_bar_range(line: &str) -> Option<(u64, u64)> {
    let mut numbers = line
        .split_whitespace()
        .map(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok());
    Some((numbers.next()??, numbers.next()??))
}
