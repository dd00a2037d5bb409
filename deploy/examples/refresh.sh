#!/usr/bin/env bash
# A worker for a refresh task, which submits its next launch itself. Usage: refresh.sh TOPIC TASK DEVICE [SECONDS]
# `wakegate worker` runs this script again for each launch, as the handler. It needs wakegate in PATH.
set -euo pipefail
(($# >= 3)) || { echo "usage: refresh.sh TOPIC TASK DEVICE [SECONDS]" >&2 && exit 64; }
topic=$1 task=$2 device=$3 every=${4:-900}
submit() { wakegate task submit "$device" "$task" --kind appRefresh "$@" >/dev/null; }

if [[ -z "${WAKEGATE_WAKE:-}" ]]; then
    # A request that is pending keeps its moment; another submission would replace it.
    pending=$(wakegate task list "$device")
    [[ $'\n'"$pending" == *$'\n'"$task "* ]] || submit
    exec wakegate worker --topic "$topic" --task "$task" --device "$device" --no-pushes --output inherit -- \
        bash "$0" "$@"
fi

# The work: it has 30 seconds, and gets SIGTERM 5 seconds before they are over. Exit status 0 is success.
submit --earliest-begin "${every}s" # First, so that a failure below does not end it all.
trap 'echo "$task stops: its time is nearly over" >&2; exit 1' TERM
echo "$task launched, attempt $WAKEGATE_ATTEMPT"
# Fetch what is new here, in small steps.
