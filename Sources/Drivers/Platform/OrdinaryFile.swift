internal import Glibc

/// Files that can be read to their end: a pipe in the place of one would keep whoever opens it waiting.
package enum OrdinaryFile {
    /// Opens a file to be read; waits for nobody.
    ///
    /// - Returns: nil when there is something else: a pipe, a folder, a device.
    package static func open(_ path: String) throws(SystemError) -> OpenFile? {
        do throws(SystemError) {
            let file = try OpenFile(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
            guard (try? file.status())?.kind == .file else { return nil }
            return file
        } catch {
            // A socket cannot be opened at all.
            if self.isOther(path) { return nil }
            throw error
        }
    }

    /// The bytes of a file; waits for nobody.
    ///
    /// - `bytesMax`: the most that are read.
    /// - Returns: nil when there is something else: a pipe, a folder, a device.
    package static func contents(_ path: String, bytesMax: Int) throws(SystemError) -> [UInt8]? {
        guard let file = try self.open(path) else { return nil }
        return try file.contents(bytesMax: bytesMax)
    }

    /// Whether there is something at `path`, and no ordinary file.
    package static func isOther(_ path: String) -> Bool {
        guard let status = try? FileSystem.status(path) else { return false }
        return status.kind != .file
    }
}
