//! The line that starts NCCL's tests: mpirun with what keeps it from hanging in pods with RDMA, each argument with its reason and cost.

use super::environment::Variable;
use super::meeting::Meeting;
use super::request::NcclTest;
use crate::catalog::Catalog;
use schemars::JsonSchema;
use serde::Serialize;

/// The port of the pods' sshd where they have the network of their host.
pub(super) const SSH_PORT: u16 = 2222;

/// An argument, with its value where it has one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Argument {
    /// Its words.
    pub words: Vec<String>,
    /// Why it is there.
    pub reason: String,
    /// What it costs, and whom.
    pub cost: String,
    /// Where this is said.
    pub source: String,
}

/// What is put together.
struct Launch<'a> {
    catalog: &'a Catalog,
    arguments: Vec<Argument>,
}

impl Launch<'_> {
    /// An argument; `row` is what the catalogue calls it.
    fn put(&mut self, row: &str, words: &[&str]) {
        let row = self.catalog.argument.get(row).cloned().unwrap_or_default();
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        self.arguments.push(Argument { words, reason: row.reason, cost: row.cost, source: row.source });
    }

    fn mca(&mut self, name: &str, value: &str) {
        self.put(&format!("-mca {name}"), &["-mca", name, value]);
    }
}

/// mpirun and the test behind it, for this many processes.
pub(super) fn launch(job: &NcclTest, processes: u32, meeting: &Meeting, variables: &[Variable], catalog: &Catalog) -> Vec<Argument> {
    let mut launch = Launch { catalog, arguments: Vec::new() };
    launch.put("--allow-run-as-root", &["--allow-run-as-root"]);
    launch.put("-np", &["-np", &processes.to_string()]);
    launch.put("-bind-to", &["-bind-to", "none"]);
    launch.mca("coll_hcoll_enable", "0");
    launch.mca("btl", "tcp,self");
    let (ending, names) = meeting.mpi();
    launch.mca(&format!("btl_tcp_{ending}"), &names);
    launch.mca(&format!("oob_tcp_{ending}"), &names);
    if job.pods.host_network {
        launch.mca("plm_rsh_args", &format!("-p {SSH_PORT}"));
    }
    for variable in variables {
        launch.put("-x", &["-x", &format!("{}={}", variable.name, variable.value)]);
    }
    for (option, value) in
        [("-b", job.from.as_str()), ("-e", &job.to), ("-f", "2"), ("-g", "1"), ("-c", "1"), ("-n", &job.turns.to_string())]
    {
        launch.put(&format!("nccl-tests {option}"), &[option, value]);
    }
    launch.arguments
}

/// The whole line as words: the test's own arguments stand behind its name.
pub(super) fn line(arguments: &[Argument], program: &str) -> Vec<String> {
    let of_mpi = arguments.iter().take_while(|argument| !is_of_test(argument)).flat_map(|argument| argument.words.clone());
    let of_test = arguments.iter().skip_while(|argument| !is_of_test(argument)).flat_map(|argument| argument.words.clone());
    std::iter::once("mpirun".to_owned()).chain(of_mpi).chain([program.to_owned()]).chain(of_test).collect()
}

fn is_of_test(argument: &Argument) -> bool {
    argument.words.first().is_some_and(|word| word == "-b")
}

/// The options of MPI as the spec has them in `jobs.mpi_options`, for the rules about them.
pub(super) fn options(arguments: &[Argument]) -> String {
    let mca = arguments.iter().filter(|argument| argument.words.first().is_some_and(|word| word == "-mca"));
    mca.map(|argument| argument.words.join(" ")).collect::<Vec<_>>().join(" ")
}
