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
        case .network: "There is no network; it is tried as soon as there is one."
        case .earliestBegin: "It begins no earlier than it was asked to."
        case .backoff: "The last attempt failed, and the next one waits its time."
        case .slots: "It waits for others to end: of its host, or of all."
        }
    }
}
