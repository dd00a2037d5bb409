/// Which stream numbers a peer may still use for HEADERS (RFC 9113 §5.1.1: those of new streams only grow).
///
/// libnghttp2 ignores HEADERS on every stream that is gone, since trailers may be under way to one that was reset.
/// Where that cannot be, they are a fault.
struct StreamNumbers {
    private var newest: Int32 = 0
    private var newestCutShort: Int32 = 0

    mutating func opened(_ number: Int32) {
        self.newest = max(self.newest, number)
    }

    /// The stream was closed before its request had ended: more of it may still come.
    mutating func cutShort(_ number: Int32) {
        self.newestCutShort = max(self.newestCutShort, number)
    }

    /// Whether HEADERS on `number` break the rule unless that stream is open.
    func isFaultUnlessOpen(_ number: Int32) -> Bool {
        number <= self.newest && number > self.newestCutShort
    }
}
