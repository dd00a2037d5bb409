import Dispatch
package import HTTPTransport
import Platform
import Synchronization

/// Reads the authorities of client certificates and what they have revoked, and again whenever a file changes.
///
/// It looks once a second, so that whatever takes a file's place is noticed, behind links too. A file that has changed
/// is read when two looks in a row find it the same: half of a list would be read as a whole one. While a file cannot
/// be read, what was read before holds. It is `Sendable` without the compiler's proof: `change`, `told` and `trusts`
/// are touched on `queue` alone once `init` has returned, but for what its owner does before `feed`.
package final class ClientTrustWatch: @unchecked Sendable {
    private static let lookSeconds = 1

    /// Where the trust goes that it reads.
    package private(set) var trusts: ClientTrusts
    private let files: ClientTrustFiles
    private let onTrouble: @Sendable (String) -> Void
    private let queue = DispatchQueue(label: "client certificates")
    private let timer: any DispatchSourceTimer
    private var change: SettledChange<ClientTrustFiles.Stamps>
    /// What was said last, so that it is said once.
    private var told: String?

    /// Reads the files, and looks after them from then on.
    ///
    /// - `onTrouble`: hears why a changed file is not taken, and of a list that is past its time.
    /// - Throws: `CredentialError` when a file cannot be used now.
    package init(
        _ files: ClientTrustFiles,
        onTrouble: @escaping @Sendable (String) -> Void
    ) throws(CredentialError) {
        self.files = files
        self.onTrouble = onTrouble
        // Before they are read: what changes meanwhile is read again.
        self.change = SettledChange(try files.stamps())
        let trust = try files.read()
        self.trusts = ClientTrusts(trust)
        self.timer = DispatchSource.makeTimerSource(queue: self.queue)
        self.timer.schedule(deadline: .now() + .seconds(Self.lookSeconds), repeating: .seconds(Self.lookSeconds))
        self.tell(trust.isOverdue ? files.overdue : nil)
        self.timer.setEventHandler { [weak self] in self?.look() }
        self.timer.resume()
    }

    deinit { self.timer.cancel() }

    /// Gives what was read to others than its own trusts, from now on.
    package func feed(_ trusts: ClientTrusts) {
        self.queue.sync {
            trusts.replace(with: self.trusts.current().trust)
            self.trusts = trusts
        }
    }

    /// Watches no more.
    package func stop() {
        self.timer.cancel()
    }

    private func look() {
        guard !self.timer.isCancelled else { return }
        do throws(CredentialError) {
            guard self.change.looked(try self.files.stamps()) else { return }
            let trust = try self.files.read()
            self.trusts.replace(with: trust)
            self.tell(trust.isOverdue ? self.files.overdue : nil)
        } catch {
            self.change.failed()
            self.tell("\(error.message) What was read before holds.")
        }
    }

    private func tell(_ trouble: String?) {
        if let trouble, trouble != self.told { self.onTrouble(trouble) }
        self.told = trouble
    }
}

/// Whose client certificates are trusted at this moment; every loop asks, one thread changes it.
package final class ClientTrusts: Sendable {
    private let trust: Mutex<ClientTrust>
    private let count = Atomic<UInt64>(0)

    package init(_ trust: ClientTrust) {
        self.trust = Mutex(trust)
    }

    /// Counts the changes: what was verified under another number may be true no more.
    var generation: UInt64 { self.count.load(ordering: .acquiring) }

    /// Whom to trust, and the number of that state.
    func current() -> (generation: UInt64, trust: ClientTrust) {
        self.trust.withLock { (self.generation, $0) }
    }

    package func replace(with trust: ClientTrust) {
        self.trust.withLock {
            $0 = trust
            _ = self.count.add(1, ordering: .acquiringAndReleasing)
        }
    }
}
