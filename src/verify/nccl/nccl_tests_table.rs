//! What the programs of nccl-tests print: a table by message size, in two placements, and what they
//! say at the end.
//!
//! Sources: NVIDIA/nccl-tests, `src/common.cu` and `src/util.cu`, and `doc/PERFORMANCE.md` for what
//! busbw means. The columns come and go (`error` for `#wrong` before 2.12, no `root` before 2.13,
//! more behind `#wrong` with `-I`), so they are found by the header.

use std::collections::BTreeSet;

/// Hosts and sizes of one run that are kept at most.
const HOSTS_MAX: usize = 16_384;

/// Sizes of one run that are kept: a run doubles them, and a message has less than 2^64 bytes.
const SIZES_MAX: usize = 64;

/// Rates of one placement, in GB/s (10^9 bytes).
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub struct CollectiveRates {
    /// Of one iteration, in microseconds; nothing where the column is called otherwise (`-C`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_us: Option<f64>,
    /// Bytes by time.
    pub algbw: f64,
    /// What a link of the hardware carried, comparable between operations and numbers of ranks.
    pub busbw: f64,
}

/// One size.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, schemars::JsonSchema)]
pub struct CollectiveSizeResult {
    /// Of the message.
    pub bytes: u64,
    /// From one buffer to another.
    pub out_of_place: Option<CollectiveRates>,
    /// Within one buffer.
    pub in_place: Option<CollectiveRates>,
}

impl CollectiveSizeResult {
    /// The slower placement's busbw.
    pub fn busbw(&self) -> Option<f64> {
        let rates = self.placements().map(|rates| rates.busbw);
        rates.min_by(f64::total_cmp)
    }

    /// The slower placement's time of one iteration, in seconds.
    pub fn seconds(&self) -> Option<f64> {
        let times = self.placements().filter_map(|rates| rates.time_us);
        let time_us = times.max_by(f64::total_cmp)?;
        Some(time_us / 1e6)
    }

    fn placements(&self) -> impl Iterator<Item = CollectiveRates> {
        [self.out_of_place, self.in_place].into_iter().flatten()
    }
}

/// One run of a program.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CollectiveRun {
    /// The line that it began with.
    pub line: u64,
    /// `all_reduce_perf`, where the release says it.
    pub program: Option<String>,
    /// `sum`, `none`: what is done with the data.
    pub operation: Option<String>,
    /// `float`, `bfloat16`: what an element is.
    pub data_type: Option<String>,
    /// The rank that gives or takes all, -1 where there is none; nothing where the release does not
    /// say it.
    pub root: Option<i64>,
    /// Sizes that were measured.
    pub sizes: u64,
    /// The largest of them.
    pub largest: Option<CollectiveSizeResult>,
    /// The sizes by themselves, in their order; with several iterations of one size the last. Of a
    /// run over several types or operations (`-d all`, `-o all`) those of the last one, which
    /// `data_type` and `operation` name.
    pub each: Vec<CollectiveSizeResult>,
    /// The size that it was to end with.
    pub bytes_max: Option<u64>,
    /// Elements that arrived wrong, over all sizes.
    pub wrong: u64,
    /// Sizes whose data nobody looked at (`-c 0`).
    pub unchecked: u64,
    /// `# Out of bounds values : 0 OK`.
    pub is_right: Option<bool>,
    /// `# Avg bus bandwidth`: over all sizes, so small ones pull it down.
    pub average: Option<f64>,
    /// Hosts of `# Using devices`.
    pub hosts: BTreeSet<String>,
    /// Ranks of it.
    pub ranks: u32,
    columns: Columns,
}

/// What a size was measured of.
pub(super) struct MeasuredOperation {
    pub operation: Option<String>,
    pub data_type: Option<String>,
    pub root: Option<i64>,
}

/// Places of columns, from the right: what is empty is on the left.
#[derive(Debug, Clone, Default, PartialEq)]
struct Columns {
    count: usize,
    operation: Option<usize>,
    data_type: Option<usize>,
    root: Option<usize>,
    time: Vec<usize>,
    algbw: Vec<usize>,
    busbw: Vec<usize>,
    wrong: Vec<usize>,
    deviation: Vec<usize>,
}

impl Columns {
    fn of(header: &str) -> Self {
        let names: Vec<&str> = header
            .split_whitespace()
            .filter(|word| *word != "#")
            .map(|word| word.trim_start_matches('#'))
            .collect();
        Columns {
            count: names.len(),
            operation: names.iter().position(|name| *name == "redop"),
            data_type: names.iter().position(|name| *name == "type"),
            root: names.iter().position(|name| *name == "root"),
            time: find_places_from_right(&names, "time"),
            algbw: find_places_from_right(&names, "algbw"),
            busbw: find_places_from_right(&names, "busbw"),
            wrong: find_places_from_right(&names, "wrong"),
            deviation: find_places_from_right(&names, "error"),
        }
    }
}

