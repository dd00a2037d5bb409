import FoundationEssentials
import Glibc
import Platform

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
