internal import Glibc

/// What the system says of a call of ours that failed.
package struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The system's number, such as `ENOENT`.
    package let number: Int32

    package init(_ number: Int32) {
        self.number = number
    }

    /// What the call before this one, on this thread, failed with.
    static var last: SystemError { SystemError(errno) }

    /// The cause in the system's words, such as `No such file or directory`.
    package var message: String { unsafe String(cString: strerror(self.number)) }

    package var description: String { self.message }
}
