import Engine
import Policy
import WakeGateTestKit
import Wire

/// What pairing comes to, found by looking at every stream and everything that waits: nothing here is the dispatcher's.
struct PairingModel {
    struct Stream {
        var slots: Int
        let takesPushes: Bool
        let tasks: [String]
        let sessions: [String]
        let resources: Set<String>
        let devices: Set<Int>
        var isPaused = false
        var wakes: Set<WakeID> = []

        var isFree: Bool { !self.isPaused && self.wakes.count < self.slots }

        func takes(_ item: Item) -> Bool {
            guard self.devices.isEmpty || self.devices.contains(item.device) else { return false }
            guard let name = item.name else { return self.takesPushes }
            if item.isSession { return StreamTakes.matches(self.sessions, name) }
            return self.resources.isSuperset(of: item.resources) && StreamTakes.matches(self.tasks, name)
        }
    }

    /// Something that waits for a slot, or has got one.
    struct Item: Hashable {
        let device: Int
        /// nil for a push.
        let name: String?
        let isSession: Bool
        let resources: [String]
        /// Which of the device's it is.
        let arrival: UInt64

        var isPush: Bool { self.name == nil }
    }

    var streams: [Int: Stream] = [:]
    /// When something was first seen to wait.
    struct Since {
        let verb: Int
        let moment: Instant
    }

    /// What waits for a slot.
    private(set) var waiting: [Item: Since] = [:]
    private var verb = 0
    private(set) var faults: [String] = []

    /// A stream got a wake.
    mutating func delivered(_ item: Item, _ wake: WakeID, to number: Int) {
        guard let stream = self.streams[number] else { return self.faults.append("\(number) has ended") }
        if !stream.takes(item) { self.faults.append("\(number) did not ask for \(item)") }
        if !stream.isFree { self.faults.append("\(number) was not free for \(item)") }
        let naming = self.streams.values.filter { $0.isFree && !$0.devices.isEmpty && $0.takes(item) }
        if let fewest = naming.map(\.wakes.count).min(), stream.devices.isEmpty || stream.wakes.count != fewest {
            self.faults.append("\(number) went before a stream that names \(item)")
        }
        self.streams[number]?.wakes.insert(wake)
    }

    mutating func released(_ wake: WakeID, _ number: Int) { self.streams[number]?.wakes.remove(wake) }

    /// A verb is done, at this moment.
    ///
    /// - `waiting`: all that waits for a slot now.
    /// - `given`: what streams that name no device got in it.
    mutating func ended(_ moment: Instant, waiting now: [Item], given: [(item: Item, stream: Int)]) {
        self.verb += 1
        for item in now {
            for (number, stream) in self.streams where stream.isFree && stream.takes(item) {
                self.faults.append("verb \(self.verb): \(item) waits, and \(number) is free for it")
            }
        }
        self.checkOrder(Set(now), given)
        let since = Since(verb: self.verb, moment: moment)
        self.waiting = Dictionary(uniqueKeysWithValues: now.map { ($0, self.waiting[$0] ?? since) })
    }

    /// Of all that waits for a stream what came first goes first.
    private mutating func checkOrder(_ now: Set<Item>, _ given: [(item: Item, stream: Int)]) {
        for (item, number) in given {
            guard let since = self.waiting[item], let stream = self.streams[number] else { continue }
            for (other, before) in self.waiting where before.verb < since.verb && now.contains(other) {
                guard stream.takes(other) else { continue }
                // A push and a task that came to wait in the same millisecond are not told apart.
                func mayPrecede(_ one: Item, _ since: Since) -> Bool {
                    since.verb <= before.verb || (one.isPush != other.isPush && since.moment == before.moment)
                }
                // By its device's policy it may have gone in the place of another one of that device.
                let isInPlace = self.waiting.contains {
                    $0.key.device == item.device && mayPrecede($0.key, $0.value) && stream.takes($0.key)
                }
                if !isInPlace { self.faults.append("verb \(self.verb): \(item) went before \(other) to \(number)") }
            }
        }
    }
}
