//! What a text of NCCL tells of the fabric, as one event. Texts that tell nothing of it are passed
//! over.
//!
//! Sources: NVIDIA/nccl, releases 2.4 to 2.30: `src/transport/net_ib*` (devices, completions, calls
//! of verbs), `src/transport/net.cc` (`via NET/IB/0/GDRDMA`), `src/transport/net_socket.cc`,
//! `src/graph/paths.cc` (GPUDirect by distance), `src/graph/topo.cc` (GPUDirect by NIC),
//! `src/misc/param.cc` (`set by environment to`), `src/init.cc` (ranks, `Using network`).

/// What the port of an RDMA device speaks.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum RdmaLinkLayer {
    /// `/RoCE`.
    Roce,
    /// `/IB`.
    Infiniband,
}

/// An RDMA device that NCCL uses: `mlx5_0:1/RoCE`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NcclDevice<'a> {
    /// `mlx5_0:1`, device and port.
    pub port: &'a str,
    /// What it speaks.
    pub link: RdmaLinkLayer,
}

/// How a channel goes from one rank to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelPath<'a> {
    /// From GPU to GPU in one host: `P2P/IPC`, `P2P/CUMEM`, NVLS.
    Peer,
    /// Over memory of the host: `SHM`.
    Shared,
    /// Over a network by its name (`IB`, `Socket`, a plugin's), with GPUDirect or without.
    Net(&'a str, bool),
}

