import Glibc
import Platform

/// The files that command lines name.
enum CommandFile {
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
}
