# Becomes a kube-scheduler named $SCHEDULER; $PROFILE is more of its KubeSchedulerConfiguration's profile.
config=$(mktemp)
cat >"$config" <<EOF
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: "$KUBECONFIG", qps: 1000, burst: 2000}
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 1
profiles:
- schedulerName: $SCHEDULER
  ${PROFILE-}
EOF
exec "$BINARIES/kube-scheduler" --config="$config" --bind-address=127.0.0.1 --secure-port=0 --v=2
