internal import Platform

/// The order in which a loop with busy connections reads its sockets.
struct TurnOrder {
    /// The number of bytes after which a turn of busy connections ends: 16 KiB, some sixty pushes. The last connection
    /// of a turn may exceed it by 64 KiB.
    static let busyBytesPerTurnMax = 16_384
    /// The number of bytes that other connections may send while the handler has paused reading: 64 KiB, some two
    /// hundred pushes.
    static let bytesPerPauseMax = 65_536

    /// The number of bytes read from all sockets so far.
    var bytesRead = 0
    /// True if the last turn served connections that are not busy.
    var wasOfOthers = false
    /// The value of `bytesRead` at which reading stops during a pause; nil if reading is not paused.
    var pauseEndsAt: Int?
}

/// The handling of busy connections, whose flows have sent a large part of the received bytes. `busyPoll` watches them
/// instead of `poll`.
extension EventLoop {
    /// Sets the flow of a connection's requests to a hash of the flow's name. Call it on the loop's thread.
    package func setFlow(of connection: ConnectionID, to flow: UInt64) {
        self.connection(connection)?.flow = FlowShares.Place(flow: flow)
    }

    /// The number of busy connections. All other connections are served before them.
    package var busyConnectionCount: Int { self.busyConnections.value }

    /// Returns true if the connection's flow sends little while other flows are busy. Call it on the loop's thread.
    package func isQuiet(_ connection: ConnectionID) -> Bool {
        guard self.busyConnectionCount > 0, let connection = self.connection(connection) else { return false }
        // A new connection is not marked as busy yet, so check its flow, too.
        return !connection.isBusy && !self.shares.isLarge(connection.flow, wasLarge: true)
    }

    /// Returns the poll that watches a connection.
    func poll(of connection: Connection) -> Poll { connection.isBusy ? self.busyPoll : self.poll }

    /// Counts bytes from a connection. Its flow must be set.
    func weigh(_ connection: Connection, bytes: Int) {
        self.turns.bytesRead += bytes
        self.shares.received(bytes, at: connection.flow)
        let isBusy = self.shares.isLarge(connection.flow, wasLarge: connection.isBusy)
        guard isBusy != connection.isBusy, connection.stage == .http2 || connection.stage == .http1 else { return }
        self.watch(connection, asBusy: isBusy)
    }

    /// Moves busy connections back to `poll` if their flows have sent little recently. `weigh` does not do this for
    /// connections that send nothing.
    func releaseQuiet() {
        guard self.busyConnectionCount > 0 else { return }
        for connection in self.connections {
            guard let connection, connection.isBusy, !self.shares.isLarge(connection.flow, wasLarge: true) else {
                continue
            }
            self.watch(connection, asBusy: false)
        }
    }

    /// Moves a connection to the other poll. If memory is exhausted, the connection stays.
    private func watch(_ connection: Connection, asBusy isBusy: Bool) {
        let (poll, other) = isBusy ? (self.poll, self.busyPoll) : (self.busyPoll, self.poll)
        guard other.add(connection.descriptor, connection.interest, token: connection.token) else { return }
        connection.isBusy = isBusy
        if isBusy { self.busyConnections.begin() } else { self.busyConnections.end() }
        guard !poll.remove(connection.descriptor) else { return }
        // End the connection, because both polls would report it.
        connection.isDoomed = true
        self.markDirty(connection)
    }
}

/// The share of each flow in the bytes that a loop received recently.
///
/// A flow consists, for example, of the pushes for one topic. A connection without a flow of the handler is also a
/// flow. Each flow should have a fair share of the loop, on any number of connections. Two flows with the same index
/// are counted as one.
package struct FlowShares {
    /// The index at which a flow is counted.
    package struct Place: Hashable, Sendable {
        fileprivate let index: UInt16

        /// - Parameter flow: the number of the flow, which is a hash or a small number.
        package init(flow: UInt64) {
            self.index = UInt16(truncatingIfNeeded: flow % UInt64(FlowShares.placeCount))
        }
    }

    /// The number of indices: 1,024, so that a quiet flow rarely has the same index as a busy one.
    package static let placeCount = 1_024
    /// The number of bytes from all flows above which a share can be large: 256 KiB. No connection has to wait if a
    /// loop receives less per second.
    package static let bytesMin = 262_144
    /// The divisor that defines a large share. A share above 1/32 is large, and then stays large while it is above
    /// 1/64.
    package static let largePart = 32

    /// The number of bytes by index. Older bytes count less than recent ones.
    private var bytes = [Int](repeating: 0, count: FlowShares.placeCount)
    private var total = 0
    /// The number of indices with bytes.
    private var flowCount = 0

    package init() {}

    package mutating func received(_ count: Int, at place: Place) {
        if self.bytes[Int(place.index)] == 0, count > 0 { self.flowCount += 1 }
        self.bytes[Int(place.index)] += count
        self.total += count
    }

    /// Returns true if a flow has sent a large share of all bytes and other flows exist.
    ///
    /// - `wasLarge`: true if the share was large before.
    package func isLarge(_ place: Place, wasLarge: Bool) -> Bool {
        guard self.flowCount > 1, self.total >= Self.bytesMin else { return false }
        let part = wasLarge ? 2 * Self.largePart : Self.largePart
        return self.bytes[Int(place.index)] * part > self.total
    }

    /// Halves the weight of all bytes received so far.
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
