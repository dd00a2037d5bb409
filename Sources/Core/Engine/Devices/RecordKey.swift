/// Names what a record is about; of several records with one key the newest counts, and of events each.
package struct RecordKey: Hashable, Sendable {
    package enum Kind: UInt8, CaseIterable, Sendable {
        /// Policy time and wall clock of the commit; one record, index 0.
        case clock = 1
        /// When the counters began; one record, index 0, and `RecordKey.workersAsked`.
        case origin = 2
        /// A topic with its counters, by topic number.
        case topic = 3
        /// A device, by its place in the engine's table.
        case device = 4
        /// Refused pushes by reason, of one topic; `RecordKey.everyTopic` for those of all.
        case rejections = 5
        /// Which launch policies were in force when; one record, index 0.
        case policies = 6
        /// Events for the history, by the lower half of their sequence number: none takes the place of another.
        case events = 7
        /// What a device has besides its own record for its requests, sessions and habits; empty when there is nothing
        /// any more.
        case tasks = 8
    }

    /// Workers were asked who they are, and had something to show. It says again when the counters began: that is what
    /// programs take it for that know no other record of this kind.
    package static let workersAsked = RecordKey(.origin, 1)

    /// The index of what concerns all topics.
    package static let everyTopic = UInt32.max

    package let kind: Kind
    package let index: UInt32

    package init(_ kind: Kind, _ index: UInt32 = 0) {
        self.kind = kind
        self.index = index
    }
}
