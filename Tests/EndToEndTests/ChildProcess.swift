import Dispatch
import Foundation
import Glibc
import Testing
import WakeGateTestKit

/// A child process of the test, killed when the last reference is released.
///
/// Every wait has a limit, after which it throws an error.
final class ChildProcess {
    struct Ended {
        let status: Int32
        let output: String
        let errors: String
    }

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }

    private let process = Process()
    private let output = Pipe.toChild()
    private let errorFile: URL
    private let ended = DispatchSemaphore(value: 0)
    private let source = Pipe.toChild()
    private var unread: [UInt8] = []
    private var hasEnded = false

    /// Starts `program`, which is a path or a name in PATH.
    ///
    /// - Parameters:
    ///   - input: the text for the program's standard input; empty by default.
    ///   - folder: the working directory; by default that of the test.
    ///   - isInputOpen: true to keep standard input open until `endInput`.
    init(
        _ program: String,
        _ arguments: [String],
        input: String = "",
        folder: URL? = nil,
        isInputOpen: Bool = false
    ) throws {
        self.errorFile = FileManager.default.temporaryDirectory.appendingPathComponent("wakegate-\(UUID()).stderr")
        try Data().write(to: self.errorFile)
        self.process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        self.process.arguments = [program] + arguments
        self.process.currentDirectoryURL = folder
        self.process.standardOutput = self.output
        let errors = try FileHandle(forWritingTo: self.errorFile)
        // Foundation never releases a process or the files passed to it.
        defer { try? errors.close() }
        self.process.standardError = errors
        self.process.standardInput = self.source
        let ended = self.ended
        self.process.terminationHandler = { _ in ended.signal() }
        do {
            try self.process.start()
        } catch {
            // Without a process ID, `kill` would signal the whole process group.
            self.hasEnded = true
            throw error
        }
        try self.source.fileHandleForWriting.write(contentsOf: Data(input.utf8))
        if !isInputOpen { try self.endInput() }
    }

    /// Starts `wakegate` with these arguments.
    convenience init(wakegate arguments: [String], folder: URL? = nil) throws {
        try self.init(RunningGateway.program, arguments, folder: folder)
    }

    /// Starts a Python client of these tests.
    convenience init(client: String, _ arguments: [String], input: String = "", isInputOpen: Bool = false) throws {
        let all = [RunningGateway.client(client)] + arguments
        try self.init(RunningGateway.python, all, input: input, isInputOpen: isInputOpen)
    }

    /// Formats an argument or a line of input as JSON.
    static func json(_ object: [String: Any]) throws -> String {
        String(decoding: try JSONSerialization.data(withJSONObject: object), as: UTF8.self)
    }

    deinit {
        if !self.hasEnded {
            self.send(SIGKILL)
            self.ended.wait()
        }
        try? self.output.fileHandleForReading.close()
        try? FileManager.default.removeItem(at: self.errorFile)
    }

    var identifier: Int32 { self.process.processIdentifier }

    var isRunning: Bool { self.process.isRunning }

    var errors: String {
        String(decoding: (try? Data(contentsOf: self.errorFile)) ?? Data(), as: UTF8.self)
    }

    /// Writes a line to the program's standard input, which must be open.
    func write(_ line: String) throws {
        try self.source.fileHandleForWriting.write(contentsOf: Data("\(line)\n".utf8))
    }

    /// Ends the program's standard input.
    func endInput() throws { try self.source.fileHandleForWriting.close() }

    /// Sends a signal, unless the process has ended; another process may have its number by then.
    func send(_ signal: Int32) {
        if self.process.isRunning { kill(self.process.processIdentifier, signal) }
    }

    /// Sends a signal, and waits for the end of the output and of the process.
    @discardableResult
    func end(_ signal: Int32 = SIGTERM, within seconds: Double = 60) throws -> Ended {
        self.send(signal)
        return try self.finish(within: seconds)
    }

    /// Returns the next line of standard output, without its line feed; nil at the end.
    func line(within seconds: Double = 60) throws -> String? {
        let deadline = ContinuousClock.now + .seconds(seconds)
        while true {
            if let end = self.unread.firstIndex(of: UInt8(ascii: "\n")) {
                let line = String(decoding: self.unread[..<end], as: UTF8.self)
                self.unread.removeSubrange(...end)
                return line
            }
            if try !self.readMore(before: deadline) { return nil }
        }
    }

    /// Returns the next line of standard output, which is a JSON object.
    func object(within seconds: Double = 60) throws -> [String: Any] {
        let line = try self.line(within: seconds) ?? ""
        guard let object = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] else {
            throw self.failure("wrote no object: \(line)")
        }
        return object
    }

    /// Waits until the unread output contains a text. Returns all of the unread output, which stays unread.
    func output(containing text: String, within seconds: Double = 60) throws -> String {
        let deadline = ContinuousClock.now + .seconds(seconds)
        while true {
            let output = String(decoding: self.unread, as: UTF8.self)
            if output.contains(text) { return output }
            guard try self.readMore(before: deadline) else { throw self.failure("ended before \(text): \(output)") }
        }
    }

    /// Waits until standard error contains a text, at most for a minute.
    func says(_ text: String) throws {
        func isSaid() -> Bool { self.errors.contains(text) }
        guard Polling.isSo({ isSaid() || !self.isRunning }), isSaid() else {
            throw self.failure("did not write \"\(text)\"")
        }
    }

    /// Waits for the end of the output and of the process.
    func finish(within seconds: Double = 60) throws -> Ended {
        let deadline = ContinuousClock.now + .seconds(seconds)
        while try self.readMore(before: deadline) {}
        guard self.ended.wait(timeout: .now() + seconds) == .success else { throw self.failure("did not end") }
        self.hasEnded = true
        let text = String(decoding: self.unread, as: UTF8.self)
        return Ended(status: self.process.terminationStatus, output: text, errors: self.errors)
    }

    /// Runs a program to its end.
    static func run(_ program: String, _ arguments: [String], input: String = "", folder: URL? = nil) throws -> Ended {
        try ChildProcess(program, arguments, input: input, folder: folder).finish()
    }

    /// Runs `wakegate` to its end.
    static func wakegate(_ arguments: [String], folder: URL? = nil) throws -> Ended {
        try self.run(RunningGateway.program, arguments, folder: folder)
    }

    /// Waits for output and reads it. Returns false at the end of the output.
    private func readMore(before deadline: ContinuousClock.Instant) throws -> Bool {
        let file = self.output.fileHandleForReading.fileDescriptor
        var interest = pollfd(fd: file, events: Int16(POLLIN), revents: 0)
        var ready: Int32
        repeat {
            let left = max(.zero, deadline - ContinuousClock.now)
            let milliseconds = left.components.seconds * 1000 + left.components.attoseconds / 1_000_000_000_000_000
            ready = unsafe poll(&interest, 1, Int32(milliseconds))
        } while ready < 0 && errno == EINTR
        guard ready > 0 else { throw self.failure("wrote nothing in time") }
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = unsafe read(file, &bytes, bytes.count)
        guard count > 0 else { return false }
        self.unread += bytes[..<count]
        return true
    }

    private func failure(_ what: String) -> Failure {
        let words = (self.process.arguments ?? []).joined(separator: " ")
        return Failure(description: "\(words) \(what); its standard error: \(self.errors)")
    }
}

