package import Foundation
import Synchronization

/// Starts the child processes of tests one at a time.
///
/// Foundation makes a child close the descriptors that are open when its start is prepared. A descriptor that another
/// thread opens between that time and the start is inherited. A server that runs until the last test has ended could
/// thus hold the end of a pipe that another thread reads to its end, or the socket by which Foundation is notified of
/// another child's end, and the reader would wait forever.
package enum Children {
    private static let starting = Mutex(())

    /// Creates a pipe or starts a child while no other thread does.
    package static func alone<Result>(_ make: () throws -> sending Result) rethrows -> sending Result {
        try self.starting.withLock { _ in try make() }
    }
}

extension Process {
    /// Runs the program as a child that inherits only the descriptors it is given.
    package func start() throws { try Children.alone { try self.run() } }
}

extension Pipe {
    /// Creates a pipe that only the child it is given to inherits.
    package static func toChild() -> Pipe { Children.alone { Pipe() } }
}

/// The repository checkout from which the tests were built.
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
