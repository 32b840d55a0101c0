//! The doors: how bytes of each sort come in, and every screen that comes of them.

use crate::room::{Room, runtime};
use proptest::sample::Index;
use railwright_apply::{Past, apply_plan, status, steps};
use railwright_base::{Diagnostic, Target, nodeset};
use railwright_knowledge::catalog::{self, Catalog};
use railwright_knowledge::module::DesiredState;
use railwright_knowledge::rules::{self, RuleSet};
use railwright_knowledge::solve;
use railwright_knowledge::spec::{self, LoadedSpec, SourceFile, Sources};
use railwright_plan::{Plan, content, file};
use railwright_report as report;
use railwright_resource::{DesiredResource, Observation, host, kind_named, list_resource_kinds};
use railwright_session::read_recording;
use railwright_state::journal::{Chain, JournalEntry};
use railwright_state::sightings::Sightings;
use railwright_state::{
    ClusterState, IdentityConflict, StateFolder, TargetIdentity, TargetRecord, journal, run_status,
};
use railwright_transport::{SshAccess, SshConnector};
use railwright_workload::{self as workload, JobRenderInputs, JobRequest, Templates, Workloads};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::OnceLock;

/// The screens that came of an input, or what is wrong with how it was taken.
type Opened = Result<Vec<String>, String>;

/// A sound document with a text put into one of its texts, and its seals recreated.
type Sealed = fn(&[u8], Index, &str) -> Vec<u8>;

/// One way in.
pub struct Door {
    /// The folder of its corpus.
    pub name: &'static str,
    /// Sound documents.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Takes bytes in.
    pub open: fn(&[u8]) -> Opened,
    /// Puts a bait into a text of a sound document and seals it anew.
    pub sealed: Option<Sealed>,
}

/// All of them.
pub const DOORS: &[Door] = &[
    Door {
        name: "spec",
        seeds: specs,
        open: open_spec,
        sealed: None,
    },
    Door {
        name: "cabling",
        seeds: cablings,
        open: open_cabling,
        sealed: None,
    },
    Door {
        name: "neighbours",
        seeds: neighbours,
        open: open_neighbours,
        sealed: None,
    },
    Door {
        name: "counters",
        seeds: counters,
        open: open_counters,
        sealed: None,
    },
    Door {
        name: "pod",
        seeds: pods,
        open: open_pod,
        sealed: None,
    },
    Door {
        name: "catalogue",
        seeds: || data("catalog"),
        open: open_catalogue,
        sealed: None,
    },
    Door {
        name: "rules",
        seeds: || data("rules"),
        open: open_rules,
        sealed: None,
    },
    Door {
        name: "script",
        seeds: scripts,
        open: open_script,
        sealed: None,
    },
    Door {
        name: "arena",
        seeds: arena_lines,
        open: open_arena,
        sealed: None,
    },
    Door {
        name: "node-set",
        seeds: node_sets,
        open: open_node_set,
        sealed: None,
    },
    Door {
        name: "observation",
        seeds: observations,
        open: open_observation,
        sealed: Some(json_with),
    },
    Door {
        name: "plan",
        seeds: || vec![run().plan.clone()],
        open: open_plan,
        sealed: Some(plan_with),
    },
    Door {
        name: "journal",
        seeds: || vec![run().journal.clone()],
        open: open_journal,
        sealed: Some(journal_with),
    },
    Door {
        name: "record",
        seeds: || vec![run().record.clone()],
        open: open_record,
        sealed: None,
    },
    Door {
        name: "state",
        seeds: || vec![run().state.clone()],
        open: open_state,
        sealed: None,
    },
    Door {
        name: "repository",
        seeds: super::repository::seeds,
        open: super::repository::open,
        sealed: None,
    },
    Door {
        name: "log",
        seeds: logs,
        open: open_log,
        sealed: None,
    },
    Door {
        name: "known_hosts",
        seeds: known_hosts,
        open: open_known_hosts,
        sealed: None,
    },
];

/// What a run left behind.
struct Left {
    plan: Vec<u8>,
    journal: Vec<u8>,
    record: Vec<u8>,
    state: Vec<u8>,
}

fn run() -> &'static Left {
    static LEFT: OnceLock<Left> = OnceLock::new();
    LEFT.get_or_init(|| {
        runtime().block_on(async {
            let room = Room::of(&["a", "b"]).resource(
                "file",
                json!({ "path": "/etc/x", "content": "one\n" }),
                &[],
            );
            let plan = room.plan().await;
            let run = apply_plan(&plan, &room.context, room.sink())
                .await
                .run
                .unwrap();
            let at = |path: &str| std::fs::read(room.context.folder.path().join(path)).unwrap();
            Left {
                plan: file::serialize_plan(&plan),
                journal: at(&format!("runs/{run}/journal.jsonl")),
                record: room.host("a", |host| host.record.clone().unwrap().into_bytes()),
                state: at("state.json"),
            }
        })
    })
}

