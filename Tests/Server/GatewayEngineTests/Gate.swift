import Foundation

/// Where the commits of a store wait until a test lets them go on.
///
/// `@unchecked Sendable`: `condition` guards every field.
final class Gate: @unchecked Sendable {
    private let condition = NSCondition()
    private var isClosed = false
    /// How many commits have come to the gate.
    private var arrivals = 0
    /// How many of them have gone on.
    private var departures = 0

    /// The next commit stops here.
    func close() {
        self.condition.withLock { self.isClosed = true }
    }

    func open() {
        self.condition.withLock {
            self.isClosed = false
            self.condition.broadcast()
        }
    }

    /// Called by a commit, between writing and syncing.
    ///
    /// - Parameter onArrival: called before it waits.
    func pass(_ onArrival: () -> Void) {
        self.condition.withLock { self.arrivals += 1 }
        onArrival()
        self.condition.withLock {
            while self.isClosed { self.condition.wait() }
            self.departures += 1
        }
    }

    /// A commit stands at the gate.
    var isOccupied: Bool { self.condition.withLock { self.arrivals > self.departures } }
}

/// What a test waited for and did not get.
struct RigFailure: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }
}
