import Dispatch
import Glibc
import Platform

/// Reads the folder `providerKeys`, and again whenever something in it changes.
///
/// While the folder cannot be read no key is good; a key whose file is there and holds none, as it is being written,
/// stays good for two seconds. It is `Sendable` without the compiler's proof: `watch`, `told`, `kept` and `keys`
/// are touched on `queue` alone once `init` has returned, but for what its owner does before `feed`.
package final class ProviderKeyWatch: @unchecked Sendable {
    /// Seconds between looks at whether another folder has taken the place of the one that is watched.
    private static let lookSeconds = 1
    private static let events = UInt32(
        IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_DELETE_SELF
            | IN_MOVE_SELF
    )

    /// Where the keys go that it reads.
    package private(set) var keys = ProviderKeys()
    private let folder: ProviderKeyFolder
    private let onFault: @Sendable (ProviderKeyError) -> Void
    private let queue = DispatchQueue(label: "provider keys")
    private let descriptor: Int32
    private let changes: any DispatchSourceRead
    private let timer: any DispatchSourceTimer
    /// The number of the watched folder, never used again for another one; -1 when there is none.
    private var watch: Int32 = -1
    /// What was said of the folder last, so that it is said once.
    private var told: [ProviderKeyError] = []
    private var kept = KeptKeys()

    /// Reads the folder, and watches it from then on.
    ///
    /// - `onFault`: hears of every file that holds no key, and of a folder that cannot be read any more.
    /// - Throws: `ProviderKeyError` when the folder cannot be read or watched now.
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
        // Watched before it is read: what changes meanwhile is read again.
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

    /// Gives what was read to others than its own keys, from now on.
    package func feed(_ keys: ProviderKeys) {
        self.queue.sync {
            keys.replace(with: Array(self.keys.current().keys.values))
            self.keys = keys
        }
    }

    /// Watches no more.
    package func stop() {
        self.changes.cancel()
        self.timer.cancel()
    }

    /// Watching a folder that is watched already gives the same number again.
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
            self.keys.replace(with: [])
            self.tell([error])
        }
    }

    private func taken(_ contents: ProviderKeyFolder.Contents) -> [ProviderKeyFile] {
        let (keys, faults) = self.kept.read(contents, now: SystemClock.monotonic)
        self.tell(faults)
        return keys
    }

    private func tell(_ faults: [ProviderKeyError]) {
        for fault in faults where !self.told.contains(fault) { self.onFault(fault) }
        self.told = faults
    }
}
