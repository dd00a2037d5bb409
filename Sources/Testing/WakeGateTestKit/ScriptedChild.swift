package import Foundation
import Glibc

/// A child process that runs a Python script as a peer, such as a script in `Tests/EndToEndTests/Clients`. The script
/// prints a line for each request that it receives, and follows the test's commands.
package final class ScriptedChild {
    package struct Request {
        package let method: String
        package let path: String
        package let body: String
    }

    package struct Ended: Error {
        package let unclaimed: [String]
    }

    private let process = Process()
    private let pipe = Pipe.toChild()
    private let lines: AsyncStream<String>
    /// The printed lines that no call has returned yet.
    private var unclaimed: [String] = []

    /// Starts a script from `Tests/EndToEndTests/Clients`.
    package convenience init(_ script: String, _ argument: String) throws {
        let file = Checkout.root.appendingPathComponent("Tests/EndToEndTests/Clients/\(script)")
        try self.init(python: "python3", [file.path, argument])
    }

    /// Starts a Python interpreter.
    package init(python: String, _ arguments: [String]) throws {
        let output = Pipe.toChild()
        self.process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        self.process.arguments = [python] + arguments
        self.process.standardInput = self.pipe
        self.process.standardOutput = output
        let (lines, source) = AsyncStream<String>.makeStream()
        self.lines = lines
        try self.process.start()
        let reader = Thread {
            var rest = Data()
            while case let data = output.fileHandleForReading.availableData, !data.isEmpty {
                rest += data
                while let end = rest.firstIndex(of: 0x0A) {
                    source.yield(String(decoding: rest[rest.startIndex..<end], as: UTF8.self))
                    rest = Data(rest[(end + 1)...])
                }
            }
            source.finish()
        }
        reader.start()
    }

    deinit {
        // Threads of libdispatch leave signals blocked, which children inherit: SIGTERM would not end the script.
        if self.process.isRunning { kill(self.process.processIdentifier, SIGKILL) }
    }

    /// The standard input of the script.
    package var input: FileHandle { self.pipe.fileHandleForWriting }

    /// Sends a command, and waits until the script prints `done`.
    package func command(_ command: [String: Any]) async throws {
        let data = try JSONSerialization.data(withJSONObject: command)
        try self.input.write(contentsOf: data + Data("\n".utf8))
        _ = try await self.line { $0 == "done" }
    }

    /// Returns the next line that satisfies `isWanted`, and keeps all other lines for later calls.
    ///
    /// - Throws: `Ended` if the output ends first.
    package func line(_ isWanted: (String) -> Bool) async throws -> String {
        if let index = self.unclaimed.firstIndex(where: isWanted) { return self.unclaimed.remove(at: index) }
        for await line in self.lines {
            if isWanted(line) { return line }
            self.unclaimed.append(line)
        }
        throw Ended(unclaimed: self.unclaimed)
    }

    /// Returns the next request whose path, without the query, satisfies `isWanted`.
    package func request(where isWanted: (Substring) -> Bool) async throws -> Request {
        let line = try await self.line { line in
            let words = line.split(separator: " ", maxSplits: 2)
            return words.count > 1 && isWanted(words[1].split(separator: "?")[0])
        }
        let words = line.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false).map(String.init)
        return Request(method: words[0], path: words[1], body: words[2])
    }
}
