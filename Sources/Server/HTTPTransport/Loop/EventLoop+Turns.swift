internal import Platform

/// Whose turn it is at the sockets of a loop with busy connections.
struct TurnOrder {
    /// The bytes after which a turn of busy connections ends; 16 KiB, some sixty pushes, though the last of these
    /// connections may have sent 64 KiB.
    static let busyBytesPerTurnMax = 16_384
    /// The bytes that connections which are not busy may send while the handler has all it can take; 64 KiB, some two
    /// hundred pushes.
    static let bytesPerPauseMax = 65_536

    /// The bytes that were read from all sockets.
    var bytesRead = 0
    /// Whether the last turn was not that of the busy connections.
    var wasOfOthers = false
    /// How many bytes will have been read when nothing more is in this pause; nil while there is none.
    var pauseEndsAt: Int?
}

/// Which sockets a turn reads.
///
/// Whoever sends little does not wait for those who send much. A connection is busy while its flow has sent a large
/// part of all that came; then `busyPoll` watches it and not `poll`. While both have something, turns alternate: that
/// of the others reads all of them that are ready, and that of the busy ones reads 16 KiB. What `busyPoll` has reported
/// by then is left to the next such turn.
///
/// Where nobody is busy, all connections are served as they come, and `busyPoll` costs nothing.
extension EventLoop {
    /// Says what flow a connection's requests belong to, by a hash of its name. On the loop's thread.
    package func setFlow(of connection: ConnectionID, to flow: UInt64) {
        self.connection(connection)?.flow = FlowShares.Place(flow: flow)
    }

    /// How many connections are busy: their flow sends a large part of all that comes, and they wait for the others.
    package var busyConnectionCount: Int { self.busyConnections.value }

    /// Whether a connection's flow sends little, while others are busy. On the loop's thread.
    package func isQuiet(_ connection: ConnectionID) -> Bool {
        guard self.busyConnectionCount > 0, let connection = self.connection(connection) else { return false }
        // A connection that is new is busy only once what it has sent has been weighed.
        return !connection.isBusy && !self.shares.isLarge(connection.flow, wasLarge: true)
    }

    /// Waits until there is something to do, and reads.
    func serveSockets() {
        guard !self.isReadingPaused else { return self.serveWhilePaused() }
        self.turns.pauseEndsAt = nil
        guard self.busyConnectionCount > 0 else {
            return self.serveOthers(waiting: self.waitMilliseconds)
        }
        if !self.turns.wasOfOthers, self.haveOthersSomething {
            self.serveOthers(waiting: 0)
        } else {
            self.serveBusy()
        }
    }

    /// Whether a connection that is not busy, a listener or a wake waits.
    private var haveOthersSomething: Bool {
        if !self.poll.hasEvents { self.poll.wait(milliseconds: 0) }
        return self.poll.hasEvents
    }

    /// Serves all but the busy connections.
    ///
    /// - Parameter milliseconds: how long to wait for them; -1 for ever.
    private func serveOthers(waiting milliseconds: Int32) {
        self.turns.wasOfOthers = true
        if !self.poll.hasEvents { self.poll.wait(milliseconds: milliseconds) }
        self.memory.now = SystemClock.monotonic
        if !self.isReadingPaused { self.acceptCrowds() }
        while let event = self.poll.next() {
            self.dispatch(event.readiness, event.token)
            if let end = self.turns.pauseEndsAt, self.turns.bytesRead >= end { return }
        }
    }

    /// Serves some busy connections, one at least where any is ready.
    private func serveBusy() {
        self.turns.wasOfOthers = false
        // What `poll` has reported and nobody has taken yet may be reported to nobody again.
        let wait = self.poll.hasEvents ? 0 : self.waitMilliseconds
        if !self.busyPoll.hasEvents { self.busyPoll.wait(milliseconds: wait) }
        self.memory.now = SystemClock.monotonic
        self.acceptCrowds()
        let end = self.turns.bytesRead + TurnOrder.busyBytesPerTurnMax
        while self.turns.bytesRead < end, let event = self.busyPoll.next() {
            // The next turn is that of what `poll` watches.
            guard event.token != Self.pollToken else { continue }
            self.dispatch(event.readiness, event.token)
        }
    }

