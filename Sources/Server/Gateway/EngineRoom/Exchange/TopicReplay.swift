import Engine
import Platform
import Policy
import Storage
import Synchronization
import Wire

/// A replay of the last day of a topic's devices. Each step replays some devices on the history's thread. Then the
/// engine requests the next step, so both threads can do other work between two steps.
struct TopicReplay: Sendable {
    /// The maximum number of devices examined. If the engine has all devices in memory, the devices with the newest
    /// activity are examined.
    static let devicesMax = 10_000
    /// The maximum number of devices in a step, and the number of events after which a step ends.
    private static let devicesPerStep = 256
    private static let eventsPerStep = 8192
    /// The number of recorded events and replayed launches after which the replay ends: about two seconds of work.
    private static let eventsMax = 400_000
    /// The length of the replayed period, in milliseconds.
    private static let period: Int64 = 86_400_000
    /// The time after which no further step begins, in milliseconds.
    private static let timeMax: Int64 = 10_000

    private let ticket: ReplayTicket
    private let topic: String
    private let changes: [PolicyChange]
    private let replay: PolicyReplay
    private let devices: [DeviceToken]
    /// The number of registered devices of the topic.
    private let registered: Int64
    private let caller: Caller
    /// The time at which no further step begins, in milliseconds of the monotonic clock.
    private let endsAt = SystemClock.monotonic + TopicReplay.timeMax
    /// The number of examined devices.
    private var examined = 0
    /// The number of devices with recorded pushes or tasks.
    private var replayed = 0
    private var events = 0
    private var pushes = 0
    private var tasks = 0
    private var assumed = 0
    private var conditionReports = 0
    private var isCut = false
    /// The beginning of the replayed period.
    private var from: Instant
    /// The events of devices that were read and have not been replayed.
    private var read: ArraySlice<[HistoryEntry]> = []
    private var recorded = ReplayOutcome()
    private var current = ReplayOutcome()
    private var proposed = ReplayOutcome()

    init(
        _ ticket: ReplayTicket,
        topic: String,
        _ changes: [PolicyChange],
        _ replay: PolicyReplay,
        devices: [DeviceToken],
        registered: Int64,
        for caller: Caller
    ) {
        self.ticket = ticket
        self.topic = topic
        self.changes = changes
        self.replay = replay
        self.devices = devices
        self.registered = registered
        self.caller = caller
        self.from = replay.now - Self.period
    }

    /// The question that performs the next step. It is answered with the result for the topic or with another question.
    var question: HistoryQuestion.Subject {
        HistoryQuestion.Subject(find: { reading throws(APIError) in
            var next = self
            try next.step(reading)
            guard next.isAtEnd else { return .more(EngineWork { [next] _ in .history(next.question) }) }
            self.ticket.isAnswered.store(true, ordering: .relaxed)
            return .outcome(.json { next.write(to: &$0, reading.offset) })
        })
    }

    private var isAtEnd: Bool {
        self.examined == self.devices.count || self.events >= Self.eventsMax || SystemClock.monotonic >= self.endsAt
    }

    /// Replays the next devices.
    private mutating func step(_ reading: HistoryReading) throws(APIError) {
        if self.read.isEmpty {
            let found = reading.source.entries(
                devices: self.devices[self.examined...].lazy.map { reading.number(of: $0) },
                since: self.from,
                countEach: PolicyReplay.eventsMax
            )
            // Without entries, the source has failed. End the replay.
            guard !found.entries.isEmpty else {
                self.examined = self.devices.count
                return
            }
            self.read = found.entries[...]
            if let from = found.from {
                self.from = from
                self.isCut = true
            }
        }
        let end = self.events + Self.eventsPerStep
        for _ in 0..<Self.devicesPerStep where self.events < end && SystemClock.monotonic < self.endsAt {
            guard let entries = self.read.popFirst() else { return }
            let token = self.devices[self.examined].hex
            self.examined += 1
            self.events += entries.count
            self.isCut = self.isCut || entries.count >= PolicyReplay.eventsMax
            let recorded = self.replay.recorded(token, entries.visible(to: self.caller, \.event), reading.offset)
            guard recorded.pushes + recorded.tasks > 0 else { continue }
            self.replayed += 1
            self.pushes += recorded.pushes
            self.tasks += recorded.tasks
            self.assumed += recorded.assumed
            self.conditionReports += recorded.conditionReports
            let current = try self.replay.outcome(of: recorded, [], reading.offset)
            let proposed =
                self.changes.isEmpty ? current : try self.replay.outcome(of: recorded, self.changes, reading.offset)
            self.events += current.launchCount + proposed.launchCount
            self.recorded.add(recorded.outcome)
            self.current.add(current)
            self.proposed.add(proposed)
        }
    }

    private func write(to writer: inout JSONWriter, _ offset: WallOffset) {
        writer.beginObject()
        writer.member("topic", self.topic)
        writer.member("from", self.from, offset)
        writer.member("until", self.replay.now, offset)
        writer.member("devices", self.replayed)
        writer.member("examined", self.examined)
        writer.member("registered", self.registered)
        writer.member("pushes", self.pushes)
        writer.member("tasks", self.tasks)
        writer.member("assumed", self.assumed)
        writer.member("conditionReports", self.conditionReports)
        writer.member("isWhole", !self.isCut && Int64(self.examined) >= self.registered)
        self.replay.writePolicies(self.changes, to: &writer)
        self.recorded.write("recorded", isOfTopic: true, to: &writer)
        self.current.write("current", isOfTopic: true, to: &writer)
        self.proposed.write("proposed", isOfTopic: true, to: &writer)
        writer.endObject()
    }
}
