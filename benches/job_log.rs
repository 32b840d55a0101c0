//! `job prove` on the log of a job of 512 ranks, 200 MB of NCCL's lines in pieces as a file is
//! read: how long it takes and with how much memory. `cargo bench --bench job_log` prints both
//! beside the figures that we hold ourselves to.

use railwright_verify::nccl::{JobVerdict, NcclExpectations, NcclLogDecoder, check_nccl_log};
use std::time::Instant;

const RANKS: u32 = 512;
const BYTES: usize = 200_000_000;
const PIECE: usize = 256 << 10;
const ROUNDS: usize = 5;
const SECONDS_MAX: f64 = 1.0;
const MEMORY_MIB_MAX: f64 = 64.0;

fn main() {
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let (mut decoder, mut seconds, mut writer) =
            (NcclLogDecoder::default(), 0.0, Writer::default());
        while let Some(piece) = writer.next() {
            let start = Instant::now();
            decoder.feed(piece);
            seconds += start.elapsed().as_secs_f64();
        }
        let start = Instant::now();
        let log = decoder.finish();
        let proof = check_nccl_log(&log, &expected());
        best = best.min(seconds + start.elapsed().as_secs_f64());
        assert_eq!(
            (proof.verdict, log.world, log.processes.len()),
            (JobVerdict::Passed, Some(RANKS), RANKS as usize)
        );
        assert_eq!(log.bytes as usize, writer.written);
    }
    let rate = BYTES as f64 / 1e6 / best;
    say(&format!(
        "{RANKS} ranks, {} MB: {best:.3} s (at most {SECONDS_MAX}), {rate:.0} MB/s",
        BYTES / 1_000_000
    ));
    say(&format!(
        "peak of the whole process: {:.0} MiB (at most {MEMORY_MIB_MAX})",
        peak_mib()
    ));
}

fn expected() -> NcclExpectations {
    let source = "--expect-gbps".to_owned();
    NcclExpectations {
        traffic: None,
        node_gbps: None,
        source,
        least_percent: 80,
        acs: None,
        needs_gpudirect: true,
        log: "job.log".to_owned(),
        words: "--log job.log".to_owned(),
    }
}

/// Writes the log piece by piece, so that it is never whole in memory: what every rank says at its
/// start, then channels of ranks by turns, with lines of a training between them.
#[derive(Default)]
struct Writer {
    piece: Vec<u8>,
    written: usize,
    line: u32,
}

impl Writer {
    fn next(&mut self) -> Option<&[u8]> {
        self.piece.clear();
        while self.piece.len() < PIECE && self.written + self.piece.len() < BYTES {
            let text = self.text();
            self.piece.extend_from_slice(text.as_bytes());
            self.line += 1;
        }
        self.written += self.piece.len();
        (!self.piece.is_empty()).then_some(&self.piece)
    }

    fn text(&self) -> String {
        let rank = self.line % RANKS;
        let (host, device) = (rank / 8, rank % 8);
        let me = format!(
            "[1,{rank}]<stdout>:gpu-{host:03}:{}:{} [{device}] NCCL INFO",
            1200 + rank,
            5200 + rank
        );
        if self.line < RANKS {
            let devices: String = (0..8).map(|n| format!(" [{n}]mlx5_{n}:1/RoCE")).collect();
            return format!(
                "{me} NET/IB : Using{devices} [RO]; OOB eth0:10.0.0.{host}<0>\n\
                 {me} Using network IB\n\
                 {me} ncclCommInitRank comm 0x5581 rank {rank} nranks {RANKS} cudaDev {device} \
                 nvmlDev {device} busId 1b000 commId 0x9 - Init COMPLETE\n"
            );
        }
        let (channel, next) = (self.line / RANKS % 32, (rank + 1) % RANKS);
        match self.line % 16 {
            0 => {
                format!(
                    "[1,{rank}]<stdout>:Train Epoch: {} [{}/60000 ({channel}%)]\tloss=2.3048\n",
                    self.line / 60_000,
                    self.line % 60_000
                )
            }
            1..6 => format!(
                "{me} Channel {channel:02}/0 : {rank}[{device}] -> {next}[{device}] [send] via \
                 NET/IB/{device}/GDRDMA\n"
            ),
            6..14 => format!(
                "{me} Channel {channel:02}/0 : {rank}[{device}] -> {next}[{device}] via \
                 P2P/CUMEM/read\n"
            ),
            _ => format!(
                "{me} Trees [{channel}] 1/-1/-1->0->-1 [1] 1/-1/-1->0->-1 [2] 1/-1/-1->0->-1 [3] \
                 1/-1/-1->0->-1\n"
            ),
        }
    }
}

fn peak_mib() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|rest| rest.split_whitespace().next());
    kib.and_then(|kib| kib.parse::<f64>().ok())
        .unwrap_or(f64::NAN)
        / 1024.0
}

#[allow(clippy::print_stdout)]
fn say(text: &str) {
    println!("{text}");
}