/// The ends of a channel over a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ends {
    /// The rank that says so.
    pub own: u32,
    /// The rank at the other end.
    pub other: u32,
}

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub enum NcclEvent<'a> {
    /// `NCCL version 2.21.5+cuda12.4`.
    Version(&'a str),
    /// The RDMA devices of the process.
    Devices(Vec<NcclDevice<'a>>),
    /// NCCL looked for RDMA devices and found none.
    NoDevice,
    /// The interfaces of sockets: `eth0:10.0.0.1<0>`.
    Interfaces(Vec<&'a str>),
    /// The network that is used between hosts.
    Network(&'a str),
    /// A channel is to be set up: its way, and of a network the ranks at its ends.
    Channel(ChannelPath<'a>, Option<Ends>),
    /// All channels that were logged so far were connected.
    Connected,
    /// Whether a NIC can read and write GPU memory.
    DirectNic(bool),
    /// Whether GPU and NIC are near enough: their distance and the greatest that is allowed.
    DirectPath(bool, Option<(u32, u32)>),
    /// A variable of the environment that NCCL obeys.
    Environment(&'a str, &'a str),
    /// A rank of so many began to set up its communicator, or ended with it.
    Rank {
        /// From 0.
        rank: u32,
        /// Of how many.
        of: u32,
        /// It is set up.
        is_complete: bool,
        /// It was set up just now, and is not on its way to its end.
        is_new: bool,
    },
    /// A communicator of so many ranks spans so many nodes.
    Nodes {
        /// Ranks.
        ranks: u32,
        /// Nodes.
        nodes: u32,
    },
}

/// The event of a text.
pub fn parse_event(text: &str) -> Option<NcclEvent<'_>> {
    let text = text.trim_start();
    match text.as_bytes().first()? {
        b'C' if text.starts_with("Channel ") => parse_channel(text),
        b'C' if text.starts_with("Connected all ") => Some(NcclEvent::Connected),
        b'R' if text.starts_with("Ring ") => parse_channel(text),
        b'N' if text.starts_with("NET/") => parse_network(text),
        b'N' if text.starts_with("NCCL version ") => {
            parse_nccl_version(text).map(NcclEvent::Version)
        }
        b'N' if text.starts_with("NCCL_") => parse_environment(text),
        b'U' => {
            let name = text.strip_prefix("Using network ")?;
            Some(NcclEvent::Network(name.trim_end_matches('.')))
        }
        b'A' => {
            let rest = text.strip_prefix("Assigned NET plugin ")?;
            let (name, _) = rest.split_once(" to comm")?;
            Some(NcclEvent::Network(name))
        }
        b'G' => direct_path(text),
        b'c' | b'n' => parse_node_count(text).or_else(|| parse_rank(text)),
        _ => None,
    }
}

/// The version behind `NCCL version `, wherever that stands.
pub fn parse_nccl_version(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("NCCL version ")?;
    let end = rest
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-')))
        .unwrap_or(rest.len());
    let found = rest[..end].trim_end_matches(['.', '-']);
    found
        .starts_with(|c: char| c.is_ascii_digit())
        .then_some(found)
}

fn parse_channel(text: &str) -> Option<NcclEvent<'_>> {
    let at = memchr::memmem::find(text.as_bytes(), b" via ")?;
    let path = &text[at + 5..];
    let way = if let Some(net) = path.strip_prefix("NET/") {
        // the name of a plugin may hold a space: `NET/AWS Libfabric/0/GDRDMA`
        let name = net.split('/').next().unwrap_or_default();
        ChannelPath::Net(name.trim_end(), net.contains("/GDRDMA"))
    } else if path.starts_with("P2P") || path.starts_with("direct") || path.starts_with("NVLS") {
        ChannelPath::Peer
    } else if path.starts_with("SHM") {
        ChannelPath::Shared
    } else {
        return None;
    };
    let ends = if matches!(way, ChannelPath::Net(..)) {
        parse_channel_ends(&text[..at])
    } else {
        None
    };
    Some(NcclEvent::Channel(way, ends))
}

/// `Channel 00/0 : 15[7] -> 0[0] [receive]`: what is sent is logged by the first rank, what is
/// received by the second.
fn parse_channel_ends(text: &str) -> Option<Ends> {
    let (_, pair) = text.split_once(" : ")?;
    let (from, rest) = pair.split_once(" -> ")?;
    let from = parse_leading_rank(from.trim_start())?;
    let to = parse_leading_rank(rest)?;
    if rest.ends_with("[send]") {
        Some(Ends {
            own: from,
            other: to,
        })
    } else if rest.ends_with("[receive]") {
        Some(Ends {
            own: to,
            other: from,
        })
    } else {
        None
    }
}

/// `15[7]`.
fn parse_leading_rank(text: &str) -> Option<u32> {
    text.split(['[', ' ']).next()?.parse().ok()
}

fn parse_network(text: &str) -> Option<NcclEvent<'_>> {
    let (name, rest) = text[4..].split_once(':')?;
    let (name, rest) = (name.trim_end(), rest.trim_start());
    // Of sockets NCCL says it too, where RDMA was not to be expected (`NET/Socket : GPU Direct RDMA
    // Disabled for HCA 0 'eth0'`).
    if name != "Socket"
        && let Some(direct) = rest.strip_prefix("GPU Direct RDMA ")
    {
        return match direct.split_once(" for HCA ") {
            Some((word, _)) => Some(NcclEvent::DirectNic(word == "Enabled")),
            None => direct_path(rest),
        };
    }
    if name != "Socket" && rest.starts_with("No device found") {
        return Some(NcclEvent::NoDevice);
    }
    let items = split_numbered_list(rest.strip_prefix("Using ")?);
    if name == "Socket" {
        return Some(NcclEvent::Interfaces(items.collect()));
    }
    let devices: Vec<NcclDevice<'_>> = items.filter_map(parse_device).collect();
    (!devices.is_empty()).then_some(NcclEvent::Devices(devices))
}

/// `[0]a [1]b ; OOB ...` and, where NICs are merged, `[0]={[0] a, [1] b}`.
fn split_numbered_list(list: &str) -> impl Iterator<Item = &str> {
    let list = list.split(';').next().unwrap_or_default();
    list.split('[').filter_map(|item| {
        let (number, rest) = item.split_once(']')?;
        number.parse::<u32>().ok()?;
        let value = rest
            .trim_start()
            .split([' ', ',', '}', '\t'])
            .next()
            .unwrap_or_default();
        (!value.is_empty() && !value.starts_with('=')).then_some(value)
    })
}

/// `mlx5_0:1/RoCE`, with `/SHARP` behind it where the switch reduces.
fn parse_device(text: &str) -> Option<NcclDevice<'_>> {
    let (port, link) = text.split_once('/')?;
    let link = match link.split('/').next()? {
        "RoCE" => RdmaLinkLayer::Roce,
        "IB" => RdmaLinkLayer::Infiniband,
        _ => return None,
    };
    (!port.is_empty()).then_some(NcclDevice { port, link })
}

/// `GPU Direct RDMA Disabled for GPU 0 / HCA 0 (distance 8 > 5)`.
fn direct_path(text: &str) -> Option<NcclEvent<'_>> {
    let (word, rest) = text
        .strip_prefix("GPU Direct RDMA ")
        .unwrap_or(text)
        .split_once(" for GPU ")?;
    if !matches!(word, "Enabled" | "Disabled") {
        return None;
    }
    let is_near = word == "Enabled";
    Some(NcclEvent::DirectPath(is_near, parse_distances(rest)))
}

