#!/usr/bin/env bash
# Downloads a file with the transfers agent, or continues the download. Usage: transfers.sh SESSION URL PATH
set -euo pipefail
(($# >= 3)) || { echo "usage: transfers.sh SESSION URL PATH" >&2 && exit 64; }
agent="${WAKEGATE_TRANSFERS:-${XDG_RUNTIME_DIR:-}/wakegate/transfers.sock}"
curl=(curl --silent --show-error --unix-socket "${agent#unix:}")
session="http://localhost/v1/sessions/$1"
path="$(realpath --no-symlinks "$3")"

# Prints the agent's answer, also while the agent restarts. An error ends the program.
ask() {
    local answer
    answer="$("${curl[@]}" --retry 20 --retry-delay 1 --retry-connrefused --write-out '\n%{http_code}' "$@")"
    if ((${answer##*$'\n'} >= 300)); then
        printf '%s\n' "$answer" >&2
        exit 1
    fi
    printf '%s\n' "${answer%$'\n'*}"
}

# Prints a text as JSON.
quoted() {
    local text="${1//\\/\\\\}"
    printf '"%s"' "${text//\"/\\\"}"
}

# Prints a member of an object: a word, a number, or a text without a quotation mark.
member() { [[ "$2" =~ \"$1\":\"?([^,\"\}]*) ]] && printf '%s' "${BASH_REMATCH[1]}"; }

# Waits until the transfer has ended, even if the agent restarts, and prints it.
end() {
    local found events
    while true; do
        # The first event arrives immediately. Earlier changes are visible in the transfer.
        exec {events}< <(exec "${curl[@]}" --no-buffer --fail "$session/events" 2>/dev/null)
        while IFS= read -r -t 45 -u "$events" line; do
            [[ "$line" == "event: progress" ]] || [[ "$line" != "event: "* ]] && continue
            found="$("${curl[@]}" --max-time 30 --fail "$session/transfers/$1" 2>/dev/null)" || break
            case "$(member state "$found")" in finished | failed | cancelled) printf '%s' "$found" && return ;; esac
        done
        exec {events}<&-
        sleep 0.5 # The agent restarts. It still has all transfers.
    done
}

ask --request PUT --data '{}' "$session" >/dev/null
# Each transfer in the list on its own line. One from an earlier run has the same path and URL, shown without a user.
listed="$(sed --regexp-extended 's|^([^/?#]*://)[^/?#]*@|\1|' <<<"$2")"
earlier="$(ask "$session/transfers" | sed 's/{"transfer":/\n&/g' | grep --fixed-strings "\"url\":$(quoted "$listed")," |
    grep --fixed-strings "\"note\":$(quoted "$path")," | grep '"taken":false' |
    grep --extended-regexp '"state":"(waiting|running|finished)"' | head -n 1 || true)"
request="{\"kind\":\"download\",\"url\":$(quoted "$2"),\"note\":$(quoted "$path")}"
transfer="$(member transfer "${earlier:-$(ask --data "$request" "$session/transfers")}")"
ended="$(end "$transfer")"
[[ "$(member state "$ended")" == finished ]] || { printf '%s\n' "$ended" >&2 && exit 1; }
ask --data "{\"to\":$(quoted "$path")}" "$session/transfers/$transfer/take" >/dev/null
printf '%s %s\n' "$path" "$(stat --format %s "$path")"
