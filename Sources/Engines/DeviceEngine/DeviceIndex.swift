/// The place of a device in the engine's table; it never changes while the engine lives.
package struct DeviceIndex: Hashable, Sendable {
    package let rawValue: UInt32

    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// The place of no device: the end of a list.
    static var none: DeviceIndex { DeviceIndex(rawValue: .max) }
}

/// The place of a topic in the engine's table; it never changes while the engine lives.
package struct TopicIndex: Hashable, Sendable {
    package let rawValue: UInt32

    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }
}