/// `(distance 8 > 5)`.
fn parse_distances(text: &str) -> Option<(u32, u32)> {
    let (_, rest) = text.split_once("(distance ")?;
    let words = rest.split(')').next()?.split(' ');
    let mut numbers = words.filter_map(|word| word.parse::<u32>().ok());
    Some((numbers.next()?, numbers.next()?))
}

/// `NCCL_IB_HCA set by environment to mlx5`, `NCCL_IB_DISABLE set by environment to 1.`, and `set
/// to` in releases before 2.11.
fn parse_environment(text: &str) -> Option<NcclEvent<'_>> {
    let (name, rest) = text.split_once(' ')?;
    let value = rest
        .strip_prefix("set by environment to")
        .or_else(|| rest.strip_prefix("set to"))?;
    let value = value.strip_prefix(' ').unwrap_or(value);
    Some(NcclEvent::Environment(
        name,
        value.strip_suffix('.').unwrap_or(value),
    ))
}

/// `comm 0x1 rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0` (newer releases:
/// NVIDIA/nccl src/init.cc).
fn parse_node_count(text: &str) -> Option<NcclEvent<'_>> {
    let (_, rest) = text.strip_prefix("comm ")?.split_once(" nRanks ")?;
    let (ranks, rest) = rest.split_once(" nNodes ")?;
    Some(NcclEvent::Nodes {
        ranks: ranks.parse().ok()?,
        nodes: rest.split(' ').next()?.parse().ok()?,
    })
}

