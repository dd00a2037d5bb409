/// The connections of one loop that have not spoken HTTP yet, oldest first.
struct HandshakeQueue {
    /// Some have ended or gone on since; they are passed over.
    private var connections: [ConnectionID] = []
    private var first = 0
    /// How many have not.
    private(set) var count = 0

    mutating func append(_ connection: ConnectionID, isThere: (ConnectionID) -> Bool) {
        if self.connections.count > 2 * self.count + 64 {
            self.connections = self.connections[self.first...].filter(isThere)
            self.first = 0
        }
        self.connections.append(connection)
        self.count += 1
    }

    /// A handshake has ended or gone on.
    mutating func left() {
        self.count -= 1
    }

    /// The oldest one.
    mutating func oldest(isThere: (ConnectionID) -> Bool) -> ConnectionID? {
        while self.first < self.connections.count {
            let oldest = self.connections[self.first]
            if isThere(oldest) { return oldest }
            self.first += 1
        }
        return nil
    }
}
