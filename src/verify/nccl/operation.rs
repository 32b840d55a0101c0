//! What a table of nccl-tests measured. Releases from 2.17 on name their program; the table of an
//! older one tells it where no other test prints the like: by busbw over algbw, the operation and
//! the root. What is left open by these is not known.
//!
//! Sources: NVIDIA/nccl-tests: `doc/PERFORMANCE.md` (busbw over algbw), and `src/*.cu`, the last
//! lines of each test: `sum` and no root (-1) for all_reduce, reduce_scatter and sendrecv, `sum`
//! and a root for reduce, `none` and a root for broadcast, gather and scatter.

use super::nccl_tests_table::CollectiveRun;

/// Columns have two decimals, so figures from one GB/s on are true to a hundredth.
const ALGBW_MIN: f64 = 1.0;
/// How far a share may be from that of a test; those of two tests are farther apart for any number
/// of ranks that is asked here.
const NEAR: f64 = 0.03;

/// `all_reduce`, as its program is named; nothing where it is not known. `ranks` took part.
pub fn of_run(run: &CollectiveRun, ranks: Option<u32>) -> Option<&str> {
    if let Some(program) = &run.program {
        let name = program.trim().rsplit('/').next().unwrap_or_default();
        return Some(name.split_once("_perf").map_or(name, |(name, _)| name));
    }
    let ranks = f64::from(ranks.filter(|ranks| *ranks > 1)?);
    let rates = run
        .largest?
        .out_of_place
        .filter(|rates| rates.algbw >= ALGBW_MIN)?;
    let share = rates.busbw / rates.algbw;
    let is_whole = is_near(share, 1.0);
    let is_scattered = is_near(share, (ranks - 1.0) / ranks);
    let is_twice = is_near(share, 2.0 * (ranks - 1.0) / ranks);
    let (reduces, has_root) = (run.operation.as_deref()? != "none", run.root? >= 0);
    match (reduces, has_root) {
        // With two ranks an all_reduce has the share of a sendrecv.
        (true, false) if ranks > 2.0 && is_twice => Some("all_reduce"),
        // With many ranks the share of a reduce_scatter comes near to that of a sendrecv.
        (true, false) if is_scattered && !is_whole => Some("reduce_scatter"),
        (true, true) if is_whole => Some("reduce"),
        (false, true) if is_whole && !is_scattered => Some("broadcast"),
        _ => None,
    }
}

fn is_near(share: f64, expected: f64) -> bool {
    (share / expected - 1.0).abs() < NEAR
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nccl::NcclLogDecoder;

    fn of(program: &str, operation: &str, root: i32, busbw: f64, ranks: u32) -> Option<String> {
        let text = format!(
            "{program}#  size count type redop root time algbw busbw #wrong time algbw busbw \
             #wrong\n\
             1073741824 268435456 float {operation} {root} 9000 100.00 {busbw:.2} 0 9000 100.00 \
             {busbw:.2} 0\n"
        );
        let mut decoder = NcclLogDecoder::default();
        decoder.feed(text.as_bytes());
        of_run(&decoder.finish().runs[0], Some(ranks)).map(str::to_owned)
    }

    #[test]
    fn a_table_without_a_name_tells_its_test_where_no_other_prints_the_like() {
        for (operation, root, busbw, ranks, desired) in [
            ("sum", -1, 150.0, 4, Some("all_reduce")),
            ("max", -1, 193.75, 32, Some("all_reduce")),
            ("sum", -1, 75.0, 4, Some("reduce_scatter")),
            ("sum", -1, 50.0, 2, Some("reduce_scatter")),
            ("sum", 0, 100.0, 4, Some("reduce")),
            ("none", 0, 100.0, 4, Some("broadcast")),
            // Two ranks: an all_reduce or a sendrecv; 64 and more: a reduce_scatter or a sendrecv.
            ("sum", -1, 100.0, 2, None),
            ("sum", -1, 98.44, 64, None),
            // A sendrecv, an all_gather or an alltoall, a gather or a scatter.
            ("sum", -1, 100.0, 4, None),
            ("none", -1, 75.0, 4, None),
            ("none", 0, 75.0, 4, None),
            ("sum", -1, 150.0, 1, None),
            ("sum", -1, 123.0, 4, None),
        ] {
            assert_eq!(
                of("", operation, root, busbw, ranks).as_deref(),
                desired,
                "{operation} {root} {busbw} {ranks}"
            );
        }
    }

    #[test]
    fn a_program_that_is_named_is_what_it_says() {
        for (name, desired) in [
            ("alltoall_perf", "alltoall"),
            ("./build/all_reduce_perf_mpi", "all_reduce"),
            ("own", "own"),
        ] {
            let told = of(
                &format!("# Collective test starting: {name}\n"),
                "none",
                -1,
                75.0,
                4,
            );
            assert_eq!(told.as_deref(), Some(desired));
        }
    }
}
