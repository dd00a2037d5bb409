import FoundationEssentials
import Glibc
import Platform

/// Why a command did not do what it was asked for.
package struct CommandFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The exit statuses of the program, after sysexits.h.
    package enum Status: Int32, Sendable {
        case failed = 1
        case badUsage = 64
        /// No transfers agent listens where it should.
        case noService = 69
        /// The gateway refuses what was shown (401 or 403), and will again.
        case refusedCredential = 77
        case badConfiguration = 78
    }

    package var status: Status
    /// What is wrong and what to do about it; may have several lines.
    package var message: String

    package init(_ status: Status, _ message: String) {
        self.status = status
        self.message = message
    }

    /// A fault of the command line.
    package static func usage(_ message: String) -> CommandFailure {
        CommandFailure(.badUsage, message)
    }

    package var description: String { self.message }
}

/// The files that command lines name.
package enum CommandFile {
    /// The path without `.`, `..` and a relative beginning.
    package static func absolute(_ path: String) -> String {
        let whole = URL(fileURLWithPath: path).standardizedFileURL.path(percentEncoded: false)
        return whole.count > 1 && whole.hasSuffix("/") ? String(whole.dropLast()) : whole
    }

    /// The bytes of a file, or of a pipe.
    ///
    /// - Parameters:
    ///   - bytesMax: the most that are read.
    ///   - remedy: what to do when there is no such file.
    static func contents(_ path: String, bytesMax: Int, remedy: String) throws(CommandFailure) -> [UInt8] {
        do throws(SystemError) {
            return try OpenFile(path, O_RDONLY | O_NOCTTY | O_CLOEXEC).contents(bytesMax: bytesMax)
        } catch {
            throw CommandFailure(.failed, "\(path) cannot be read (\(error.reason)); \(remedy)")
        }
    }

    /// The bytes of standard input up to its end.
    ///
    /// - Parameter bytesMax: the most that are read.
    static func standardInput(bytesMax: Int) throws(CommandFailure) -> [UInt8] {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while bytes.count < bytesMax {
            do throws(SystemError) {
                let count = try Descriptor.read(STDIN_FILENO, into: &chunk)
                guard count > 0 else { break }
                bytes += chunk[..<min(count, bytesMax - bytes.count)]
            } catch {
                guard error.number == EINTR else {
                    let remedy = "name a file behind @ instead of -"
                    throw CommandFailure(.failed, "standard input cannot be read (\(error.reason)); \(remedy)")
                }
            }
        }
        return bytes
    }
}
