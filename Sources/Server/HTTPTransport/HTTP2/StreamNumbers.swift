/// Which stream numbers a peer may still use (RFC 9113 §5.1.1: those of new streams only grow).
///
/// libnghttp2 ignores HEADERS and DATA on every stream that is gone, since more of a request may be under way to one
/// that we have reset. Where that cannot be, they are a fault.
package struct StreamNumbers {
    /// How many streams that were cut short are remembered one by one.
    package static let cutShortMax = 64

    private var newest: Int32 = -1
    private var newestResetByPeer: Int32 = 0
    /// The odd numbers from here to the newest have all been used.
    private var unbrokenFrom: Int32 = 1
    /// The streams that we closed last before their requests had ended, in a ring.
    private var cutShort: [Int32] = []
    /// The place in the ring that is taken next, when it is full.
    private var oldestCutShort = 0
    /// The highest number that has left the ring: of those up to it nothing more is known, and all are let pass.
    private var forgotten: Int32 = 0

    /// The numbers of a connection on which no stream was opened.
    package init() {}

    /// A stream was opened, whose number is higher than any before it.
    package mutating func opened(_ number: Int32) {
        if number != self.newest + 2 { self.unbrokenFrom = number }
        self.newest = number
    }

    /// The stream was closed before its request had ended: more of it may still come, unless the peer closed it.
    package mutating func cutShort(_ number: Int32) {
        guard number != self.newestResetByPeer else { return }
        guard self.cutShort.count == Self.cutShortMax else { return self.cutShort.append(number) }
        self.forgotten = max(self.forgotten, self.cutShort[self.oldestCutShort])
        self.cutShort[self.oldestCutShort] = number
        self.oldestCutShort = (self.oldestCutShort + 1) % Self.cutShortMax
    }

    /// The peer has sent RST_STREAM, and so sends nothing more on the stream.
    package mutating func resetByPeer(_ number: Int32) {
        self.newestResetByPeer = number
        guard !self.cutShort.isEmpty, let place = self.cutShort.firstIndex(of: number) else { return }
        // No stream has this number.
        self.cutShort[place] = 0
    }

    /// Returns true if the latest RST_STREAM of the peer was for this stream.
    func isNewestReset(_ number: Int32) -> Bool { number == self.newestResetByPeer }

    /// Whether HEADERS on `number` open no new stream.
    func isUsed(_ number: Int32) -> Bool { number <= self.newest }

    /// Whether more of a request may be under way on `number`, whose stream is gone.
    package func mayGoOn(_ number: Int32) -> Bool { number <= self.forgotten || self.cutShort.contains(number) }

    /// - Returns: the rule that HEADERS on `number` break unless that stream is open; nil when they break none, or more
    ///   of a request may be under way.
    package func faultUnlessOpen(_ number: Int32) -> HTTP2ErrorCode? {
        guard self.isUsed(number), !self.mayGoOn(number) else { return nil }
        // A number that was skipped, or is not a client's, never was a stream.
        return number >= self.unbrokenFrom && number & 1 == 1 ? .streamClosed : .protocolError
    }
}
