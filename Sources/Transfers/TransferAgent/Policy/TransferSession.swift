/// What a session asks for its transfers.
package struct TransferSession: Hashable, Sendable {
    /// The device that is woken, in hexadecimal digits; nil while nobody is.
    package var device: String?
    package var topic: String?
    /// Whether transfers wait for power, coolness and an unmetered network.
    package var isDiscretionary = false
    /// Whether the device is woken when the last transfer has ended.
    package var sendsLaunchEvents = true
    package var allowsMetered = true
    /// How long no byte may come, in milliseconds.
    package var requestTimeout: Int64 = 60_000
    /// How long a transfer may take from its submission to its end, in milliseconds.
    package var resourceTimeout: Int64 = 604_800_000
    package var connectionsPerHost = 6
    /// True if an upload is finished when the server answers with success, even if it has not read the whole file.
    package var acceptsEarlyAnswers = false

    package init() {}
}

/// The numbers of a session's transfers by state.
package struct TransferCounts: Hashable, Sendable {
    private var counts = [0, 0, 0, 0, 0]

    package init() {}

    package subscript(state: TransferState) -> Int {
        get { self.counts[Int(state.rawValue)] }
        set { self.counts[Int(state.rawValue)] = newValue }
    }

    /// How many have not ended.
    package var live: Int { self[.waiting] + self[.running] }
    package var all: Int { self.counts.reduce(0, +) }

    package static func += (left: inout TransferCounts, right: TransferCounts) {
        for state in TransferState.allCases { left[state] += right[state] }
    }
}

/// How far a transfer has come.
package enum TransferState: UInt8, CaseIterable, Sendable {
    /// Can move to: running, failed, cancelled.
    case waiting
    /// Can move to: waiting, finished, failed, cancelled.
    case running
    /// Terminal.
    case finished
    /// Terminal.
    case failed
    /// Terminal.
    case cancelled

    package var name: String {
        switch self {
        case .waiting: "waiting"
        case .running: "running"
        case .finished: "finished"
        case .failed: "failed"
        case .cancelled: "cancelled"
        }
    }

    package var hasEnded: Bool {
        switch self {
        case .waiting, .running: false
        case .finished, .failed, .cancelled: true
        }
    }
}

/// Which way the bytes go.
package enum TransferKind: UInt8, CaseIterable, Sendable {
    case download, upload

    package var name: String {
        switch self {
        case .download: "download"
        case .upload: "upload"
        }
    }
}

/// What the machine is like, as far as transfers wait for it.
package struct TransferConditions: Hashable, Sendable {
    /// Whether power comes from outside; a machine without a battery has it.
    package var hasExternalPower = true
    package var isLowPower = false
    /// Whether it is as hot as `serious`, or hotter.
    package var isHot = false
    /// Whether the network costs by the byte; nil when nobody says.
    package var isMetered: Bool?
    /// Whether there is a way out of the machine; nil when nobody says.
    package var hasNetwork: Bool?

    package init() {}

    /// Why transfers of a session wait; nil when they need not.
    package func hold(of session: TransferSession) -> TransferHold? {
        if session.isDiscretionary {
            if !self.hasExternalPower { return .power }
            if self.isLowPower { return .lowPower }
            if self.isHot { return .thermal }
        }
        if session.isDiscretionary || !session.allowsMetered, self.isMetered == true { return .metered }
        return nil
    }
}

/// What a waiting transfer waits for.
package enum TransferHold: String, CaseIterable, Sendable {
    case power, lowPower, thermal, metered, network, earliestBegin, backoff, slots

    /// The cause as a sentence.
    package var sentence: String {
        switch self {
        case .power: "It is discretionary and waits for external power."
        case .lowPower: "It is discretionary and waits for the end of the low power mode."
        case .thermal: "It is discretionary and waits until the machine has cooled."
        case .metered: "It waits for a network that is not metered."
        case .network: "The network is down; the transfer is tried again when it is up."
        case .earliestBegin: "It begins no earlier than it was asked to."
        case .backoff: "The last attempt failed, and the next one waits its time."
        case .slots: "It waits for others to end: of its host, or of all."
        }
    }
}
