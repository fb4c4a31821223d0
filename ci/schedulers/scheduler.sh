# Sourced by a scheduler's file, which has said SCHEDULER (spec.schedulerName, or the name of a profile in
# scenarios/schedulers), perhaps OPTIONS, and start(), that becomes the scheduler by exec; KUBECONFIG and BINARIES are set.
#
#   ci/schedulers/NAME [OPTION]...   builds it, runs the scenarios with it, writes its page (certify.py --help)
#   ci/schedulers/NAME start         is the scheduler of a local cluster (docs/clusters.md, --scheduler-command)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
PROGRAMS=$here/../../build/schedulers/bin
case ${1-} in
start) start ;;
*)
    # shellcheck disable=SC2086 -- words of options
    cd "$here/../.."
    exec .venv/bin/python -m ci.schedulers.certify "${0##*/}" "$SCHEDULER" ${OPTIONS-} "$@"
    ;;
esac