/// An error has a code, the code has a page, and it is told like any other.
fn told(diagnostics: &[Diagnostic], sources: &Sources) -> Opened {
    for diagnostic in diagnostics {
        let has_page = Path::new("docs/codes")
            .join(format!("{}.md", diagnostic.code))
            .exists();
        if !has_page && !known().1.rules.contains_key(&*diagnostic.code) {
            return Err(format!("an error without a page: {diagnostic:?}"));
        }
    }
    Ok(vec![report::diagnostic::render_diagnostics(
        diagnostics,
        sources,
        report::out::ScreenStyle::PLAIN,
    )])
}

fn told_one(diagnostic: Diagnostic) -> Opened {
    told(&[diagnostic], &Sources::default())
}

/// A file of this name with these bytes, for doors that read files.
fn beside<T>(name: &str, bytes: &[u8], work: impl FnOnce(&Path) -> T) -> T {
    let folder = tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap();
    std::fs::write(folder.path().join(name), bytes).unwrap();
    work(folder.path())
}

fn specs() -> Vec<Vec<u8>> {
    let files = [
        "inventories/lab",
        "inventories/roce-a100",
        "inventories/acs",
    ]
    .iter()
    .flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let yaml = files
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "yaml"));
    yaml.map(|path| std::fs::read(path).unwrap()).collect()
}

fn open_spec(bytes: &[u8]) -> Opened {
    let text = String::from_utf8_lossy(bytes).into_owned();
    match spec::load_spec(vec![SourceFile {
        name: "x.yaml".to_owned(),
        text,
    }]) {
        Ok(loaded) => {
            let (catalog, rules) = known();
            let mut screens = told(&loaded.warnings, &loaded.sources)?;
            screens.extend(told(
                &rules::evaluate_rules(&loaded, catalog, rules, "2026-01-01").diagnostics(),
                &loaded.sources,
            )?);
            screens.extend(told(
                &catalog::unknown_models(&loaded, catalog),
                &loaded.sources,
            )?);
            screens.extend(workloads(&loaded)?);
            Ok(screens)
        }
        Err(problems) => told(&problems.diagnostics, &problems.sources),
    }
}

fn templates() -> &'static Templates {
    static TEMPLATES: OnceLock<Templates> = OnceLock::new();
    TEMPLATES.get_or_init(|| Templates::load("", []).unwrap())
}

/// What becomes of the workloads of a spec.
fn workloads(loaded: &LoadedSpec) -> Opened {
    let (catalog, rules) = known();
    let inputs = JobRenderInputs {
        loaded,
        catalog,
        rules,
        templates: templates(),
        today: "2026-01-01",
        derives: true,
    };
    let (workloads, problems) = Workloads::of(inputs);
    if !problems.is_empty() {
        return told(&problems, &loaded.sources);
    }
    let found: Vec<Diagnostic> = workloads
        .found()
        .into_iter()
        .map(|finding| finding.diagnostic)
        .chain(workloads.notes())
        .collect();
    let mut screens = told(&found, &loaded.sources)?;
    let mut desired = DesiredState::default();
    if let Err(problems) = workloads.resource(loaded, &mut desired) {
        screens.extend(told(&problems, &loaded.sources)?);
    }
    for resource in &desired.resources {
        let kind = kind_named(&resource.kind).ok_or("a resource of no kind")?;
        if !kind.check(&resource.body).is_empty() {
            return Err(format!(
                "a resource that its kind refuses: {}",
                resource.body
            ));
        }
    }
    Ok(screens)
}

/// The example's tables, and one with every sort of line.
fn cablings() -> Vec<Vec<u8>> {
    let own = "# rack 1\r\n\
               \n\
               host,nic,switch,port\n\
               \"gpu[01,03]\",ens0f0np0,leaf1,\"Ethernet[0,8]\"\n gpu02 , ens[0-1]f0np0,leaf[1-2],Ethernet4\n";
    ["inventories/roce-a100", "inventories/roce-h100-rail"]
        .map(|folder| std::fs::read(Path::new(folder).join("cabling.csv")).unwrap())
        .into_iter()
        .chain([own.as_bytes().to_vec()])
        .collect()
}

/// The example that these cables are of.
fn of_cables() -> spec::LoadedSpec {
    let text =
        String::from_utf8_lossy(&std::fs::read("inventories/roce-a100/cluster.yaml").unwrap())
            .into_owned();
    spec::load_spec(vec![SourceFile {
        name: "x.yaml".to_owned(),
        text,
    }])
    .unwrap()
}

