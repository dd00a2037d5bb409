import Foundation
import Platform

/// What a server writes to its log, read by a thread as it comes.
///
/// It is `Sendable` without the compiler's proof: `monitor` guards what changes.
final class PostgresLog: @unchecked Sendable {
    /// The longest wait for a line, in milliseconds: the server has hung up.
    static let waitMax: Int64 = 60_000

    private let monitor = Monitor()
    private var bytes: [UInt8] = []
    private var hasEnded = false

    /// Reads from a pipe until every process that writes to it is gone.
    init(_ pipe: Pipe) throws {
        let reader = pipe.fileHandleForReading
        try NamedThread("postgres-log", signals: .blocked) { [self] in
            while true {
                let more = reader.availableData
                self.monitor.withLock {
                    self.bytes += more
                    self.hasEnded = more.isEmpty
                    self.monitor.broadcast()
                }
                if more.isEmpty { break }
            }
            try? reader.close()
        }
    }

    /// Everything so far.
    var text: String { self.monitor.withLock { String(decoding: self.bytes, as: UTF8.self) } }

    /// Waits until one of the texts stands in the log.
    ///
    /// - Returns: false when the server ended without it, or the time is up.
    func wait(for texts: [String], milliseconds: Int64 = waitMax) -> Bool {
        let deadline = SystemClock.monotonic + milliseconds
        return self.monitor.withLock {
            while true {
                let log = String(decoding: self.bytes, as: UTF8.self)
                if texts.contains(where: log.contains) { return true }
                guard !self.hasEnded, self.monitor.wait(until: deadline) else { return false }
            }
        }
    }

    /// Waits until every process of the server is gone.
    func waitForEnd(milliseconds: Int64 = waitMax) -> Bool {
        let deadline = SystemClock.monotonic + milliseconds
        return self.monitor.withLock {
            while !self.hasEnded {
                guard self.monitor.wait(until: deadline) else { return false }
            }
            return true
        }
    }
}
