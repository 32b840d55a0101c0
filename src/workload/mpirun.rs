//! The line that starts NCCL's tests: mpirun with what keeps it from hanging in pods with RDMA,
//! each argument with its reason and cost.

use super::derive::describe_spec_path;
use super::environment::Variable;
use super::meeting::Meeting;
use super::request::NcclTest;
use super::words::split_shell_words;
use railwright_base::Diagnostic;
use railwright_knowledge::catalog::Catalog;
use railwright_knowledge::spec::LoadedSpec;
use schemars::JsonSchema;
use serde::Serialize;

/// The port of the pods' sshd where they have the network of their host.
pub(super) const SSH_PORT: u16 = 2222;

/// What mpi-operator gives ssh by a variable, which an argument of the same name goes before
/// (kubeflow/mpi-operator: pkg/controller/mpi_job_controller.go, `OMPI_MCA_plm_rsh_args`).
const OF_OPERATOR: &str = "-o ConnectionAttempts=10";

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
    /// An argument; `entry` is what the catalogue calls it.
    fn put(&mut self, entry: &str, words: &[&str]) {
        let entry = self
            .catalog
            .argument
            .get(entry)
            .cloned()
            .unwrap_or_default();
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        self.arguments.push(Argument {
            words,
            reason: entry.reason,
            cost: entry.cost,
            source: entry.source,
        });
    }

    /// What the spec says goes before what is ours of the same name.
    fn own(&mut self, of_spec: &OfSpec) {
        for words in group_argument_words(&of_spec.words) {
            let name = normalize_argument_name(&words);
            let (cost, source) = match self.catalog.argument.get(&name) {
                Some(entry) => (entry.cost.clone(), entry.source.clone()),
                None => ("not known here".to_owned(), "your spec".to_owned()),
            };
            let told = Argument {
                words,
                reason: format!("the spec says so for all jobs: {}", of_spec.place),
                cost,
                source,
            };
            // each `-x` is of another variable
            let ours = self.arguments.iter_mut().find(|argument| {
                name != "-x"
                    && strip_include_exclude(&self::normalize_argument_name(&argument.words))
                        == strip_include_exclude(&name)
            });
            match ours {
                Some(ours) => *ours = told,
                None => self.arguments.push(told),
            }
        }
    }

    fn mca(&mut self, name: &str, value: &str) {
        self.put(&format!("-mca {name}"), &["-mca", name, value]);
    }
}

/// What the spec has for mpirun: its words, and where they stand.
#[derive(Debug, Clone, Default)]
pub(super) struct OfSpec {
    pub words: Vec<String>,
    pub place: String,
}

/// What the spec has for mpirun, as words.
pub(super) fn of_spec(loaded: &LoadedSpec) -> Result<OfSpec, Vec<Diagnostic>> {
    let Some(text) = &loaded.spec.jobs.mpi_options else {
        return Ok(OfSpec::default());
    };
    let words = split_shell_words(text).map_err(|no| {
        let mut error = Diagnostic::error("RW1222", no.message).state("nothing was rendered");
        if let Some(label) = loaded.label("jobs.mpi_options", no.label) {
            error = error.labelled(label);
        }
        vec![error.next("write the options as they stand behind `mpirun`")]
    })?;
    let words = words.into_iter().map(|word| word.text).collect();
    Ok(OfSpec {
        words,
        place: describe_spec_path(loaded, "jobs.mpi_options"),
    })
}

