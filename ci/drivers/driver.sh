# Sourced by a driver's file, which has said PACKAGE (its main package, of the module pinned in
# modules/NAME), PROFILE (in scenarios/drivers) and start(), that becomes the driver by exec.
#
#   ci/drivers/NAME [OPTION]...   builds it, checks it, writes its page (certify.py --help)
#   ci/drivers/NAME start         is the driver on one node (docs/clusters.md, --driver-command)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
PROGRAM=$root/build/drivers/bin/${PACKAGE##*/}
case ${1-} in
start) start ;;
*)
    cd "$root"
    # shellcheck disable=SC2086 -- words of options
    exec .venv/bin/python -m ci.drivers.certify ${OPTIONS-} "$@" "${0##*/}" "$PACKAGE" "$PROFILE"
    ;;
esac
