#!/usr/bin/env bash
# A provider: pushes once to each device. Usage: provider.sh TOPIC DEVICE... (needs curl with HTTP/2; openssl for a key)
set -euo pipefail
(($# >= 2)) || { echo "usage: provider.sh TOPIC DEVICE..." >&2 && exit 64; }
gateway="${WAKEGATE_URL:-https://127.0.0.1:2197}"
curl=(curl --silent --show-error --http2 --cacert "${WAKEGATE_CA:-.wakegate/ca.pem}" --max-time 10)
payload='{"aps":{"content-available":1},"hello":"world"}'
topic="$1"
shift

base64url() { basenc --base64url --wrap=0 | tr -d =; }

# A provider token in the format of APNs: signed with ES256, and valid for an hour. openssl writes the two numbers of
# the signature as DER; a token contains them as 32 bytes each.
provider_token() {
    local signed
    signed="$(printf '{"alg":"ES256","kid":"%s"}' "$WAKEGATE_KEY_ID" | base64url)"
    signed+=".$(printf '{"iss":"%s","iat":%d}' "$WAKEGATE_TEAM" "$(date +%s)" | base64url)"
    printf '%s.' "$signed"
    printf '%s' "$signed" | openssl dgst -sha256 -sign "$WAKEGATE_PROVIDER_KEY" | openssl asn1parse -inform DER |
        sed -n 's/.*INTEGER *://p' | while read -r number; do printf '%64s' "$number" | tr ' ' 0; done |
        basenc --decode --base16 | base64url
}

# Pushes until there is a final answer: curl retries 429, 503 and broken connections, and obeys retry-after.
# With its apns-id, the push counts once, even if it is sent several times.
push() {
    local apns_id
    apns_id="$(</proc/sys/kernel/random/uuid)"
    "${curl[@]}" --retry 10 --retry-all-errors --retry-connrefused \
        --header "apns-topic: $topic" --header 'apns-push-type: background' --header 'apns-priority: 5' \
        --header "apns-id: $apns_id" --data-binary "$payload" --output /dev/stderr \
        --write-out '%{http_code} %header{wakegate-disposition} %header{apns-id}\n' "$gateway/3/device/$1"
}

[[ -z "${WAKEGATE_PROVIDER_KEY:-}" ]] || curl+=(--header "authorization: bearer $(provider_token)")
for device in "$@"; do push "$device"; done
