import Dispatch
import FoundationEssentials
import Glibc
import Platform

/// The folder `providerKeys`, with one file per key. Names that begin with a dot are skipped.
package struct ProviderKeyFolder: Sendable {
    /// The result of reading the folder.
    package struct Contents: Sendable {
        /// The valid keys, in order of their ids.
        package var keys: [ProviderKeyFile] = []
        /// The faults of the files that hold no valid key.
        package var faults: [ProviderKeyError] = []
        /// The ids of the files without a valid key, each with its fault in `faults`; nil for an empty file, which is
        /// still being written.
        package var unusable: [(keyID: String, fault: ProviderKeyError?)] = []
    }

    /// The maximum number of files that are read.
    static let filesMax = 4096

    package let path: String

    package init(_ path: String) {
        self.path = path
    }

    /// Reads every file.
    ///
    /// - Throws: `ProviderKeyError` if the folder cannot be read.
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

    /// Adds a key from `keyFile`, a .p8 file or any PEM, and stores only the public key.
    ///
    /// The folder is created if it is missing. The file appears atomically under its name.
    /// - Throws: `ProviderKeyError` if the file holds no key, a name is invalid, or the id exists.
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

    /// Removes a key. A gateway that watches the folder then refuses the key's tokens.
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
            let problem = FileSystem.exists(self.path) ? "is not a readable folder" : "is missing: no such folder"
            throw ProviderKeyError(message: "\(self.path) \(problem); name the folder that `wakegate key add` writes.")
        }
    }

    /// Returns the bytes of a file. Only regular files are opened, since opening a pipe could block.
    private static func bytes(of file: String) throws(ProviderKeyError) -> [UInt8] {
        let status: FileStatus
        do throws(SystemError) { status = try FileSystem.status(file) } catch { throw Self.error(file, "read", error) }
        guard status.kind == .file else {
            throw ProviderKeyError(message: "\(file) is not a regular file; name a key in PEM.")
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

/// Reads the folder `providerKeys`, and reads it again whenever its contents change.
///
/// While the folder cannot be read, no key is valid. While a file is being rewritten and holds no valid key, its last
/// key remains valid for two seconds. The class is `@unchecked Sendable`: after `init`, only `queue` uses `watch`,
/// `reported`, `kept` and `keys`; the owner may use `keys` until it calls `feed`.
package final class ProviderKeyWatch: @unchecked Sendable {
    /// The interval, in seconds, at which the watch checks if another folder has replaced the watched one.
    private static let lookSeconds = 1
    private static let events = UInt32(
        IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF
            | IN_MOVE_SELF
    )

    /// The store that receives the keys from the folder.
    package private(set) var keys = ProviderKeys([:])
    private let folder: ProviderKeyFolder
    private let onFault: @Sendable (ProviderKeyError) -> Void
    private let queue = DispatchQueue(label: "provider keys")
    private let descriptor: Int32
    private let changes: any DispatchSourceRead
    private let timer: any DispatchSourceTimer
    /// The watch descriptor of the folder; -1 if there is none. The system does not reuse such descriptors.
    private var watch: Int32 = -1
    /// The last reported faults of the folder, so that a fault is not repeated.
    private var reported: [ProviderKeyError] = []
    private var kept = KeptKeys()

    /// Reads the folder, and watches it from then on.
    ///
    /// - `onFault`: receives the fault of every file that holds no key, and of a folder that can no longer be read.
    /// - Throws: `ProviderKeyError` if the folder cannot be read or watched now.
    package init(_ folder: String, onFault: @escaping @Sendable (ProviderKeyError) -> Void) throws(ProviderKeyError) {
        self.folder = ProviderKeyFolder(folder)
        self.onFault = onFault
        self.descriptor = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
        guard self.descriptor >= 0 else {
            let cause = SystemError(errno).message
            throw ProviderKeyError(message: "\(folder) cannot be watched (\(cause)); raise fs.inotify limits.")
        }
        self.changes = DispatchSource.makeReadSource(fileDescriptor: self.descriptor, queue: self.queue)
        self.timer = DispatchSource.makeTimerSource(queue: self.queue)
        self.timer.schedule(deadline: .now() + .seconds(Self.lookSeconds), repeating: .seconds(Self.lookSeconds))
        let descriptor = self.descriptor
        self.changes.setCancelHandler { close(descriptor) }
        self.changes.setEventHandler { [weak self] in self?.folderChanged() }
        self.timer.setEventHandler { [weak self] in self?.look() }
        // The watch comes first, so that a change during the reading causes another reading.
        self.watch = self.addWatch()
        self.changes.resume()
        self.timer.resume()
        do throws(ProviderKeyError) {
            self.keys.replace(with: self.taken(try self.folder.read()))
        } catch {
            self.stop()
            throw error
        }
    }

    deinit { self.stop() }

    /// Passes the keys, and all further changes, to another store.
    package func feed(_ keys: ProviderKeys) {
        self.queue.sync {
            keys.replace(with: self.keys.current().value)
            self.keys = keys
        }
    }

    /// Stops watching.
    package func stop() {
        self.changes.cancel()
        self.timer.cancel()
    }

    /// Returns the watch descriptor; the same one if the folder is already watched.
    private func addWatch() -> Int32 {
        FileSystem.watch(self.folder.path, Self.events | UInt32(IN_ONLYDIR), on: self.descriptor)
    }

    private func look() {
        guard !self.changes.isCancelled else { return }
        let watch = self.addWatch()
        guard watch != self.watch || self.kept.isWaiting else { return }
        self.watch = watch
        self.read()
    }

    private func folderChanged() {
        var events = [UInt8](repeating: 0, count: 16_384)
        while let count = try? Descriptor.read(self.descriptor, into: &events), count > 0 {}
        self.watch = self.addWatch()
        self.read()
    }

    private func read() {
        do throws(ProviderKeyError) {
            self.keys.replace(with: self.taken(try self.folder.read()))
        } catch {
            self.kept.folderLost()
            self.keys.replace(with: [:])
            self.tell([error])
        }
    }

    private func taken(_ contents: ProviderKeyFolder.Contents) -> [ProviderKeyFile] {
        let (keys, faults) = self.kept.read(contents, now: SystemClock.monotonic)
        self.tell(faults)
        return keys
    }

    private func tell(_ faults: [ProviderKeyError]) {
        for fault in faults where !self.reported.contains(fault) { self.onFault(fault) }
        self.reported = faults
    }
}
