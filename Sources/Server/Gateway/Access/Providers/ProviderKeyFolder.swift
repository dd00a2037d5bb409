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
        /// The faults of the files that contain no valid key.
        package var faults: [CredentialError] = []
        /// The ids of the files without a valid key, each with its fault in `faults`. The fault is nil for an empty
        /// file, which is still being written.
        package var unusable: [(keyID: String, fault: CredentialError?)] = []
    }

    /// The maximum number of valid keys. Further files are faults.
    static let filesMax = 4096

    package let path: String

    package init(_ path: String) {
        self.path = path
    }

    /// Reads every file of the folder.
    ///
    /// - Throws: `CredentialError` if the folder cannot be read.
    package func read() throws(CredentialError) -> Contents {
        var contents = Contents()
        for name in try self.names() where !name.hasPrefix(".") {
            let file = "\(self.path)/\(name)"
            do throws(CredentialError) {
                guard contents.keys.count < Self.filesMax else {
                    throw CredentialError(message: "\(self.path) has more than \(Self.filesMax) keys; remove some.")
                }
                guard name.hasSuffix(ProviderKeyFile.nameEnd) else {
                    throw CredentialError(message: "\(file) is not named KEYID\(ProviderKeyFile.nameEnd); rename it.")
                }
            } catch {
                contents.faults.append(error)
                continue
            }
            let keyID = String(name.dropLast(ProviderKeyFile.nameEnd.count))
            do throws(CredentialError) {
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

    /// Adds a key from `keyFile`, a .p8 file or any PEM file. Stores only the public key.
    ///
    /// The folder is created if it does not exist. The new file appears atomically.
    /// - Throws: `CredentialError` if the file contains no key, a name is invalid, or the id exists.
    package func add(
        keyFile: String,
        team: String,
        keyID: String,
        topics: [String],
        environment: APNSEnvironment? = nil
    ) throws(CredentialError) {
        let key = try ProviderKeyFile.key(in: try Self.bytes(of: keyFile), path: keyFile)
        let file = try ProviderKeyFile(keyID: keyID, team: team, topics: topics, environment: environment, key: key)
        let draft = "\(self.path)/.\(keyID).new"
        let path = self.file(of: keyID)
        do throws(SystemError) { try FileSystem.makeFolder(self.path, mode: 0o755) } catch {
            guard error.number != ENOENT else {
                throw CredentialError(
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
            throw CredentialError(message: "\(path) is there already; remove that key first.")
        }
    }

    /// Removes a key. A gateway that watches the folder then refuses tokens of the key.
    package func remove(keyID: String) throws(CredentialError) {
        guard ProviderKeyFile.isName(keyID), (try? FileSystem.remove(self.file(of: keyID))) != nil else {
            throw CredentialError(message: "\(self.path) has no key \"\(keyID)\"; see `wakegate key list`.")
        }
    }

    private func file(of keyID: String) -> String {
        "\(self.path)/\(keyID)\(ProviderKeyFile.nameEnd)"
    }

    private func names() throws(CredentialError) -> [String] {
        do {
            return try FileManager.default.contentsOfDirectory(atPath: self.path).sorted()
        } catch {
            let problem = FileSystem.exists(self.path) ? "is not a readable folder" : "is missing: no such folder"
            throw CredentialError(message: "\(self.path) \(problem); name the folder that `wakegate key add` writes.")
        }
    }

    /// Returns the bytes of a file. Opens only regular files, because opening a pipe could block.
    private static func bytes(of file: String) throws(CredentialError) -> [UInt8] {
        let bytesMax = ProviderKeyFile.bytesMax
        let bytes: [UInt8]?
        do throws(SystemError) { bytes = try OrdinaryFile.contents(file, bytesMax: bytesMax + 1) } catch {
            throw Self.error(file, "read", error)
        }
        guard let bytes else { throw CredentialError(message: "\(file) is not a regular file; name a key in PEM.") }
        guard bytes.count <= bytesMax else {
            throw CredentialError(message: "\(file) is larger than \(bytesMax) bytes; name a key.")
        }
        return bytes
    }

    private static func error(_ path: String, _ what: String, _ cause: SystemError) -> CredentialError {
        CredentialError(message: "\(path) cannot be \(what) (\(cause.reason)); \(cause.remedy).")
    }
}

/// Reads the folder `providerKeys`. Reads it again whenever its contents change.
///
/// While the folder cannot be read, no key is valid. While a file is being rewritten and contains no valid key, its
/// last key stays valid for two seconds.
///
/// `@unchecked Sendable`: after `init`, only `queue` uses `watch`, `reported`, `kept` and `keys`. The owner may use
/// `keys` until it calls `feed`.
package final class ProviderKeyWatch: @unchecked Sendable {
    /// The interval, in seconds, at which the watch checks if another folder has replaced the watched folder.
    private static let lookSeconds = 1
    private static let events = UInt32(
        IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF
            | IN_MOVE_SELF
    )

    /// The store that receives the keys of the folder.
    package private(set) var keys = ProviderKeys([:])
    private let folder: ProviderKeyFolder
    private let onFault: @Sendable (CredentialError) -> Void
    private let queue = DispatchQueue(label: "provider keys")
    private let descriptor: Int32
    private let changes: any DispatchSourceRead
    private let timer: any DispatchSourceTimer
    /// The watch descriptor of the folder; -1 if the folder is not watched. The system does not reuse watch
    /// descriptors.
    private var watch: Int32 = -1
    /// The last reported faults of the folder. The same fault is not reported again.
    private var reported: [CredentialError] = []
    private var kept = KeptKeys()

    /// Reads the folder and starts to watch it.
    ///
    /// - `onFault`: receives the fault of every file that contains no key, and of a folder that can no longer be read.
    /// - Throws: `CredentialError` if the folder cannot be read or watched.
    package init(_ folder: String, onFault: @escaping @Sendable (CredentialError) -> Void) throws(CredentialError) {
        self.folder = ProviderKeyFolder(folder)
        self.onFault = onFault
        self.descriptor = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
        guard self.descriptor >= 0 else {
            let cause = SystemError(errno).message
            throw CredentialError(message: "\(folder) cannot be watched (\(cause)); raise fs.inotify limits.")
        }
        self.changes = DispatchSource.makeReadSource(fileDescriptor: self.descriptor, queue: self.queue)
        self.timer = DispatchSource.makeTimerSource(queue: self.queue)
        self.timer.schedule(deadline: .now() + .seconds(Self.lookSeconds), repeating: .seconds(Self.lookSeconds))
        let descriptor = self.descriptor
        self.changes.setCancelHandler { close(descriptor) }
        self.changes.setEventHandler { [weak self] in self?.folderChanged() }
        self.timer.setEventHandler { [weak self] in self?.look() }
        // The watch is added first. A change during the reading then causes another reading.
        self.watch = self.addWatch()
        self.changes.resume()
        self.timer.resume()
        do throws(CredentialError) {
            self.replace(with: self.taken(try self.folder.read()))
        } catch {
            self.stop()
            throw error
        }
    }

    deinit { self.stop() }

    /// Passes the current keys and all further changes to another store.
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

    /// Adds a watch of the folder and returns its descriptor. If the folder is already watched, the descriptor is the
    /// same.
    private func addWatch() -> Int32 {
        FileSystem.watch(self.folder.path, Self.events | UInt32(IN_ONLYDIR), on: self.descriptor)
    }

    private func look() {
        guard !self.changes.isCancelled else { return }
        let watch = self.addWatch()
        // A folder that cannot be watched is read each second.
        guard watch != self.watch || watch < 0 || self.kept.isWaiting else { return }
        self.watch = watch
        self.read()
    }

    private func folderChanged() {
        guard !self.changes.isCancelled else { return }
        var events = [UInt8](repeating: 0, count: 16_384)
        while let count = try? Descriptor.read(self.descriptor, into: &events), count > 0 {}
        self.watch = self.addWatch()
        self.read()
    }

    private func read() {
        do throws(CredentialError) {
            self.replace(with: self.taken(try self.folder.read()))
        } catch {
            self.kept = KeptKeys()
            self.replace(with: [])
            self.tell([error])
        }
    }

    /// Replaces the keys unless all are the same, because every replacement causes all tokens to be verified again.
    private func replace(with keys: [ProviderKeyFile]) {
        let current = self.keys.current().value
        // During the reading, a reload may have connected another watch to the same store.
        guard !self.changes.isCancelled else { return }
        guard current.count != keys.count || keys.contains(where: { current[$0.keyID]?.contents != $0.contents }) else {
            return
        }
        self.keys.replace(with: keys)
    }

    private func taken(_ contents: ProviderKeyFolder.Contents) -> [ProviderKeyFile] {
        let (keys, faults) = self.kept.read(contents, now: SystemClock.monotonic)
        self.tell(faults)
        return keys
    }

    private func tell(_ faults: [CredentialError]) {
        for fault in faults where !self.reported.contains(fault) { self.onFault(fault) }
        self.reported = faults
    }
}
