package import Foundation
import Platform
import Synchronization

/// Starts the child processes of tests one at a time.
///
/// Foundation makes a child close the descriptors that are open when it prepares the start. If another thread opens a
/// descriptor between the preparation and the start, the child inherits it. A long-running child could thus keep a pipe
/// open, or the socket with which Foundation detects the end of another child. The reader would then wait forever.
package enum Children {
    private static let starting = Mutex(())

    /// Calls `make` while no other thread creates a pipe or starts a child.
    package static func alone<Result>(_ make: () throws -> sending Result) rethrows -> sending Result {
        try self.starting.withLock { _ in try make() }
    }

    /// Runs a program to its end, without input. The program is a path or a name in PATH.
    ///
    /// - `environment`: the program's environment; nil for the environment of the test.
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
        // Error output is short. It fits into its pipe while the standard output is read.
        let texts = pipes.map { String(decoding: $0.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self) }
        ended.wait()
        // Foundation never releases a process or its pipes.
        for pipe in pipes { try? pipe.fileHandleForReading.close() }
        return (process.terminationStatus, texts[0], texts[1])
    }
}

extension Process {
    /// Runs the program as a child that inherits only its assigned descriptors.
    package func start() throws { try Children.alone { try self.run() } }
}

extension Pipe {
    /// Creates a pipe that only the child to which it is assigned inherits.
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

    /// Returns the text of a file, given its path in the checkout.
    package static func text(_ path: String) throws -> String {
        String(decoding: try Data(contentsOf: self.root.appendingPathComponent(path)), as: UTF8.self)
    }

    /// Returns the text of an article about the gateway.
    package static func article(_ name: String) throws -> String {
        try self.text("Sources/Server/Gateway/Gateway.docc/\(name).md")
    }
}
