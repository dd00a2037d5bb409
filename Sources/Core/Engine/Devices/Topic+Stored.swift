import Policy
import Wire

/// How a topic is kept: name (2 bytes and its own), `accepted`, `noWake`, `completed`, `coalesced`, `launched`
/// (8 each), then discards and results as pairs of a code (1) and a count (8), each list behind its length (1). Then
/// parts behind their codes (1): of each kind of task that ever launched a wake its code, its launches (8) and its
/// results as such a list; behind `requestsCode`, when there ever was a request, `replaced` and `cancelled` (8 each)
/// and lists of what was submitted, refused and discarded; behind `sessionsCode`, when a transfer ever finished,
/// `finished`, `refused` and `completed` (8 each) and the list of what was discarded; `pausedCode` alone while the
/// topic is paused. What waits, is in flight, registered or held is counted from the devices.
///
/// Programs that do not know a code refuse the record. So what came later than they did is written where there is
/// something to say of it, and nowhere else: a state in which no push was ever cancelled has no count of those.
extension Topic {
    /// Beyond the codes of kinds.
    private static let requestsCode: UInt8 = 32
    private static let sessionsCode: UInt8 = 33
    private static let pausedCode: UInt8 = 34

    /// Appends the topic as it is kept, with its name.
    func store(_ name: String, to buffer: inout ByteBuffer) {
        buffer.appendLittleEndian(UInt16(name.utf8.count))
        buffer.append(name)
        for count in [
            self.books.accepted, self.books.noWake, self.books.completed, self.books.coalesced, self.books.launched,
        ] {
            buffer.appendLittleEndian(count)
        }
        Self.store(self.books.discarded, leavingOut: [.cancelled], to: &buffer)
        Self.store(self.books.results, to: &buffer)
        for kind in TaskKind.allCases where self.books.tasks.launched[kind] > 0 {
            buffer.append(kind.storedCode)
            buffer.appendLittleEndian(self.books.tasks.launched[kind])
            Self.store(self.books.tasks[kind], to: &buffer)
        }
        Self.store(self.books.requests, to: &buffer)
        Self.store(self.books.sessions, to: &buffer)
        if self.isPaused { buffer.append(Self.pausedCode) }
    }

    private static func store(_ requests: TaskBooks, to buffer: inout ByteBuffer) {
        guard requests.submitted.sum + requests.refused.sum > 0 else { return }
        buffer.append(self.requestsCode)
        buffer.appendLittleEndian(requests.replaced)
        buffer.appendLittleEndian(requests.cancelled)
        self.store(requests.submitted, to: &buffer)
        self.store(requests.refused, to: &buffer)
        self.store(requests.discarded, to: &buffer)
    }

    private static func store(_ sessions: SessionBooks, to buffer: inout ByteBuffer) {
        guard sessions.finished + sessions.refused > 0 else { return }
        buffer.append(self.sessionsCode)
        buffer.appendLittleEndian(sessions.finished)
        buffer.appendLittleEndian(sessions.refused)
        buffer.appendLittleEndian(sessions.completed)
        self.store(sessions.discarded, to: &buffer)
    }

    /// What `store` wrote of a topic.
    struct Stored {
        let name: [UInt8]
        var books = Books()
        var isPaused = false
    }

    /// What `store` wrote; nil when it did not, or when no topic comes to such a name or count.
    static func read(stored bytes: ByteView) -> Stored? {
        var reader = RecordReader(bytes)
        var stored = Stored(name: reader.view(Int(reader.integer(UInt16.self))).array)
        var books = Books()
        books.accepted = reader.count()
        books.noWake = reader.count()
        books.completed = reader.count()
        books.coalesced = reader.count()
        books.launched = reader.count()
        guard Self.read(&books.discarded, &reader), Self.read(&books.results, &reader),
            Self.readParts(&books, &stored.isPaused, &reader), reader.isWhole,
            String(validating: stored.name, as: UTF8.self) != nil
        else { return nil }
        stored.books = books
        return stored
    }

    private static func readParts(
        _ books: inout Books,
        _ isPaused: inout Bool,
        _ reader: inout RecordReader
    ) -> Bool {
        while reader.hasMore {
            let code: UInt8 = reader.integer()
            let isRead =
                switch code {
                case self.requestsCode: self.read(&books.requests, &reader)
                case self.sessionsCode: self.read(&books.sessions, &reader)
                case self.pausedCode: self.read(&isPaused)
                default: TaskKind(storedCode: code).map { self.read(&books.tasks, $0, &reader) } ?? false
                }
            guard isRead else { return false }
        }
        return true
    }

    /// - Returns: false when it was read before.
    private static func read(_ isPaused: inout Bool) -> Bool {
        defer { isPaused = true }
        return !isPaused
    }

    private static func read(_ tasks: inout TaskWakeBooks, _ kind: TaskKind, _ reader: inout RecordReader) -> Bool {
        guard tasks.launched[kind] == 0 else { return false }
        tasks.launched[kind] = reader.count()
        return tasks.launched[kind] > 0 && self.read(&tasks[kind], &reader)
    }

    private static func read(_ requests: inout TaskBooks, _ reader: inout RecordReader) -> Bool {
        guard requests == TaskBooks() else { return false }
        requests.replaced = reader.count()
        requests.cancelled = reader.count()
        return self.read(&requests.submitted, &reader) && self.read(&requests.refused, &reader)
            && self.read(&requests.discarded, &reader) && requests != TaskBooks()
    }

    private static func read(_ sessions: inout SessionBooks, _ reader: inout RecordReader) -> Bool {
        guard sessions == SessionBooks() else { return false }
        sessions.finished = reader.count()
        sessions.refused = reader.count()
        sessions.completed = reader.count()
        return self.read(&sessions.discarded, &reader) && sessions != SessionBooks()
    }

    /// - `later`: cases that are left out while nothing is counted of them.
    private static func store<Case: StoredCase>(
        _ counts: PerCase<Case>,
        leavingOut later: [Case] = [],
        to buffer: inout ByteBuffer
    ) {
        let keys = Case.allCases.filter { counts[$0] != 0 || !later.contains($0) }
        buffer.append(UInt8(keys.count))
        for key in keys {
            buffer.append(key.storedCode)
            buffer.appendLittleEndian(counts[key])
        }
    }

    private static func read<Case: StoredCase>(_ counts: inout PerCase<Case>, _ reader: inout RecordReader) -> Bool {
        for _ in 0..<reader.integer(UInt8.self) {
            guard let key = Case(storedCode: reader.integer()) else { return false }
            counts[key] = reader.count()
        }
        return true
    }
}
