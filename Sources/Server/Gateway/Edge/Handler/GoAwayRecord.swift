package import HTTPTransport

/// The record of GOAWAYs and silent connections on one loop during a shutdown.
package struct GoAwayRecord {
    /// True during a shutdown.
    package private(set) var isDraining = false
    /// The connections seen during the shutdown. The value is true once a GOAWAY was sent.
    private var wasSent: [ConnectionID: Bool] = [:]

    package init() {}

    package mutating func begin() {
        self.isDraining = true
    }

    package mutating func goAwaySent(to connection: ConnectionID) {
        self.wasSent[connection] = true
    }

    /// Checks a connection without a worker's stream; called once a second for each of them. New connections are
    /// permitted during a shutdown, because a worker may deliver a result on one, but a silent connection must not
    /// delay the shutdown.
    ///
    /// - Returns: true if a GOAWAY should be sent now, because the connection has sent no request since the previous
    ///   call.
    package mutating func isSilent(_ connection: ConnectionID) -> Bool {
        guard let wasSent = self.wasSent[connection] else {
            self.wasSent[connection] = false
            return false
        }
        return !wasSent
    }

    package mutating func connectionClosed(_ connection: ConnectionID) {
        self.wasSent[connection] = nil
    }
}