fn find_places_from_right(names: &[&str], name: &str) -> Vec<usize> {
    let mut places = Vec::new();
    for (at, known) in names.iter().enumerate() {
        if *known == name {
            places.push(names.len() - at);
        }
    }
    places
}

/// A line below the header, with the columns by which its cells are found.
struct TableRow<'a> {
    cells: Vec<&'a str>,
    columns: &'a Columns,
}

impl<'a> TableRow<'a> {
    /// Nothing where the line has not as many cells as the header lets it have.
    fn parse(line: &'a str, columns: &'a Columns) -> Option<Self> {
        let cells: Vec<&str> = line.split_whitespace().take(columns.count + 1).collect();
        if cells.len() > columns.count
            || columns.busbw.is_empty()
            || cells.len() + 3 < columns.count
        {
            return None;
        }
        Some(TableRow { cells, columns })
    }

    /// The cell at a place, which counts from the right.
    fn cell(&self, place: usize) -> Option<&'a str> {
        self.cells
            .get(self.cells.len().checked_sub(place)?)
            .copied()
    }

    fn number(&self, place: usize) -> Option<f64> {
        parse_amount(self.cell(place)?)
    }

    /// Rates of the placement with this number.
    fn rates(&self, placement: usize) -> Option<CollectiveRates> {
        let columns = self.columns;
        let time = columns.time.get(placement);
        Some(CollectiveRates {
            time_us: time.and_then(|place| self.number(*place)),
            algbw: self.number(*columns.algbw.get(placement)?)?,
            busbw: self.number(*columns.busbw.get(placement)?)?,
        })
    }

    /// The size with its rates; nothing where neither placement has any.
    fn size(&self) -> Option<CollectiveSizeResult> {
        let size = CollectiveSizeResult {
            bytes: self.cells.first()?.parse().ok()?,
            out_of_place: self.rates(0),
            in_place: self.rates(1),
        };
        size.busbw().is_some().then_some(size)
    }

    /// Wrong elements, in each column where somebody looked; nothing where a cell is no number.
    fn wrong_elements(&self) -> Vec<Option<f64>> {
        let mut checked = Vec::new();
        for place in &self.columns.wrong {
            if let Some(cell) = self.checked_cell(*place) {
                checked.push(parse_amount(cell));
            }
        }
        for place in &self.columns.deviation {
            // Before 2.12 it is the greatest deviation, which a sum may well have; what is out of
            // bounds is said at the end.
            if let Some(cell) = self.checked_cell(*place) {
                checked.push(parse_amount(cell).map(|_| 0.0));
            }
        }
        checked
    }

    /// The cell at a place, unless nobody looked at the data.
    fn checked_cell(&self, place: usize) -> Option<&'a str> {
        self.cell(place).filter(|cell| *cell != "N/A")
    }

    /// The cell of a column, which counts from the left.
    fn column_cell(&self, column: Option<usize>) -> Option<&'a str> {
        self.cells.get(column?).copied()
    }

    /// What the size was measured of. Only a whole line has its operation and its root in place.
    fn operation(&self) -> MeasuredOperation {
        let columns = self.columns;
        let (operation, root) = if self.cells.len() == columns.count {
            (
                self.column_cell(columns.operation),
                self.column_cell(columns.root),
            )
        } else {
            (None, None)
        };
        let data_type = self.column_cell(columns.data_type);
        MeasuredOperation {
            operation: operation.map(super::truncate_log_text),
            data_type: data_type.map(super::truncate_log_text),
            root: root.and_then(|cell| cell.parse().ok()),
        }
    }
}

/// Printed as `%5g`, so that a million errors are `1e+06` (NVIDIA/nccl-tests: src/common.cu); what
/// cannot be read was not checked.
fn parse_amount(text: &str) -> Option<f64> {
    text.parse::<f64>()
        .ok()
        .filter(|value| value.is_finite() && *value >= 0.0)
}

impl CollectiveRun {
    /// It said its last word.
    pub fn is_over(&self) -> bool {
        self.average.is_some()
    }

    /// Busbw of it is what a node's NICs carry together. In an all-to-all each GPU has its own
    /// share of them, and what is sent in one direction only says nothing of the other; `None`
    /// where the operation is not said.
    pub fn is_of_the_whole_node(&self) -> Option<bool> {
        let Some(program) = &self.program else {
            return match self.operation.as_deref() {
                None | Some("none") => None,
                Some(_) => Some(true),
            };
        };
        let of_whole_node = [
            "all_reduce",
            "all_gather",
            "reduce_scatter",
            "broadcast",
            "reduce_perf",
        ];
        Some(of_whole_node.iter().any(|name| program.contains(name)))
    }

