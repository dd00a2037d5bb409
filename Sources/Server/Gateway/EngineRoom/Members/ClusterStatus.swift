package import Engine
import Platform
import Wire

/// How the gateways on a shared store are, as of the last second, for those who ask this one.
package struct ClusterStatus: Sendable {
    /// One gateway that lives.
    package struct Member: Hashable, Sendable {
        package let number: Int32
        package let name: String
        package let version: String
        /// When it was attached, in milliseconds since 1970 by the primary's clock.
        package let since: Int64
        package let workers: Int
        package let slots: Int
        package let busy: Int
        /// Wakes in flight on its streams.
        package let wakes: Int
        /// For how long it had not said how it is, in milliseconds.
        package let lag: Int64
        package let isDraining: Bool

        init(_ member: ClusterView.Member, wall: Int64) {
            self.number = member.number.rawValue
            self.name = member.report.name
            self.version = member.report.version
            self.since = member.since
            self.workers = member.report.workers.reduce(0) { $0 + $1.connected }
            self.slots = member.report.workers.reduce(0) { $0 + $1.slots }
            self.busy = member.report.workers.reduce(0) { $0 + $1.busy }
            self.wakes = member.report.wakes
            self.lag = max(0, wall - member.reportedAt)
            self.isDraining = member.report.isDraining
        }
    }

    /// The number of the gateway that is asked; nil while it is not attached to the store.
    package let own: Int32?
    /// The gateways that live, by number.
    package let gateways: [Member]
    /// The keys of the configuration that are not the same in all of them.
    package let differences: [String]

    /// - Parameters:
    ///   - view: what this gateway saw last; nil before the first time.
    ///   - own: its number; nil while it is not attached.
    package init(_ view: ClusterView?, own: GatewayNumber?) {
        self.own = own?.rawValue
        self.gateways = view.map { view in view.members.map { Member($0, wall: view.wall) } } ?? []
        self.differences = ConfigurationDigests.differences(view?.members.map(\.report.digests) ?? [])
    }

    private init(own: Int32?, gateways: [Member], differences: [String]) {
        self.own = own
        self.gateways = gateways
        self.differences = differences
    }

    /// The same when this gateway is not attached any more.
    package var detached: ClusterStatus {
        ClusterStatus(own: nil, gateways: self.gateways, differences: self.differences)
    }

    /// For how long the gateway has been silent that was so for longest, in milliseconds.
    package var lag: Int64 { self.gateways.map(\.lag).max() ?? 0 }

    /// Appends `gateways` and `configurationDifferences` to an object.
    func writeMembers(to writer: inout JSONWriter) {
        writer.key("gateways")
        writer.beginArray()
        for gateway in self.gateways { self.write(gateway, to: &writer) }
        writer.endArray()
        writer.key("configurationDifferences")
        writer.beginArray()
        for key in self.differences { writer.string(key) }
        writer.endArray()
    }

    private func write(_ gateway: Member, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("number")
        writer.integer(gateway.number)
        writer.key("name")
        writer.string(gateway.name)
        writer.key("version")
        writer.string(gateway.version)
        writer.key("since")
        writer.string(WallTime.text(gateway.since))
        let counts: [(StaticString, Int)] = [
            ("workers", gateway.workers), ("slots", gateway.slots), ("busy", gateway.busy), ("wakes", gateway.wakes),
        ]
        for (name, count) in counts {
            writer.key(name)
            writer.integer(count)
        }
        writer.key("lag")
        writer.integer(gateway.lag)
        writer.key("draining")
        writer.bool(gateway.isDraining)
        writer.key("own")
        writer.bool(gateway.number == self.own)
        writer.endObject()
    }
}
