package import Wire

/// The field block that is being read, as far as its request needs it.
package struct FieldBlock {
    /// How many times the limit a header list may take before its stream is reset instead of answered 431: 16 KiB of
    /// references stand for a list of up to 60 MiB, all of which has to be looked at (RFC 7541 §7.3).
    static let overlongListFactor = 4

    /// The stream whose block it is; nil when its fields are not wanted: the library has not taken its first frame, or
    /// there was a fault in them.
    package private(set) var stream: Int32?
    /// What is known of its fields.
    private(set) var rules = FieldRules.head
    /// What they take, as HTTP/2 counts it, where nobody else counts them.
    private var bytes = 0

    /// There is no block yet.
    package init() {}

    /// The stream is gone, or the fields are not wanted: what follows is read and dropped.
    package mutating func drop() {
        self.stream = nil
    }

    /// The library has taken the first frame of a block.
    package mutating func taken(for stream: Int32, isRequest: Bool) {
        self.stream = stream
        self.rules = isRequest ? .head : .trailers
        self.bytes = 0
    }

    /// A run of fields has been taken as a whole, which leaves the request within all limits.
    ///
    /// - Parameter rules: what is known of the fields now.
    mutating func runTaken(_ rules: FieldRules) {
        self.rules = rules
    }

    /// A field has come that is wanted.
    ///
    /// - Parameters:
    ///   - name: its name.
    ///   - value: its value.
    ///   - note: what `FieldRules.admit` has left in it.
    ///   - slot: where the request is kept; nil, or one that is not receiving, to keep nothing.
    ///   - listBytesMax: the most bytes of a header list.
    /// - Returns: why its stream is to be reset; nil when it is not.
    @inline(__always)
    package mutating func fieldReceived(
        _ name: ByteView,
        _ value: ByteView,
        _ note: inout UInt32,
        into slot: @autoclosure () -> StreamSlot?,
        listBytesMax: @autoclosure () -> Int
    ) -> HTTP2ErrorCode? {
        guard let kind = self.rules.admit(name, value, &note) else { return .protocolError }
        if let slot = slot(), slot.state.phase == .receiving {
            slot.state.fieldReceived(name, value, kind, headerListBytesMax: listBytesMax())
            guard slot.state.isHeaderListTooLarge else { return nil }
            self.bytes = slot.state.headerListBytes
        } else {
            self.bytes += name.count + value.count + 32
        }
        return self.bytes > listBytesMax() * Self.overlongListFactor ? .enhanceYourCalm : nil
    }
}
