import Policy
import Wire

/// What the engine keeps of one device for its requests, sessions and habits, beside its `DeviceRecord`.
final class TaskRow {
    /// A wake of a task that is in flight.
    struct Flight {
        /// The task's, which names it among those in flight.
        let arrival: UInt64
        let wake: WakeID
        /// What a continued task goes on from in this launch; nil in its first.
        let resumedFrom: TaskResumption?
        /// The last progress that was told in this launch.
        var progress: TaskProgress?
    }

    /// What a request carries that the policy does not ask for.
    struct Note {
        /// The request's.
        let arrival: UInt64
        var details: TaskDetails
        /// What a continued task is to go on from that waits again; nil before its first launch.
        var resumption: TaskResumption?

        var isBlank: Bool { self.details == TaskDetails() && self.resumption == nil }
    }

    /// A task that waits for nothing but a slot, and since when.
    typealias Ready = (arrival: UInt64, since: Instant)

    /// How many ids of session events are remembered.
    static let eventIDsMax = 16

    var policy = BackgroundTasks()
    /// By arrival, as the notes are: of the thousand that one device may have each is found by halves.
    private(set) var flights: [Flight] = []
    /// A note of each request that carries something, by arrival.
    private(set) var notes: [Note] = []
    /// The ids of the session events that came last with one, the oldest first.
    private(set) var eventIDs: [String] = []
    /// What waits for nothing but a slot, by arrival.
    var ready: [Ready] = []
    /// What the books count of the device.
    var counted = TaskGauges()
    /// Whether the row is among the changes of the step.
    var isChanged = false
    /// Whether it holds progress that is not among the changes yet.
    var isAhead = false
    /// Whether a store has, or is to have, a record of the row.
    var isKept = false
    /// The texts of the names in `policy`, by name.
    private var texts: [(name: TaskName, text: String)] = []
    private var lastName: UInt64 = 0

    /// Takes the policy's part to have it changed where it lies: whoever takes it gives it back.
    func takePolicy() -> BackgroundTasks {
        defer { self.policy = BackgroundTasks() }
        return self.policy
    }

    /// Whether there is nothing to keep.
    var isBlank: Bool { self.policy.isBlank && self.eventIDs.isEmpty }
}

// MARK: - Names

extension TaskRow {
    /// The name that stands for this identifier or session, which something carries from here on.
    @discardableResult
    func keepName(_ text: String) -> TaskName {
        if let known = self.texts.first(where: { $0.text == text }) { return known.name }
        self.lastName += 1
        let name = TaskName(rawValue: self.lastName)
        self.texts.append((name, text))
        return name
    }

    /// The name that stands for this identifier or session, or will once it is kept: what is refused leaves nothing.
    func nameToBe(_ text: String) -> TaskName { self.find(text) ?? TaskName(rawValue: self.lastName + 1) }

    /// The name that stands for this identifier or session, if anything carries it.
    func find(_ text: String) -> TaskName? { self.texts.first { $0.text == text }?.name }

    /// How many names are kept.
    var nameCount: Int { self.texts.count }

    /// The identifier or session that a name of `policy` stands for.
    func text(_ name: TaskName) -> String {
        guard let place = self.texts.find(name.rawValue, { $0.name.rawValue }) else {
            preconditionFailure("a task has a name that stands for nothing")
        }
        return self.texts[place].text
    }

    /// Forgets what belongs to nothing that waits or is in flight.
    func tidy() {
        var isNamed = [Bool](repeating: false, count: self.texts.count)
        var isNoted = [Bool](repeating: false, count: self.notes.count)
        func mark(_ task: BackgroundTask) {
            if let place = self.texts.find(task.name.rawValue, { $0.name.rawValue }) { isNamed[place] = true }
            guard task.kind != .urlSession else { return }
            if let place = self.notes.find(task.arrival, { $0.arrival }) { isNoted[place] = true }
        }
        for task in self.policy.waiting { mark(task) }
        for wake in self.policy.inFlight { mark(wake.task) }
        if isNamed.contains(false) { self.texts = zip(self.texts, isNamed).compactMap { $1 ? $0 : nil } }
        if isNoted.contains(false) { self.notes = zip(self.notes, isNoted).compactMap { $1 ? $0 : nil } }
    }
}

// MARK: - What requests carry

extension TaskRow {
    func details(_ task: BackgroundTask) -> TaskDetails { self.note(task)?.details ?? TaskDetails() }

    func keep(_ details: TaskDetails, of arrival: UInt64) {
        self.restore(Note(arrival: arrival, details: details))
    }

    func restore(_ note: Note) {
        if !note.isBlank { self.notes.insert(note, { $0.arrival }) }
    }

    /// What a request carries; nil when that is nothing.
    func note(_ task: BackgroundTask) -> Note? {
        task.kind == .urlSession ? nil : self.notes.find(task.arrival, { $0.arrival }).map { self.notes[$0] }
    }

    /// The continued task that a flight was of waits again, and knows that it launched and how far it came.
    func keepResumption(of flight: Flight) {
        let resumption = flight.progress.map { .progress($0) } ?? flight.resumedFrom ?? .nothingTold
        if let index = self.notes.find(flight.arrival, { $0.arrival }) {
            self.notes[index].resumption = resumption
        } else {
            self.restore(Note(arrival: flight.arrival, details: TaskDetails(), resumption: resumption))
        }
    }
}

// MARK: - Wakes

extension TaskRow {
    /// The task's wake that is in flight.
    func wake(_ arrival: UInt64) -> TaskWake? { self.policy.inFlight.first { $0.task.arrival == arrival } }

