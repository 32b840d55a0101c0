//! Packs of objects: the index of version 2, and entries that stand whole or as the difference from
//! another (gitformat-pack(5)). A pack may have been written to hurt its reader: every number in it
//! is checked before it is used, and nothing is read without an end.

use super::object::{GitObjectKind, Id, UnpackBudget};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;

/// The first bytes of an index, and its version.
const INDEX_HEAD: [u8; 8] = [0xff, b't', b'O', b'c', 0, 0, 0, 2];
/// Where the 256 sums begin that say how many ids begin with a byte up to this one, and where the
/// ids begin.
const SUMS: u64 = 8;
const IDS: u64 = SUMS + 256 * 4;
/// Differences from each other; git makes at most 50, and made 250 when it was told to be thorough.
const DIFFERENCES_MAX: usize = 256;

/// Where an object begins in the pack of this index.
pub fn find_object_offset(index: &File, id: &Id) -> Option<u64> {
    if read_bytes_at::<8>(index, 0)? != INDEX_HEAD {
        return None;
    }
    let first = u64::from(id.0[0]);
    let sum = |byte: u64| read_u32_at(index, SUMS + byte * 4);
    let count = u64::from(sum(255)?);
    let (mut from, mut to) = (
        if first == 0 {
            0
        } else {
            u64::from(sum(first - 1)?)
        },
        u64::from(sum(first)?),
    );
    while from < to {
        let middle = from + (to - from) / 2;
        match read_bytes_at::<20>(index, IDS + middle * 20)?.cmp(&id.0) {
            std::cmp::Ordering::Less => from = middle + 1,
            std::cmp::Ordering::Greater => to = middle,
            // After the ids there are their checksums, then offsets of 31 bits, then those of 64
            // bits that did not fit.
            std::cmp::Ordering::Equal => {
                let short = read_u32_at(index, IDS + count * 24 + middle * 4)?;
                let long = |place: u32| {
                    read_bytes_at::<8>(index, IDS + count * 28 + u64::from(place) * 8)
                        .map(u64::from_be_bytes)
                };
                return if short >> 31 == 0 {
                    Some(short.into())
                } else {
                    long(short & 0x7fff_ffff)
                };
            }
        }
    }
    None
}

/// The object that begins at an offset.
pub fn read_packed_object(
    pack: &File,
    index: &File,
    offset: u64,
    budget: &UnpackBudget,
) -> Option<(GitObjectKind, Vec<u8>)> {
    let mut differences = Vec::new();
    let mut at = offset;
    loop {
        let (sort, size, mut next) = read_entry_header(pack, at)?;
        let kind = match sort {
            1 => GitObjectKind::Commit,
            2 => GitObjectKind::Tree,
            3 => GitObjectKind::Blob,
            6 | 7 if differences.len() < DIFFERENCES_MAX => {
                let base = if sort == 6 {
                    at.checked_sub(read_base_distance(pack, &mut next)?)?
                } else {
                    find_base_offset(pack, index, &mut next)?
                };
                differences.push(budget.unpack(
                    From {
                        file: pack,
                        at: next,
                    },
                    size,
                )?);
                at = base;
                continue;
            }
            _ => return None,
        };
        let whole = budget.unpack(
            From {
                file: pack,
                at: next,
            },
            size,
        )?;
        let content = differences
            .iter()
            .rev()
            .try_fold(whole, |base, difference| {
                apply_delta(&base, difference, budget)
            })?;
        return Some((kind, content));
    }
}

/// The type of an entry, how large it is unpacked, and where what follows begins.
fn read_entry_header(pack: &File, mut at: u64) -> Option<(u8, u64, u64)> {
    let first = read_next_byte(pack, &mut at)?;
    let (mut size, mut shift, mut last) = (u64::from(first & 15), 4, first);
    while last & 0x80 != 0 {
        last = read_next_byte(pack, &mut at)?;
        size |= shift_seven_bits(last, shift)?;
        shift += 7;
    }
    Some((first >> 4 & 7, size, at))
}

/// How far before its own entry the base of a difference begins.
fn read_base_distance(pack: &File, at: &mut u64) -> Option<u64> {
    let mut last = read_next_byte(pack, at)?;
    let mut distance = u64::from(last & 0x7f);
    while last & 0x80 != 0 {
        last = read_next_byte(pack, at)?;
        distance = distance
            .checked_add(1)?
            .checked_mul(128)?
            .checked_add(u64::from(last & 0x7f))?;
    }
    Some(distance).filter(|distance| *distance > 0)
}

/// Where the base begins that a difference names by its id.
fn find_base_offset(pack: &File, index: &File, at: &mut u64) -> Option<u64> {
    let id = Id(read_bytes_at::<20>(pack, *at)?);
    *at += 20;
    find_object_offset(index, &id)
}

