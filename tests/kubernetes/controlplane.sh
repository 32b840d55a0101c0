#!/bin/sh
# A Kubernetes control plane of real parts: etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kubectl, and kwok
# in the place of kubelets; and helm, a client. The programs are built from pinned Go modules (controlplane/); everything stays on loopback.
#   controlplane.sh build FOLDER        builds the programs into FOLDER, once; what KUBEBUILDER_ASSETS has is linked, not built
#   controlplane.sh find FOLDER         prints where they are, and fails where they are not built
#   controlplane.sh helm3 FOLDER        builds Helm 3 into FOLDER, once, and prints where it is: the other helm is the newest
#   controlplane.sh run PROGRAMS PORT [STAND-INS]
#                                       a control plane on PORT and the three ports after it: prints "ready WORK" and stays until
#                                       its standard input ends. Lines that it takes: stop, start (both mean the API server).
#                                       With STAND-INS kwok answers for kubelets too: a program that is run in a pod is the one of that
#                                       name in this folder, and the log of every container is the file pod.log there, but
#                                       of the pod pair-tcp-launcher, whose log is tcp.log. Without, a node has no kubelet that could
#                                       be asked
set -eu
own=$(cd "${0%/*}" && pwd)/controlplane
lab=$own/../../../src/lab/assets/kubernetes # the lab runs the same control plane
. "$lab/go.sh"
oldest_go=1.26 # helm asks for it

# --- build

# The programs of the control plane have a folder of this name; helm lies in it too, and may be built anew by itself.
key() {
    for file in go.mod go.sum; do cat "$lab/modules/etcd/$file" "$lab/modules/kubernetes/$file" "$own/kwok/$file"; done |
        { cat; echo "${KUBEBUILDER_ASSETS:-}"; } | sha256sum | cut -c1-16
}

helm_key() {
    cat "$own/helm/go.mod" "$own/helm/go.sum" | sha256sum | cut -c1-16
}

found() {
    [ -e "$1/$(key)/helm-$(helm_key)" ] && cd "$1/$(key)" && pwd
}

build() {
    ! (found "$1" >/dev/null) || exit 0
    mkdir -p "$1"
    folder=$(cd "$1" && pwd)
    exec 9>"$folder/lock"
    flock 9
    ! (found "$folder" >/dev/null) || exit 0
    choose_go
    [ -d "$folder/$(key)" ] || build_control_plane
    compile "$own/helm" "$folder/$(key)/helm-part" helm.sh/helm/v4/cmd/helm
    rm -f "$folder/$(key)"/helm-????????????????
    mv "$folder/$(key)/helm-part" "$folder/$(key)/helm"
    : >"$folder/$(key)/helm-$(helm_key)"
}

helm3() {
    mkdir -p "$1/helm3"
    folder=$(cd "$1" && pwd)
    choose_go >&2
    compile "$own/helm3" "$folder/helm3/helm" helm.sh/helm/v3/cmd/helm >&2
    echo "$folder/helm3/helm"
}

build_control_plane() {
    # what other modules made, and what a build that was ended left behind
    for old in "$folder"/*; do case $old in */lock | */go | */helm3) ;; *) rm -rf "$old" ;; esac; done
    part=$folder/part
    mkdir "$part"
    linked etcd "$part" || compile "$lab/modules/etcd" "$part/etcd" go.etcd.io/etcd/server/v3
    kubernetes=
    for program in kube-apiserver kube-controller-manager kube-scheduler kubectl; do
        linked $program "$part" || kubernetes="$kubernetes k8s.io/kubernetes/cmd/$program"
    done
    # shellcheck disable=SC2086 # a list of packages, or nothing where all are linked
    [ -z "$kubernetes" ] || compile "$lab/modules/kubernetes" "$part/" $kubernetes
    compile "$own/kwok" "$part/kwok" sigs.k8s.io/kwok/cmd/kwok
    stages=$(cd "$own/kwok" && "$go" list -m -f '{{.Dir}}' sigs.k8s.io/kwok)/kustomize/stage
    install -m 644 "$stages/node/fast/node-initialize.yaml" "$stages/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml" \
        "$stages/pod/fast/pod-ready.yaml" "$stages/pod/fast/pod-delete.yaml" "$part"
    mv "$part" "$folder/$(key)"
}

# --- run

run() {
    programs=$1 port=$2 fakes=${3:-}
    umask 077
    work=$(mktemp -d "${TMPDIR:-/tmp}/controlplane.XXXXXX")
    cd "$work"
    trap end EXIT
    trap 'exit 0' INT TERM HUP PIPE
    certificates
    identities
    store=http://127.0.0.1:$((port + 1)) peer=http://127.0.0.1:$((port + 2))
    begin etcd --data-dir store --unsafe-no-fsync --log-level warn --listen-client-urls "$store" --advertise-client-urls "$store" \
        --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" --initial-cluster "default=$peer"
    api_server
    roles
    begin kube-controller-manager --kubeconfig admin.kubeconfig --leader-elect=false --secure-port=0 \
        --service-account-private-key-file accounts.key --root-ca-file ca.crt
    begin kube-scheduler --kubeconfig admin.kubeconfig --leader-elect=false --secure-port=0
    kubelets
    echo "ready $work"
    while read -r word; do
        case $word in
        stop) finish kube-apiserver ;;
        start) api_server ;;
        *) exit 64 ;;
        esac
        echo "$word: done"
    done
}

