/// The features of the system and of libraries that this program uses in only one place. No other file names them.
enum OneWay {
    struct Way {
        let name: String
        /// The words that only the homes may name. A word with the ending `_` is the beginning of names.
        let words: [String]
        /// The files that may name them, as `MODULE/FILE.swift`; empty if no code needs to.
        let homes: Set<String>
        /// The way for all other code.
        let remedy: String
        /// A line that also contains this text is not checked.
        var unless: String?
    }

    static let all: [Way] = [
        Way(
            name: "threads",
            words: ["pthread_create", "pthread_join", "pthread_detach", "Thread(", "Thread.detachNewThread"],
            homes: ["Platform/NamedThread.swift"],
            remedy: "start a `NamedThread` of Platform"
        ),
        Way(
            name: "locks",
            words: [
                "pthread_mutex_", "pthread_cond_", "pthread_rwlock_", "pthread_spin_", "sem_", "NSLock",
                "NSRecursiveLock", "NSCondition", "NSConditionLock", "DispatchSemaphore", "DispatchGroup",
            ],
            homes: ["Platform/Monitor.swift"],
            remedy: "guard a shared value with a `Mutex`; wait for a thread at a `Monitor` or `Latch` of Platform"
        ),
        Way(
            name: "clocks",
            words: [
                "clock_gettime", "gettimeofday", "CLOCK_", "time(nil)", "Date()", "Date.now", "DispatchTime",
                "ContinuousClock", "SuspendingClock",
            ],
            homes: [
                "Platform/SystemClock.swift",
                // Its waits use one of the system's clocks.
                "Platform/Monitor.swift",
                // The moments in the SDK's public API use the types of the standard library.
                "WakeWorker/BackgroundTask.swift", "WakeWorker/WakeNotification.swift",
                "WakeWorkerTesting/TestWake.swift",
            ],
            remedy: "read the `SystemClock` of Platform; in a pure module take `now` as a parameter"
        ),
        Way(
            name: "chance",
            words: ["arc4random_", "getrandom", "RAND_", "SystemRandomNumberGenerator", ".random(in:"],
            homes: ["Platform/RandomBits.swift"],
            remedy: "draw from `RandomBits` of Platform; in a pure module take the generator as a parameter",
            unless: "using:"
        ),
        Way(
            name: "chance from a seed",
            words: ["0xBF58_476D_1CE4_E5B9", "srand48", "drand48"],
            homes: ["Wire/HashKey.swift"],
            remedy: "draw from `SplitMix64` of Bytes"
        ),
        Way(
            name: "base64",
            words: ["base64EncodedString", "base64EncodedData", "base64Encoded"],
            homes: [],
            remedy: "write and read it with `Base64` of Bytes"
        ),
        Way(
            name: "terminal controls",
            words: ["Console.draw(", "Console.drawError("],
            homes: [
                "CommandLineTool/Terminal.swift", "CommandLineTool/TaskWait.swift",
                "CommandLineTool/TransferWaiting.swift",
            ],
            remedy: "write text with `Console.out` or `Console.error`, which filter what a terminal would obey"
        ),
        Way(
            name: "secret hashes",
            words: ["Hasher()", ".hashValue"],
            homes: [],
            remedy: "hash with a `HashKey` of Bytes: a hash value changes from run to run, and proves nothing"
        ),
        Way(
            name: "message codes",
            words: ["EVP_", "HMAC", "SHA256", "CryptoKit", "CC_SHA256"],
            homes: ["HTTPTransport/OpenSSL.swift"],
            remedy: "make a `MessageCode` of HTTPTransport"
        ),
        Way(
            name: "checksums",
            words: ["XXH3_", "XXH64_", "crc32", "adler32"],
            homes: ["Storage/Journal.swift"],
            remedy: "take the `RowChecksum` of DeviceJournal"
        ),
        Way(
            name: "quick hashes",
            words: ["multipliedFullWidth", "0x0000_0100_0000_01b3"],
            homes: [
                "Wire/HashKey.swift",
                // State directories contain fingerprints of policies, which are made with FNV-1a.
                "Engine/EngineConfiguration.swift",
            ],
            remedy: "mix words with the `FoldedProduct` of Bytes, and what strangers choose with a `HashKey`"
        ),
    ]

    /// Returns the places outside the homes that name a word.
    static func violations(in file: SourceText) -> [Violation] {
        guard file.isSource else { return [] }
        let home = self.home(of: file)
        return self.all.filter { !$0.homes.contains(home) }.flatMap { way in
            self.mentions(of: way, in: file).map { line, word in
                Violation(path: file.path, line: line, message: "no `\(word)`: \(way.remedy)")
            }
        }
    }

    /// Returns the homes that do not name any of their words.
    static func unneeded(for files: [SourceText]) -> [String] {
        self.all.flatMap { way in
            way.homes.subtracting(
                files.filter { $0.isSource && !self.mentions(of: way, in: $0).isEmpty }.map(self.home)
            ).map { "\($0): \(way.name)" }
        }.sorted()
    }

    private static func home(of file: SourceText) -> String {
        "\(file.module)/\(file.path.split(separator: "/").last ?? "")"
    }

    private static func mentions(of way: Way, in file: SourceText) -> [(line: Int, word: String)] {
        way.words.filter { file.codeText.containsBytes(of: $0) }.flatMap { word in
            zip(1..., file.code).compactMap { number, line in
                guard line.containsBytes(of: word), BannedWords.contains(word, in: line) else { return nil }
                if let other = way.unless, line.contains(other) { return nil }
                return (number, word)
            }
        }
    }
}