/// What a difference makes of its base: pieces that are copied from it, and new ones.
fn apply_delta(base: &[u8], difference: &[u8], budget: &UnpackBudget) -> Option<Vec<u8>> {
    let mut rest = difference;
    let (of_base, size) = (read_delta_size(&mut rest)?, read_delta_size(&mut rest)?);
    if of_base != base.len() as u64 {
        return None;
    }
    budget.spend(size)?;
    let mut content = Vec::new();
    while let [order, after @ ..] = rest {
        rest = after;
        let piece = if order & 0x80 == 0 {
            let (piece, after) = rest
                .split_at_checked(usize::from(*order))
                .filter(|(piece, _)| !piece.is_empty())?;
            rest = after;
            piece
        } else {
            let mut field = |from: u8, count: u8| -> Option<usize> {
                (0..count).try_fold(0, |sum, place| {
                    if order & 1 << (from + place) == 0 {
                        return Some(sum);
                    }
                    let (byte, after) = rest.split_first()?;
                    rest = after;
                    Some(sum | usize::from(*byte) << (8 * place))
                })
            };
            let (from, length) = (field(0, 4)?, field(4, 3)?);
            base.get(from..from.checked_add(if length == 0 { 0x10000 } else { length })?)?
        };
        content.extend_from_slice(piece);
        if content.len() as u64 > size {
            return None;
        }
    }
    (content.len() as u64 == size).then_some(content)
}

/// A size at the beginning of a difference.
fn read_delta_size(rest: &mut &[u8]) -> Option<u64> {
    let (mut size, mut shift) = (0, 0);
    loop {
        let (byte, after) = rest.split_first()?;
        *rest = after;
        size |= shift_seven_bits(*byte, shift)?;
        shift += 7;
        if byte & 0x80 == 0 {
            return Some(size);
        }
    }
}

/// Seven bits at their place; nothing where there is none for them.
fn shift_seven_bits(byte: u8, shift: u32) -> Option<u64> {
    (shift < 56).then(|| u64::from(byte & 0x7f) << shift)
}

fn read_next_byte(file: &File, at: &mut u64) -> Option<u8> {
    let [byte] = read_bytes_at::<1>(file, *at)?;
    *at += 1;
    Some(byte)
}

fn read_u32_at(file: &File, at: u64) -> Option<u32> {
    read_bytes_at::<4>(file, at).map(u32::from_be_bytes)
}

fn read_bytes_at<const N: usize>(file: &File, at: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact_at(&mut bytes, at).ok()?;
    Some(bytes)
}

/// A file from some place on.
struct From<'a> {
    file: &'a File,
    at: u64,
}

impl Read for From<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(bytes, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A difference that copies the same piece again and again.
    #[test]
    fn a_difference_makes_no_more_than_it_says_and_no_more_than_there_is_room_for() {
        let budget = UnpackBudget::of(1 << 20);
        let base = vec![7; 0x1000];
        let sizes = |size: u64| {
            let mut bytes = vec![0x80, 0x20];
            let mut rest = size;
            while rest >= 0x80 {
                bytes.push(rest as u8 | 0x80);
                rest >>= 7;
            }
            bytes.push(rest as u8);
            bytes
        };
        // Copies 0x1000 bytes from place 0.
        let copy = [0xa0_u8, 0x10];
        let difference = |size: u64, times: usize| [sizes(size), copy.repeat(times)].concat();
        assert_eq!(
            apply_delta(&base, &difference(0x3000, 3), &budget).map(|made| made.len()),
            Some(0x3000)
        );
        assert_eq!(
            apply_delta(&base, &difference(0x3000, 4), &budget),
            None,
            "more than it says"
        );
        assert_eq!(
            apply_delta(&base, &difference(0x3000, 2), &budget),
            None,
            "less than it says"
        );
        assert_eq!(
            apply_delta(&base, &difference(1 << 40, 1), &budget),
            None,
            "more than there is room for"
        );
        assert_eq!(
            apply_delta(&base[1..], &difference(0x3000, 3), &budget),
            None,
            "another base"
        );
        assert_eq!(
            apply_delta(&base, &[sizes(1), vec![0]].concat(), &budget),
            None,
            "an order without a meaning"
        );
        assert_eq!(
            apply_delta(&base, &[sizes(2), vec![2, 1]].concat(), &budget),
            None,
            "it ends too early"
        );
        assert_eq!(
            apply_delta(&base, &[sizes(0x10000), vec![0x80]].concat(), &budget),
            None,
            "beyond the base"
        );
        assert_eq!(
            apply_delta(&base, &[sizes(3), vec![3, 1, 2, 3]].concat(), &budget).as_deref(),
            Some(&[1, 2, 3][..])
        );
    }
}
