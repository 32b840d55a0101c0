//! Roots as they are made, broken and made up, read from a folder and by the program, which have to
//! see the same.

use super::seen::Loads;
use super::*;
use crate::CheckVerdict;
use crate::image::evaluation::list_unknown_findings;
use proptest::prelude::*;
use railwright_system::rooted::RootedFolder;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

const ELF: &[u8] = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\x3e\0and more";
/// The head of an ELF file for AArch64.
const ARM: &[u8] = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x03\0\xb7\0and more";
const LIB: &str = "usr/lib/x86_64-linux-gnu";
const ESCAPE: char = '\u{1b}';
const RENDER: &str = "railwright image render";

fn desired(provider: &str) -> ImageRequirements {
    let libraries = ["libibverbs.so.1", "librdmacm.so.1"]
        .map(str::to_owned)
        .to_vec();
    ImageRequirements {
        fabric: "rocev2".to_owned(),
        libraries,
        providers: vec![provider.to_owned()],
    }
}

fn write(root: &Path, path: &str, bytes: &[u8]) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// As Debian's packages lay it: libibverbs1, librdmacm1 and ibverbs-providers 44.0.
fn debian() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    let verbs = [ELF, b"\0/etc/libibverbs.d\0driver\0/usr/lib/x86_64-linux-gnu/libibverbs/lib%s-rdmav34.so\0lib%s-rdmav34.so\0"].concat();
    write(at, &format!("{LIB}/libibverbs.so.1.14.44.0"), &verbs);
    symlink(
        "libibverbs.so.1.14.44.0",
        at.join(LIB).join("libibverbs.so.1"),
    )
    .unwrap();
    write(at, &format!("{LIB}/librdmacm.so.1"), ELF);
    write(at, &format!("{LIB}/libmlx5.so.1.24.44.0"), ELF);
    fs::create_dir_all(at.join(LIB).join("libibverbs")).unwrap();
    symlink(
        "../libmlx5.so.1.24.44.0",
        at.join(LIB).join("libibverbs/libmlx5-rdmav34.so"),
    )
    .unwrap();
    write(
        at,
        "etc/libibverbs.d/mlx5.driver",
        b"# of Mellanox\ndriver mlx5\n",
    );
    write(at, "etc/ld.so.conf", b"include /etc/ld.so.conf.d/*.conf\n");
    write(
        at,
        "etc/ld.so.conf.d/x86_64-linux-gnu.conf",
        b"# Multiarch support\n\
          /usr/local/lib/x86_64-linux-gnu\n\
          /lib/x86_64-linux-gnu\n\
          /usr/lib/x86_64-linux-gnu\n",
    );
    write(at, "etc/ld.so.cache", b"glibc-ld.so.cache1.1\0\0libibverbs.so.1\0/usr/lib/x86_64-linux-gnu/libibverbs.so.1\0librdmacm.so.1\0/usr/lib/x86_64-linux-gnu/librdmacm.so.1\0");
    symlink("usr/lib", at.join("lib")).unwrap();
    write(at, "bin/dash", ELF);
    symlink("dash", at.join("bin/sh")).unwrap();
    write(
        at,
        "usr/lib/os-release",
        b"PRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\nID=debian\n",
    );
    fs::create_dir_all(at.join("etc")).unwrap();
    symlink("../usr/lib/os-release", at.join("etc/os-release")).unwrap();
    root
}

fn of_folder(root: &Path, provider: &str) -> ImageContents {
    root::inspect_root(&RootedFolder::open(root).unwrap(), &desired(provider)).unwrap()
}

/// What a shell says of a tree. Links that lead out of it lead out of it here: no pod is a part of
/// a larger tree.
fn of_program(shell: &[&str], root: &Path, provider: &str) -> ImageContents {
    let program = program::build_inspection_script(&desired(provider)).replacen(
        program::ROOT,
        &format!("R='{}'\n", root.display()),
        1,
    );
    let output = Command::new(shell[0])
        .args(&shell[1..])
        .args(["-c", &program])
        .env_remove("LD_LIBRARY_PATH")
        .output()
        .unwrap();
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let out = String::from_utf8_lossy(&output.stdout);
    program::parse_inspection_output(&out).unwrap_or_else(|why| panic!("{why}\n{out}"))
}

fn codes(seen: &ImageContents, provider: &str) -> Vec<&'static str> {
    check_image_contents(seen, &desired(provider), RENDER)
        .iter()
        .filter_map(|finding| finding.evaluation.code)
        .collect()
}

