/// Which stream numbers a peer may still use for HEADERS (RFC 9113 §5.1.1: those of new streams only grow).
///
/// libnghttp2 ignores HEADERS on every stream that is gone, since trailers may be under way to one that was reset.
/// Where that cannot be, they are a fault.
struct StreamNumbers {
    private var newest: Int32 = -1
    private var newestCutShort: Int32 = 0
    private var newestResetByPeer: Int32 = 0
    /// The odd numbers from here to the newest have all been used.
    private var unbrokenFrom: Int32 = 1

    mutating func opened(_ number: Int32) {
        if number != self.newest + 2 { self.unbrokenFrom = number }
        self.newest = number
    }

    /// The stream was closed before its request had ended: more of it may still come, unless the peer closed it.
    mutating func cutShort(_ number: Int32) {
        guard number != self.newestResetByPeer else { return }
        self.newestCutShort = max(self.newestCutShort, number)
    }

    /// The peer has sent RST_STREAM, and so sends nothing more on the stream.
    mutating func resetByPeer(_ number: Int32) {
        self.newestResetByPeer = number
    }

    /// Whether HEADERS on `number` open no new stream.
    func isUsed(_ number: Int32) -> Bool { number <= self.newest }

    /// - Returns: the rule that HEADERS on `number` break unless that stream is open; nil when they break none, or more
    ///   of a request may be under way.
    func faultUnlessOpen(_ number: Int32) -> HTTP2ErrorCode? {
        guard self.isUsed(number) && number > self.newestCutShort else { return nil }
        // A number that was skipped, or is not a client's, never was a stream.
        return number >= self.unbrokenFrom && number & 1 == 1 ? .streamClosed : .protocolError
    }
}
