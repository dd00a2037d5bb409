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