#[test]
fn what_debian_packs_is_complete_and_another_provider_is_missing() {
    let root = debian();
    let seen = of_folder(root.path(), "mlx5");
    let findings = check_image_contents(&seen, &desired("mlx5"), RENDER);
    assert_eq!(
        (compute_image_verdict(&findings), codes(&seen, "mlx5")),
        (CheckVerdict::Passed, vec![])
    );
    assert_eq!(
        findings[2].evaluation.measured,
        "/usr/lib/x86_64-linux-gnu/libibverbs/libmlx5-rdmav34.so"
    );
    let seen = of_folder(root.path(), "erdma");
    let findings = check_image_contents(&seen, &desired("erdma"), RENDER);
    assert_eq!(
        (compute_image_verdict(&findings), codes(&seen, "erdma")),
        (CheckVerdict::Failed, vec!["RW1277", "RW1278"])
    );
    assert_eq!(
        findings[2].evaluation.measured,
        "/usr/lib/x86_64-linux-gnu/libibverbs/liberdma-rdmav34.so is not there"
    );
}

/// Each way in which something can be missing, and the program of a pod sees it as well.
#[test]
fn each_thing_that_breaks_it_is_found_by_folder_and_by_program() {
    type Break = fn(&Path);
    let breaks: [(&str, Break, &[&str]); 18] = [
        ("nothing", |_| (), &[]),
        (
            "no library",
            |at| fs::remove_file(at.join(LIB).join("libibverbs.so.1")).unwrap(),
            &["RW1276", "RW1277"],
        ),
        (
            "a link to nowhere",
            |at| fs::remove_file(at.join(LIB).join("libibverbs.so.1.14.44.0")).unwrap(),
            &["RW1276", "RW1277"],
        ),
        (
            "an empty file",
            |at| write(at, &format!("{LIB}/librdmacm.so.1"), b""),
            &["RW1276"],
        ),
        (
            "of 32 bits",
            |at| {
                write(
                    at,
                    &format!("{LIB}/librdmacm.so.1"),
                    b"\x7fELF\x01\x01\x01\x00",
                )
            },
            &["RW1276"],
        ),
        (
            "another release of the provider",
            |at| {
                fs::rename(
                    at.join(LIB).join("libibverbs/libmlx5-rdmav34.so"),
                    at.join(LIB).join("libibverbs/libmlx5-rdmav57.so"),
                )
                .unwrap()
            },
            &["RW1277"],
        ),
        (
            "a provider where the loader looks",
            |at| {
                fs::rename(
                    at.join(LIB).join("libibverbs/libmlx5-rdmav34.so"),
                    at.join(LIB).join("../libmlx5-rdmav34.so"),
                )
                .unwrap()
            },
            &["RW1277"],
        ),
        (
            "a library of another machine",
            |at| write(at, &format!("{LIB}/librdmacm.so.1"), ARM),
            &["RW1276"],
        ),
        (
            "a provider of another machine",
            |at| write(at, &format!("{LIB}/libmlx5.so.1.24.44.0"), ARM),
            &["RW1277"],
        ),
        (
            "an image of another machine",
            |at| write(at, "bin/dash", ARM),
            &["RW1276", "RW1276", "RW1277"],
        ),
        (
            "in the folder of another distribution",
            |at| {
                fs::create_dir_all(at.join("usr/lib64")).unwrap();
                fs::rename(
                    at.join(LIB).join("librdmacm.so.1"),
                    at.join("usr/lib64/librdmacm.so.1"),
                )
                .unwrap();
            },
            &["RW1276"],
        ),
        (
            "a libibverbs that looks elsewhere for names",
            |at| {
                let verbs = at.join(LIB).join("libibverbs.so.1.14.44.0");
                let bytes = fs::read(&verbs).unwrap();
                let moved = String::from_utf8_lossy(&bytes)
                    .replace("/etc/libibverbs.d", "/opt/etc/libibverbs.d");
                fs::write(verbs, moved).unwrap();
            },
            &["RW1278"],
        ),
        (
            "without a shell",
            |at| fs::remove_file(at.join("bin/sh")).unwrap(),
            &["RW1276", "RW1276", "RW1277"],
        ),
        (
            "no folder of drivers",
            |at| fs::remove_dir_all(at.join("etc/libibverbs.d")).unwrap(),
            &["RW1278"],
        ),
        (
            "another driver",
            |at| {
                write(
                    at,
                    "etc/libibverbs.d/mlx5.driver",
                    b"driver mlx4\n#driver mlx5\n",
                )
            },
            &["RW1278"],
        ),
        (
            "an end of line of Windows",
            |at| write(at, "etc/libibverbs.d/mlx5.driver", b"driver mlx5\r\n"),
            &["RW1278"],
        ),
        (
            "no end of line",
            |at| write(at, "etc/libibverbs.d/mlx5.driver", b"driver mlx5"),
            &[],
        ),
        (
            "nothing of RDMA",
            |at| {
                drop((
                    fs::remove_dir_all(at.join("usr")),
                    fs::remove_dir_all(at.join("etc/libibverbs.d")),
                ))
            },
            &["RW1276", "RW1276", "RW1277", "RW1278"],
        ),
    ];
    for (what, breaks, expected) in breaks {
        let root = debian();
        breaks(root.path());
        let seen = of_folder(root.path(), "mlx5");
        assert_eq!(codes(&seen, "mlx5"), expected, "{what}: {seen:?}");
        for shell in [&["sh"][..], &["bash"], &["busybox", "sh"]] {
            if Command::new(shell[0]).arg("--help").output().is_err() {
                continue;
            }
            let said = of_program(shell, root.path(), "mlx5");
            assert_eq!(
                ImageContents { pod: None, ..said },
                seen,
                "{what}, by {shell:?}"
            );
        }
    }
}

