/// What this program does in one way each: the place that knows what the system or a library offers for it, which
/// nobody else mentions.
enum OneWay {
    struct Way {
        let name: String
        /// What is mentioned at home alone; one that ends in `_` is the beginning of names.
        let words: [String]
        /// The files that may, as `MODULE/FILE.swift`; none where no code needs to.
        let homes: Set<String>
        /// What everybody else does.
        let remedy: String
        /// A line that mentions this as well is none of the way's business.
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
                // Its waits go by a clock of the system's.
                "Platform/Monitor.swift",
                // The moments that the SDK shows its users are the standard library's.
                "WakeWorker/BackgroundTask.swift", "WakeWorker/BackgroundTaskTable.swift",
                "WakeWorker/WakeNotification.swift", "WakeWorkerTesting/TestWake.swift",
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
                // State folders hold fingerprints of policies, made with FNV-1a.
                "Engine/EngineConfiguration.swift",
            ],
            remedy: "mix words with the `FoldedProduct` of Bytes, and what strangers choose with a `HashKey`"
        ),
    ]

    /// The mentions away from home.
    static func violations(in file: SourceText) -> [Violation] {
        guard file.isSource else { return [] }
        let home = self.home(of: file)
        return self.all.filter { !$0.homes.contains(home) }.flatMap { way in
            self.mentions(of: way, in: file).map { line, word in
                Violation(path: file.path, line: line, message: "no `\(word)`: \(way.remedy)")
            }
        }
    }

    /// Homes that mention nothing of what they are the home of.
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
        way.words.filter { file.codeText.contains($0) }.flatMap { word in
            zip(1..., file.code).compactMap { number, line in
                guard line.contains(word), BannedWords.contains(word, in: line) else { return nil }
                if let other = way.unless, line.contains(other) { return nil }
                return (number, word)
            }
        }
    }
}
