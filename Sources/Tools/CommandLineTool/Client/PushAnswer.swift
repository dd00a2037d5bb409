package import HTTPClient
package import Wire

/// What the gateway answered to a push, in words.
package struct PushAnswer: Sendable {
    private let response: HTTPResponse
    /// Milliseconds since 1970, for "in 5 min".
    private let now: Int64

    package init(_ response: HTTPResponse, now: Int64) {
        self.response = response
        self.now = now
    }

    package var isAccepted: Bool { self.response.status == 200 }

    /// Whether the push was accepted, and nobody will ever be woken by it.
    package var wakesNobody: Bool { self.isAccepted && ["no-wake", "discarded"].contains(self.outcome) }

    /// The reason of a refused push; nil of one that APNs has not.
    package var reason: APNSReason? { self.isAccepted ? nil : APNSReason(rawValue: self.outcome) }

    /// The likely mistakes in an accepted push, as the gateway names them.
    package var warnings: [String] {
        self.response.headers.filter { $0.name == "wakegate-warning" }.map { TerminalText.harmless($0.value) }
    }

    /// The name the push has at the gateway.
    package var apnsID: String? { self.response.header("apns-id") }

    /// The disposition of an accepted push, the reason of a refused one.
    package var outcome: String {
        if self.isAccepted { return self.response.header("wakegate-disposition") ?? "accepted" }
        return (try? JSONReader.read(String(decoding: self.response.body, as: UTF8.self)))?["reason"]?.text ?? "refused"
    }

    /// One line, such as `200 scheduled, may launch in 14 min 59 s (2026-11-21T07:20:00Z), apns-id …`.
    package var text: String {
        var parts = ["\(self.response.status) \(self.outcome)"]
        if let header = self.response.header("wakegate-eligible-at"), let seconds = Int(header) {
            let eligible = Double(seconds) * 1000
            let wait = TimeText.wait(until: eligible, now: self.now)
            parts.append("may launch in \(wait) (\(TimeText.instant(eligible)))")
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

    /// What the program says of the pushes when it ends.
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
    /// Every push wakes somebody, now or later.
    case wakes = 0
    /// A push was refused, or has not ended in the time there was.
    case refused = 1
    /// Every push was accepted, and one of them wakes nobody.
    case wakesNobody = 2
}