#[test]
fn what_only_a_configuration_names_counts_once_ldconfig_was_run() {
    let root = debian();
    let at = root.path();
    fs::create_dir_all(at.join("opt/rdma/lib")).unwrap();
    fs::rename(
        at.join(LIB).join("librdmacm.so.1"),
        at.join("opt/rdma/lib/librdmacm.so.1"),
    )
    .unwrap();
    assert_eq!(
        of_folder(at, "mlx5").loads("librdmacm.so.1"),
        Loads::Nothing
    );
    write(
        at,
        "etc/ld.so.conf.d/rdma.conf",
        b"/opt/rdma/lib/  # by hand",
    );
    let seen = of_folder(at, "mlx5");
    assert_eq!(
        seen.loads("librdmacm.so.1"),
        Loads::NotCached("/opt/rdma/lib/librdmacm.so.1".to_owned())
    );
    assert!(
        check_image_contents(&seen, &desired("mlx5"), RENDER)[1]
            .evaluation
            .next
            .contains("RUN ldconfig")
    );
    assert_eq!(
        ImageContents {
            pod: None,
            ..of_program(&["sh"], at, "mlx5")
        },
        seen
    );
    write(at, "etc/ld.so.cache", b"\0/opt/rdma/lib/librdmacm.so.1\0");
    assert_eq!(
        of_folder(at, "mlx5").loads("librdmacm.so.1"),
        Loads::This("/opt/rdma/lib/librdmacm.so.1".to_owned())
    );
}

/// Built with a prefix, libibverbs looks elsewhere for providers and for their names, and says so
/// itself.
#[test]
fn a_libibverbs_of_ones_own_says_where_it_looks() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    let verbs = [
        ELF,
        b"\0/opt/rdma/etc/libibverbs.d\0/opt/rdma/lib/libibverbs/lib%s-rdmav57.so\0",
    ]
    .concat();
    write(at, "bin/sh", ELF);
    write(at, "usr/lib64/libibverbs.so.1", &verbs);
    write(at, "usr/lib64/librdmacm.so.1", ELF);
    write(at, "opt/rdma/lib/libibverbs/libmlx5-rdmav57.so", ELF);
    write(
        at,
        "opt/rdma/etc/libibverbs.d/mlx5.driver",
        b"driver mlx5\n",
    );
    let seen = of_folder(at, "mlx5");
    assert_eq!(codes(&seen, "mlx5"), Vec::<&str>::new(), "{seen:?}");
    assert_eq!(
        ImageContents {
            pod: None,
            ..of_program(&["sh"], at, "mlx5")
        },
        seen
    );
}

