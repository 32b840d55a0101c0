//! The file, whole, and what is refused in its place.

use super::*;
use proptest::prelude::*;
use railwright_knowledge::catalog;

const KEY: &str =
    "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\nmDME\n-----END PGP PUBLIC KEY BLOCK-----\n";

fn erdma() -> ImageRequest {
    ImageRequest {
        base: "docker.io/pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime".to_owned(),
        suite: "jammy".to_owned(),
        fabric: "erdma".to_owned(),
        key: Some(RepositorySigningKey {
            path: "keys/erdma.asc".to_owned(),
            text: KEY.to_owned(),
        }),
        ..ImageRequest::default()
    }
}

fn written(request: &ImageRequest) -> Result<String, Vec<(String, String)>> {
    let catalog = catalog::load_catalog("", [])
        .map_err(|problems| problems.diagnostics)
        .unwrap();
    let key = request.key.as_ref().map_or("", |key| &key.path);
    let options = [
        ("image.base", format!("--base={}", request.base)),
        ("image.suite", format!("--suite={}", request.suite)),
        ("image.key", format!("--key={key}")),
    ];
    let asked = RequestPlaces::of_options("railwright image render", options);
    let told = |problems: Vec<Diagnostic>| {
        problems
            .into_iter()
            .map(|one| (one.code.into_owned(), one.message))
            .collect()
    };
    render_containerfile(request, &catalog, &asked).map_err(told)
}

/// What the page on eRDMA with Arena installs, made safe: its packages, its repository with its
/// suite, its example.
#[test]
fn the_pages_image_is_written_with_a_checked_key() {
    let file = written(&ImageRequest {
        example: Some("mnist".to_owned()),
        ..erdma()
    })
    .unwrap();
    for line in [
        "FROM docker.io/pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime AS checked\n",
        "COPY keys/erdma.asc /etc/apt/keyrings/railwright-erdma.asc\n",
        "'URIs: https://mirrors.aliyun.com/erdma/apt/ubuntu' 'Suites: jammy/erdma' 'Components: \
         main' 'Signed-By: /etc/apt/keyrings/railwright-erdma.asc'",
        "apt-get install -y --no-install-recommends 'libibverbs1' 'ibverbs-providers' \
         'ibverbs-utils' 'librdmacm1'; \\\n    rm -rf /var/lib/apt/lists/*",
        "git clone -q --depth 1 --branch 'v0.15.2' 'https://github.com/kubeflow/arena.git' \
         /tmp/code",
        "pip install --no-cache-dir -r \
         '/workspace/arena/examples/pytorch/mnist/requirements.txt'\n",
        "COPY --from=example /workspace /workspace\n",
    ] {
        assert!(file.contains(line), "{line}\n{file}");
    }
    for name in [
        "train-images-idx3",
        "train-labels-idx1",
        "t10k-images-idx3",
        "t10k-labels-idx1",
    ] {
        assert!(
            file.contains(&format!(
                "'https://ossci-datasets.s3.amazonaws.com/mnist/{name}-ubyte.gz'"
            )),
            "{file}"
        );
        assert!(
            file.contains(&format!("gzip -d 'MNIST/raw/{name}-ubyte.gz'")),
            "{file}"
        );
    }
    // Each file is compared before it is unpacked, and nothing that is fetched reaches a shell.
    assert_eq!(file.matches("| sha256sum -c -").count(), 5, "{file}");
    for unsafe_word in [
        "trusted.gpg.d/",
        "apt-key",
        "| sh ",
        "| sh\n",
        "| bash",
        "| gpg",
        "curl",
        "http://",
        "--no-check",
        "allow-unauth",
        "trusted=yes",
    ] {
        assert!(!file.contains(unsafe_word), "{unsafe_word}\n{file}");
    }
}

