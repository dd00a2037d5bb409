import Policy
package import Wire

/// How books are kept that gateways share: a version (1 byte), and each count that is not zero behind its code (2), as
/// a little-endian integer (8). The codes never change their meaning.
extension Books {
    private static let version: UInt8 = 1

    /// Appends the books as they are kept.
    package func store(to buffer: inout ByteBuffer) {
        buffer.append(Self.version)
        var books = self
        books.visit { code, count in
            guard count != 0 else { return }
            buffer.appendLittleEndian(code)
            buffer.appendLittleEndian(count)
        }
    }

    /// The books that `store` wrote; nil when it did not, or when there is a count that is not known.
    package init?(stored bytes: ByteView) {
        var reader = RecordReader(bytes)
        guard reader.integer(UInt8.self) == Self.version else { return nil }
        var counts: [UInt16: Int64] = [:]
        while reader.hasMore {
            let code: UInt16 = reader.integer()
            guard counts.updateValue(reader.integer(), forKey: code) == nil else { return nil }
        }
        guard reader.isWhole else { return nil }
        self.init()
        self.visit { code, count in
            if let stored = counts.removeValue(forKey: code) { count = stored }
        }
        guard counts.isEmpty else { return nil }
    }

    /// Calls `body` with every count and its code.
    private mutating func visit(_ body: (UInt16, inout Int64) -> Void) {
        body(1, &self.accepted)
        body(2, &self.noWake)
        body(3, &self.completed)
        body(4, &self.coalesced)
        body(5, &self.pending)
        body(6, &self.inFlight)
        body(7, &self.launched)
        body(8, &self.registered)
        self.discarded.visit(1) { body($0, &$1) }
        self.results.visit(2) { body($0, &$1) }
        self.held.visit(3) { body($0, &$1) }
        self.stock.visit(body)
        self.tasks.launched.visit(4) { body($0, &$1) }
        for kind in TaskKind.allCases { self.tasks[kind].visit(16 + kind.storedCode) { body($0, &$1) } }
        self.requests.visit(body)
        self.sessions.visit(body)
    }
}

extension StockBooks {
    fileprivate mutating func visit(_ body: (UInt16, inout Int64) -> Void) {
        body(9, &self.devices)
        body(10, &self.contentBytes)
        body(11, &self.taskBytes)
    }
}

extension TaskBooks {
    fileprivate mutating func visit(_ body: (UInt16, inout Int64) -> Void) {
        body(12, &self.replaced)
        body(13, &self.cancelled)
        self.submitted.visit(5) { body($0, &$1) }
        self.refused.visit(6) { body($0, &$1) }
        self.discarded.visit(7) { body($0, &$1) }
        self.waiting.visit(8) { body($0, &$1) }
        self.inFlight.visit(9) { body($0, &$1) }
        self.held.visit(10) { body($0, &$1) }
    }
}

extension SessionBooks {
    fileprivate mutating func visit(_ body: (UInt16, inout Int64) -> Void) {
        body(14, &self.finished)
        body(15, &self.refused)
        body(16, &self.completed)
        body(17, &self.waiting)
        body(18, &self.inFlight)
        body(19, &self.wakes)
        self.discarded.visit(11) { body($0, &$1) }
    }
}

extension PerCase where Case: StoredCase {
    /// Calls `body` with the count of each case and its code: that of the list in the upper byte.
    fileprivate mutating func visit(_ list: UInt8, _ body: (UInt16, inout Int64) -> Void) {
        for key in Case.allCases { body(UInt16(list) << 8 | UInt16(key.storedCode), &self[key]) }
    }
}
