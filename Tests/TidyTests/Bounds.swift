/// The bounds on what a peer can make the program store or do, and the test of each bound.
enum Bounds {
    /// The files that declare the settings of an operator, or of a test in the operator's place.
    static let settable = [
        "Sources/Core/Engine/Devices/EngineConfiguration.swift", "Sources/Server/Storage/Journal/Journal.swift",
        "Sources/Server/HTTPTransport/Basics/TransportLimits.swift",
        "Sources/Server/Storage/History/HistoryFile.swift", "Sources/Server/Gateway/Settings/GatewayLimit.swift",
        "Sources/Transfers/TransferAgent/Policy/TransferLimits.swift",
    ]

    /// A test of a fixed bound: its file, and a part of its text.
    struct Proof {
        let path: String
        let text: String
    }

    private static let transport = "Tests/Server/HTTPTransportTests/"

    /// The fixed bounds of the transport, as `FILE name`; nil for a constant that does not limit a peer: memory that is
    /// kept for later use, the length of a code, or the amount of work in one turn.
    static let fixed: [String: Proof?] = [
        "OpenSSL clientChainBytesMax": Proof(
            path: transport + "TLSTests.swift",
            text: "TLSContext.clientChainBytesMax"
        ),
        "Signatures fileBytesMax": Proof(path: transport + "ProviderKeyTests.swift", text: "larger than 65536 bytes"),
        "FieldCoding tableBytesMax": Proof(
            path: transport + "HPACK/FieldDecoderTests.swift",
            text: "An entry of the table's size is kept, and one byte more empties the table"
        ),
        "ListenAddress pathBytesMax": Proof(path: transport + "ListenAddressTests.swift", text: "count: 107"),
        "OpenStreams cutShortMax": Proof(
            path: transport + "HTTP2SessionTimeTests.swift",
            text: "StreamNumbers.cutShortMax"
        ),
        "FrameBudgets unacknowledgedMax": Proof(
            path: transport + "OpenStreamTests.swift",
            text: "StreamLimit.unacknowledgedMax"
        ),
        "HTTP1Head sizeLineBytesMax": Proof(
            path: transport + "HTTP1/HTTP1ConformanceTests.swift",
            text: "an extension of 257 bytes"
        ),
        "StreamState keptBytesMax": Proof(path: transport + "OpenStreamTests.swift", text: "(10_000...16_384)"),
        "EventLoop+BusyConnections bytesPerPauseMax": Proof(
            path: transport + "TurnOrderTests.swift",
            text: "In a pause caused by busy connections 64 KiB of the others are read, and nothing of the busy ones"
        ),
        "EventLoop+BusyConnections busyBytesPerTurnMax": nil,
        "FieldCoding codedBytesMax": nil, "FieldCoding keptBytesMax": nil, "FieldTables shortBitsMax": nil,
        "FieldTables bitsMax": nil, "RepeatedFields codedBytesMax": nil, "RepeatedFields runsMax": nil,
        "RepeatedFields textBytesMax": nil, "System eventsMax": nil, "FieldCoding shortCountMax": nil,
    ]

    /// Returns the bounds that no test names.
    static func violations(in files: [SourceText]) -> [Violation] {
        let tests = files.filter { !$0.isSource && $0.module != "TidyTests" }
        let settable = files.filter { self.settable.contains($0.path) }.flatMap { file in
            self.names(in: file, after: "package var ").filter { name, _ in
                !tests.contains { self.names(name, in: $0) }
            }.map { Violation(path: file.path, line: $1, message: "no test names the bound \($0)") }
        }
        let fixed = files.filter { $0.isSource && $0.module == "HTTPTransport" }.flatMap { file in
            self.names(in: file, after: "static let ").filter { $0.0.hasSuffix("Max") }.compactMap { name, line in
                self.fault(of: "\(file.name) \(name)", in: tests).map {
                    Violation(path: file.path, line: line, message: $0)
                }
            }
        }
        return settable + fixed
    }

    /// Returns true if a line of a test, other than a comment, names a bound, in code or as a configuration key.
    private static func names(_ bound: String, in test: SourceText) -> Bool {
        test.text.containsBytes(of: bound)
            && zip(test.lines, test.code).contains { line, code in
                line.containsBytes(of: bound) && BannedWords.contains(bound, in: line) && code.contains { $0 != " " }
            }
    }

    private static func fault(of bound: String, in tests: [SourceText]) -> String? {
        guard let proof = self.fixed[bound] else { return "\(bound) has no line in the table of bounds" }
        guard let proof else { return nil }
        let file = tests.first { $0.path == proof.path }
        let isThere = file?.lines.contains { $0.contains(proof.text) } ?? false
        return isThere ? nil : "\(proof.path) has no test of \(bound): it lacks \(proof.text)"
    }

    /// Returns the names that are declared after `words`, with their lines.
    private static func names(in file: SourceText, after words: String) -> [(String, Int)] {
        zip(1..., file.code).compactMap { number, line in
            guard line.containsBytes(of: words), let start = line.firstRange(of: words)?.upperBound else { return nil }
            return (String(line[start...].prefix { $0.isLetter || $0.isNumber || $0 == "_" }), number)
        }
    }
}

extension SourceText {
    /// The file's name without its extension.
    fileprivate var name: String {
        String(self.path.split(separator: "/").last?.split(separator: ".").first ?? "")
    }
}
