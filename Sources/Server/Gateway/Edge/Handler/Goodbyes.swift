package import HTTPTransport

/// Which connections of one loop a shutdown has told to end, and which of the others stay silent.
package struct Goodbyes {
    /// Whether there is a shutdown.
    package private(set) var isDraining = false
    /// Connections without a wake that were seen during the shutdown: true once they were told to end.
    private var isTold: [ConnectionID: Bool] = [:]

    package init() {}

    package mutating func begin() {
        self.isDraining = true
    }

    package mutating func said(to connection: ConnectionID) {
        self.isTold[connection] = true
    }

    /// A second has passed for a connection without a worker's stream: a worker's result may come on a new one, but one
    /// that stays silent must not hold the shutdown up.
    ///
    /// - Returns: whether it is to be told now, since it has asked nothing for a second.
    package mutating func isSilent(_ connection: ConnectionID) -> Bool {
        guard let isTold = self.isTold[connection] else {
            self.isTold[connection] = false
            return false
        }
        return !isTold
    }

    package mutating func connectionClosed(_ connection: ConnectionID) {
        self.isTold[connection] = nil
    }
}