/// `comm 0x1 rank 0 nranks 16 cudaDev 0 ... - Init COMPLETE`.
fn parse_rank(text: &str) -> Option<NcclEvent<'_>> {
    if !(text.starts_with("comm ") || text.starts_with("ncclCommInit")) {
        return None;
    }
    let mut words = text.split([' ', ',']);
    let rank = words
        .by_ref()
        .skip_while(|word| *word != "rank")
        .nth(1)?
        .parse()
        .ok()?;
    let of = words
        .skip_while(|word| *word != "nranks")
        .nth(1)?
        .parse()
        .ok()?;
    // a communicator that is destroyed was complete
    let is_complete = ["COMPLETE", "Destroy", "Abort"]
        .iter()
        .any(|word| text.contains(word));
    Some(NcclEvent::Rank {
        rank,
        of,
        is_complete,
        is_new: text.contains("Init COMPLETE"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_of_every_release() {
        let two = Some(NcclEvent::Devices(vec![
            NcclDevice {
                port: "mlx5_0:1",
                link: RdmaLinkLayer::Roce,
            },
            NcclDevice {
                port: "mlx5_1:1",
                link: RdmaLinkLayer::Infiniband,
            },
        ]));
        for line in [
            "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/IB ; OOB eth0:10.0.0.1<0>",
            "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>",
            "NET/IB : Using [0]={[0] mlx5_0:1/RoCE, [1] mlx5_1:1/IB} [RO]; OOB eth0:10.0.0.1<0>",
            "NET/IB : Using [0]mlx5_0:1/RoCE/SHARP [1]mlx5_1:1/IB",
        ] {
            assert_eq!(parse_event(line), two, "{line}");
        }
        assert_eq!(
            parse_event("NET/IB : No device found."),
            Some(NcclEvent::NoDevice)
        );
        assert_eq!(
            parse_event("NET/Socket : Using [0]eth0:10.0.0.1<0>"),
            Some(NcclEvent::Interfaces(vec!["eth0:10.0.0.1<0>"]))
        );
        assert_eq!(parse_event("NET/IB : Using "), None);
    }

    #[test]
    fn ways_of_channels() {
        for (line, way) in [
            (
                "Channel 00/0 : 15[7] -> 0[0] [receive] via NET/IB/0/GDRDMA",
                ChannelPath::Net("IB", true),
            ),
            (
                "Channel 00 : 0[1b000] -> 8[0] [send] via NET/IB/3",
                ChannelPath::Net("IB", false),
            ),
            (
                "Channel 00/0 : 0[0] -> 1[0] [send] via NET/IBext_v8/0/GDRDMA/Shared",
                ChannelPath::Net("IBext_v8", true),
            ),
            (
                "Channel 00/0 : 0[0] -> 1[0] [send] via NET/AWS Libfabric/0/GDRDMA",
                ChannelPath::Net("AWS Libfabric", true),
            ),
            (
                "Ring 00 : 1 -> 0 [receive] via NET/Socket/0",
                ChannelPath::Net("Socket", false),
            ),
            (
                "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read",
                ChannelPath::Peer,
            ),
            (
                "Channel 00 : 0[1b000] -> 1[3d000] via P2P/IPC",
                ChannelPath::Peer,
            ),
            (
                "Channel 00 : 0[0] -> 1[1] via SHM/direct/direct",
                ChannelPath::Shared,
            ),
        ] {
            let Some(NcclEvent::Channel(found, ends)) = parse_event(line) else {
                panic!("{line}")
            };
            assert_eq!(
                (found, ends.is_some()),
                (way, matches!(way, ChannelPath::Net(..))),
                "{line}"
            );
        }
        assert_eq!(parse_event("Channel 00/08 :    0   1   2   3"), None);
        let ends = |line: &str| {
            if let Some(NcclEvent::Channel(_, ends)) = parse_event(line) {
                ends
            } else {
                None
            }
        };
        assert_eq!(
            ends("Channel 00/0 : 15[7] -> 0[0] [receive] via NET/IB/0"),
            Some(Ends { own: 0, other: 15 })
        );
        assert_eq!(
            ends("Ring 00 : 15 -> 0 [send] via NET/IB/0"),
            Some(Ends { own: 15, other: 0 })
        );
        assert_eq!(
            parse_event("Connected all rings, use ring PXN 0 GDR 0"),
            Some(NcclEvent::Connected)
        );
    }

    #[test]
    fn what_keeps_a_nic_from_gpu_memory() {
        assert_eq!(
            parse_event("NET/Socket : GPU Direct RDMA Disabled for HCA 0 'eth0'"),
            None
        );
        assert_eq!(
            parse_event("NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'"),
            Some(NcclEvent::DirectNic(false))
        );
        assert_eq!(
            parse_event("NET/IB: GPU Direct RDMA Enabled for HCA 0 'mlx5_0'"),
            Some(NcclEvent::DirectNic(true))
        );
        assert_eq!(
            parse_event("GPU Direct RDMA Disabled for GPU 0 / HCA 0 (distance 8 > 5)"),
            Some(NcclEvent::DirectPath(false, Some((8, 5))))
        );
        let old = "NET/IB : GPU Direct RDMA Enabled for GPU 1b000 / HCA 0 (distance 4 < 5), read 0";
        assert_eq!(
            parse_event(old),
            Some(NcclEvent::DirectPath(true, Some((4, 5))))
        );
    }

    #[test]
    fn networks_ranks_environment_and_version() {
        assert_eq!(
            parse_event("Using network Socket"),
            Some(NcclEvent::Network("Socket"))
        );
        assert_eq!(
            parse_event("Assigned NET plugin IB to comm"),
            Some(NcclEvent::Network("IB"))
        );
        assert_eq!(
            parse_event("NCCL_IB_DISABLE set by environment to 1."),
            Some(NcclEvent::Environment("NCCL_IB_DISABLE", "1"))
        );
        assert_eq!(
            parse_event("NCCL_IB_HCA set by environment to "),
            Some(NcclEvent::Environment("NCCL_IB_HCA", ""))
        );
        assert_eq!(
            parse_event("NCCL_IB_HCA set to mlx5_0"),
            Some(NcclEvent::Environment("NCCL_IB_HCA", "mlx5_0"))
        );
        let rank = "ncclCommInitRank comm 0x5 rank 3 nranks 16 cudaDev 3 nvmlDev 3 busId 1 commId \
                    0x9 - Init COMPLETE";
        assert_eq!(
            parse_event(rank),
            Some(NcclEvent::Rank {
                rank: 3,
                of: 16,
                is_complete: true,
                is_new: true
            })
        );
        let place = "comm 0x5 rank 3 nRanks 16 nNodes 2 localRanks 8 localRank 3 MNNVL 0";
        assert_eq!(
            parse_event(place),
            Some(NcclEvent::Nodes {
                ranks: 16,
                nodes: 2
            })
        );
        assert_eq!(
            parse_nccl_version("NCCL version 2.21.5+cuda12.4"),
            Some("2.21.5+cuda12.4")
        );
        assert_eq!(
            parse_nccl_version(
                "NCCL error in: x.cpp:1, unhandled system error, NCCL version 2.19.3"
            ),
            Some("2.19.3")
        );
        assert_eq!(parse_nccl_version("NCCL version unknown"), None);
    }
}