    fn row(&mut self, line: &str) {
        let Some(row) = TableRow::parse(line, &self.columns) else {
            return;
        };
        let Some(size) = row.size() else {
            return;
        };
        let (checked, of) = (row.wrong_elements(), row.operation());
        self.measured(size, &checked, of);
    }

    /// A size with what was counted of wrong elements where somebody looked; nothing where that is
    /// no number.
    pub(super) fn measured(
        &mut self,
        size: CollectiveSizeResult,
        checked: &[Option<f64>],
        of: MeasuredOperation,
    ) {
        let bytes = size.bytes;
        for amount in checked.iter().flatten() {
            self.wrong = self.wrong.saturating_add(amount.ceil() as u64);
        }
        self.unchecked += u64::from(checked.is_empty() || checked.contains(&None));
        if (&of.operation, &of.data_type) != (&self.operation, &self.data_type) {
            self.each.clear();
        }
        (self.operation, self.data_type, self.root) = (of.operation, of.data_type, of.root);
        self.sizes += 1;
        // with several iterations of one size the last counts
        if self.largest.is_none_or(|largest| largest.bytes <= bytes) {
            self.largest = Some(size);
        }
        match self.each.iter().position(|known| known.bytes == bytes) {
            Some(place) => self.each[place] = size,
            None if self.each.len() < SIZES_MAX => self.each.push(size),
            None => {}
        }
    }

    /// A rank of it, on this host.
    pub(super) fn rank(&mut self, host: &str) {
        self.ranks = self.ranks.saturating_add(1);
        if self.hosts.len() < HOSTS_MAX && !host.is_empty() {
            self.hosts.insert(super::truncate_log_text(host));
        }
    }

    fn remark(&mut self, text: &str) {
        if let Some((_, rest)) = text.split_once("Out of bounds values : ") {
            self.is_right = rest.split_whitespace().nth(1).map(|word| word == "OK");
        } else if let Some((_, rest)) = text.split_once("Avg bus bandwidth") {
            self.average = rest
                .split_whitespace()
                .find_map(|word| word.parse().ok())
                .filter(|value: &f64| value.is_finite());
        } else if let Some((_, rest)) = text.split_once("Rank ")
            && let Some((_, rest)) = rest.split_once(" on ")
        {
            self.rank(rest.split_whitespace().next().unwrap_or_default());
        }
    }
}

/// All runs of a log.
#[derive(Debug, Default)]
pub struct Runs {
    /// In their order; at most `RUNS_MAX`.
    pub runs: Vec<CollectiveRun>,
    /// Said before its run begins.
    program: Option<String>,
}

/// Runs that are kept.
const RUNS_MAX: usize = 64;

impl Runs {
    /// A line that begins with `#`.
    pub fn comment(&mut self, text: &str, line: u64) {
        if let Some((_, name)) = text.split_once("Collective test starting: ") {
            self.program = Some(super::truncate_log_text(name));
        } else if text.contains("nThread ") {
            let bytes_max = text
                .split_once("maxBytes ")
                .and_then(|(_, rest)| rest.split_whitespace().next()?.parse().ok());
            self.begin(line).bytes_max = bytes_max;
        } else if text.contains("Using devices") {
            // an excerpt may begin here
            if self.is_through() {
                self.begin(line);
            }
        } else if text.contains("algbw") && text.contains("busbw") {
            let columns = Columns::of(text);
            if self.is_through() {
                self.begin(line).columns = columns;
            } else if let Some(run) = self.runs.last_mut() {
                run.columns = columns;
            }
        } else if let Some((_, name)) = text.split_once("Collective test concluded: ") {
            if let Some(run) = self.runs.last_mut() {
                run.program
                    .get_or_insert_with(|| super::truncate_log_text(name));
            }
        } else if let Some(run) = self.runs.last_mut() {
            run.remark(text);
        }
    }

    /// The latest run has its table already, or there is none.
    fn is_through(&self) -> bool {
        self.runs
            .last()
            .is_none_or(|run| !run.columns.busbw.is_empty())
    }

    /// A line that begins with a digit.
    pub fn row(&mut self, text: &str) {
        if let Some(run) = self.runs.last_mut().filter(|run| !run.is_over()) {
            run.row(text);
        }
    }

