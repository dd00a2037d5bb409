package import HTTPClient
package import Wire

/// The gateway's answer to a push, formatted as text.
package struct PushAnswer: Sendable {
    private let response: HTTPResponse
    /// The current time in milliseconds since 1970, for relative times such as "in 5 min".
    private let now: Int64

    package init(_ response: HTTPResponse, now: Int64) {
        self.response = response
        self.now = now
    }

    package var isAccepted: Bool { self.response.status == 200 }

    /// True if the push was accepted but will never wake a device.
    package var wakesNobody: Bool { self.isAccepted && ["no-wake", "discarded"].contains(self.outcome) }

    /// The reason for a refused push; nil if it is not one of APNs's reasons.
    package var reason: APNSReason? { self.isAccepted ? nil : APNSReason(rawValue: self.outcome) }

    /// The gateway's warnings about likely mistakes in an accepted push.
    package var warnings: [String] {
        self.response.headers.filter { $0.name == "wakegate-warning" }.map { TerminalText.sanitized($0.value) }
    }

    /// The push's identifier, from the answer.
    package var apnsID: String? { self.response.header("apns-id") }

    /// The disposition of an accepted push, or the reason of a refused push.
    package var outcome: String {
        if self.isAccepted { return self.response.header("wakegate-disposition") ?? "accepted" }
        return self.response.refusal?.reason ?? "refused"
    }

    /// One line, such as `200 scheduled, may launch in 14 min 59 s (2026-11-21T07:20:00Z), apns-id …`.
    package var text: String {
        var parts = ["\(self.response.status) \(self.outcome)"]
        if let header = self.response.header("wakegate-eligible-at"), let seconds = Int(header) {
            let eligible = Double(seconds) * 1000
            let wait = TimeText.wait(until: eligible, now: self.now)
            parts.append("may launch in \(wait) (\(TimeText.due(eligible)))")
        }
        if let held = self.response.header("wakegate-held") {
            switch held {
            case "worker": parts.append("waits for a free worker slot")
            case "paused": parts.append("held: the topic is paused (`wakegate topic resume TOPIC` ends that)")
            default: parts.append("held: \(held)")
            }
        }
        if let id = self.apnsID { parts.append("apns-id \(id)") }
        return parts.joined(separator: ", ")
    }
}

/// Counts the answers to many pushes.
package struct PushTally: Sendable {
    package private(set) var count = 0
    package private(set) var refused = 0
    package private(set) var wakingNobody = 0
    private var outcomes: [String: Int] = [:]

    package init() {}

    package mutating func add(_ answer: PushAnswer) {
        self.count += 1
        if !answer.isAccepted { self.refused += 1 }
        if answer.wakesNobody { self.wakingNobody += 1 }
        self.outcomes[answer.outcome, default: 0] += 1
    }

    /// The exit status for the pushes.
    package var status: PushStatus {
        if self.refused > 0 { return .refused }
        return self.wakingNobody > 0 ? .wakesNobody : .wakes
    }

    /// One line, such as `14 pushes: 7 coalesced, 7 launched`.
    package var text: String {
        let counts = self.outcomes.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }
        return "\(self.count) pushes: \(counts.joined(separator: ", "))\n"
    }
}

/// The exit statuses of `wakegate push`.
package enum PushStatus: Int32, Sendable {
    /// Every push wakes a device, now or later.
    case wakes = 0
    /// A push was refused or did not end before the timeout.
    case refused = 1
    /// Every push was accepted, but at least one will wake no device.
    case wakesNobody = 2
}

