package import Engine
import Platform
import Wire

/// The status of the gateways on a shared store, updated every second.
package struct ClusterStatus: Sendable {
    /// A live gateway.
    package struct Member: Hashable, Sendable {
        package let number: Int32
        package let name: String
        package let version: String
        /// The time at which the gateway attached to the store, in milliseconds since 1970 by the clock of the
        /// database's primary server.
        package let since: Int64
        package let workers: Int
        package let slots: Int
        package let busy: Int
        /// The number of wakes in flight on the gateway's streams.
        package let wakes: Int
        /// The time since the gateway's last report, in milliseconds.
        package let lag: Int64
        package let isDraining: Bool

        init(_ member: ClusterView.Member, wall: Int64) {
            self.number = member.number.rawValue
            self.name = member.report.name
            self.version = member.report.version
            self.since = member.since
            self.workers = member.report.workers.reduce(0) { $0 + $1.counts.connected }
            self.slots = member.report.workers.reduce(0) { $0 + $1.counts.slots }
            self.busy = member.report.workers.reduce(0) { $0 + $1.counts.busy }
            self.wakes = member.report.wakes
            self.lag = max(0, wall - member.reportedAt)
            self.isDraining = member.report.isDraining
        }
    }

    /// The number of this gateway; nil while it is not attached to the store.
    package private(set) var own: Int32?
    /// The live gateways by number.
    package let gateways: [Member]
    /// The configuration keys whose values differ between gateways.
    package let differences: [String]

    /// - Parameters:
    ///   - view: the last view of the cluster; nil before the first.
    ///   - own: the number of this gateway; nil while it is not attached.
    package init(_ view: ClusterView?, own: GatewayNumber?) {
        self.own = own?.rawValue
        self.gateways = view.map { view in view.members.map { Member($0, wall: view.wall) } } ?? []
        self.differences = ConfigurationDigests.differences(view?.members.map(\.report.digests) ?? [])
    }

    /// The same status for a gateway that is no longer attached.
    package var detached: ClusterStatus {
        var status = self
        status.own = nil
        return status
    }

    /// The longest time since a gateway's last report, in milliseconds.
    package var lag: Int64 { self.gateways.map(\.lag).max() ?? 0 }

    /// Appends `gateways` and `configurationDifferences` to the open object.
    func writeMembers(to writer: inout JSONWriter) {
        writer.array("gateways", self.gateways) { self.write($1, to: &$0) }
        writer.array("configurationDifferences", self.differences) { $0.string($1) }
    }

    private func write(_ gateway: Member, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("number", gateway.number)
        writer.member("name", gateway.name)
        writer.member("version", gateway.version)
        writer.member("since", WallTime.text(gateway.since))
        writer.member("workers", gateway.workers)
        writer.member("slots", gateway.slots)
        writer.member("busy", gateway.busy)
        writer.member("wakes", gateway.wakes)
        writer.member("lag", gateway.lag)
        writer.member("draining", gateway.isDraining)
        writer.member("own", gateway.number == self.own)
        writer.endObject()
    }
}