    /// The handler has all it can take. If that is from busy connections, the others go on for a while.
    private func serveWhilePaused() {
        let end = self.turns.pauseEndsAt ?? self.turns.bytesRead + TurnOrder.bytesPerPauseMax
        self.turns.pauseEndsAt = end
        if self.busyConnectionCount > 0, self.turns.bytesRead < end {
            self.serveOthers(waiting: self.millisecondsToWait)
        } else {
            self.waitForWake()
        }
    }

    // MARK: Who is busy

    /// What watches a connection.
    func poll(of connection: Connection) -> Poll { connection.isBusy ? self.busyPoll : self.poll }

    /// Counts what a connection has sent, once it is known what flow that was of.
    func weigh(_ connection: Connection, bytes: Int) {
        self.turns.bytesRead += bytes
        self.shares.received(bytes, at: connection.flow)
        let isBusy = self.shares.isLarge(connection.flow, wasLarge: connection.isBusy)
        guard isBusy != connection.isBusy, connection.stage == .http2 || connection.stage == .http1 else { return }
        self.watch(connection, asBusy: isBusy)
    }

    /// Has busy connections watched with the others again whose flow has sent little of late: where they send nothing,
    /// nobody weighs them.
    func releaseQuiet() {
        guard self.busyConnectionCount > 0 else { return }
        for connection in self.connections {
            guard let connection, connection.isBusy, !self.shares.isLarge(connection.flow, wasLarge: true) else {
                continue
            }
            self.watch(connection, asBusy: false)
        }
    }

    /// Has the other poll watch a connection; where there is no memory for that, it stays where it is.
    private func watch(_ connection: Connection, asBusy isBusy: Bool) {
        let (poll, other) = isBusy ? (self.poll, self.busyPoll) : (self.busyPoll, self.poll)
        guard other.add(connection.descriptor, connection.interest, token: connection.token) else { return }
        connection.isBusy = isBusy
        if isBusy { self.busyConnections.begin() } else { self.busyConnections.end() }
        guard !poll.remove(connection.descriptor) else { return }
        // Two would tell of it.
        connection.isDoomed = true
        self.markDirty(connection)
    }
}

/// What each flow has sent to a loop of late, as a part of all that came.
///
/// A flow is what is to have a fair share of the loop, on however many connections: the pushes of a topic, or one
/// connection whose handler has named no flow. There is a number of places for flows; two that have the same count as
/// one.
package struct FlowShares {
    /// Where a flow is counted.
    package struct Place: Hashable, Sendable {
        fileprivate let index: UInt16

        /// - Parameter flow: what the flow is known by; all bits of a hash, or small numbers.
        package init(flow: UInt64) {
            self.index = UInt16(truncatingIfNeeded: flow % UInt64(FlowShares.placeCount))
        }
    }

    /// The places; 1,024, so that a quiet flow hardly ever has that of a noisy one.
    package static let placeCount = 1_024
    /// The bytes that all flows together must have sent for any to have a large part: 256 KiB. A loop that receives
    /// less in a second keeps nobody waiting.
    package static let bytesMin = 262_144
    /// A part of all is large that is more than a 32nd of it, and stays so until it is less than a 64th: there are a
    /// few dozen such flows at most.
    package static let largePart = 32

    /// By place; what came lately counts more than what came before.
    private var bytes = [Int](repeating: 0, count: FlowShares.placeCount)
    private var total = 0
    /// How many places have bytes.
    private var flowCount = 0

    package init() {}

    package mutating func received(_ count: Int, at place: Place) {
        if self.bytes[Int(place.index)] == 0, count > 0 { self.flowCount += 1 }
        self.bytes[Int(place.index)] += count
        self.total += count
    }

    /// Whether a flow has sent a large part of all, where there is another that would wait for it.
    ///
    /// - `wasLarge`: whether it had before.
    package func isLarge(_ place: Place, wasLarge: Bool) -> Bool {
        guard self.flowCount > 1, self.total >= Self.bytesMin else { return false }
        let part = wasLarge ? 2 * Self.largePart : Self.largePart
        return self.bytes[Int(place.index)] * part > self.total
    }

    /// What came until now counts for half as much as what comes.
    package mutating func secondPassed() {
        self.total = 0
        self.flowCount = 0
        for index in self.bytes.indices where self.bytes[index] > 0 {
            self.bytes[index] /= 2
            self.total += self.bytes[index]
            if self.bytes[index] > 0 { self.flowCount += 1 }
        }
    }
}