/// Read into a spec that is sound, and written again.
fn open_cabling(bytes: &[u8]) -> Opened {
    let text = String::from_utf8_lossy(bytes).into_owned();
    match spec::cabling::load_cabling(
        of_cables(),
        SourceFile {
            name: "cabling.csv".to_owned(),
            text,
        },
    ) {
        Ok(loaded) => {
            let cables: Vec<_> = loaded
                .cabling
                .unwrap()
                .cables
                .into_iter()
                .map(|cable| (cable.from, cable.to))
                .collect();
            let mut screens = told(&loaded.warnings, &loaded.sources)?;
            screens.push(spec::cabling::write::render_cabling_table(&cables));
            Ok(screens)
        }
        Err(problems) => told(&problems.diagnostics, &problems.sources),
    }
}

fn neighbours() -> Vec<Vec<u8>> {
    let heard = |netdev: &str, system: &str, port: &str| {
        json!({ "name": netdev, "via": "LLDP", "chassis": [{ "id": [{ "type": "mac", "value": "6a:1b:ee:54:7b:dc" }], "name": [{ "value": system }] }],
            "port": [{ "id": [{ "type": "ifname", "value": port }], "descr": [{ "value": "to a host" }] }] })
    };
    let all = json!({ "lldp": [{ "interface": [heard("ens0f0np0", "leaf1", "Ethernet0"), heard("ens1f0np0", "leaf3.dc.example", "Ethernet0"),
        heard("ens2f0np0", "tor9", "swp1"), heard("ens3f0np0", "gpu02", "ens3f0np0"), heard("ens3f0np0", "", "")] }] });
    let text = serde_json::to_string_pretty(&all)
        .unwrap()
        .replace('\n', "\n|");
    let netdevs: String = (0..8)
        .map(|rail| format!("\n== netdev ens{rail}f0np0\n|carrier={}\n", rail % 2))
        .collect();
    vec![format!("{netdevs}\n== lldpctl 0\n|{text}\n\n== end\n").into_bytes()]
}

/// What a host says of its neighbours: compared with the example's cables, shown, and written down.
fn open_neighbours(bytes: &[u8]) -> Opened {
    use railwright_verify::cabling::{
        CablingNames, CablingScope, DeviceLldpView, Silent, Views, compare_cabling,
        discover::discover_cables,
    };
    let table = String::from_utf8_lossy(&cablings()[0]).into_owned();
    let loaded = spec::cabling::load_cabling(
        of_cables(),
        SourceFile {
            name: "cabling.csv".to_owned(),
            text: table,
        },
    )
    .unwrap();
    let mut answers = railwright_resource::ReadResults::default();
    let out = String::from_utf8_lossy(bytes).into_owned();
    let read = railwright_resource::Read::LldpNeighbours;
    answers.insert(
        read.key(),
        railwright_resource::ReadResult {
            status: railwright_resource::AnswerStatus::Exit(0),
            out,
        },
    );
    let view = railwright_resource::lldp::decode_host_neighbours(&answers)
        .map(DeviceLldpView::of)
        .map_err(Silent::from);
    let views = Views::from([("gpu01".to_owned(), view)]);
    let cables = loaded.cabling.as_ref().unwrap().cables.as_slice();
    let names = CablingNames::of(&loaded, cables);
    let nics: Vec<_> = cables.iter().map(|cable| cable.from.clone()).collect();
    let found = compare_cabling(
        CablingScope {
            cables,
            nics: &nics,
            names: &names,
        },
        &views,
    );
    let subject = report::cabling::CablingSubject {
        inventory: "x",
        file: "cabling.csv",
        hosts: &["gpu01".to_owned()],
        switches: &[],
    };
    let discovered = discover_cables(
        &nics,
        &std::collections::BTreeSet::from(["leaf1"]),
        &CablingNames::of(&loaded, &[]),
        &views,
    );
    let mut screens = vec![
        report::cabling::render_cabling_screen(&subject, &found),
        spec::cabling::write::render_cabling_table(&discovered.cables),
    ];
    screens.push(report::document::render_json_document(
        &report::cabling::document::CablingDocument::of(&subject, &found),
    ));
    screens.extend(report::cabling::document::describe_unseen_nics(
        &discovered.unseen,
    ));
    Ok(screens)
}

/// What a pod says of its image: complete, and without anything.
fn pods() -> Vec<Vec<u8>> {
    let elf = "7f454c4602010100";
    let lib = "/usr/lib/x86_64-linux-gnu";
    let complete = format!(
        "begin 1\n\
         environment /opt/lib\n\
         configuration /usr/local/lib\n\
         file {elf} {lib}/libibverbs.so.1\n\
         pattern {lib}/libibverbs/lib%s-rdmav34.so {lib}/libibverbs.so.1\n\
         file {elf} {lib}/libibverbs/libmlx5-rdmav34.so\n\
         file {elf} {lib}/librdmacm.so.1\n\
         driver mlx5\n\
         cache \n\
         cached {lib}/libibverbs.so.1\n\
         device c uverbs0\n\
         device c rdma_cm\n\
         limit 8192\n\
         capabilities 00000000a80425fb\n\
         end 1\n"
    );
    vec![
        complete.into_bytes(),
        b"begin 1\nlimit unlimited\nend 1\n".to_vec(),
    ]
}

