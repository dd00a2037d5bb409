import FoundationEssentials
import Glibc
import Platform

/// The folder `providerKeys`: one file a key. Names that begin with a dot are skipped.
package struct ProviderKeyFolder: Sendable {
    /// What a reading of the folder found.
    package struct Contents: Sendable {
        /// In the order of their ids.
        package var keys: [ProviderKeyFile] = []
        /// Files that hold no key, each with the cause.
        package var faults: [ProviderKeyError] = []
        /// The ids of keys whose files hold none; the cause is one of `faults`, and nil for an empty file, which
        /// somebody is still writing.
        package var unusable: [(keyID: String, fault: ProviderKeyError?)] = []
    }

    /// The most files that are read.
    static let filesMax = 4096

    package let path: String

    package init(_ path: String) {
        self.path = path
    }

    /// Reads every file.
    ///
    /// - Throws: `ProviderKeyError` when the folder cannot be read.
    package func read() throws(ProviderKeyError) -> Contents {
        var contents = Contents()
        for name in try self.names() where !name.hasPrefix(".") {
            let file = "\(self.path)/\(name)"
            do throws(ProviderKeyError) {
                guard contents.keys.count < Self.filesMax else {
                    throw ProviderKeyError(message: "\(self.path) has more than \(Self.filesMax) keys; remove some.")
                }
                guard name.hasSuffix(ProviderKeyFile.nameEnd) else {
                    throw ProviderKeyError(message: "\(file) is not named KEYID\(ProviderKeyFile.nameEnd); rename it.")
                }
            } catch {
                contents.faults.append(error)
                continue
            }
            let keyID = String(name.dropLast(ProviderKeyFile.nameEnd.count))
            do throws(ProviderKeyError) {
                let bytes = try Self.bytes(of: file)
                if bytes.isEmpty {
                    contents.unusable.append((keyID, nil))
                } else {
                    contents.keys.append(try ProviderKeyFile(keyID: keyID, contents: bytes, path: file))
                }
            } catch {
                contents.unusable.append((keyID, error))
                contents.faults.append(error)
            }
        }
        return contents
    }

    /// Adds a key; of `keyFile`, a .p8 or any PEM, only the public half is kept.
    ///
    /// The folder is made when it is missing. The file appears whole, under its name, or not at all.
    /// - Throws: `ProviderKeyError` when the file holds no key, a name is none, or a key of that id is there.
    package func add(
        keyFile: String,
        team: String,
        keyID: String,
        topics: [String],
        environment: APNSEnvironment? = nil
    ) throws(ProviderKeyError) {
        let key = try ProviderKeyFile.key(in: try Self.bytes(of: keyFile), path: keyFile)
        let file = try ProviderKeyFile(keyID: keyID, team: team, topics: topics, environment: environment, key: key)
        let draft = "\(self.path)/.\(keyID).new"
        let path = self.file(of: keyID)
        do throws(SystemError) { try FileSystem.makeFolder(self.path, mode: 0o755) } catch {
            guard error.number != ENOENT else {
                throw ProviderKeyError(
                    message: "The folder \(self.path) cannot be made, as the one above it is missing; make that first."
                )
            }
            guard error.number == EEXIST else { throw Self.error(self.path, "made", error) }
        }
        try? FileSystem.remove(draft)
        defer { try? FileSystem.remove(draft) }
        do throws(SystemError) {
            let opened = try OpenFile(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode: 0o644)
            try opened.write(file.contents)
            try opened.sync()
        } catch { throw Self.error(draft, "written", error) }
        do throws(SystemError) { try FileSystem.link(draft, orRenameTo: path) } catch {
            guard error.number == EEXIST else { throw Self.error(path, "written", error) }
            throw ProviderKeyError(message: "\(path) is there already; remove that key first.")
        }
    }

    /// Removes a key; a gateway that watches the folder takes its tokens no more.
    package func remove(keyID: String) throws(ProviderKeyError) {
        guard ProviderKeyFile.isName(keyID), (try? FileSystem.remove(self.file(of: keyID))) != nil else {
            throw ProviderKeyError(message: "\(self.path) has no key \"\(keyID)\"; see `wakegate key list`.")
        }
    }

    private func file(of keyID: String) -> String {
        "\(self.path)/\(keyID)\(ProviderKeyFile.nameEnd)"
    }

    private func names() throws(ProviderKeyError) -> [String] {
        do {
            return try FileManager.default.contentsOfDirectory(atPath: self.path).sorted()
        } catch {
            let problem = FileSystem.exists(self.path) ? "is no folder that can be read" : "is missing: no such folder"
            throw ProviderKeyError(message: "\(self.path) \(problem); name the folder that `wakegate key add` writes.")
        }
    }

    /// The bytes of a file; only of an ordinary one, since a pipe would keep us waiting.
    private static func bytes(of file: String) throws(ProviderKeyError) -> [UInt8] {
        let status: FileStatus
        do throws(SystemError) { status = try FileSystem.status(file) } catch { throw Self.error(file, "read", error) }
        guard status.kind == .file else {
            throw ProviderKeyError(message: "\(file) is no ordinary file; name a key in PEM.")
        }
        guard status.size <= ProviderKeyFile.bytesMax else {
            throw ProviderKeyError(message: "\(file) is larger than \(ProviderKeyFile.bytesMax) bytes; name a key.")
        }
        do throws(SystemError) {
            return try OpenFile(file, O_RDONLY | O_NONBLOCK | O_CLOEXEC).contents(bytesMax: ProviderKeyFile.bytesMax)
        } catch { throw Self.error(file, "read", error) }
    }

    private static func error(_ path: String, _ what: String, _ cause: SystemError) -> ProviderKeyError {
        ProviderKeyError(message: "\(path) cannot be \(what) (\(cause.reason)); \(cause.remedy).")
    }
}