/// The explanation of an answer to a push, with a remedy.
package struct PushAdvice: Sendable {
    private let device: String
    private let topic: String
    private let expiration: String?
    private let showsProviderToken: Bool

    /// - `device`: the device token of the push.
    /// - `expiration`: the text of `--expiration`.
    /// - `showsProviderToken`: true if a provider token was signed.
    package init(device: String, topic: String, expiration: String?, showsProviderToken: Bool) {
        self.device = device
        self.topic = topic
        self.expiration = expiration
        self.showsProviderToken = showsProviderToken
    }

    /// Returns the explanation of an answer; nil if no explanation is needed.
    package func text(_ answer: PushAnswer) -> String? {
        if answer.isAccepted { return self.accepted(answer.outcome) }
        guard let reason = answer.reason else {
            return "no gateway answers like that; see whether --gateway names the edge of one"
        }
        return self.request(reason)
    }

    private func accepted(_ disposition: String) -> String? {
        switch disposition {
        case "no-wake":
            "no-wake: its aps has no \"content-available\": 1, so it is counted and causes no wake; "
                + "a silent push is --payload '\(PushPayloadOption.silent)'"
        case "discarded" where self.expiration == "0":
            "discarded: --expiration 0 is now or never, and the device may not be woken now; "
                + "`wakegate stats --device \(self.device)` says why"
        case "discarded":
            "discarded: it had expired when it came; give --expiration a duration such as 10m, or leave it out"
        default: nil
        }
    }

    // MARK: Refused

    /// Explains a refusal, usually one whose cause is the request itself.
    private func request(_ reason: APNSReason) -> String? {
        switch reason {
        case .badDeviceToken: self.badDeviceToken
        case .badCollapseId: "--collapse-id is longer than 64 bytes; write a shorter one"
        case .badExpirationDate:
            "--expiration is neither a duration nor a UNIX time in seconds; write such as 10m, or 0"
        case .badMessageId:
            "--apns-id is not a UUID; write one such as 123e4567-e89b-12d3-a456-4266554400a0, or leave it out"
        case .badPriority: "--priority is 10, 5 or 1; a background push has 5 where strictBackgroundPriority is set"
        case .badTopic:
            "\"\(self.topic)\" is not a topic; write 1 to 255 characters out of A-Z, a-z, 0-9, '.', '_' and '-'"
        case .deviceTokenNotForTopic:
            "the device belongs to another topic than \(self.topic); `wakegate stats --device \(self.device)` names it"
        case .invalidPushType: "--push-type is none that APNs has; write background, or leave it out"
        case .missingTopic: "the push names no topic; write --topic TOPIC"
        case .missingDeviceToken: "the push names no device; write its token"
        case .payloadEmpty: "the payload is empty, or no JSON object; a silent push is '\(PushPayloadOption.silent)'"
        case .payloadTooLarge: "a payload has 4096 bytes at most, of --push-type voip 5120; send less"
        case .badDryRun, .duplicateHeaders, .methodNotAllowed:
            "no `wakegate push` sends that; see whether the gateway is of another version, or something is between"
        case .badPath:
            "no push is taken here: this is the admin listener, or no gateway; name the edge, port 2197 by default"
        case .unregistered, .expiredToken:
            "the device was removed; a provider forgets its token. `wakegate device register \(self.device) --topic "
                + "\(self.topic)` brings it back"
        default: self.proof(reason)
        }
    }

    private var badDeviceToken: String {
        let isHexadecimal = self.device.utf8.allSatisfy { Character(Unicode.Scalar($0)).isHexDigit }
        guard isHexadecimal, self.device.utf8.count.isMultiple(of: 2), (32...200).contains(self.device.utf8.count)
        else {
            return "\"\(self.device)\" is not a device token: an even number of hexadecimal digits, 32 to 200 of them"
        }
        return "no device is registered under this token; `wakegate device register \(self.device) --topic "
            + "\(self.topic)` does it, and registration: \"open\" takes every token"
    }

    /// Explains a refusal whose cause is the sender's credentials, or the gateway.
    private func proof(_ reason: APNSReason) -> String? {
        switch reason {
        case .invalidProviderToken:
            self.showsProviderToken
                ? "the gateway takes no such provider token, and tells clients no more, as APNs; its log says which it "
                    + "is, key id, team or key (providerTokenRefused), and `wakegate key list` shows what it takes"
                : "this is not a provider token; sign one with --provider-key FILE --team TEAM --key-id ID"
        case .missingProviderToken:
            "the gateway asks providers who they are; write --provider-key FILE --team TEAM --key-id ID, or --cert FILE"
        case .expiredProviderToken:
            "the token's time is over an hour from the gateway's; see to both clocks (`timedatectl`)"
        case .badEnvironmentKeyIdInToken:
            "the key is for the other environment of APNs; `wakegate key list` shows for which"
        case .unrelatedKeyIdInToken: "the connection has shown a key of other topics before; use one connection a key"
        case .tooManyProviderTokenUpdates:
            "the connection has changed its token within 20 minutes; continue with the one it had"
        case .topicDisallowed:
            "the key or certificate may not push to \(self.topic); `wakegate key list` shows its topics"
        case .badCertificate, .badCertificateEnvironment:
            "the gateway does not take this client certificate, and its log says why (clientCertificate)"
        case .forbidden:
            "this listener takes no requests for that host or from this machine; write its address, 127.0.0.1 for one, "
                + "in --gateway, or let `wakegate dev --network` name this machine's network"
        default: self.gateway(reason)
        }
    }

    /// Explains a refusal whose cause is the gateway's state.
    private func gateway(_ reason: APNSReason) -> String? {
        switch reason {
        case .tooManyRequests: "too many pushes at a time, of this key or to this device; send them slower"
        case .shutdown: "the gateway is stopping; send it again when it is there, after retry-after seconds"
        case .serviceUnavailable:
            "the gateway cannot store, or is full; its log says which, and `wakegate health` when it is well again"
        case .internalServerError: "the gateway failed; its log says how"
        case .idleTimeout: "the connection was idle for too long; send the push again"
        default: nil
        }
    }
}