#[test]
fn without_a_foreign_repository_the_file_is_short() {
    let request = ImageRequest {
        base: "debian@sha256:00".to_owned(),
        suite: "bookworm".to_owned(),
        fabric: "rocev2".to_owned(),
        ..ImageRequest::default()
    };
    insta::assert_snapshot!(written(&request).unwrap(), @r#"
    # Written by `railwright image render`: a base with the RDMA user space, without which NCCL goes over TCP and says nothing.
    # Build it in any folder: docker build -f Containerfile -t NAME . (podman and buildah take it, too)
    FROM debian@sha256:00

    # Packages are built for one release: on another their libraries are missing. So a base of another one ends here.
    RUN set -eu; \
        . /etc/os-release; \
        [ "${VERSION_CODENAME:-}" = 'bookworm' ] || { echo "railwright: the base is of ${VERSION_CODENAME:-no named release}, and this file is for bookworm: render it with the base's --suite" >&2; exit 1; }; \
        [ "$(id -u)" = 0 ] || { echo 'railwright: the base runs as another user than root, who cannot install packages' >&2; exit 1; }

    # libibverbs, its providers, librdmacm and `ibv_devinfo`, of the distribution itself: programs load them at run time, so nothing
    # is missed while an image is built, and none of them comes with CUDA or PyTorch.
    RUN set -eu; \
        apt-get update; \
        DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends 'libibverbs1' 'ibverbs-providers' 'ibverbs-utils' 'librdmacm1'; \
        rm -rf /var/lib/apt/lists/*

    # What programs load is there: the same that `railwright image check` looks for.
    RUN set -eu; \
        ldconfig; \
        ldconfig -p | grep -F 'libibverbs.so.1 (' >/dev/null || { echo 'railwright: libibverbs.so.1 is not in the image' >&2; exit 1; }; \
        ldconfig -p | grep -F 'librdmacm.so.1 (' >/dev/null || { echo 'railwright: librdmacm.so.1 is not in the image' >&2; exit 1; }; \
        cat /etc/libibverbs.d/* | grep -x 'driver mlx5' >/dev/null || { echo 'railwright: a line `driver mlx5` of /etc/libibverbs.d is not in the image' >&2; exit 1; }; \
        ls /usr/lib/*/libibverbs/libmlx5-rdmav*.so >/dev/null || { echo 'railwright: libmlx5-rdmav*.so is not in the image' >&2; exit 1; }
    "#);
}

#[test]
fn an_image_for_nics_of_several_makers_is_looked_through_for_each() {
    let drivers = vec!["ice".to_owned(), "mlx5_core".to_owned()];
    let request = ImageRequest {
        suite: "noble".to_owned(),
        fabric: "rocev2".to_owned(),
        drivers,
        key: None,
        ..erdma()
    };
    let file = written(&request).unwrap();
    assert!(
        file.contains("grep -x 'driver mlx5'") && file.contains("grep -x 'driver irdma'"),
        "{file}"
    );
}

/// Every value ends up in quotes or was checked to be a word, and the key is bound by what is in
/// it.
#[test]
fn the_key_is_bound_by_its_sum() {
    let one = written(&erdma()).unwrap();
    let other = written(&ImageRequest {
        key: Some(RepositorySigningKey {
            path: "./keys/erdma.asc".to_owned(),
            text: KEY.replace("mDME", "mDMF"),
        }),
        ..erdma()
    });
    let (one, other): (Vec<&str>, String) = (one.lines().collect(), other.unwrap());
    let changed: Vec<&str> = other
        .lines()
        .enumerate()
        .filter(|(n, line)| one[*n] != *line)
        .map(|(_, line)| line)
        .collect();
    assert!(
        matches!(changed[..], [line] if line.contains("sha256sum -c -")),
        "{changed:?}"
    );
}

#[test]
fn what_cannot_be_is_refused_with_its_code() {
    let key = |path: &str, text: &str| {
        Some(RepositorySigningKey {
            path: path.to_owned(),
            text: text.to_owned(),
        })
    };
    let private = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\
                   -----BEGIN PGP PRIVATE KEY BLOCK-----\n\
                   -----END PGP PUBLIC KEY BLOCK-----";
    for (request, code, words) in [
        (
            ImageRequest {
                base: "a\nRUN id".to_owned(),
                ..erdma()
            },
            "RW1270",
            "cannot be an image",
        ),
        (
            ImageRequest {
                base: "a AS b".to_owned(),
                ..erdma()
            },
            "RW1270",
            "cannot be an image",
        ),
        (
            ImageRequest {
                base: "$BASE".to_owned(),
                ..erdma()
            },
            "RW1270",
            "cannot be an image",
        ),
        (
            ImageRequest {
                base: "--platform=x".to_owned(),
                ..erdma()
            },
            "RW1270",
            "cannot be an image",
        ),
        (
            ImageRequest {
                base: "a\u{2028}b".to_owned(),
                ..erdma()
            },
            "RW1270",
            "cannot be an image",
        ),
        (
            ImageRequest {
                base: String::new(),
                ..erdma()
            },
            "RW1270",
            "cannot be an image",
        ),
        (
            ImageRequest {
                suite: "jammy\\".to_owned(),
                ..erdma()
            },
            "RW1270",
            "cannot be a suite",
        ),
        (
            ImageRequest {
                suite: "$(id)".to_owned(),
                ..erdma()
            },
            "RW1270",
            "cannot be a suite",
        ),
        (
            ImageRequest {
                suite: "bookworm".to_owned(),
                ..erdma()
            },
            "RW1272",
            "no suite of https://mirrors.aliyun.com/erdma/apt/ubuntu is known for `bookworm`",
        ),
        (
            ImageRequest {
                fabric: "acs".to_owned(),
                ..erdma()
            },
            "RW1271",
            "of kind `acs`",
        ),
        (
            ImageRequest {
                key: None,
                ..erdma()
            },
            "RW1273",
            "no key was given",
        ),
        (
            ImageRequest {
                fabric: "rocev2".to_owned(),
                ..erdma()
            },
            "RW1273",
            "come from the distribution",
        ),
        (
            ImageRequest {
                key: key("/etc/key.asc", KEY),
                ..erdma()
            },
            "RW1273",
            "cannot be copied",
        ),
        (
            ImageRequest {
                key: key("a/../../key.asc", KEY),
                ..erdma()
            },
            "RW1273",
            "cannot be copied",
        ),
        (
            ImageRequest {
                key: key("my key.asc", KEY),
                ..erdma()
            },
            "RW1273",
            "cannot be copied",
        ),
        (
            ImageRequest {
                key: key("--from=x", KEY),
                ..erdma()
            },
            "RW1273",
            "cannot be copied",
        ),
        (
            ImageRequest {
                key: key("keys/*.asc", KEY),
                ..erdma()
            },
            "RW1273",
            "cannot be copied",
        ),
        (
            ImageRequest {
                key: key("keys/a", "mDME"),
                ..erdma()
            },
            "RW1273",
            "no armoured public key",
        ),
        (
            ImageRequest {
                key: key("keys/a", private),
                ..erdma()
            },
            "RW1273",
            "no armoured public key",
        ),
        (
            ImageRequest {
                example: Some("mnits".to_owned()),
                ..erdma()
            },
            "RW1274",
            "did you mean `mnist`?",
        ),
    ] {
        let problems = written(&request).unwrap_err();
        assert!(
            problems.len() == 1 && problems[0].0 == code && problems[0].1.contains(words),
            "{request:?}\n{problems:?}"
        );
    }
    let all = ImageRequest {
        base: " ".to_owned(),
        fabric: "none".to_owned(),
        example: Some("x".to_owned()),
        ..erdma()
    };
    assert_eq!(
        written(&all).unwrap_err().len(),
        3,
        "all that is wrong is told at once"
    );
}

proptest! {
    /// Whatever is taken changes no line but those that hold it: none begins a line of its own, and
    /// nothing is filled in.
    #[test]
    fn no_value_becomes_more_than_a_word(base in ".{1,30}", suite in "[a-z\\PC]{1,12}", path in ".{1,20}") {
        let request = ImageRequest { base: base.clone(), suite, key: Some(RepositorySigningKey { path, text: KEY.to_owned() }), ..erdma() };
        if let Ok(file) = written(&request) {
            let plain = written(&erdma()).unwrap();
            prop_assert_eq!(file.lines().count() + usize::from(base.contains('@')), plain.lines().count());
            let first = |text: &str| text.lines().filter_map(|line| line.split(' ').next().map(str::to_owned)).filter(|word| word != "#").collect::<Vec<_>>();
            prop_assert_eq!(first(&file), first(&plain));
            let froms = file.lines().find(|line| line.starts_with("FROM ")).unwrap_or_default();
            prop_assert_eq!(froms.split(' ').count(), 2);
        }
    }
}
