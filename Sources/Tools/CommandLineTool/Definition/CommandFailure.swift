import FoundationEssentials
import Glibc
import Platform

/// The failure of a command.
package struct CommandFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The exit statuses of the program, following sysexits.h.
    package enum Status: Int32, Sendable {
        case failed = 1
        case badUsage = 64
        /// No transfer agent listens at the expected socket.
        case noService = 69
        /// The gateway refuses the credentials (401 or 403). A retry cannot succeed with the same credentials.
        case refusedCredential = 77
        case badConfiguration = 78
    }

    package var status: Status
    /// The cause and the remedy, possibly on several lines.
    package var message: String

    package init(_ status: Status, _ message: String) {
        self.status = status
        self.message = message
    }

    /// Creates a failure for an invalid command line.
    package static func usage(_ message: String) -> CommandFailure { CommandFailure(.badUsage, message) }

    /// Creates a failure for any other reason than one with a status of its own.
    package static func failed(_ message: String) -> CommandFailure { CommandFailure(.failed, message) }

    package var description: String { self.message }
}

/// Reads the files named in command lines.
package enum CommandFile {
    /// Returns the absolute path, without `.` and `..`.
    package static func absolute(_ path: String) -> String {
        let whole = URL(fileURLWithPath: path).standardizedFileURL.path(percentEncoded: false)
        return whole.count > 1 && whole.hasSuffix("/") ? String(whole.dropLast()) : whole
    }

    /// Returns the bytes of a file or a pipe.
    ///
    /// - `bytesMax`: the maximum number of bytes to read.
    /// - `remedy`: the remedy in the error message if the file cannot be read.
    static func contents(_ path: String, bytesMax: Int, remedy: String) throws(CommandFailure) -> [UInt8] {
        do throws(SystemError) {
            return try OpenFile(path, O_RDONLY | O_NOCTTY | O_CLOEXEC).contents(bytesMax: bytesMax)
        } catch {
            throw .failed("\(path) cannot be read (\(error.reason)); \(remedy)")
        }
    }

    /// Returns the bytes of standard input up to its end.
    ///
    /// - Parameter bytesMax: the maximum number of bytes to read.
    static func standardInput(bytesMax: Int) throws(CommandFailure) -> [UInt8] {
        do throws(SystemError) { return try Descriptor.contents(STDIN_FILENO, bytesMax: bytesMax) } catch {
            throw .failed("standard input cannot be read (\(error.reason)); name a file behind @ instead of -")
        }
    }
}
