package import Foundation
import Synchronization

/// Children of a process of tests: they start one at a time.
///
/// Foundation has a child close what is open when its start is prepared. What another thread opens between that moment
/// and the start, the child inherits. A server that stays until the last test has ended would so hold the end of a pipe
/// that somebody reads to its end, or the socket by which Foundation learns of another child's end, and whoever waits
/// for that would wait for ever.
package enum Children {
    private static let starting = Mutex(())

    /// Makes a pipe or starts a child while nobody else does.
    package static func alone<Result>(_ make: () throws -> sending Result) rethrows -> sending Result {
        try self.starting.withLock { _ in try make() }
    }
}

extension Process {
    /// Runs the program as a child that inherits nothing but what it is given.
    package func start() throws { try Children.alone { try self.run() } }
}

extension Pipe {
    /// A pipe that only the child inherits which it is given to.
    package static func toChild() -> Pipe { Children.alone { Pipe() } }
}

/// The checkout that the tests were built from.
package enum Checkout {
    /// The folder of `Package.swift`.
    package static let root: URL = {
        var folder = URL(fileURLWithPath: #filePath)
        repeat {
            folder.deleteLastPathComponent()
        } while folder.path != "/"
            && !FileManager.default.fileExists(atPath: folder.appendingPathComponent("Package.swift").path)
        return folder
    }()
}
