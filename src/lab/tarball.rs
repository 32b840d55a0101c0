//! A source tarball whose bytes depend on its files alone, so that its checksum can stand in an
//! inventory: ustar without times or owners, in gzip with stored blocks, because compressors differ
//! from version to version.

/// A `.tar.gz` with these files (path inside, content), in the order given.
pub fn source_tarball<'a>(files: impl IntoIterator<Item = (String, &'a [u8])>) -> Vec<u8> {
    let mut tar = Vec::new();
    for (path, content) in files {
        tar.extend(build_ustar_header(&path, content.len()));
        tar.extend(content);
        tar.resize(tar.len().next_multiple_of(512), 0);
    }
    tar.resize(tar.len() + 1024, 0);
    gzip_stored(&tar)
}

/// A ustar header of a plain file, POSIX.1-1988 layout; paths here are far below its 100 bytes.
fn build_ustar_header(path: &str, size: usize) -> [u8; 512] {
    let mut header = [0u8; 512];
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &path.as_bytes()[..path.len().min(100)]);
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{size:011o}\0").as_bytes());
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

/// RFC 1952 around RFC 1951 blocks of type 0.
fn gzip_stored(data: &[u8]) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let mut blocks = data.chunks(0xffff).peekable();
    while let Some(block) = blocks.next() {
        let length = block.len() as u16;
        out.push(u8::from(blocks.peek().is_none()));
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend(block);
    }
    out.extend(compute_crc32(data).to_le_bytes());
    out.extend((data.len() as u32).to_le_bytes());
    out
}

fn compute_crc32(data: &[u8]) -> u32 {
    let step = |crc: u32| {
        if crc & 1 == 1 {
            (crc >> 1) ^ 0xedb8_8320
        } else {
            crc >> 1
        }
    };
    !data.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| step(crc))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use railwright_system::process::Program;

    #[test]
    fn real_tar_reads_it_back() {
        let big = vec![b'x'; 100_000];
        let bytes = source_tarball([
            ("a-1/one".to_owned(), b"first\n".as_slice()),
            ("a-1/two".to_owned(), big.as_slice()),
        ]);
        let listing = Program::new("tar")
            .arguments(["-tzvf", "-"])
            .output_of(&bytes)
            .unwrap();
        assert!(
            listing.status.success(),
            "{}",
            String::from_utf8_lossy(&listing.stderr)
        );
        let content = Program::new("tar")
            .arguments(["-xzOf", "-", "a-1/two"])
            .output_of(&bytes)
            .unwrap();
        assert_eq!(content.stdout, big);
        let content = Program::new("tar")
            .arguments(["-xzOf", "-", "a-1/one"])
            .output_of(&bytes)
            .unwrap();
        assert_eq!(content.stdout, b"first\n");
    }
}
