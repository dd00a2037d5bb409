/// How long things take between gateways and a simulated database, in milliseconds of virtual time.
package struct DatabasePace: Sendable {
    /// A request's way to the database, and a reply's back.
    package var way: ClosedRange<Int>
    /// From a commit until a standby has it, too.
    package var replication: ClosedRange<Int>
    /// From the loss of a connection until another one stands.
    package var reconnection: ClosedRange<Int>

    package init(way: ClosedRange<Int>, replication: ClosedRange<Int>, reconnection: ClosedRange<Int>) {
        self.way = way
        self.replication = replication
        self.reconnection = reconnection
    }

    /// Everything is done as soon as it is asked for.
    package static let immediate = DatabasePace(way: 0...0, replication: 0...0, reconnection: 0...0)
    package static let usual = DatabasePace(way: 0...3, replication: 1...8, reconnection: 20...400)
    package static let slow = DatabasePace(way: 0...30, replication: 400...1200, reconnection: 100...1000)
}
