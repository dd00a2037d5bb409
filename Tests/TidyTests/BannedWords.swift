/// Calls and words that have a better replacement here.
enum BannedWords {
    struct Ban {
        let word: String
        let replacement: String
        var scope = Scope.sources
        /// True if comments are checked as well as code.
        var includesComments = false
        /// True if the word is also banned at the end of a longer name.
        var isSuffix = false
    }

    enum Scope {
        case sources, tests, everywhere
        /// The modules that contain rules and have no clock, threads or randomness.
        case pure
    }

    static let pureModules: Set<String> = ["Engine", "Policy", "Wire"]

    /// The private names that were replaced by standard terms.
    private static let formerNames: KeyValuePairs = [
        "Desk": "Service", "Books": "Counters", "Outlet": "Output", "Bell": "Wakeup", "Stranger": "UnknownPeer",
        "Patience": "Timeout", "Hurry": "Flush", "EmbeddedEngine": "DeviceEngine", "PushWay": "PushHistory",
        "EmbeddedGatewayEngine": "LocalEngine", "SharedGatewayEngine": "ClusterEngine",
        "AgentRoom": "AgentEngine",
        "TransferBook": "TransferScheduler",
        "TransferFacts": "TransferDetails",
        "KeptPart": "ResumablePart",
        "DroppedAction": "Removals",
        "JSONGate": "PayloadClassifier",
        "JournalPlace": "JournalLocation",
        "ImportMark": "ImportProgress",
        "StockCounters": "DeviceGauges",
        "WorkersAsked": "WorkerAuthentication",
        "HistoryTrouble": "HistoryFailure",
        "EventPlace": "HistoryCursor",
        "HistoryPlace": "HistoryCursor",
        "PushPlace": "LoggedPush",
        "PostgresPlace": "RowLocation",
        "FileLook": "FileVerification",
        "ReaderPlaces": "ReaderSlots",
        "HistoryFound": "OpenedHistory",
        "Goodbyes": "GoAwayRecord",
        "Farewell": "PendingGoAway",
        "CommitWish": "AwaitedEvent",
        "ExtensionWish": "ExtensionWaiter",
    ]

    static let all: [Ban] =
        Self.calls
        + Self.formerNames.flatMap { name, term in
            [
                Ban(word: name, replacement: "say \(term)", scope: .everywhere, isSuffix: true),
                Ban(
                    word: name.prefix(1).lowercased() + name.dropFirst(),
                    replacement: "say \(term)",
                    scope: .everywhere
                ),
            ]
        }

    private static let calls: [Ban] = [
        Ban(word: "Reach", replacement: "say AuthorizedScope", scope: .everywhere),
        Ban(word: "sleep", replacement: "wait for the event itself", scope: .everywhere),
        Ban(word: "usleep", replacement: "wait for the event itself", scope: .everywhere),
        Ban(word: "try!", replacement: "handle the error", scope: .everywhere),
        Ban(word: "as!", replacement: "use `as?` and handle nil", scope: .everywhere),
        Ban(word: "print(", replacement: "write through the log or to a file handle", scope: .everywhere),
        Ban(word: "debugPrint(", replacement: "write through the log", scope: .everywhere),
        Ban(
            word: "fatalError(",
            replacement: "use `precondition` with the broken promise, or throw",
            scope: .everywhere
        ),
        Ban(word: "NSLog(", replacement: "write through the log", scope: .everywhere),
        Ban(word: "XCTest", replacement: "use Swift Testing", scope: .tests),
        Ban(word: "@testable", replacement: "make what the test needs `package`, and document it", scope: .everywhere),
        Ban(word: "async", replacement: "keep the core synchronous; drivers wait", scope: .pure),
        Ban(word: ".random(in:", replacement: "take the random generator as a parameter", scope: .pure),
        Ban(word: "TO" + "DO", replacement: "open an issue", scope: .everywhere, includesComments: true),
        Ban(word: "FIX" + "ME", replacement: "fix it, or open an issue", scope: .everywhere, includesComments: true),
    ]

    static func violations(in file: SourceText) -> [Violation] {
        let applying = self.all.filter { ban in
            self.applies(ban.scope, to: file)
                && (ban.includesComments ? file.text : file.codeText).containsBytes(of: ban.word)
        }
        return applying.flatMap { ban in
            zip(1..., ban.includesComments ? file.lines : file.code).compactMap { number, line in
                // This fast search is enough for nearly all lines.
                guard line.containsBytes(of: ban.word), self.contains(ban.word, in: line, isSuffix: ban.isSuffix) else {
                    return nil
                }
                return Violation(path: file.path, line: number, message: "no `\(ban.word)`: \(ban.replacement)")
            }
        }
    }

    private static func applies(_ scope: Scope, to file: SourceText) -> Bool {
        switch scope {
        case .everywhere: true
        case .sources: file.isSource
        case .tests: !file.isSource
        case .pure: file.isSource && self.pureModules.contains(file.module)
        }
    }

    /// Returns true if `word` is in `line` as a separate word: `print(` is not in `fingerprint(`. A word with the
    /// ending `_` may be the beginning of a longer one, and with `isSuffix` any word may be the end.
    static func contains(_ word: String, in line: String, isSuffix: Bool = false) -> Bool {
        let line = Array(line.utf8)
        let word = Array(word.utf8)
        guard line.count >= word.count else { return false }
        return (0...(line.count - word.count)).contains { start in
            let end = start + word.count
            return line[start..<end].elementsEqual(word)
                && (isSuffix || start == 0 || !self.isNamePart(word[0]) || !self.isNamePart(line[start - 1]))
                && (end == line.count || !self.isNamePart(line[end]) || word.last == UInt8(ascii: "_")
                    || !self.isNamePart(word[word.count - 1]))
        }
    }

    static func isNamePart(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
            true
        default: false
        }
    }
}