/// What a pod says of its image: evaluated and shown.
fn open_pod(bytes: &[u8]) -> Opened {
    use railwright_verify::image::{
        ImageRequirements, check_image_contents, evaluation::list_unknown_findings, program,
    };
    let catalog =
        catalog::load_catalog("", []).map_err(|problems| format!("{:?}", problems.diagnostics))?;
    let desired = ImageRequirements::of("rocev2", catalog.user_space.get("rocev2").unwrap(), &[]);
    let findings = match program::parse_inspection_output(&String::from_utf8_lossy(bytes)) {
        Ok(seen) => check_image_contents(&seen, &desired, "railwright image render"),
        Err(why) => list_unknown_findings(&desired, why.as_words(), "kubectl describe pod"),
    };
    let document = report::document::render_json_document(&report::image::ImageDocument::of(
        "ml/train", &desired, &findings,
    ));
    Ok(vec![
        report::image::render_image_screen("ml/train", &desired, &findings),
        document,
    ])
}

/// A reading of a host: before, after.
fn counters() -> Vec<Vec<u8>> {
    let port = |rail: usize| {
        format!(
            "port ens{rail}f0np0\n\
             rx_prio3_pause {rail}\n\
             tx_prio3_pause 7\n\
             rx_prio5_pause 18446744073709551615\n\
             out_of_buffer 4294967295\n\
             PFC_WD_STATUS/3 stormed\n"
        )
    };
    vec![
        format!("uptime 100.25\n{}", (0..8).map(port).collect::<String>()).into_bytes(),
        b"uptime 1\nport ens0f0np0\nabsent\nport ens1f0np0\nunread nv: no\n".to_vec(),
    ]
}

/// What a host says of its counters, with all else that it says of its ends: evaluated, shown
/// and drawn.
fn open_counters(bytes: &[u8]) -> Opened {
    use railwright_resource::counters::CounterSampleOrdinal;
    use railwright_resource::{AnswerStatus, Read, ReadResult, ReadResults};
    use railwright_verify::fabric::{
        DesiredFabricSettings, Devices, FabricDevice, check_fabric_links, list_fabric_links,
    };
    let table = String::from_utf8_lossy(&cablings()[0]).into_owned();
    let loaded = spec::cabling::load_cabling(
        of_cables(),
        SourceFile {
            name: "cabling.csv".to_owned(),
            text: table,
        },
    )
    .unwrap();
    let out = String::from_utf8_lossy(bytes).into_owned();
    let mut answers = ReadResults::default();
    let netdevs = || vec!["ens0f0np0".to_owned()];
    let first = String::from_utf8_lossy(&counters()[0]).into_owned();
    let mut add = |read: Read, out: &str| {
        answers.insert(
            read.key(),
            ReadResult {
                status: AnswerStatus::Exit(0),
                out: out.to_owned(),
            },
        )
    };
    add(
        Read::LinkCounters {
            netdevs: netdevs(),
            sample: CounterSampleOrdinal::First,
        },
        &first,
    );
    add(
        Read::LinkCounters {
            netdevs: netdevs(),
            sample: CounterSampleOrdinal::Second,
        },
        &out,
    );
    for netdev in netdevs() {
        add(
            Read::Link {
                netdev: netdev.clone(),
            },
            "mtu=9000\nflags=0x1003\n",
        );
        add(Read::LinkQos { netdev }, &out);
    }
    let devices = Devices::from([
        ("gpu01".to_owned(), FabricDevice::Host(answers)),
        ("leaf1".to_owned(), FabricDevice::Silent(out)),
    ]);
    let desired = DesiredFabricSettings::of(&loaded, true);
    let report = check_fabric_links(&list_fabric_links(&loaded, None), &devices, &desired);
    let subject = report::fabric::FabricSubject {
        inventory: "x",
        recorded: None,
        desired: &desired,
        report: &report,
    };
    let document = report::fabric::document::FabricDocument::of(&subject);
    Ok(vec![
        report::fabric::render_fabric_screen(&subject),
        report::fabric::svg::render_fabric_svg(&subject),
        report::document::render_json_document(&document),
    ])
}

/// The shipped catalogue and rules.
fn known() -> &'static (Catalog, RuleSet) {
    static KNOWN: OnceLock<(Catalog, RuleSet)> = OnceLock::new();
    KNOWN.get_or_init(|| {
        (
            catalog::load_catalog("", []).unwrap(),
            rules::load_rules("", []).unwrap(),
        )
    })
}

