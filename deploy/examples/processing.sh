#!/usr/bin/env bash
# A worker for a processing task: compresses the *.log files of a folder while the device charges and is not in use.
# Usage: processing.sh TOPIC TASK DEVICE FOLDER. `wakegate worker` runs this script again for each launch, as the
# handler. It needs wakegate in PATH.
set -euo pipefail
(($# >= 4)) || { echo "usage: processing.sh TOPIC TASK DEVICE FOLDER" >&2 && exit 64; }
topic=$1 task=$2 device=$3 folder=$4
submit() { wakegate task submit "$device" "$task" --kind processing --requires-power >/dev/null; }

if [[ -z "${WAKEGATE_WAKE:-}" ]]; then
    # A request that is pending keeps its place; another submission would replace it.
    pending=$(wakegate task list "$device")
    [[ $'\n'"$pending" == *$'\n'"$task "* ]] || submit
    exec wakegate worker --topic "$topic" --task "$task" --device "$device" --no-pushes --output inherit -- \
        bash "$0" "$@"
fi

# The work: it has 10 minutes, and less when a person uses the device or unplugs it. Each file is a step, and SIGTERM
# comes to gzip as well.
submit # The next launch continues.
trap 'echo "$task stops before ${file##*/}"; exit 1' TERM
for file in "$folder"/*.log; do
    [[ -e "$file" ]] || continue
    gzip -c <"$file" >"$file.part" # An interrupted step leaves no partial result.
    mv "$file.part" "$file.gz"
    rm "$file"
    echo "$task compressed ${file##*/}"
done