/// Without a shell nothing says which machine it has to be, unless a libc does.
#[test]
fn what_machine_an_image_is_for_is_known_or_nothing_is_proven() {
    let root = debian();
    let at = root.path();
    fs::remove_file(at.join("bin/sh")).unwrap();
    let all = |at: &Path| check_image_contents(&of_folder(at, "mlx5"), &desired("mlx5"), RENDER);
    let findings = all(at);
    assert_eq!(
        (
            compute_image_verdict(&findings),
            findings[0].evaluation.verdict
        ),
        (CheckVerdict::Unknown, CheckVerdict::NotRun)
    );
    write(at, &format!("{LIB}/libc.so.6"), ELF);
    assert_eq!(compute_image_verdict(&all(at)), CheckVerdict::Passed);
    write(at, "usr/lib/aarch64-linux-gnu/libc.so.6", ARM);
    assert_eq!(
        compute_image_verdict(&all(at)),
        CheckVerdict::Unknown,
        "two of them say nothing"
    );
    symlink("dash", at.join("bin/sh")).unwrap();
    write(at, "bin/dash", ARM);
    let findings = all(at);
    let first = &findings[0].evaluation;
    assert_eq!(
        (first.verdict, first.measured.as_str()),
        (
            CheckVerdict::Failed,
            "/lib/x86_64-linux-gnu/libibverbs.so.1 is for x86-64, and the image for AArch64"
        )
    );
    fs::remove_file(at.join("etc/ld.so.conf.d/x86_64-linux-gnu.conf")).unwrap();
    assert_eq!(
        all(at)[0].evaluation.measured,
        "in no folder that a loader looks into"
    );
}

/// A tree that somebody made to be slow ends at a bound, and that is said.
#[test]
fn a_tree_without_an_end_has_one() {
    let said = |at: &Path| {
        root::inspect_root(&RootedFolder::open(at).unwrap(), &desired("mlx5"))
            .unwrap_err()
            .to_string()
    };
    let root = debian();
    let at = root.path();
    // Many names of one folder of settings, each its own way to the same large one.
    let many: String = (0..200).map(|n| format!("/many/{n}\n")).collect();
    write(at, "etc/ld.so.conf", many.as_bytes());
    fs::create_dir_all(at.join("many")).unwrap();
    (0..200).for_each(|n| symlink("../names", at.join(format!("many/{n}"))).unwrap());
    fs::create_dir_all(at.join("names")).unwrap();
    (0..5000).for_each(|n| fs::write(at.join(format!("names/libmlx5-rdmav{n}.so")), "").unwrap());
    assert!(
        said(at).contains("more than 500000 names, parts of paths and files were looked at"),
        "{}",
        said(at)
    );
    let verbs = fs::File::create(at.join("names/libibverbs.so.1")).unwrap();
    verbs.set_len(15 << 20).unwrap();
    (0..5000).for_each(|n| fs::remove_file(at.join(format!("names/libmlx5-rdmav{n}.so"))).unwrap());
    assert!(
        said(at).contains("bytes of its files were read"),
        "{}",
        said(at)
    );
    verbs.set_len(17 << 20).unwrap();
    assert!(said(at).contains("has more than 16384 KiB"), "{}", said(at));
    write(at, "etc/ld.so.conf", "/a\n".repeat(300).as_bytes());
    assert!(said(at).contains("more than 256 folders"), "{}", said(at));
}

fn pod(lines: &str) -> ImageContents {
    program::parse_inspection_output(&format!("begin 1\n{lines}end 1\n")).unwrap()
}

#[test]
fn a_pod_needs_devices_and_memory_that_it_may_lock() {
    let of = |lines: &str| {
        let findings = check_image_contents(&pod(lines), &ImageRequirements::default(), RENDER);
        findings
            .into_iter()
            .map(|finding| {
                (
                    finding.evaluation.verdict,
                    finding.evaluation.code.unwrap_or("-"),
                )
            })
            .collect::<Vec<_>>()
    };
    let (passed, failed) = ((CheckVerdict::Passed, "-"), |code| {
        (CheckVerdict::Failed, code)
    });
    let all = "device c uverbs0\ndevice c rdma_cm\n";
    assert_eq!(of(&format!("{all}limit unlimited\n")), [passed, passed]);
    assert_eq!(
        of("limit 8192\ncapabilities 00000000a80425fb\n"),
        [failed("RW1279"), failed("RW1280")]
    );
    assert_eq!(
        of(&format!("{all}limit 8192\ncapabilities 00000000a80465fb\n")),
        [passed, passed]
    );
    assert_eq!(
        of("device c uverbs1\nlimit lots\n"),
        [
            (CheckVerdict::Warning, "RW1279"),
            (CheckVerdict::Unknown, "RW1281")
        ]
    );
    assert_eq!(
        of("device - uverbs0\ndevice c umad0\nlimit unlimited\n"),
        [failed("RW1279"), passed],
        "a file is no device"
    );
}