    fn begin(&mut self, line: u64) -> &mut CollectiveRun {
        if self.runs.len() == RUNS_MAX {
            self.runs.remove(0);
        }
        self.runs.push(CollectiveRun {
            line,
            program: self.program.take(),
            ..CollectiveRun::default()
        });
        let last = self.runs.len() - 1;
        &mut self.runs[last]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nccl::samples;

    fn of(text: &str) -> Vec<CollectiveRun> {
        let mut runs = Runs::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim_start();
            if line.starts_with('#') {
                runs.comment(line, number as u64 + 1);
            } else {
                runs.row(line);
            }
        }
        runs.runs
    }

    #[test]
    fn the_largest_size_and_the_last_words() {
        let runs = of(samples::ALL_REDUCE);
        let run = &runs[0];
        assert_eq!(
            (
                runs.len(),
                run.sizes,
                run.wrong,
                run.unchecked,
                run.is_right
            ),
            (1, 4, 0, 0, Some(true))
        );
        assert_eq!(
            (run.average, run.bytes_max, run.ranks, run.hosts.len()),
            (Some(13.2121), Some(8_589_934_592), 4, 2)
        );
        let largest = run.largest.unwrap();
        assert_eq!(
            (largest.bytes, largest.busbw(), largest.seconds()),
            (8_589_934_592, Some(26.56), Some(0.48512))
        );
        assert_eq!(
            run.each.iter().map(|size| size.bytes).collect::<Vec<_>>(),
            [8, 65_536, 268_435_456, 8_589_934_592]
        );
        assert_eq!(
            (run.operation.as_deref(), run.is_of_the_whole_node()),
            (Some("sum"), Some(true))
        );
    }

    #[test]
    fn older_and_newer_columns() {
        let old = "#       size         count    type   redop     time   algbw   busbw  error     \
                   time   algbw   busbw  error\n\
                   8388608       2097152   float     sum    532.7   15.75   29.53  5e-07    533.5   \
                   15.72   29.48  5e-07\n";
        let run = &of(old)[0];
        assert_eq!((run.wrong, run.largest.unwrap().busbw()), (0, Some(29.48)));
        let more = "#  size count type redop root time algbw busbw #wrong min max time algbw busbw \
                    #wrong min max\n\
                    8388608 2097152 float sum -1 532.7 15.75 29.53 3 1 2 533.5 15.72 29.48 1 1 2\n";
        let run = &of(more)[0];
        assert_eq!((run.wrong, run.largest.unwrap().busbw()), (4, Some(29.48)));
    }

    #[test]
    fn unchecked_data_empty_cells_and_lines_that_are_no_row() {
        let unchecked = samples::ALL_REDUCE.replace("      0", "    N/A");
        assert_eq!(of(&unchecked)[0].unchecked, 4);
        let no_operation = "#  size count type redop root time algbw busbw #wrong time algbw busbw \
                            #wrong\n\
                            1024 256 float 0 532.7 15.75 29.53 0 533.5 15.72 29.48 0\n\
                            1 2 3\n\
                            9 x\n\
                            2048 256 float sum 0 nan inf -1 0 1 1 1 0\n";
        let run = &of(no_operation)[0];
        assert_eq!(
            (
                run.sizes,
                run.operation.as_deref(),
                run.is_of_the_whole_node()
            ),
            (2, Some("sum"), Some(true))
        );
        assert_eq!(run.largest.unwrap().out_of_place, None);
        // A million errors are no text to be read as none, and what cannot be read was not checked.
        let row = |wrong: &str| {
            let text = format!(
                "#  size count type redop root time algbw busbw #wrong\n\
                 1024 256 float sum 0 1 1 1 {wrong}\n"
            );
            let run = &of(&text)[0];
            (run.wrong, run.unchecked)
        };
        assert_eq!(
            (row("1.04858e+06"), row("0"), row("N/A")),
            ((1_048_580, 0), (0, 0), (0, 1))
        );
        assert_eq!((row("-5"), row("nan"), row("x")), ((0, 1), (0, 1), (0, 1)));
    }

    #[test]
    fn runs_follow_each_other() {
        let twice = format!(
            "{0}# Collective test concluded: all_reduce_perf\n\
             # Collective test starting: alltoall_perf\n\
             {0}",
            samples::ALL_REDUCE
        );
        let runs = of(&twice);
        assert_eq!(runs.len(), 2);
        assert_eq!(
            (
                runs[0].is_of_the_whole_node(),
                runs[1].is_of_the_whole_node()
            ),
            (Some(true), Some(false))
        );
        let cut = &samples::ALL_REDUCE[..samples::ALL_REDUCE.find("# Out of").unwrap()];
        assert!(!of(cut)[0].is_over());
    }
}
