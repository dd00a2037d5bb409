import Policy
import Wire

/// How far an import is, as the database keeps it with the rows: of which state, at which moment it was read, and what
/// was written.
struct ImportMark: Hashable {
    /// The name of the value that keeps it.
    static func name(_ source: String) -> String { "import.\(source)" }

    /// What tells the state, as it was read, from others and from what it became later.
    var fingerprint: UInt64
    /// The moment at which every row is, so that an import that goes on counts the same.
    var now: Instant
    /// How many devices are written, in their order.
    var next: Int
    /// Books, and what gateways share, are written as well.
    var isDone: Bool
    /// The delivery log of how many devices is written, in the order of their numbers.
    var nextLogged = 0
    /// The whole delivery log is written.
    var isLogDone = false
    /// A number that no gateway has: of the rows that count.
    var number: Int32

    init(fingerprint: UInt64, now: Instant, next: Int = 0, isDone: Bool = false, number: Int32) {
        self.fingerprint = fingerprint
        self.now = now
        self.next = next
        self.isDone = isDone
        self.number = number
    }

    /// As words, with spaces between them.
    var content: [UInt8] {
        let state = "1 \(self.fingerprint) \(self.now.milliseconds)"
        let rows = "\(self.next) \(self.isDone ? 1 : 0) \(self.number)"
        return Array("\(state) \(rows) \(self.nextLogged) \(self.isLogDone ? 1 : 0)".utf8)
    }

    /// nil when it is none.
    init?(_ content: ByteView) {
        let words = content.string.split(separator: " ")
        // An import that moved no delivery log wrote six words.
        guard words.count == 6 || words.count == 8, words[0] == "1", let fingerprint = UInt64(words[1]),
            let now = Int64(words[2]), let next = Int(words[3]), next >= 0, let number = Int32(words[5])
        else { return nil }
        self.init(
            fingerprint: fingerprint,
            now: Instant(milliseconds: now),
            next: next,
            isDone: words[4] == "1",
            number: number
        )
        guard words.count == 8 else { return }
        guard let nextLogged = Int(words[6]), nextLogged >= 0 else { return nil }
        self.nextLogged = nextLogged
        self.isLogDone = words[7] == "1"
    }
}