/// Files of the product's own data, as an inventory may hold them.
fn data(folder: &str) -> Vec<Vec<u8>> {
    let files = std::fs::read_dir(Path::new("modules").join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|e| e == "yaml"))
        .collect();
    files.sort();
    files
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect()
}

fn own(bytes: &[u8]) -> [(String, String); 1] {
    [(
        "x.yaml".to_owned(),
        String::from_utf8_lossy(bytes).into_owned(),
    )]
}

fn open_catalogue(bytes: &[u8]) -> Opened {
    match catalog::load_catalog("own", own(bytes)) {
        Ok(catalog) => Ok(vec![
            report::knowledge::render_catalog_table(&catalog.gpu, &["architecture", "note"]),
            report::knowledge::render_catalog_table(&catalog.nic, &["driver", "fabrics"]),
            catalog
                .os
                .entries()
                .map(|entry| report::knowledge::render_catalog_entry(&entry.content, ""))
                .collect(),
            report::knowledge::render_catalog_table(
                &catalog.bandwidth,
                &["rate_gbps", "least_gbps"],
            ),
            report::knowledge::render_catalog_table(&catalog.release, &["line", "brings", "needs"]),
            catalog
                .release
                .entries()
                .map(|entry| report::knowledge::render_catalog_entry(&entry.content, ""))
                .collect(),
            catalog
                .combination
                .entries()
                .map(|entry| report::knowledge::render_catalog_entry(&entry.content, ""))
                .collect(),
            excluding(&catalog),
        ]),
        Err(problems) => told(&problems.diagnostics, &problems.sources),
    }
}

/// What a catalogue makes of a spec, and of the combinations that it brings.
fn excluding(catalog: &Catalog) -> String {
    let text =
        String::from_utf8_lossy(&std::fs::read("inventories/roce-h100-rail/cluster.yaml").unwrap())
            .into_owned();
    let loaded = spec::load_spec(vec![SourceFile {
        name: "x.yaml".to_owned(),
        text,
    }])
    .unwrap();
    let answers = solve::solve_with_waivers(&loaded, catalog, &Default::default());
    let told = solve::collect_conflict_findings(
        &loaded,
        &answers,
        &Default::default(),
        &Default::default(),
    );
    let found: Vec<Diagnostic> = told
        .into_iter()
        .map(|told| told.diagnostic)
        .chain(solve::check_combinations(catalog))
        .collect();
    report::diagnostic::render_diagnostics(&found, &loaded.sources, report::out::ScreenStyle::PLAIN)
}

/// Loaded over the shipped ones, listed, explained, tried by their own cases, and asked of a spec.
fn open_rules(bytes: &[u8]) -> Opened {
    let set = match rules::load_rules("own", own(bytes)) {
        Ok(set) => set,
        Err(problems) => return told(&problems.diagnostics, &problems.sources),
    };
    let mut screens = vec![report::knowledge::render_rule_list(&set)];
    screens.extend(
        set.rules
            .values()
            .filter(|rule| rule.own)
            .map(report::knowledge::render_rule_page),
    );
    let text =
        String::from_utf8_lossy(&std::fs::read("inventories/roce-a100/cluster.yaml").unwrap())
            .into_owned();
    let loaded = spec::load_spec(vec![SourceFile {
        name: "x.yaml".to_owned(),
        text,
    }])
    .unwrap();
    let found = rules::evaluate_rules(&loaded, &known().0, &set, "2026-01-01").diagnostics();
    // a user's own codes have no page
    screens.push(report::diagnostic::render_diagnostics(
        &found,
        &set.sources,
        report::out::ScreenStyle::PLAIN,
    ));
    screens.push(report::diagnostic::render_diagnostics(
        &rules::check_rule_cases(&set, &known().0),
        &set.sources,
        report::out::ScreenStyle::PLAIN,
    ));
    Ok(screens)
}

