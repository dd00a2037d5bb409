import Bytes
import LaunchPolicy

/// How a topic is kept: name (2 bytes and its own), `accepted`, `noWake`, `completed`, `coalesced`, `launched`
/// (8 each), then discards and results as pairs of a code (1) and a count (8), each list behind its length (1). Then,
/// of each kind of task that ever launched a wake, its code (1), its launches (8) and its results as such a list. What
/// waits, is in flight, registered or held is counted from the devices.
extension Topic {
    /// Appends the topic as it is kept, with its name.
    func store(_ name: String, to buffer: inout ByteBuffer) {
        buffer.appendLittleEndian(UInt16(name.utf8.count))
        buffer.append(name)
        for count in [
            self.books.accepted, self.books.noWake, self.books.completed, self.books.coalesced, self.books.launched,
        ] {
            buffer.appendLittleEndian(count)
        }
        Self.store(self.books.discarded, to: &buffer)
        Self.store(self.books.results, to: &buffer)
        for kind in TaskKind.allCases where self.books.tasks.launched[kind] > 0 {
            buffer.append(kind.storedCode)
            buffer.appendLittleEndian(self.books.tasks.launched[kind])
            Self.store(self.books.tasks[kind], to: &buffer)
        }
    }

    /// The name and the books that `store` wrote; nil when it did not, or when no topic comes to such a name or count.
    static func read(stored bytes: ByteView) -> (name: [UInt8], books: Books)? {
        var reader = RecordReader(bytes)
        let name = reader.view(Int(reader.integer(UInt16.self))).array
        var books = Books()
        books.accepted = reader.count()
        books.noWake = reader.count()
        books.completed = reader.count()
        books.coalesced = reader.count()
        books.launched = reader.count()
        guard Self.read(&books.discarded, &reader), Self.read(&books.results, &reader),
            Self.read(&books.tasks, &reader), reader.isWhole, String(validating: name, as: UTF8.self) != nil
        else { return nil }
        return (name, books)
    }

    private static func read(_ tasks: inout TaskWakeBooks, _ reader: inout RecordReader) -> Bool {
        while reader.hasMore {
            guard let kind = TaskKind(storedCode: reader.integer()), tasks.launched[kind] == 0 else { return false }
            tasks.launched[kind] = reader.count()
            guard tasks.launched[kind] > 0, Self.read(&tasks[kind], &reader) else { return false }
        }
        return true
    }

    private static func store<Case: StoredCase>(_ counts: PerCase<Case>, to buffer: inout ByteBuffer) {
        buffer.append(UInt8(Case.allCases.count))
        for key in Case.allCases {
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