/// One line of a script that plays scenes in a browser or a terminal: the faults that it has found.
struct PlayedScene: Decodable {
    let scene: String
    let faults: [String]

    /// Waits for a scene of a script and returns its faults.
    static func faults(_ script: ChildProcess, _ name: String) throws -> [String] {
        let line = try #require(try script.line(within: 240), "no \(name): \(script.errors)")
        let scene = try JSONDecoder().decode(Self.self, from: Data(line.utf8))
        #expect(scene.scene == name, "\(line)")
        return scene.faults
    }

    /// Starts the script that plays scenes in a terminal.
    ///
    /// - Parameter settings: the members that `terminals.py` documents, in addition to those of every scene.
    static func terminal(_ scenes: [String], of gateway: RunningGateway, _ settings: [String: Any]) throws
        -> ChildProcess
    {
        let own: [String: Any] = [
            "program": RunningGateway.program, "url": "http://\(gateway.admin)", "scenes": scenes,
        ]
        let all = try ChildProcess.json(own.merging(settings) { $1 })
        return try ChildProcess(client: "terminals.py", [all], isInputOpen: true)
    }
}

/// Polling for conditions that no event reports.
enum Polling {
    /// The first and the longest wait between two polls. Each wait is twice as long as the one before.
    ///
    /// Without waits, polling would take CPU time from the processes under test.
    private static let restMillisecondsMin: Int32 = 5
    private static let restMillisecondsMax: Int32 = 80

    /// Polls until a condition holds. Returns false if it does not hold within a minute, or within the given time.
    static func isSo(within seconds: Double = 60, _ ask: () throws -> Bool) rethrows -> Bool {
        let deadline = ContinuousClock.now + .seconds(seconds)
        var rest = Self.restMillisecondsMin
        while try !ask() {
            guard ContinuousClock.now < deadline else { return false }
            _ = poll(nil, 0, rest)
            rest = min(rest * 2, Self.restMillisecondsMax)
        }
        return true
    }
}

/// Detects that another process has read a file to its end and closed it.
final class FileReads {
    private let descriptor: Int32

    /// - Parameter path: the path of an existing file, which is only written in place.
    init(_ path: String) throws {
        self.descriptor = inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK))
        guard unsafe inotify_add_watch(self.descriptor, path, UInt32(IN_CLOSE_NOWRITE)) >= 0 else {
            throw ChildProcess.Failure(description: "\(path) cannot be watched")
        }
    }

    deinit { close(self.descriptor) }

    /// Waits for the next read.
    ///
    /// - Throws: if there is none within a minute.
    func wait() throws {
        var poll = pollfd(fd: self.descriptor, events: Int16(POLLIN), revents: 0)
        guard unsafe Glibc.poll(&poll, 1, 60_000) == 1 else {
            throw ChildProcess.Failure(description: "the file was not read within a minute")
        }
        var events = [UInt8](repeating: 0, count: 4096)
        while unsafe read(self.descriptor, &events, events.count) > 0 {}
    }
}
