internal import Glibc

/// Files that can be read to their end: a pipe in the place of one would keep whoever opens it waiting.
package enum OrdinaryFile {
    package enum Opened {
        /// A descriptor that its opener closes.
        case file(Int32)
        /// There is something else: a pipe, a folder, a device.
        case notOrdinary
        /// The system's error.
        case failed(Int32)
    }

    /// Opens a file to be read; waits for nobody.
    package static func open(_ path: String) -> Opened {
        let descriptor = unsafe Glibc.open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
        guard descriptor >= 0 else {
            // A socket cannot be opened at all.
            let error = errno
            return self.isOther(path) ? .notOrdinary : .failed(error)
        }
        guard System.isOrdinaryFile(descriptor) else {
            close(descriptor)
            return .notOrdinary
        }
        return .file(descriptor)
    }

    /// Whether there is something at `path`, and no ordinary file.
    package static func isOther(_ path: String) -> Bool {
        System.isOrdinaryFile(at: path) == false
    }
}
