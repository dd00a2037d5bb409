package import HTTPTransport

/// The connections of one loop that have been sent a GOAWAY during a shutdown, and those that stay silent.
package struct Goodbyes {
    /// True during a shutdown.
    package private(set) var isDraining = false
    /// The connections without a wake that were seen during the shutdown; true once a GOAWAY was sent.
    private var wasSent: [ConnectionID: Bool] = [:]

    package init() {}

    package mutating func begin() {
        self.isDraining = true
    }

    package mutating func said(to connection: ConnectionID) {
        self.wasSent[connection] = true
    }

    /// Called every second for a connection without a worker's stream. A worker's result may arrive on a new
    /// connection, but a silent connection must not delay the shutdown.
    ///
    /// - Returns: true if a GOAWAY should be sent now, since the connection has sent no request for a second.
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