fn scripts() -> Vec<Vec<u8>> {
    [
        "sudo apt-get install -y mofed && sudo reboot\nip link set dev eth1 mtu 9000 | tee log\n",
        "git clone https://github.com/Mellanox/nv_peer_memory.git\n\
         cd nv_peer_memory && git checkout 1.0-9\n\
         make && sudo insmod ./nv_peer_mem.ko\n",
        "cat <<EOF | sudo tee /etc/modules-load.d/x.conf\n\
         rdma_ucm\n\
         EOF\n\
         for i in 1 2; do mlnx_qos -i ens$i --pfc 0,0,0,1,0,0,0,0 2>/dev/null; done\n",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

fn open_script(bytes: &[u8]) -> Opened {
    static DICTIONARY: OnceLock<railwright_knowledge::translate::Dictionary> = OnceLock::new();
    let dictionary =
        DICTIONARY.get_or_init(|| railwright_knowledge::translate::load_translations().unwrap());
    match railwright_knowledge::translate::translate_script(
        &String::from_utf8_lossy(bytes),
        dictionary,
    ) {
        Ok(translation) => Ok(vec![report::translation::render_translation_screen(
            &translation,
        )]),
        Err(diagnostic) => told_one(diagnostic),
    }
}

fn arena_lines() -> Vec<Vec<u8>> {
    [
        "arena submit pytorch \\\n --name=a --image=b:1 --gpus=1 --device=aliyun/erdma=1 -e NCCL_DEBUG=INFO --tensorboard \
         --logdir=/l \"torchrun x\"",
        "arena submit pj --name a --image b --toleration k=v:NoSchedule,Exists --data c:/d \
         --data-dir /x:/y --running-timeout 2h22m -- run 'a b'",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}

fn open_arena(bytes: &[u8]) -> Opened {
    let line = match workload::from_arena(&String::from_utf8_lossy(bytes)) {
        Ok(line) => line,
        Err((problems, sources)) => return told(&problems, &sources),
    };
    let loaded = spec::load_case_spec(&json!({ "fabric": { "kind": "erdma" }, "kubernetes": {} }))?;
    let (catalog, rules) = known();
    let inputs = JobRenderInputs {
        loaded: &loaded,
        catalog,
        rules,
        templates: templates(),
        today: "2026-01-01",
        derives: true,
    };
    let mut sources = Sources::default();
    line.asked
        .source()
        .into_iter()
        .for_each(|source| sources.add(source.clone()));
    match workload::render_job(
        inputs,
        &JobRequest::Pytorch(Box::new(line.job)),
        &line.asked,
    ) {
        Ok(job) => {
            let mut screens = told(&job.told(), &sources)?;
            let text = report::workload::render_job_objects(&job);
            let read: Vec<Value> = text
                .split("\n---\n")
                .map(|part| serde_yaml_archived::from_str(part).unwrap())
                .collect();
            assert_eq!(
                Value::from(read),
                json!(job.objects),
                "what is printed is what was made"
            );
            screens.extend([text, report::workload::render_job_explanation(&job)]);
            Ok(screens)
        }
        Err(problems) => told(&problems, &sources),
    }
}

fn node_sets() -> Vec<Vec<u8>> {
    ["gpu[001-064]", "n1,n2", "r[1-4]n[1-16/2]", "a[1,3-5]b"]
        .map(|text| text.as_bytes().to_vec())
        .to_vec()
}

/// As it stands in a spec, so that its error has a code; and alone, as on a command line.
fn open_node_set(bytes: &[u8]) -> Opened {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let mut screens = open_spec(
        format!(
            "cluster: x\nnodes:\n  - {{ name: {}, os: debian-12 }}\n",
            json!(text)
        )
        .as_bytes(),
    )?;
    if let Ok(names) = nodeset::expand_node_set(&text) {
        if names.len() > 1 << 20 {
            return Err(format!("{} names", names.len()));
        }
        screens.push(nodeset::fold_node_set(&names));
    }
    Ok(screens)
}

fn observations() -> Vec<Vec<u8>> {
    vec![std::fs::read("plans/lab/fresh.json").unwrap()]
}

/// Decoded, compared with a resource of every kind on its first targets, and shown in every format
/// of drift.
fn open_observation(bytes: &[u8]) -> Opened {
    let observation: Observation = match beside("facts", bytes, |folder| {
        read_recording(&folder.join("facts"))
    }) {
        Ok(observation) => observation,
        Err(failure) => return told(&failure.diagnostics, &failure.sources),
    };
    let targets: Vec<Target> = observation.targets.keys().take(2).cloned().collect();
    let of = |target: &Target| {
        super::bodies::bodies()
            .into_iter()
            .map(|(kind, body)| crate::room::resource(&target.name, kind, body, &[]))
            .collect::<Vec<_>>()
    };
    let resources: Vec<DesiredResource> = targets.iter().flat_map(of).collect();
    let diff = |resource: &DesiredResource| {
        let found = observation
            .targets
            .get(&resource.address.target)
            .ok_or("not there")?;
        drop(host::decode_host_facts(&found.answers));
        Ok(kind_named(&resource.kind)
            .unwrap()
            .diff(resource, &found.answers))
    };
    let named: std::collections::BTreeSet<&str> = super::bodies::bodies()
        .into_iter()
        .map(|(kind, _)| kind)
        .collect();
    assert_eq!(
        named.len() + 1,
        list_resource_kinds().len(),
        "every kind but the build of a module has a body"
    );
    let found = railwright_drift::compute_drift(
        &Default::default(),
        &resources,
        &Default::default(),
        railwright_drift::compare::DiffFunctions {
            diff: &diff,
            left: &|applied, _| diff(applied),
        },
        &Default::default(),
    );
    Ok(vec![
        report::drift::render_drift_screen(&found),
        report::drift::markdown::render_markdown_document(&found),
        report::drift::junit::render_junit_document(&found),
        report::drift::sarif::render_sarif_document(&found),
        report::drift::prometheus::render_prometheus_document(&found, 0.0),
    ])
}

fn open_plan(bytes: &[u8]) -> Opened {
    let plan = match file::parse_plan_file("x", bytes) {
        Ok(plan) => plan,
        Err(problem) => return told_one(problem),
    };
    let mut screens = vec![report::plan::render_plan_screen(
        &plan,
        &report::plan::PlanNextSteps::default(),
    )];
    screens.extend(report::plan::render_plan_details(
        &plan,
        &["host/a".to_owned()],
    ));
    screens.extend(
        [
            report::graph::GraphFormat::Dot,
            report::graph::GraphFormat::Mermaid,
        ]
        .map(|format| report::graph::render_plan_graph(&plan, format)),
    );
    if let Err(problem) = steps::build_steps(&plan) {
        screens.extend(told_one(problem)?);
    }
    Ok(screens)
}

fn open_journal(bytes: &[u8]) -> Opened {
    let journal = match journal::parse_journal("x", bytes) {
        Ok(journal) => journal,
        Err(problem) => return told_one(problem),
    };
    let mut past = Past::default();
    past.learn(bytes);
    let plan = file::parse_plan_file("x", &run().plan).unwrap();
    let steps = steps::build_steps(&plan).unwrap();
    let status = status::compute_rollout_status(
        &plan,
        &steps,
        &run_status::fold_journal_records(&journal.records),
        false,
        &past,
    );
    Ok(vec![report::rollout::render_rollout_screen(
        &status,
        "inv",
        "2026-01-01T00:00:00Z".parse().unwrap(),
    )])
}

fn open_record(bytes: &[u8]) -> Opened {
    let record = TargetRecord::parse(&Target::host("a"), &String::from_utf8_lossy(bytes));
    let identity = TargetIdentity {
        record,
        ..TargetIdentity::default()
    };
    let found =
        ClusterState::default().recognize("c", &BTreeMap::from([(Target::host("a"), identity)]));
    found
        .warnings
        .into_iter()
        .chain(IdentityConflict::refusals(&found.conflicts, "inv"))
        .try_fold(Vec::new(), |mut screens, problem| {
            screens.extend(told_one(problem)?);
            Ok(screens)
        })
}

/// The state and, with the same bytes, the ages of findings.
fn open_state(bytes: &[u8]) -> Opened {
    let load = |name: &str, load: &dyn Fn(&StateFolder) -> Result<(), Diagnostic>| {
        beside(name, bytes, |folder| load(&StateFolder::at(folder)))
            .err()
            .map(told_one)
            .transpose()
    };
    let state = load("state.json", &|folder| ClusterState::load(folder).map(drop))?;
    let ages = load("drift.json", &|folder| Sightings::load(folder).map(drop))?;
    Ok([state, ages].into_iter().flatten().flatten().collect())
}

/// Logs of jobs that did not go.
fn logs() -> Vec<Vec<u8>> {
    let files = std::fs::read_dir("tests/journeys/logs")
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|e| e == "log"))
        .collect();
    files.sort();
    files
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect()
}

/// What `doctor`, `job prove` and `job compare` say of a log.
fn open_log(bytes: &[u8]) -> Opened {
    use railwright_jobs::doctor::{self, Doctor, Symptom};
    use railwright_verify::nccl::{NcclExpectations, compare};
    static SYMPTOMS: OnceLock<Vec<Symptom>> = OnceLock::new();
    let mut doctor = Doctor::new(
        SYMPTOMS
            .get_or_init(|| doctor::load_symptoms().unwrap())
            .clone(),
    );
    bytes.chunks(1000).for_each(|chunk| doctor.feed(chunk));
    let expected = NcclExpectations {
        node_gbps: Some(400.0),
        ..NcclExpectations::of("log", "--log log")
    };
    let found = doctor.finish(|_| expected.clone());
    let (log, proof) = (&found.log, &found.proof);
    let side = compare::ComparedLog {
        name: "log",
        words: "--log log",
        log,
        proof,
    };
    let comparison = compare::compare_nccl_logs([side, side]);
    let compared = report::job::compare::JobComparisonView {
        names: ["log"; 2],
        proofs: [proof; 2],
        comparison: &comparison,
        profilers: Vec::new(),
    };
    Ok(vec![
        report::job::diagnosis::render_diagnosis_screen(&found, "log", "--log log"),
        report::job::diagnosis::render_diagnosis_json(&found, "log"),
        report::job::render_proof_screen(log, proof, &expected),
        report::job::render_proof_json(log, proof, &expected),
        report::job::compare::render_comparison_screen(&compared),
        report::job::compare::render_comparison_json(&compared),
    ])
}

/// Plain, hashed, marked, of another port, with a comment.
fn known_hosts() -> Vec<Vec<u8>> {
    let key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ5G5s8LAr6vB4PXXA0uHVXJsXIYzkUXjsNkNBqjGRzJ";
    let text = format!(
        "# a comment\n\
         127.0.0.1 {key}\n\
         [127.0.0.1]:1 {key} me\n\
         @cert-authority * {key}\n\
         @revoked other,!127.0.0.1 {key}\n\
         |1|F1E1KeoE/eEWhi10WpGv4OdiO6Y=|3988QV0VE8wmZL7suNrYQLITLCg= {key}\n"
    );
    vec![text.into_bytes()]
}

/// The file is read before anything is connected to; nobody listens at this port.
fn open_known_hosts(bytes: &[u8]) -> Opened {
    let refused = beside("known_hosts", bytes, |folder| {
        let known_hosts = folder.join("known_hosts").display().to_string();
        let access = SshAccess {
            address: "127.0.0.1".to_owned(),
            port: 1,
            user: "root".to_owned(),
            identities: Vec::new(),
            known_hosts,
            jump: Vec::new(),
            ssh_config: false,
            connect_timeout_s: 10,
            read_only: false,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async { SshConnector::new().connect("a", &access).await.err() })
    });
    told_one(refused.ok_or("somebody listens at port 1")?.diagnostic())
}

/// Every text in a document, in order.
fn texts<'v>(value: &'v mut Value, found: &mut Vec<&'v mut String>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(list) => list.iter_mut().for_each(|value| texts(value, found)),
        Value::Object(map) => map.values_mut().for_each(|value| texts(value, found)),
        _ => {}
    }
}