/// mpirun and the test behind it, for this many processes.
pub(super) fn build_mpirun_arguments(
    job: &NcclTest,
    processes: u32,
    meeting: &Meeting,
    variables: &[Variable],
    of_spec: &OfSpec,
    catalog: &Catalog,
) -> Vec<Argument> {
    let mut launch = Launch {
        catalog,
        arguments: Vec::new(),
    };
    launch.put("--allow-run-as-root", &["--allow-run-as-root"]);
    let is_without = job.pods.gpus == Some(0);
    launch.put(
        if is_without {
            "-np without GPUs"
        } else {
            "-np"
        },
        &["-np", &processes.to_string()],
    );
    launch.put("-bind-to", &["-bind-to", "none"]);
    launch.mca("coll_hcoll_enable", "0");
    launch.mca("btl", "tcp,self");
    let (ending, names) = meeting.mpi();
    launch.mca(&format!("btl_tcp_{ending}"), &names);
    launch.mca(&format!("oob_tcp_{ending}"), &names);
    if meeting.ucx().is_none() {
        launch.mca("pml", "ob1");
    }
    if job.pods.host_network {
        launch.mca("plm_rsh_args", &format!("{OF_OPERATOR} -p {SSH_PORT}"));
        launch.mca("if_base_do_not_resolve", "1");
    }
    launch.own(of_spec);
    for variable in variables {
        launch.put(
            "-x",
            &["-x", &format!("{}={}", variable.name, variable.value)],
        );
    }
    let turns = job.turns.to_string();
    let of_test = [
        ("-b", job.from.as_str()),
        ("-e", &job.to),
        ("-f", "2"),
        ("-g", "1"),
        ("-c", "1"),
        ("-n", &turns),
    ];
    // Without GPUs there is none to give to a process.
    for (option, value) in of_test {
        if option != "-g" || !is_without {
            launch.put(&format!("nccl-tests {option}"), &[option, value]);
        }
    }
    launch.arguments
}

/// Words as arguments: an option with what follows it up to the next one.
fn group_argument_words(words: &[String]) -> Vec<Vec<String>> {
    let mut made: Vec<Vec<String>> = Vec::new();
    for word in words {
        match made.last_mut() {
            // The name and the value of `-mca` are its own, whatever they begin with.
            Some(last) if !word.starts_with('-') || is_mca(last) && last.len() < 3 => {
                last.push(word.clone())
            }
            _ => made.push(vec![word.clone()]),
        }
    }
    made
}

fn is_mca(words: &[String]) -> bool {
    words
        .first()
        .is_some_and(|word| word.trim_start_matches('-') == "mca")
}

/// An argument without its value, as the catalogue calls it; mpirun takes most options with one
/// dash and with two.
fn normalize_argument_name(words: &[String]) -> String {
    let first = words.first().map(String::as_str).unwrap_or_default();
    match (is_mca(words), words.get(1)) {
        (true, Some(parameter)) => format!("-mca {parameter}"),
        _ if first == "--bind-to" => "-bind-to".to_owned(),
        _ if ["-n", "--np"].contains(&first) => "-np".to_owned(),
        _ => first.to_owned(),
    }
}

/// Whether a program is one of NVIDIA/nccl-tests, by its name: its Makefile builds
/// `all_reduce_perf` and the like.
pub(super) fn is_of_nccl(program: &str) -> bool {
    program.ends_with("_perf") || program.ends_with("_perf_mpi")
}

/// What an argument decides: Open MPI does not start where interfaces are included and excluded at
/// once.
fn strip_include_exclude(name: &str) -> &str {
    name.strip_suffix("_include")
        .or_else(|| name.strip_suffix("_exclude"))
        .unwrap_or(name)
}

/// The whole line as words: the test's own arguments stand behind its name.
pub(super) fn build_mpirun_line(arguments: &[Argument], program: &str) -> Vec<String> {
    let of_test = arguments.iter().position(is_of_test);
    let (of_mpi, of_test) = arguments.split_at(of_test.unwrap_or(arguments.len()));
    let mut line = vec!["mpirun".to_owned()];
    line.extend(of_mpi.iter().flat_map(|argument| argument.words.clone()));
    line.push(program.to_owned());
    line.extend(of_test.iter().flat_map(|argument| argument.words.clone()));
    line
}

fn is_of_test(argument: &Argument) -> bool {
    argument.words.first().is_some_and(|word| word == "-b")
}

/// The options of MPI as the spec has them in `jobs.mpi_options`, for the rules about them.
pub(super) fn format_mpi_options(arguments: &[Argument]) -> String {
    let mca = arguments.iter().filter(|argument| is_mca(&argument.words));
    mca.map(|argument| argument.words.join(" "))
        .collect::<Vec<_>>()
        .join(" ")
}