kubelets() {
    set -- --kubeconfig admin.kubeconfig --manage-all-nodes=true --node-lease-duration-seconds 40 \
        --config "$programs/node-initialize.yaml" --config "$programs/node-heartbeat-with-lease.yaml" \
        --config "$programs/pod-ready.yaml" --config "$programs/pod-delete.yaml"
    [ -n "$fakes" ] || { begin kwok "$@"; return; }
    kubelet=127.0.0.1:$((port + 3))
    cat >exec.yaml <<EOF
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterExec
metadata: {name: all}
spec: {execs: [{local: {workDir: $fakes}}]}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: ClusterLogs
metadata: {name: all}
spec: {logs: [{logsFile: $fakes/pod.log, follow: false}]}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Logs
metadata: {name: pair-tcp-launcher, namespace: default}
spec: {logs: [{containers: [main], logsFile: $fakes/tcp.log, follow: false}]}
EOF
    # It looks for programs in its own PATH, which holds nothing else.
    (PATH=$fakes && begin kwok "$@" --config exec.yaml --server-address "$kubelet" --node-ip "${kubelet%:*}" \
        --node-port "${kubelet#*:}" --tls-cert-file server.crt --tls-private-key-file server.key)
}

# The API server is asked under the name that its certificate has, and clients trust nobody but this CA.
certificates() {
    key='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'
    # shellcheck disable=SC2086 # words of a command line
    {
        openssl req -x509 $key -days 2 -subj /CN=rig -keyout ca.key -out ca.crt
        openssl req $key -subj /CN=kube-apiserver -keyout server.key -out server.csr
    } 2>openssl.log
    printf 'subjectAltName=IP:127.0.0.1,DNS:localhost\nextendedKeyUsage=serverAuth\n' >server.ext
    openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile server.ext -out server.crt 2>>openssl.log
    openssl ecparam -name prime256v1 -genkey -noout -out accounts.key
}

identities() {
    authority=$(base64 -w 0 ca.crt)
    for name in admin reader nobody; do
        group=
        [ $name != admin ] || group=',"system:masters"'
        token=$(openssl rand -hex 16)
        echo "$token,$name,$name$group" >>tokens.csv
        cat >$name.kubeconfig <<EOF
apiVersion: v1
kind: Config
clusters: [{name: rig, cluster: {server: "https://127.0.0.1:$port", certificate-authority-data: $authority}}]
users: [{name: $name, user: {token: "$token"}}]
contexts: [{name: rig, context: {cluster: rig, user: $name}}]
current-context: rig
EOF
    done
}

# The reader may read everything, and `nobody` is known and may do nothing.
roles() {
    client create clusterrole reader --verb=get,list,watch --resource='*.*' >roles.log
    client create clusterrolebinding reader --clusterrole=reader --user=reader >>roles.log
}

client() {
    HOME=$work "$programs/kubectl" --kubeconfig admin.kubeconfig "$@"
}

# Nodes are not real, so no address of this machine needs to be in the endpoints of the service `kubernetes`.
api_server() {
    begin kube-apiserver --etcd-servers "$store" --bind-address 127.0.0.1 --secure-port "$port" --advertise-address 192.0.2.1 \
        --cert-dir . --tls-cert-file server.crt --tls-private-key-file server.key --token-auth-file tokens.csv \
        --kubelet-preferred-address-types InternalIP --authorization-mode RBAC --allow-privileged=true --disable-admission-plugins ServiceAccount \
        --service-cluster-ip-range 10.96.0.0/16 --service-account-issuer https://kubernetes.default.svc \
        --service-account-key-file accounts.key --service-account-signing-key-file accounts.key
    tries=0
    until client get --raw=/readyz >/dev/null 2>ready.log && client get namespace default >/dev/null 2>ready.log; do
        tries=$((tries + 1))
        for name in etcd kube-apiserver; do kill -0 "$(cat $name.pid)" 2>/dev/null || gave_up "$name ended"; done
        [ $tries -le 300 ] || gave_up "the API server does not get ready: $(cat ready.log)"
        sleep 0.2
    done
}

gave_up() {
    echo "control plane: $1" >&2
    exit 1
}

begin() {
    name=$1
    shift
    "$programs/$name" "$@" >>"$name.log" 2>&1 </dev/null &
    echo $! >"$name.pid"
}

# An API server that is asked to end keeps its port for up to a minute while watches drain.
finish() {
    pid=$(cat "$1.pid")
    rm "$1.pid"
    kill -9 "$pid" 2>/dev/null || : # it may have ended by itself
    wait "$pid" 2>/dev/null || :
}

end() {
    ended=$?
    trap - EXIT
    [ $ended = 0 ] || tail -n 20 ./*.log >&2
    for file in *.pid; do
        [ ! -e "$file" ] || finish "${file%.pid}"
    done
    cd /
    rm -rf "$work"
}

case ${1:-} in
build) build "$2" ;;
find) found "$2" ;;
helm3) helm3 "$2" ;;
run) run "$2" "$3" "${4:-}" ;;
*) sed -n 4,13p "$0"; exit 64 ;;
esac
