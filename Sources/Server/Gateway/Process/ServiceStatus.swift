import Platform
import ServiceManager
import Synchronization

/// What the service manager hears of a gateway: how far it is, and how it is, in a line that `systemctl status` shows.
package final class ServiceStatus: Sendable {
    private struct Facts {
        var places = ""
        /// What the last reload came to.
        var reload = ""
        /// Why nothing can be stored any more.
        var failure: String?
        /// Why nothing can be stored for now.
        var absence: String?

        var words: String {
            if let failure = self.failure { return "Takes nothing more until it is started again: \(failure)" }
            if let absence = self.absence { return "Takes nothing until the database is there again: \(absence)" }
            return self.places + self.reload
        }
    }

    private let facts = Mutex(Facts())

    package init() {}

    func started(_ addresses: BoundAddresses) {
        self.tellReady { $0.places = "Takes pushes at \(addresses.edge.text), operators at \(addresses.admin.text)" }
    }

    func startFailed(_ error: any Error) {
        Systemd.notify(.status("Cannot start: \(error)"))
    }

    /// Around every reload, whoever asked for it, and whether it changes something or not.
    func reloaded(_ stage: ReloadService.Stage) {
        switch stage {
        case .began:
            let microseconds = UInt64(SystemClock.monotonicMicroseconds)
            Systemd.notify(.reloading("Reads its configuration again", monotonicMicroseconds: microseconds))
        case .taken: self.tellReady { $0.reload = "; has read its configuration again" }
        case .refused:
            self.tellReady {
                $0.reload = "; the configuration it has read again is faulty, and the old one is in force"
            }
        }
    }

    func storeFailed(_ message: String) {
        let words = self.facts.withLock { facts in
            facts.failure = message
            return facts.words
        }
        Systemd.notify(.status(words))
    }

    /// The database cannot be used for now, for this cause; nil when it can again.
    func storeAbsent(_ message: String?) {
        let words = self.facts.withLock { facts in
            facts.absence = message
            return facts.words
        }
        if !words.isEmpty { Systemd.notify(.status(words)) }
    }

    func stopping(drainTimeoutMilliseconds milliseconds: Int64) {
        Systemd.notify(.stopping("Lets wakes in flight end", milliseconds: milliseconds))
    }

    private func tellReady(_ change: (inout Facts) -> Void) {
        let words = self.facts.withLock { facts in
            change(&facts)
            return facts.words
        }
        Systemd.notify(.ready(words))
    }
}
