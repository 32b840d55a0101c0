//! What of a job on hosts cannot be, found before any host is asked: words that the test does not
//! take, one host alone, more GPUs than there are, addresses by which hosts do not reach each
//! other.

use super::asked::RequestPlaces;
use super::on_hosts::{HostJob, HostKind};
use super::render::JobRenderInputs;
use railwright_base::Diagnostic;
use railwright_base::text::{format_count, one_line};
use railwright_knowledge::spec::Host;
use railwright_knowledge::spec::nccl::{self, NcclProgramOptions};

/// How the inventory says that a host is this machine.
const LOCAL: &str = "local";

const NOTHING: &str = "nothing was started, and no host was asked";

/// All that cannot be.
pub(super) fn find_host_job_errors(
    inputs: JobRenderInputs<'_>,
    job: &HostJob,
    hosts: &[&Host],
    asked: &RequestPlaces,
) -> Vec<Diagnostic> {
    let mut faults = Vec::new();
    if let HostKind::NcclTest(test) = &job.kind {
        let words = NcclProgramOptions {
            program: &test.program,
            from: &test.from,
            to: &test.to,
            turns: test.turns,
        };
        for fault in nccl::find_nccl_test_faults(words) {
            let error = Diagnostic::error("RW1300", fault.message)
                .state(NOTHING)
                .next(fault.fix);
            faults.push(asked.at(error, &format!("job.{}", fault.key), fault.label));
        }
    }
    if let [alone] = hosts {
        let error = Diagnostic::error(
            "RW1305",
            format!(
                "{} alone proves nothing of the fabric",
                one_line(&alone.name, 60)
            ),
        )
        .effect("all ranks would be on one host, and nothing would cross the network")
        .state(NOTHING)
        .next("name at least two hosts");
        faults.push(asked.at(error, "job.hosts", "one host"));
    }
    faults.extend(too_many_gpus(inputs, job, hosts, asked));
    let names = launch_names(job).err().into_iter().flatten();
    faults.extend(names.map(|(host, why)| {
        let error = Diagnostic::error(
            "RW1305",
            format!("the other hosts do not reach {host}: {why}"),
        );
        let error = error.state(NOTHING).next(format!(
            "write an address of {host} in the spec that the other hosts have, too: ssh: {{ \
             address: ... }}"
        ));
        asked.at(error, "job.hosts", "named here")
    }));
    faults
}

fn too_many_gpus(
    inputs: JobRenderInputs<'_>,
    job: &HostJob,
    hosts: &[&Host],
    asked: &RequestPlaces,
) -> Option<Diagnostic> {
    let gpus = job.gpus?;
    // A spec that says nothing of GPUs says nothing of their number either.
    let (host, count) = hosts.iter().find_map(|host| {
        let count = inputs.loaded.group_of(host).gpu.as_ref()?.count;
        (count < gpus).then_some((host, count))
    })?;
    let error = Diagnostic::error(
        "RW1305",
        format!(
            "{} has {} by the spec",
            one_line(&host.name, 60),
            format_count(count as usize, "GPU")
        ),
    )
    .effect("two ranks on one GPU break the job: NCCL takes each GPU once")
    .state(NOTHING)
    .next(format!("--gpus {count}, or leave it out"));
    Some(asked.at(error, "job.gpus", "more than that"))
}

/// What hosts are called where others reach them, or why one cannot be: mpirun's `-H` is cut at
/// commas, and each part at its first colon, behind which the number of processes stands; a `+` at
/// the start counts nodes (open-mpi/ompi: orte/util/dash_host/dash_host.c; openpmix/prrte:
/// src/util/dash_host/dash_host.c). So an IPv6 address cannot stand there.
pub(super) fn launch_names(job: &HostJob) -> Result<Vec<String>, Vec<(String, String)>> {
    let is_of_mpi = matches!(job.kind, HostKind::NcclTest(_));
    let (mut names, mut unreachable) = (Vec::new(), Vec::new());
    for (place, (host, address)) in job.hosts.iter().zip(&job.addresses).enumerate() {
        let shown = one_line(address, 60);
        let why = match address.as_str() {
            // mpirun runs there, and reaches its own host without a login.
            LOCAL if place == 0 && is_of_mpi => {
                names.push("localhost".to_owned());
                continue;
            }
            LOCAL if place == 0 || is_of_mpi => {
                "the spec has `local` as its address, which is another machine to each of them"
                    .to_owned()
            }
            address if is_of_mpi && address.contains(':') => format!(
                "mpirun takes what follows the first colon of {shown} for a number of processes"
            ),
            address
                if is_of_mpi
                    && (address.starts_with('+')
                        || address.contains(|c: char| c == ',' || c.is_whitespace())) =>
            {
                format!("mpirun does not take `{shown}` for one host")
            }
            address => {
                names.push(address.to_owned());
                continue;
            }
        };
        unreachable.push((one_line(host, 60), why));
    }
    match unreachable.is_empty() {
        true => Ok(names),
        false => Err(unreachable),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(kind: HostKind, addresses: [&str; 2]) -> Result<Vec<String>, Vec<(String, String)>> {
        launch_names(&HostJob {
            kind,
            hosts: vec!["gpu1".to_owned(), "gpu2".to_owned()],
            addresses: addresses.map(str::to_owned).to_vec(),
            environment: vec![],
            gpus: None,
            over_tcp: false,
        })
    }

    #[test]
    fn hosts_are_called_what_others_reach() {
        let tests = || HostKind::NcclTest(Box::default());
        let training = || HostKind::Pytorch {
            steps: 1,
            mebibytes: 1,
            port: 29_500,
        };
        assert_eq!(
            named(tests(), ["10.0.0.1", "gpu2.example"]),
            Ok(vec!["10.0.0.1".to_owned(), "gpu2.example".to_owned()])
        );
        assert_eq!(
            named(tests(), ["local", "10.0.0.2"]).unwrap(),
            ["localhost", "10.0.0.2"]
        );
        assert_eq!(
            named(training(), ["fd00::1", "local"]).unwrap(),
            ["fd00::1", "local"],
            "only the first is met"
        );
        for (kind, addresses, host, why) in [
            (tests(), ["10.0.0.1", "local"], "gpu2", "`local`"),
            (training(), ["local", "10.0.0.2"], "gpu1", "`local`"),
            (
                tests(),
                ["10.0.0.1", "fd00::2"],
                "gpu2",
                "the first colon of fd00::2",
            ),
            (tests(), ["gpu1,gpu3", "10.0.0.2"], "gpu1", "`gpu1,gpu3`"),
            (tests(), ["+n1", "10.0.0.2"], "gpu1", "`+n1`"),
        ] {
            let found = named(kind, addresses).unwrap_err();
            assert!(
                found.len() == 1 && found[0].0 == host && found[0].1.contains(why),
                "{found:?}"
            );
        }
    }
}
