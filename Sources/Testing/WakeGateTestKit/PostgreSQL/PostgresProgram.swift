import Foundation
import Platform

/// Runs programs to their end.
enum PostgresProgram {
    /// - Returns: what the program wrote to standard output, without the last newline.
    /// - Throws: what it wrote to standard error when it failed.
    @discardableResult
    static func run(_ command: [String]) throws -> String {
        let process = Process()
        let (output, errors) = (Pipe.toChild(), Pipe.toChild())
        process.executableURL = URL(fileURLWithPath: command[0])
        process.arguments = Array(command.dropFirst())
        process.currentDirectoryURL = FileManager.default.temporaryDirectory
        process.environment = Self.environment
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = errors
        let ended = Latch()
        process.terminationHandler = { _ in ended.open() }
        try process.start()
        // Errors are few: they fit into the pipe while the output is read.
        let text = output.fileHandleForReading.readDataToEndOfFile()
        let complaint = errors.fileHandleForReading.readDataToEndOfFile()
        ended.wait()
        try? output.fileHandleForReading.close()
        try? errors.fileHandleForReading.close()
        guard process.terminationStatus == 0 else {
            let name = command.first { $0.hasPrefix("/usr/lib/postgresql") } ?? command[0]
            throw PostgresFailure(description: "\(name): \(String(decoding: complaint, as: UTF8.self))")
        }
        let written = String(decoding: text, as: UTF8.self)
        return written.hasSuffix("\n") ? String(written.dropLast()) : written
    }

    /// Nothing of the caller's: variables of libpq would change what programs do.
    static let environment = ["PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL": "C.UTF-8", "TZ": "UTC"]
}