#[test]
fn what_a_pod_says_is_held_to_what_the_program_says() {
    for nonsense in [
        "",
        "end 1\n",
        "begin 1\n",
        "begin 1\nend 2\n",
        "begin 1\nend 1\nmore\n",
        "x\nbegin 1\nend 1\n",
        "begin 1\nbegin 1\nend 1\n",
        "begin 1\nfile zz /a\nend 1\n",
        "begin 1\nfile 7f4\nend 1\n",
        "begin 1\nfile 7 /a\nend 1\n",
        "begin 1\nfile é7 /a\nend 1\n",
        "begin 1\ncapabilities -1\nend 1\n",
        "begin 1\npattern /lib.so /a\nend 1\n",
        "begin 1\ndriver mlx5\nend 1\n",
        "begin 1\nnames /etc\nend 1\n",
        "begin 1\nwhatever\nend 1\n",
        "sh: not found\n",
    ] {
        assert!(
            program::parse_inspection_output(nonsense).is_err(),
            "{nonsense:?}"
        );
    }
    let long = format!("begin 1\n{}end 1\n", "driver a\n".repeat(5000));
    assert!(program::parse_inspection_output(&long).is_err());
    let escapes = pod("limit \u{1b}[2J\u{7}\ndevice c uverbs0\ndevice c \u{1b}]0;x\u{7}\n");
    let told: String = check_image_contents(&escapes, &desired("mlx5"), RENDER)
        .into_iter()
        .map(|finding| finding.evaluation.measured)
        .collect();
    assert!(!told.contains('\u{1b}'), "{told:?}");
}

#[test]
fn where_nothing_could_be_looked_at_nothing_is_missing() {
    let findings = list_unknown_findings(
        &desired("erdma"),
        "no pod a is in namespace b",
        "kubectl get pods",
    );
    assert_eq!(
        (compute_image_verdict(&findings), findings.len()),
        (CheckVerdict::Unknown, 4)
    );
    assert_eq!(compute_image_verdict(&[]), CheckVerdict::Unknown);
}

proptest! {
    #[test]
    fn no_answer_is_too_much(text in "(begin 1\n\
                                      )?((file|pattern|names|driver|distribution|cache|cached|device|limit|capabilities|environment|configuration) \
                                      [ -~é\u{1b}]{0,20}\n\
                                      ){0,8}(end 1\n\
                                      )?") {
        if let Ok(seen) = program::parse_inspection_output(&text) {
            for finding in check_image_contents(&seen, &desired("mlx5"), RENDER) {
                prop_assert!(!finding.evaluation.measured.contains(ESCAPE));
            }
        }
    }

    /// Made-up trees of links and files: nothing hangs, and nothing of outside is reported.
    #[test]
    fn no_tree_is_too_much(links in prop::collection::vec(("(usr|lib|etc|usr/lib|usr/lib64|etc/libibverbs\\.d|etc/ld\\.so\\.conf)(/libibverbs\\.so\\.1|/a|/libibverbs)?", "(/|\\.\\./|\\./)*(usr|lib|etc|a)?(/libibverbs\\.so\\.1|/etc|/\\.\\.)*"), 0..12)) {
        let world = tempfile::tempdir().unwrap();
        let root = world.path().join("root");
        fs::create_dir_all(&root).unwrap();
        write(world.path(), "etc/libibverbs.d/x", b"driver outside\n");
        write(world.path(), "etc/ld.so.conf", b"/outside\n");
        for (place, target) in &links {
            let place = root.join(place);
            let above: Vec<&Path> = place.ancestors().skip(1).take_while(|above| above.starts_with(&root)).collect();
            // Never laid through a link, which could lead out of the test's own folder.
            let is_plain = above.iter().all(|above| fs::symlink_metadata(above).map_or(true, |actual| actual.is_dir()));
            if is_plain && !target.is_empty() {
                fs::create_dir_all(place.parent().unwrap()).unwrap();
                let _ = symlink(target, place);
            }
        }
        if let Ok(seen) = root::inspect_root(&RootedFolder::open(&root).unwrap(), &desired("mlx5")) {
            prop_assert!(!seen.drivers.values().flatten().any(|name| name == "outside") && seen.of_configuration.iter().all(|folder| folder != "/outside"));
        }
    }
}
