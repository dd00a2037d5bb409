import ClusterStore
import DeviceEngine
import WakeDispatch

/// Which topics may have something that waits for a slot, and what free slots here have asked for since.
///
/// Streams that take the same ask together, one claim at a time.
struct Claims {
    /// What streams take that ask together.
    struct Shape: Hashable {
        let topic: TopicIndex
        let takesPushes: Bool
        let tasks: [String]
        let sessions: [String]
        let resources: [String]
        let namesDevices: Bool

        init(_ slots: FreeSlots) {
            self.topic = slots.topic
            self.takesPushes = slots.takesPushes
            self.tasks = slots.tasks
            self.sessions = slots.sessions
            self.resources = slots.resources
            self.namesDevices = !slots.devices.isEmpty
        }
    }

    /// The most rows of one claim.
    static let countMax = 256

    /// How often it was heard that something of a topic may wait.
    private var heard: [TopicIndex: UInt64] = [:]
    /// Topics of which something was heard that was not asked for by all shapes yet.
    private var topics: Set<TopicIndex> = []
    /// Topics of which something waits, as far as is known, that no slot was free for.
    private var owed: Set<TopicIndex> = []
    /// As of when each shape has asked.
    private var asked: [Shape: UInt64] = [:]
    private var open: Set<Shape> = []

    /// Nothing waits.
    init() {}

    /// How many claims are open.
    var openCount: Int { self.open.count }

    /// Whether something may wait for free slots.
    var isEmpty: Bool { self.topics.isEmpty }

    /// Something of a topic may wait for a slot.
    mutating func heard(_ topic: TopicIndex) {
        self.heard[topic, default: 0] += 1
        self.topics.insert(topic)
    }

    /// The next claim, which is open from now on; nil when there is none.
    ///
    /// - `freeSlots`: those of a topic.
    mutating func next(_ freeSlots: (TopicIndex) -> [FreeSlots]) -> (shape: Shape, plan: ReadyPlan)? {
        for topic in self.topics.sorted(by: { $0.rawValue < $1.rawValue }) {
            var isWaitedFor = false
            var isAnyFree = false
            for slots in freeSlots(topic) where slots.count > 0 {
                isAnyFree = true
                let shape = Shape(slots)
                guard (self.asked[shape] ?? 0) < self.heard[topic] ?? 0 else { continue }
                // What is open may have been asked before the last was heard.
                isWaitedFor = true
                guard self.open.insert(shape).inserted else { continue }
                self.asked[shape] = self.heard[topic]
                var plan = ReadyPlan(
                    topic: topic,
                    takesPushes: slots.takesPushes,
                    countMax: min(slots.count, Self.countMax)
                )
                plan.devices = slots.devices
                plan.tasks = slots.tasks
                plan.sessions = slots.sessions
                plan.resources = slots.resources
                return (shape, plan)
            }
            if !isWaitedFor { self.topics.remove(topic) }
            if !isAnyFree { self.owed.insert(topic) }
        }
        return nil
    }

    /// Slots of a topic have come free: what has waited for any may wait for them.
    mutating func slotsFreed(_ topic: TopicIndex) {
        if self.owed.remove(topic) != nil { self.topics.insert(topic) }
    }

    /// Streams of some topic have slots again.
    mutating func lookAgain() {
        self.topics.formUnion(self.heard.keys)
    }

    /// A claim has ended.
    ///
    /// - `again`: there may be more that it could have had.
    mutating func ended(_ shape: Shape, again: Bool) {
        self.open.remove(shape)
        self.topics.insert(shape.topic)
        if again { self.asked[shape] = nil }
        // Shapes come and go with their streams.
        if self.asked.count > 4096, self.open.isEmpty { self.asked = [:] }
    }

    /// A claim came to nothing, and is made again when something is heard.
    mutating func failed(_ shape: Shape) { self.open.remove(shape) }
}