    func flight(_ id: WakeID) -> Flight? { self.flights.first { $0.wake == id } }

    /// The task whose wake this is; nil when it is not in flight.
    func arrival(of id: WakeID) -> UInt64? {
        self.flights.firstIndex { $0.wake == id }.map { self.flights[$0].arrival }
    }

    func flight(of arrival: UInt64) -> Flight? {
        self.flights.find(arrival, { $0.arrival }).map { self.flights[$0] }
    }

    func takeOff(_ flight: Flight) { self.flights.insert(flight, { $0.arrival }) }

    /// Forgets the flight of a wake that has ended.
    func land(_ arrival: UInt64) -> Flight {
        guard let index = self.flights.find(arrival, { $0.arrival }) else {
            preconditionFailure("a wake in flight has an id")
        }
        return self.flights.remove(at: index)
    }

    /// - Returns: whether that is news.
    func told(_ progress: TaskProgress, of arrival: UInt64) -> Bool {
        guard let index = self.flights.find(arrival, { $0.arrival }) else { return false }
        guard self.flights[index].progress != progress else { return false }
        self.flights[index].progress = progress
        return true
    }
}

// MARK: - What waits for a slot

extension TaskRow {
    /// Since when the task waits for nothing but a slot; nil when it does not.
    func readySince(_ arrival: UInt64) -> Instant? {
        self.ready.find(arrival, { $0.arrival }).map { self.ready[$0].since }
    }
}

extension Array {
    /// The place of the first element whose number is not below this one, of elements by number.
    private func place(_ number: UInt64, _ numberOf: (Element) -> UInt64) -> Int {
        var (low, high) = (0, self.count)
        while low < high {
            let middle = (low + high) / 2
            if numberOf(self[middle]) < number { low = middle + 1 } else { high = middle }
        }
        return low
    }

    /// The place of the element of this number, of elements by number; nil when there is none.
    fileprivate func find(_ number: UInt64, _ numberOf: (Element) -> UInt64) -> Int? {
        let place = self.place(number, numberOf)
        return place < self.count && numberOf(self[place]) == number ? place : nil
    }

    /// Inserts an element among elements by number.
    fileprivate mutating func insert(_ element: Element, _ numberOf: (Element) -> UInt64) {
        self.insert(element, at: self.place(numberOf(element), numberOf))
    }
}

// MARK: - Session events

extension TaskRow {
    func hasEvent(_ id: String) -> Bool { self.eventIDs.contains(id) }

    func keepEvent(_ id: String) {
        self.eventIDs.append(id)
        if self.eventIDs.count > Self.eventIDsMax { self.eventIDs.removeFirst() }
    }

    /// The device starts afresh: an id that it had before says nothing of the events that come.
    func forgetEvents() { self.eventIDs = [] }
}

/// What the books count of one device's requests and sessions, at one moment.
struct TaskGauges: Hashable {
    /// Requests that wait, and those in flight, by kind; of sessions the wakes.
    var waiting = PerCase<TaskKind>()
    var inFlight = PerCase<TaskKind>()
    /// What waits and is held, by the first hold that applies.
    var held = PerCase<TaskHoldCode>()
    /// Finished transfers.
    var transfersWaiting: Int64 = 0
    var transfersInFlight: Int64 = 0
    /// The memory of what waits and is in flight, and of the ids of session events.
    var bytes = 0

    var sessionWakes: Int64 { self.waiting[.urlSession] + self.inFlight[.urlSession] }
}

extension TaskRow {
    /// The memory that one task takes, besides its texts.
    private static let bytesOfTask = 128

    /// The memory that a request takes.
    static func bytes(_ identifier: String, _ details: TaskDetails) -> Int {
        let texts = [details.title ?? "", details.subtitle ?? ""] + details.resources
        return self.bytesOfTask + identifier.utf8.count + details.trace.count + texts.reduce(0) { $0 + $1.utf8.count }
    }

    /// The memory that the id of a session event takes, besides its text.
    private static let bytesOfEvent = 16

    private static func bytes(event id: String) -> Int { Self.bytesOfEvent + id.utf8.count }

    /// How much more memory the ids of session events take once this one is kept, in the place of the oldest if need
    /// be.
    func bytesAdded(byEvent id: String) -> Int {
        let oldest = self.eventIDs.count < Self.eventIDsMax ? nil : self.eventIDs.first
        return Self.bytes(event: id) - (oldest.map { Self.bytes(event: $0) } ?? 0)
    }

    /// What is to be counted of the device at `now`.
    func gauges(_ lanes: DeviceLanes, at now: Instant, _ parameters: Parameters) -> TaskGauges {
        var gauges = TaskGauges()
        gauges.bytes = self.eventIDs.reduce(0) { $0 + Self.bytes(event: $1) }
        for task in lanes.tasks.waiting {
            gauges.waiting[task.kind] += 1
            gauges.transfersWaiting += Int64(clamping: task.transfers)
            gauges.bytes += Self.bytes(self.text(task.name), self.details(task))
            if let hold = lanes.hold(task, at: now, parameters) {
                gauges.held[TaskHoldCode(hold)] += 1
            } else if self.readySince(task.arrival) != nil {
                gauges.held[.worker] += 1
            }
        }
        for wake in lanes.tasks.inFlight {
            gauges.inFlight[wake.task.kind] += 1
            gauges.transfersInFlight += Int64(clamping: wake.task.transfers)
            gauges.bytes += Self.bytes(self.text(wake.task.name), self.details(wake.task))
        }
        return gauges
    }
}
