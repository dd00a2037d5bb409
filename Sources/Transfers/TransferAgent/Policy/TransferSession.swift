/// The settings of a session.
package struct TransferSession: Hashable, Sendable {
    /// The token of the device to wake, in hexadecimal digits; nil if no device is woken.
    package var device: String?
    package var topic: String?
    /// True if transfers wait for external power, a cool machine and an unmetered network.
    package var isDiscretionary = false
    /// True if the end of the session's last transfer wakes the device.
    package var sendsLaunchEvents = true
    package var allowsMetered = true
    /// True if transfers may use a network with data saving.
    package var allowsConstrained = true
    /// True if transfers also run after the app was force-quit on the device.
    package var continuesAfterForceQuit = false
    /// The maximum time without a byte, in milliseconds.
    package var requestTimeout: Int64 = 60_000
    /// The maximum time from the submission of a transfer to its end, in milliseconds.
    package var resourceTimeout: Int64 = 604_800_000
    package var connectionsPerHost = 6
    /// True if an answer with success ends an upload even if the server has not read the whole file.
    package var acceptsEarlyAnswers = false

    package init() {}
}

/// The number of a session's transfers in each state.
package struct TransferCounts: Hashable, Sendable {
    private var counts = [0, 0, 0, 0, 0]

    package init() {}

    package subscript(state: TransferState) -> Int {
        get { self.counts[Int(state.rawValue)] }
        set { self.counts[Int(state.rawValue)] = newValue }
    }

    /// The number of transfers that have not ended.
    package var live: Int { self[.waiting] + self[.running] }
    package var all: Int { self.counts.reduce(0, +) }

    package static func += (left: inout TransferCounts, right: TransferCounts) {
        for state in TransferState.allCases { left[state] += right[state] }
    }
}

/// The state of a transfer.
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

    package var name: String { "\(self)" }

    package var hasEnded: Bool { self != .waiting && self != .running }
}

/// The direction of a transfer.
package enum TransferKind: UInt8, CaseIterable, Sendable {
    case download, upload

    package var name: String { "\(self)" }
}

/// The conditions of the machine on which the start of transfers depends.
package struct TransferConditions: Hashable, Sendable {
    /// True if the machine has external power. A machine without a battery always has external power.
    package var hasExternalPower = true
    package var isLowPower = false
    /// True if the thermal state is `serious` or higher.
    package var isHot = false
    /// True if the network is metered; nil if unknown.
    package var isMetered: Bool?
    /// True if the network has data saving; nil if unknown.
    package var isConstrained: Bool?
    /// True if the machine has a network; nil if unknown.
    package var hasNetwork: Bool?

    package init() {}

    /// The conditions before the first reading. All sessions wait that depend on a condition.
    package static let unread = {
        var conditions = TransferConditions()
        conditions.hasExternalPower = false
        conditions.isMetered = true
        conditions.isConstrained = true
        return conditions
    }()

    /// Returns the reason why transfers of a session must wait; nil if there is none.
    package func hold(of session: TransferSession) -> TransferHold? {
        if session.isDiscretionary {
            if !self.hasExternalPower { return .power }
            if self.isLowPower { return .lowPower }
            if self.isHot { return .thermal }
        }
        if session.isDiscretionary || !session.allowsMetered, self.isMetered == true { return .metered }
        if session.isDiscretionary || !session.allowsConstrained, self.isConstrained == true { return .constrained }
        return nil
    }
}

/// The reason why a transfer waits.
package enum TransferHold: String, CaseIterable, Sendable {
    case forceQuit, appState, power, lowPower, thermal, metered, constrained, network, earliestBegin, backoff, slots

    /// The reason as a sentence.
    ///
    /// - Parameter moment: the earliest time at which the transfer may continue, as text; nil if unknown.
    package func sentence(until moment: String? = nil) -> String {
        switch self {
        case .forceQuit:
            "The app was force-quit on the device; the transfer continues when appState has another value."
        case .appState: "It waits up to 10 seconds for the gateway to say whether the app was force-quit on the device."
        case .power: "It is discretionary and waits for external power."
        case .lowPower: "It is discretionary and waits for the end of the low power mode."
        case .thermal: "It is discretionary and waits until the machine has cooled."
        case .metered: "It waits for a network that is not metered."
        case .constrained: "It waits for a network without data saving."
        case .network: "The network is down; the transfer is tried again when it is up."
        case .earliestBegin: "It begins no earlier than \(moment ?? "it was asked to")."
        case .backoff: "The last attempt failed, and the next one begins \(moment.map { "at \($0)" } ?? "later")."
        case .slots: "It waits for others to end: of its host, or of all."
        }
    }
}
