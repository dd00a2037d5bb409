/// What tells one boot of a machine from every other.
package struct BootID: Hashable, Sendable {
    package let first: UInt64
    package let second: UInt64

    /// No boot has it.
    package static let unknown = BootID(first: 0, second: 0)

    package init(first: UInt64, second: UInt64) {
        self.first = first
        self.second = second
    }

    /// The id as Linux writes it: 32 hexadecimal digits, with hyphens; nil when it is none.
    package init?(text: some StringProtocol) {
        let digits = String(text).filter { $0 != "-" }
        guard digits.utf8.count == 32, let first = UInt64(digits.prefix(16), radix: 16),
            let second = UInt64(digits.suffix(16), radix: 16)
        else { return nil }
        self.init(first: first, second: second)
        guard self != .unknown else { return nil }
    }
}

/// A moment on the uptime of one boot.
package struct BootMoment: Hashable, Sendable {
    package let id: BootID
    /// CLOCK_BOOTTIME, in milliseconds.
    package let milliseconds: Int64

    package init(id: BootID, milliseconds: Int64) {
        self.id = id
        self.milliseconds = milliseconds
    }
}
