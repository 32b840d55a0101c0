//! Raw output of real programs (version in the file's name), taken on two machines with Soft-RoCE
//! below a make-believe ConnectX-6, for the data cases of the checks.

use super::hardware::VerifyHardwareFacts;
use railwright_resource::{AnswerStatus, Read, ReadResult, ReadResults};

/// The `rails` probe of a sound host: perftest 6.06, iproute2 6.1.
pub const RAILS: &str = include_str!("samples/rails-linux-6.1.txt");
/// Its netdev set down.
pub const RAILS_DOWN: &str = include_str!("samples/rails-linux-6.1-down.txt");
/// Its address removed.
pub const RAILS_NO_ADDRESS: &str = include_str!("samples/rails-linux-6.1-no-address.txt");
/// 9000 bytes pass.
pub const PING: &str = include_str!("samples/ping-20221126.txt");
/// The sender's own netdev has MTU 1500.
pub const PING_LOCAL_LIMIT: &str = include_str!("samples/ping-20221126-local-limit.txt");
/// Packets above 1500 bytes dropped on the way.
pub const PING_SILENT: &str = include_str!("samples/ping-20221126-silent.txt");
/// `--report_gbits -D 2`.
pub const WRITE_BW_GBITS: &str = include_str!("samples/ib_write_bw-6.06-gbits.txt");
/// Without `--report_gbits`.
pub const WRITE_BW_MB: &str = include_str!("samples/ib_write_bw-6.06-mb.txt");
/// `-n 1000`.
pub const READ_LAT: &str = include_str!("samples/ib_read_lat-6.06.txt");
/// Client without a server.
pub const NOBODY_LISTENS: &str = include_str!("samples/ib_write_bw-6.06-nobody-listens.txt");
/// What `ib_write_bw -R` prints where nobody listens.
pub const NOBODY_LISTENS_CM: &str =
    include_str!("samples/ib_write_bw-6.06-nobody-listens-rdma-cm.txt");
/// `ib_read_lat` against a server of `ib_write_bw`.
pub const WRONG_TEST: &str = include_str!("samples/ib_read_lat-6.06-other-test.txt");
/// A GID index that is empty.
pub const WRONG_GID: &str = include_str!("samples/ib_write_bw-6.06-wrong-gid.txt");
/// `--use_cuda_bus_id` to a build without CUDA: its standard error.
pub const WITHOUT_CUDA: &str = include_str!("samples/ib_write_bw-6.06-without-cuda.txt");
/// The answer to `Read::Hardware` of a machine that we do not have, made up by what sysfs says of
/// such devices.
pub const HARDWARE: &str = include_str!("samples/hardware-made-up-two-sockets.txt");
/// The `machine` probe of the same machine.
pub const MACHINE: &str = include_str!("samples/machine-made-up.txt");

/// What a host with such an answer to `Read::Hardware` is made of.
pub fn parse_hardware_sample(answer: &str) -> railwright_resource::hardware::HardwareFacts {
    railwright_resource::hardware::read_hardware_facts(&build_hardware_answers(answer)).unwrap()
}

/// The answers of such a host.
pub fn build_hardware_answers(answer: &str) -> ReadResults {
    let mut answers = ReadResults::default();
    answers.insert(
        Read::Hardware.key(),
        ReadResult {
            status: AnswerStatus::Exit(0),
            out: answer.to_owned(),
        },
    );
    answers
}

/// That machine, as `verify` sees it.
pub fn load_machine_sample() -> VerifyHardwareFacts {
    VerifyHardwareFacts::parse(MACHINE).with_parts(&parse_hardware_sample(HARDWARE))
}
/// Traffic marked with tos 106, nftables 1.0.6.
pub const MARKS_26: &str = include_str!("samples/nft-1.0.6-marks-26.txt");
/// Traffic without a mark.
pub const MARKS_0: &str = include_str!("samples/nft-1.0.6-marks-0.txt");
/// The line that Alibaba Cloud's page on PyTorch jobs with Arena and eRDMA shows.
pub const EADM: &str = include_str!("samples/eadm-stat-live-documentation.txt");
/// Counters of a Soft-RoCE port after traffic, ethtool 6.1.
pub const COUNTERS: &str = include_str!("samples/counters-linux-6.1-rxe.txt");
