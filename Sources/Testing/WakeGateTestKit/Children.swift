package import Foundation
import Platform
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

    /// Runs a program, which is a path or a name in PATH, to its end and without input.
    ///
    /// - `environment`: its environment; nil for that of the test.
    package static func run(
        _ program: String,
        _ arguments: [String],
        in folder: URL = FileManager.default.temporaryDirectory,
        environment: [String: String]? = nil
    ) throws -> (status: Int32, output: String, errors: String) {
        let process = Process()
        let pipes = [Pipe.toChild(), Pipe.toChild()]
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [program] + arguments
        process.currentDirectoryURL = folder
        if let environment { process.environment = environment }
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = pipes[0]
        process.standardError = pipes[1]
        let ended = Latch()
        process.terminationHandler = { _ in ended.open() }
        try process.start()
        // Errors are short: they fit into the pipe while the output is read.
        let texts = pipes.map { String(decoding: $0.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self) }
        ended.wait()
        // Foundation never releases a process or its pipes.
        for pipe in pipes { try? pipe.fileHandleForReading.close() }
        return (process.terminationStatus, texts[0], texts[1])
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
