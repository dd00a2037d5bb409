#!/usr/bin/env bash
# A WakeGate worker: handles the wakes of a topic, one after another. Usage: worker.sh TOPIC (needs curl with HTTP/2)
set -euo pipefail
(($# >= 1)) || { echo "usage: worker.sh TOPIC" >&2 && exit 64; }
gateway="${WAKEGATE_URL:-https://127.0.0.1:2197}"
curl=(curl --silent --show-error --http2 --fail --cacert "${WAKEGATE_CA:-.wakegate/ca.pem}")
[[ -z "${WAKEGATE_TOKEN:-}" ]] || curl+=(--header "authorization: Bearer $WAKEGATE_TOKEN")
stopping=false wake="" stream=""

# The worker's own task. Standard input is the wake as JSON; exit status 0 means newData, 3 noData, others failed.
handle() { cat; }
export -f handle

# Runs `handle` for a wake, and stops it when its time is over.
run() {
    local result=newData status=0
    [[ "$1" =~ \"deadline\":([0-9]+) ]]
    timeout "$(((BASH_REMATCH[1] - $(date +%s%3N)) / 1000 + 1))" bash -c handle <<<"$1" || status=$?
    ((status == 0)) || result=failed
    ((status != 3)) || result=noData
    # curl retries after broken connections and 5xx; reporting twice is harmless. 404 and 409 mean: too late.
    "${curl[@]}" --output /dev/null --max-time 5 --retry 5 --retry-connrefused --data "{\"result\":\"$result\"}" \
        "$gateway/v1/wakes/$wake" || printf 'the result of wake %s did not count\n' "$wake" >&2
    wake=""
}

# Handles wakes until the stream ends. A comment arrives every 15 s, and curl waits up to 60 s for a busy gateway
# (retry-after): after 75 s without a byte, the stream is broken.
listen() {
    local line event="" data=""
    while [[ "$stopping" == false ]] && IFS= read -r -t 75 line; do
        case "$line" in
            "event: "*) event="${line#event: }" ;;
            "id: "*) wake="${line#id: }" ;;
            "data: "*) data+="${line#data: }" ;;
            "")
                [[ "$event" != wake ]] || run "$data"
                event="" data=""
                ;;
        esac
    done
}

# The stream of a wake that is being handled stays open until its result has arrived.
trap 'stopping=true; [[ -n "$wake" ]] || kill "$stream"' TERM
trap 'kill "$stream" 2>/dev/null || true' EXIT
while [[ "$stopping" == false ]]; do
    exec {wakes}< <(exec "${curl[@]}" --no-buffer --retry 9 "$gateway/v1/topics/$1/wakes?slots=1&name=shell")
    stream=$!
    listen <&"$wakes"
    exec {wakes}<&-
    kill "$stream" 2>/dev/null || true
    [[ "$stopping" == true ]] || sleep "$((RANDOM % 5)).$((RANDOM % 10))"
done
