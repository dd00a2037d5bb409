import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Books that gateways share", .timeLimit(.minutes(15)))
struct StoredBooksTests {
    /// Books in which no two counts are alike, and none is zero.
    private static let books: Books = {
        var last: Int64 = 0
        func count() -> Int64 {
            last += 1
            return last.isMultiple(of: 3) ? -last : last << 40
        }
        func counts<Case: CountedCase>(_: PerCase<Case>) -> PerCase<Case> {
            Case.allCases.reduce(into: PerCase<Case>()) { $0[$1] = count() }
        }
        var books = Books()
        books.accepted = count()
        books.noWake = count()
        books.completed = count()
        books.coalesced = count()
        books.pending = count()
        books.inFlight = count()
        books.launched = count()
        books.registered = count()
        books.discarded = counts(books.discarded)
        books.results = counts(books.results)
        books.held = counts(books.held)
        books.stock.devices = count()
        books.stock.contentBytes = count()
        books.stock.taskBytes = count()
        books.tasks.launched = counts(books.tasks.launched)
        for kind in TaskKind.allCases { books.tasks[kind] = counts(books.tasks[kind]) }
        books.requests.replaced = count()
        books.requests.cancelled = count()
        books.requests.submitted = counts(books.requests.submitted)
        books.requests.refused = counts(books.requests.refused)
        books.requests.discarded = counts(books.requests.discarded)
        books.requests.waiting = counts(books.requests.waiting)
        books.requests.inFlight = counts(books.requests.inFlight)
        books.requests.held = counts(books.requests.held)
        books.sessions.finished = count()
        books.sessions.refused = count()
        books.sessions.completed = count()
        books.sessions.waiting = count()
        books.sessions.inFlight = count()
        books.sessions.wakes = count()
        books.sessions.discarded = counts(books.sessions.discarded)
        return books
    }()

    /// Every count of books by the names that lead to it, also of a field that nobody here knows of.
    private static func leaves(_ value: Any, _ path: String = "") -> [String: Int64] {
        if let count = value as? Int64 { return [path: count] }
        if let counts = value as? any CountList { return counts.leaves(path) }
        return Mirror(reflecting: value).children.reduce(into: [:]) { leaves, child in
            leaves.merge(Self.leaves(child.value, path + "." + (child.label ?? ""))) { first, _ in first }
        }
    }

    private func stored(_ books: Books) -> [UInt8] {
        var buffer = ByteBuffer()
        books.store(to: &buffer)
        return buffer.view.array
    }

    @Test("Every count there is comes back as it was stored, and is added and taken away")
    func everyCount() throws {
        let leaves = Self.leaves(Self.books)
        #expect(leaves.count > 90)
        for (path, count) in leaves { #expect(count != 0, "\(path) is not filled: has it a code, and is it added?") }
        let bytes = self.stored(Self.books)
        let restored = try #require(bytes.withByteView { Books(stored: $0) })
        #expect(Self.leaves(restored) == leaves)
        var sum = Self.books
        sum += Self.books
        #expect(Self.leaves(sum) == leaves.mapValues { $0 * 2 })
        #expect(Self.leaves(sum - Self.books) == leaves)
        #expect(Self.leaves(Self.books - sum) == leaves.mapValues { -$0 })
    }

    @Test("Books without counts take a byte; no part of books, and no unknown count, is taken for books")
    func unreadable() {
        let empty = self.stored(Books())
        #expect(empty.count == 1)
        #expect(empty.withByteView { Books(stored: $0) } == Books())
        let bytes = self.stored(Self.books)
        for count in 0..<bytes.count where count % 10 != 1 {
            #expect(Array(bytes[..<count]).withByteView { Books(stored: $0) } == nil)
        }
        let unknown = empty + [0xFF, 0xFF, 1, 0, 0, 0, 0, 0, 0, 0]
        #expect(unknown.withByteView { Books(stored: $0) } == nil)
        #expect((bytes + bytes[1..<11]).withByteView { Books(stored: $0) } == nil)
        #expect(([2] + bytes[1...]).withByteView { Books(stored: $0) } == nil)
    }
}

private protocol CountList {
    func leaves(_ path: String) -> [String: Int64]
}

extension PerCase: CountList {
    fileprivate func leaves(_ path: String) -> [String: Int64] {
        Case.allCases.reduce(into: [:]) { $0["\(path).\($1)"] = self[$1] }
    }
}
