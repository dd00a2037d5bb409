import Foundation
import Glibc

/// Hears when another process has read a file to its end and closed it.
final class FileReads {
    private let descriptor: Int32

    /// - Parameter path: of a file that is there, and is written in place from now on.
    init(_ path: String) throws {
        self.descriptor = inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK))
        guard unsafe inotify_add_watch(self.descriptor, path, UInt32(IN_CLOSE_NOWRITE)) >= 0 else {
            throw ChildProcess.Failure(description: "\(path) cannot be watched")
        }
    }

    deinit { close(self.descriptor) }

    /// Waits for the next reading.
    ///
    /// - Throws: when there is none within a minute.
    func wait() throws {
        var poll = pollfd(fd: self.descriptor, events: Int16(POLLIN), revents: 0)
        guard unsafe Glibc.poll(&poll, 1, 60_000) == 1 else {
            throw ChildProcess.Failure(description: "nobody read the file within a minute")
        }
        self.forget()
    }

    /// What was read until now is not waited for.
    func forget() {
        var events = [UInt8](repeating: 0, count: 4096)
        while unsafe read(self.descriptor, &events, events.count) > 0 {}
    }
}
