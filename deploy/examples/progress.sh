#!/usr/bin/env bash
# A worker for a continued task, with a bar here and at the gateway. Usage: progress.sh TOPIC TASK (curl with HTTP/2)
set -euo pipefail
(($# >= 2)) || { echo "usage: progress.sh TOPIC TASK" >&2 && exit 64; }
gateway="${WAKEGATE_URL:-https://127.0.0.1:2197}"
curl=(curl --silent --show-error --http2 --fail --cacert "${WAKEGATE_CA:-.wakegate/ca.pem}")
[[ -z "${WAKEGATE_TOKEN:-}" ]] || curl+=(--header "authorization: Bearer $WAKEGATE_TOKEN")
steps=50

post() { "${curl[@]}" --output /dev/null --max-time 5 --data "$2" "$gateway/v1/wakes/$1"; }
show() { # TITLE DONE
    local bar rest end=$'\n' && [[ ! -t 1 ]] || end=""
    printf -v bar '%*s' "$(($2 * 30 / steps))" ""
    printf -v rest '%*s' "$((30 - $2 * 30 / steps))" ""
    printf '\r%s %s%s %s/%s%s' "$1" "${bar// /█}" "${rest// /·}" "$2" "$steps" "$end"
}

# The worker's own task: continues where an earlier launch was lost, and is killed when its time is over.
work() { # WAKE DATA
    local title=$3 done=0 told=0 now
    [[ ! "$2" =~ \"resumedFrom\":\{\"completed\":([0-9]+) ]] || done="${BASH_REMATCH[1]}"
    while ((done < steps)); do
        sleep 0.1 # The work of one step.
        done=$((done + 1))
        show "$title" "$done"
        now=$(date +%s%3N)
        ((now - told >= 250 || done == steps)) || continue # Four reports a second are enough; the last one counts.
        told=$now
        # Progress restarts its time. If the task is no longer wanted, an `expired` event reports it.
        post "$1/progress" "{\"completed\":$done,\"total\":$steps,\"subtitle\":\"step $done\"}" || true
    done
    post "$1" '{"success":true}'
}

event="" data="" wake="" job=""
exec {events}< <(exec "${curl[@]}" --no-buffer "$gateway/v1/topics/$1/wakes?slots=1&push=0&task=$2")
stream=$!
trap 'kill "$stream" $job 2>/dev/null || true' EXIT
# A comment comes every 15 s: 45 s without a byte mean that the stream is broken.
while IFS= read -r -t 45 line <&"$events"; do
    case "$line" in
        "event: "*) event="${line#event: }" ;;
        "data: "*) data+="${line#data: }" ;;
        "")
            [[ "$data" =~ \"wake\":\"([0-9a-f]+)\" ]] && id="${BASH_REMATCH[1]}"
            if [[ "$event" == wake ]]; then
                wake="$id" title="$2"
                [[ ! "$data" =~ \"title\":\"([^\"\\]*)\" ]] || title="${BASH_REMATCH[1]}"
                work "$wake" "$data" "$title" &
                job=$!
            elif [[ "$event" == expired && "$id" == "$wake" ]]; then
                kill "$job" 2>/dev/null || true
                printf '\n%s is over: %s\n' "$wake" "$data" >&2 # Such as "cancelled".
            fi
            event="" data=""
            ;;
    esac
done
# When the stream ends, running tasks are launched again and continue from their progress.
