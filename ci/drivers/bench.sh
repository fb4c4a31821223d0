#!/bin/sh
# Runs a command where a driver finds what it has on a node, and nothing of this machine: its own network
# with loopback only, processes, /run and /var/lib. With NRI=FOLDER, containerd of that folder serves NRI at
# /var/run/nri/nri.sock, for a driver that is an NRI plugin. Everything ends with the command.
#
#   [NRI=FOLDER] unshare --mount --net --pid --fork --kill-child --mount-proc ci/drivers/bench.sh COMMAND...
set -eu
mount -t tmpfs drivers /var/lib
mount -t tmpfs drivers /run
ln -s /var/lib/kubelet/cdi /run/cdi # for a driver with the usual folder in its code
ip link set lo up
if [ -n "${NRI-}" ]; then
    cat >/run/containerd.toml <<EOF
version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt"]
[plugins."io.containerd.cri.v1.images"]
snapshotter = "native"
[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true
disable_apparmor = true
EOF
    "$NRI/containerd" --config /run/containerd.toml >/run/containerd.log 2>&1 &
    for _ in $(seq 100); do
        [ -S /run/nri/nri.sock ] && break
        sleep 0.1
    done
    [ -S /run/nri/nri.sock ] || { echo "containerd does not serve NRI:"; tail -n 5 /run/containerd.log; exit 3; } >&2
fi
exec "$@"