fn baited(value: &mut Value, place: Index, bait: &str) {
    let mut found = Vec::new();
    texts(value, &mut found);
    if !found.is_empty() {
        let at = place.index(found.len());
        let half = found[at].len() / 2;
        let half = (0..=half)
            .rev()
            .find(|at_byte| found[at].is_char_boundary(*at_byte))
            .unwrap_or(0);
        found[at].insert_str(half, bait);
    }
}

fn json_with(seed: &[u8], place: Index, bait: &str) -> Vec<u8> {
    let mut value: Value = serde_json::from_slice(seed).unwrap();
    baited(&mut value, place, bait);
    value.to_string().into_bytes()
}

fn plan_with(seed: &[u8], place: Index, bait: &str) -> Vec<u8> {
    sealed_plan(json_with(seed, place, bait))
}

fn sealed_plan(bytes: Vec<u8>) -> Vec<u8> {
    let Ok(plan) = serde_json::from_slice::<Plan>(&bytes) else {
        return bytes;
    };
    file::serialize_plan(&Plan {
        digest: content::compute_plan_digest(&plan).to_string(),
        ..plan
    })
}

/// The plan of a run once for each list in it, without what that holds, and sealed anew.
pub fn plans_with_an_empty_list() -> Vec<Vec<u8>> {
    fn lists(value: &Value, at: &str, found: &mut Vec<String>) {
        match value {
            Value::Array(list) => {
                found.push(at.to_owned());
                list.iter()
                    .enumerate()
                    .for_each(|(n, value)| lists(value, &format!("{at}/{n}"), found));
            }
            Value::Object(map) => {
                let escaped = |name: &str| name.replace('~', "~0").replace('/', "~1");
                map.iter().for_each(|(name, value)| {
                    lists(value, &format!("{at}/{}", escaped(name)), found)
                });
            }
            _ => {}
        }
    }
    let plan: Value = serde_json::from_slice(&run().plan).unwrap();
    let mut found = Vec::new();
    lists(&plan, "", &mut found);
    let without = |at: &String| {
        let mut plan = plan.clone();
        *plan.pointer_mut(at).unwrap() = json!([]);
        sealed_plan(plan.to_string().into_bytes())
    };
    found.iter().map(without).collect()
}

fn journal_with(seed: &[u8], place: Index, bait: &str) -> Vec<u8> {
    let records = journal::parse_journal("x", seed).unwrap().records;
    let mut entries: Value = records
        .iter()
        .map(|record| json!([record.at, record.entry]))
        .collect();
    baited(&mut entries, place, bait);
    let mut chain = Chain::default();
    let lines = entries.as_array().unwrap().iter().map_while(|line| {
        let entry: JournalEntry = serde_json::from_value(line[1].clone()).ok()?;
        Some(chain.seal(line[0].as_str()?.to_owned(), entry))
    });
    lines.collect::<String>().into_bytes()
}
