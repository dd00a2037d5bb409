#!/usr/bin/env bash
# Downloads a file with the transfers agent; run again, it goes on with it. Usage: transfers.sh SESSION URL PATH
set -euo pipefail
(($# >= 3)) || { echo "usage: transfers.sh SESSION URL PATH" >&2 && exit 64; }
agent="${WAKEGATE_TRANSFERS:-${XDG_RUNTIME_DIR:-}/wakegate/transfers.sock}"
curl=(curl --silent --show-error --unix-socket "${agent#unix:}")
session="http://localhost/v1/sessions/$1"
path="$(realpath --no-symlinks "$3")"

# The agent's answer, also of one that is just starting anew; what it refuses ends the program.
ask() {
    local answer
    answer="$("${curl[@]}" --retry 20 --retry-delay 1 --retry-connrefused --write-out '\n%{http_code}' "$@")"
    if ((${answer##*$'\n'} >= 300)); then
        printf '%s\n' "$answer" >&2
        exit 1
    fi
    printf '%s\n' "${answer%$'\n'*}"
}

# A text as JSON has it.
quoted() {
    local text="${1//\\/\\\\}"
    printf '"%s"' "${text//\"/\\\"}"
}

# The member of an object that is a word, a number, or a text without a quotation mark.
member() { [[ "$2" =~ \"$1\":\"?([^,\"\}]*) ]] && printf '%s' "${BASH_REMATCH[1]}"; }

# Waits until the transfer has ended, whatever becomes of the agent meanwhile, and prints it.
end() {
    local found events
    while true; do
        # The first event comes at once; whatever came before it shows in the transfer.
        exec {events}< <(exec "${curl[@]}" --no-buffer --fail "$session/events" 2>/dev/null)
        while IFS= read -r -t 45 -u "$events" line; do
            [[ "$line" == "event: progress" ]] || [[ "$line" != "event: "* ]] && continue
            found="$("${curl[@]}" --max-time 30 --fail "$session/transfers/$1" 2>/dev/null)" || break
            case "$(member state "$found")" in finished | failed | cancelled) printf '%s' "$found" && return ;; esac
        done
        exec {events}<&-
        sleep 0.5 # The agent starts anew; it has forgotten nothing.
    done
}

ask --request PUT --data '{}' "$session" >/dev/null
# Each transfer of the list on a line of its own: one that this program added before has the same URL and place.
earlier="$(ask "$session/transfers" | sed 's/{"transfer":/\n&/g' | grep --fixed-strings "\"url\":$(quoted "$2")," |
    grep --fixed-strings "\"note\":$(quoted "$path")," | grep '"taken":false' |
    grep --extended-regexp '"state":"(waiting|running|finished)"' | head -n 1 || true)"
request="{\"kind\":\"download\",\"url\":$(quoted "$2"),\"note\":$(quoted "$path")}"
transfer="$(member transfer "${earlier:-$(ask --data "$request" "$session/transfers")}")"
ended="$(end "$transfer")"
if [[ "$(member state "$ended")" != finished ]]; then
    printf '%s\n' "$ended" >&2
    exit 1
fi
ask --data "{\"to\":$(quoted "$path")}" "$session/transfers/$transfer/take" >/dev/null
printf '%s %s\n' "$path" "$(stat --format %s "$path")"
