import Policy
import Wire

/// The rows that a step of a shared store took, as they were, and what is counted of all devices besides.
final class SharedStep {
    /// A row as it was taken. The place is the device's.
    struct Row {
        let topic: TopicIndex
        let derived: DerivedState
        /// Where its wakes begin in `wakes`: those in flight, and behind them those that ended and are remembered.
        let firstWake: Int
        let inFlightCount: Int
        let endedCount: Int
    }

    /// As it was set, without the bounds that a step puts in the place of some.
    var configuration: EngineConfiguration
    private(set) var rows: [Row] = []
    private var wakes: [WakeID] = []
    /// What is to be offered when the step begins.
    var ready: [DeviceIndex] = []
    var readyTasks: [ReadyTask] = []
    /// What all gateways have counted of each topic, as of lately, and in all.
    private var books: [TopicIndex: Books] = [:]
    var totals = Books()
    /// `Parameters.digest` by topic number; nil while nobody asked.
    private var digests: [UInt64?] = []
    /// Where records are written.
    var buffer = ByteBuffer()

    init(configuration: EngineConfiguration) {
        self.configuration = configuration
    }

    /// The row of a device was taken, whose place is the next.
    func append(_ topic: TopicIndex, _ derived: DerivedState, inFlight: [WakeID], ended: Ring<EndedWake>?) {
        let first = self.wakes.count
        self.wakes += inFlight
        if let ended { self.wakes += ended.elements.lazy.map(\.id) }
        self.rows.append(
            Row(
                topic: topic,
                derived: derived,
                firstWake: first,
                inFlightCount: inFlight.count,
                endedCount: self.wakes.count - first - inFlight.count
            )
        )
    }

    /// The row of a device as it was taken; nil when there was none.
    func row(_ device: DeviceIndex) -> Row? {
        Int(device.rawValue) < self.rows.count ? self.rows[Int(device.rawValue)] : nil
    }

    /// The wakes that were in flight when the row was taken.
    func inFlight(_ row: Row) -> ArraySlice<WakeID> { self.wakes[row.firstWake..<row.firstWake + row.inFlightCount] }

    /// The wakes that had ended when the row was taken, and were remembered.
    func ended(_ row: Row) -> ArraySlice<WakeID> {
        let start = row.firstWake + row.inFlightCount
        return self.wakes[start..<start + row.endedCount]
    }

    /// No row is taken any more.
    func removeRows() {
        self.rows.removeAll(keepingCapacity: true)
        self.wakes.removeAll(keepingCapacity: true)
        self.ready.removeAll(keepingCapacity: true)
        self.readyTasks.removeAll(keepingCapacity: true)
    }

    /// What all gateways have counted of a topic.
    subscript(topic: TopicIndex) -> Books {
        get { self.books.isEmpty ? Books() : self.books[topic] ?? Books() }
        set { self.books[topic] = newValue }
    }

    /// The digest of a topic's policy.
    func digest(_ topic: TopicIndex, _ parameters: @autoclosure () -> Parameters) -> UInt64 {
        let place = Int(topic.rawValue)
        if place < self.digests.count, let digest = self.digests[place] { return digest }
        while self.digests.count <= place { self.digests.append(nil) }
        let digest = parameters().digest
        self.digests[place] = digest
        return digest
    }

    func forgetDigests() { self.digests.removeAll() }
}
