import Policy
import Wire

/// The requests, sessions and habits of one device.
final class TaskRow {
    /// A task's wake in flight.
    struct Flight {
        /// The arrival number of the task, unique within the device.
        let arrival: UInt64
        let wake: WakeID
        /// The state from which a continued task resumes in this launch; nil for its first launch.
        let resumedFrom: TaskResumption?
        /// The last progress reported in this launch.
        var progress: TaskProgress?
    }

    /// Data of a request that the policy does not use.
    struct Note {
        /// The arrival number of the request.
        let arrival: UInt64
        var details: TaskDetails
        /// The state from which a pending continued task will resume; nil before its first launch.
        var resumption: TaskResumption?
        /// The log of the task's wait. It starts at the first hold or at the end of the last launch; nil before that,
        /// and while the task is in flight.
        var wait: WaitLog?

        var isBlank: Bool { self.details == TaskDetails() && self.resumption == nil && self.wait == nil }
    }

    /// A task that waits only for a slot, and the start of the wait.
    typealias Ready = (arrival: UInt64, since: Instant)

    /// The maximum number of remembered ids of session events.
    static let eventIDsMax = 16

    var policy = BackgroundTasks()
    /// The wakes in flight, sorted by arrival number for binary search. A device may have a thousand.
    private(set) var flights: [Flight] = []
    /// The notes of the requests that have such data, sorted by arrival number.
    private(set) var notes: [Note] = []
    /// The ids of the most recent session events with an id, the oldest first.
    private(set) var eventIDs: [String] = []
    /// The tasks that wait only for a slot, by arrival number.
    var ready: [Ready] = []
    /// The device's contribution to the counters.
    var counted = TaskGauges()
    /// True if the row is in the current step's list of changes.
    var isChanged = false
    /// True if the row has progress that is not in the list of changes yet.
    var isAhead = false
    /// True if a store has a record of the row, or will have one with the next commit.
    var isKept = false
    /// The text of each name in `policy`, sorted by name.
    private var texts: [(name: TaskName, text: String)] = []
    private var lastName: UInt64 = 0

    /// Moves the policy state out so that it can be changed without a copy. The caller must put it back.
    func takePolicy() -> BackgroundTasks {
        defer { self.policy = BackgroundTasks() }
        return self.policy
    }

    /// True if there is nothing to store.
    var isBlank: Bool { self.policy.isBlank && self.eventIDs.isEmpty }
}

// MARK: - Names

extension TaskRow {
    /// Returns the name for this identifier or session, and adds it if it is new.
    @discardableResult
    func keepName(_ text: String) -> TaskName {
        if let known = self.texts.first(where: { $0.text == text }) { return known.name }
        self.lastName += 1
        let name = TaskName(rawValue: self.lastName)
        self.texts.append((name, text))
        return name
    }

    /// Returns the name that `keepName` would return, without adding it, so that a refused request leaves no trace.
    func nameToBe(_ text: String) -> TaskName { self.find(text) ?? TaskName(rawValue: self.lastName + 1) }

    /// Returns the name for this identifier or session; nil if it is not in use.
    func find(_ text: String) -> TaskName? { self.texts.first { $0.text == text }?.name }

    var nameCount: Int { self.texts.count }

    /// Returns the identifier or session of a name in `policy`.
    func text(_ name: TaskName) -> String {
        guard let place = self.texts.find(name.rawValue, { $0.name.rawValue }) else {
            preconditionFailure("a task has a name that stands for nothing")
        }
        return self.texts[place].text
    }

    /// Removes names and notes that no pending or running task uses.
    func tidy() {
        var isNamed = [Bool](repeating: false, count: self.texts.count)
        var isNoted = [Bool](repeating: false, count: self.notes.count)
        func mark(_ task: BackgroundTask) {
            if let place = self.texts.find(task.name.rawValue, { $0.name.rawValue }) { isNamed[place] = true }
            if let place = self.notes.find(task.arrival, { $0.arrival }) { isNoted[place] = true }
        }
        for task in self.policy.waiting { mark(task) }
        for wake in self.policy.inFlight { mark(wake.task) }
        if isNamed.contains(false) { self.texts = zip(self.texts, isNamed).compactMap { $1 ? $0 : nil } }
        if isNoted.contains(false) { self.notes = zip(self.notes, isNoted).compactMap { $1 ? $0 : nil } }
    }
}

// MARK: - Data of requests

extension TaskRow {
    func details(_ task: BackgroundTask) -> TaskDetails { self.note(task)?.details ?? TaskDetails() }

    func keep(_ details: TaskDetails, of arrival: UInt64) {
        self.restore(Note(arrival: arrival, details: details))
    }

    func restore(_ note: Note) {
        if !note.isBlank { self.notes.insert(note, { $0.arrival }) }
    }

    /// Returns the data of a request; nil if it has none.
    func note(_ task: BackgroundTask) -> Note? {
        self.notes.find(task.arrival, { $0.arrival }).map { self.notes[$0] }
    }

    /// Stores the wait of a task, or nil at its launch.
    func keepWait(_ wait: WaitLog?, of arrival: UInt64) {
        if let index = self.notes.find(arrival, { $0.arrival }) {
            self.notes[index].wait = wait
        } else {
            self.restore(Note(arrival: arrival, details: TaskDetails(), wait: wait))
        }
    }

    /// Notes the hold of a pending task.
    private func noteHold(_ hold: Hold?, of task: BackgroundTask, at now: Instant) {
        let wait = self.note(task)?.wait
        guard hold != wait?.hold else { return }
        if wait == nil { self.keepWait(WaitLog(start: task.waitsSince), of: task.arrival) }
        self.note(task)?.wait?.change(to: hold, at: now)
    }

    /// Stores the state from which a continued task will resume, when the task is pending again.
    func keepResumption(of flight: Flight) {
        let resumption = flight.progress.map { .progress($0) } ?? flight.resumedFrom ?? .noProgress
        if let index = self.notes.find(flight.arrival, { $0.arrival }) {
            self.notes[index].resumption = resumption
        } else {
            self.restore(Note(arrival: flight.arrival, details: TaskDetails(), resumption: resumption))
        }
    }
}

// MARK: - Wakes

extension TaskRow {
    /// Returns the wake with this id; nil if it is not in flight.
    func wake(_ id: WakeID) -> TaskWake? {
        guard let flight = self.flights.first(where: { $0.wake == id }) else { return nil }
        return self.policy.inFlight.first { $0.task.arrival == flight.arrival }
    }

    func flight(of arrival: UInt64) -> Flight? {
        self.flights.find(arrival, { $0.arrival }).map { self.flights[$0] }
    }

    func takeOff(_ flight: Flight) { self.flights.insert(flight, { $0.arrival }) }

    /// Removes the flight of a wake that has ended.
    func land(_ arrival: UInt64) -> Flight {
        guard let index = self.flights.find(arrival, { $0.arrival }) else {
            preconditionFailure("a wake in flight has an id")
        }
        return self.flights.remove(at: index)
    }

    /// - Returns: true if the progress has changed.
    func progressReported(_ progress: TaskProgress, of arrival: UInt64) -> Bool {
        guard let index = self.flights.find(arrival, { $0.arrival }) else { return false }
        guard self.flights[index].progress != progress else { return false }
        self.flights[index].progress = progress
        return true
    }
}

// MARK: - Waits for a slot

extension TaskRow {
    /// Returns the time since which the task waits only for a slot; nil if it does not.
    func readySince(_ arrival: UInt64) -> Instant? {
        self.ready.find(arrival, { $0.arrival }).map { self.ready[$0].since }
    }
}

extension Array {
    /// Returns the index of the element with this number, in an array sorted by number; nil if there is none.
    fileprivate func find(_ number: UInt64, _ numberOf: (Element) -> UInt64) -> Int? {
        let place = self.countAtStart { numberOf($0) < number }
        return place < self.count && numberOf(self[place]) == number ? place : nil
    }

    /// Inserts an element into an array sorted by number.
    fileprivate mutating func insert(_ element: Element, _ numberOf: (Element) -> UInt64) {
        let number = numberOf(element)
        self.insert(element, at: self.countAtStart { numberOf($0) < number })
    }
}

// MARK: - Session events

extension TaskRow {
    func hasEvent(_ id: String) -> Bool { self.eventIDs.contains(id) }

    func keepEvent(_ id: String) {
        self.eventIDs.append(id)
        if self.eventIDs.count > Self.eventIDsMax { self.eventIDs.removeFirst() }
    }

    /// Forgets all ids, because the device starts afresh and earlier ids do not apply to new events.
    func forgetEvents() { self.eventIDs = [] }
}

/// The contribution of one device's requests and sessions to the gauges of the counters, at one instant.
struct TaskGauges: Hashable {
    /// Requests that are pending or in flight, by kind. For sessions, the number of wakes.
    var waiting = PerCase<TaskKind>()
    var inFlight = PerCase<TaskKind>()
    /// Pending requests that are held, by the first hold that applies.
    var held = PerCase<Hold>()
    /// Finished transfers that are pending or in flight.
    var transfersWaiting: Int64 = 0
    var transfersInFlight: Int64 = 0
    /// Bytes of memory of tasks that are pending or in flight, and of the ids of session events.
    var bytes = 0

    var sessionWakes: Int64 { self.waiting[.urlSession] + self.inFlight[.urlSession] }
}

extension TaskRow {
    /// The memory of one task without its texts, in bytes.
    private static let bytesOfTask = 128

    /// Returns the memory of a request, in bytes.
    static func bytes(_ identifier: String, _ details: TaskDetails) -> Int {
        let texts = [details.title ?? "", details.subtitle ?? ""] + details.resources
        return self.bytesOfTask + identifier.utf8.count + details.trace.count + texts.reduce(0) { $0 + $1.utf8.count }
    }

    /// The memory of the id of a session event without its text, in bytes.
    private static let bytesOfEvent = 16

    private static func bytes(event id: String) -> Int { Self.bytesOfEvent + id.utf8.count }

    /// Returns the change in memory, in bytes, that adding this event id causes. The oldest id is dropped if the list
    /// is full.
    func bytesAdded(byEvent id: String) -> Int {
        let oldest = self.eventIDs.count < Self.eventIDsMax ? nil : self.eventIDs.first
        return Self.bytes(event: id) - (oldest.map { Self.bytes(event: $0) } ?? 0)
    }

    /// Returns the device's gauges at `now`, and records the hold of each pending task in the log of its wait.
    func gauges(_ lanes: DeviceLanes, at now: Instant, _ parameters: Parameters) -> TaskGauges {
        var gauges = TaskGauges()
        gauges.bytes = self.eventIDs.reduce(0) { $0 + Self.bytes(event: $1) }
        for task in lanes.tasks.waiting {
            gauges.waiting[task.kind] += 1
            gauges.transfersWaiting += Int64(clamping: task.transfers)
            gauges.bytes += Self.bytes(self.text(task.name), self.details(task))
            let hold = lanes.hold(task, at: now, parameters)
            self.noteHold(hold, of: task, at: now)
            if let hold {
                gauges.held[hold] += 1
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

/// The stored form of a row. Integers are little-endian, sizes are in bytes, and a text follows its size (2). The
/// fields:
///
/// - flags (1);
/// - if flagged: the time of the last use (8), the hour in which a use last began (8), the hours of a week (3 times 8);
/// - if flagged: the last launch of a processing task (8);
/// - if flagged: the time at which memory pressure ends the next continued task (4);
/// - the numbers of arrivals (3 times 8);
/// - the pending tasks and the wakes in flight, each list after its count (2);
/// - the ids of session events after their count (1).
extension TaskRow {
    private struct Flags: OptionSet {
        let rawValue: UInt8

        static let usage = Flags(rawValue: 1 << 0)
        static let processing = Flags(rawValue: 1 << 1)
        static let pressure = Flags(rawValue: 1 << 2)
        static let known: Flags = [.usage, .processing, .pressure]
    }

    /// Appends the stored form of the row.
    func store(to buffer: inout ByteBuffer) {
        let policy = self.policy
        var flags: Flags = []
        if policy.usage != Usage() { flags.insert(.usage) }
        if policy.lastProcessing != .distantPast { flags.insert(.processing) }
        if policy.pressure != 0 { flags.insert(.pressure) }
        buffer.append(flags.rawValue)
        if flags.contains(.usage) {
            buffer.appendLittleEndian(policy.usage.last.milliseconds)
            buffer.appendLittleEndian(policy.usage.lastHour)
            buffer.appendLittleEndian(policy.usage.hours.low)
            buffer.appendLittleEndian(policy.usage.hours.middle)
            buffer.appendLittleEndian(policy.usage.hours.high)
        }
        if flags.contains(.processing) { buffer.appendLittleEndian(policy.lastProcessing.milliseconds) }
        if flags.contains(.pressure) { buffer.appendLittleEndian(policy.pressure) }
        buffer.appendLittleEndian(policy.arrivals.latest)
        buffer.appendLittleEndian(policy.arrivals.pendingPush)
        buffer.appendLittleEndian(policy.arrivals.pushInFlight)
        buffer.appendLittleEndian(UInt16(policy.waiting.count))
        for task in policy.waiting { self.store(task, to: &buffer) }
        buffer.appendLittleEndian(UInt16(policy.inFlight.count))
        for wake in policy.inFlight { self.store(wake, to: &buffer) }
        buffer.append(UInt8(self.eventIDs.count))
        for id in self.eventIDs { buffer.append(text: id) }
    }

    /// Decodes the output of `store`; nil if it is malformed or contains values that no device can reach and the policy
    /// cannot handle.
    convenience init?(stored bytes: ByteView) {
        self.init()
        var reader = RecordReader(bytes)
        let flags = Flags(rawValue: reader.integer())
        guard flags.isSubset(of: .known) else { return nil }
        var usage = Usage()
        if flags.contains(.usage) {
            usage = Usage(
                last: reader.moment(),
                lastHour: reader.integer(-Self.hourMax...Self.hourMax),
                hours: HourRing(low: reader.integer(), middle: reader.integer(), high: reader.integer())
            )
        }
        let lastProcessing = flags.contains(.processing) ? reader.moment() : .distantPast
        let pressure: UInt32 = flags.contains(.pressure) ? reader.integer() : 0
        var arrivals = Arrivals()
        arrivals.latest = reader.integer(0...Self.arrivalMax)
        arrivals.pendingPush = reader.integer(0...arrivals.latest)
        arrivals.pushInFlight = reader.integer(0...arrivals.latest)
        guard let waiting = self.waiting(&reader), let inFlight = self.inFlight(&reader) else { return nil }
        for _ in 0..<reader.integer(0...UInt8(Self.eventIDsMax)) { self.keepEvent(reader.text()) }
        let numbers = (waiting + inFlight.map(\.task)).map(\.arrival)
        guard reader.isWhole, Set(numbers).count == numbers.count, numbers.allSatisfy({ $0 <= arrivals.latest }) else {
            return nil
        }
        self.policy = BackgroundTasks(
            waiting: waiting,
            inFlight: inFlight,
            lastProcessing: lastProcessing,
            usage: usage,
            arrivals: arrivals,
            pressure: pressure
        )
    }

    /// A number of hours beyond any valid time.
    private static let hourMax: Int64 = 1 << 40
    /// A number of arrivals that is never reached.
    private static let arrivalMax: UInt64 = 1 << 48
}

// MARK: - Tasks

extension TaskRow {
    private struct TaskFlags: OptionSet {
        let rawValue: UInt8

        static let title = TaskFlags(rawValue: 1 << 0)
        static let subtitle = TaskFlags(rawValue: 1 << 1)
        static let resources = TaskFlags(rawValue: 1 << 2)
        static let progress = TaskFlags(rawValue: 1 << 3)
        static let trace = TaskFlags(rawValue: 1 << 4)
        /// The task has launched, and no launch reported progress.
        static let noProgress = TaskFlags(rawValue: 1 << 5)
        static let wait = TaskFlags(rawValue: 1 << 6)
        static let known = TaskFlags(rawValue: 1 << 7 - 1)
    }

    /// Stores kind and needs (1 byte each), name, arrivedAt, waitsSince, arrival, transfers (8 each), attempts (4),
    /// flags (1), and if flagged: title, subtitle, resources after their count (1), the last progress, the wait
    /// (`WaitLog`), and the trace after its size (2).
    private func store(_ task: BackgroundTask, to buffer: inout ByteBuffer) {
        buffer.append(task.kind.storedCode)
        buffer.append(task.needs.rawValue)
        buffer.append(text: self.text(task.name))
        buffer.appendLittleEndian(task.arrivedAt.milliseconds)
        buffer.appendLittleEndian(task.waitsSince.milliseconds)
        buffer.appendLittleEndian(task.arrival)
        buffer.appendLittleEndian(task.transfers)
        buffer.appendLittleEndian(task.attempts)
        let note = self.note(task)
        let details = note?.details ?? TaskDetails()
        var flags: TaskFlags = []
        if details.title != nil { flags.insert(.title) }
        if details.subtitle != nil { flags.insert(.subtitle) }
        if !details.resources.isEmpty { flags.insert(.resources) }
        switch note?.resumption {
        case nil: break
        case .noProgress?: flags.insert(.noProgress)
        case .progress?: flags.insert(.progress)
        }
        if note?.wait != nil { flags.insert(.wait) }
        if !details.trace.isEmpty { flags.insert(.trace) }
        buffer.append(flags.rawValue)
        if let title = details.title { buffer.append(text: title) }
        if let subtitle = details.subtitle { buffer.append(text: subtitle) }
        if !details.resources.isEmpty {
            buffer.append(UInt8(details.resources.count))
            for resource in details.resources { buffer.append(text: resource) }
        }
        if case .progress(let progress)? = note?.resumption { buffer.append(progress) }
        note?.wait?.store(to: &buffer)
        guard !details.trace.isEmpty else { return }
        buffer.appendLittleEndian(UInt16(details.trace.count))
        buffer.append(details.trace)
    }

    private func task(_ reader: inout RecordReader, attemptsMin: UInt32) -> BackgroundTask? {
        guard let kind = TaskKind(storedCode: reader.integer()) else { return nil }
        let needs = TaskNeeds(rawValue: reader.integer(0...3))
        let text = reader.text()
        let isSession = kind == .urlSession
        let task = BackgroundTask(
            name: self.keepName(text),
            kind: kind,
            needs: needs,
            arrivedAt: reader.moment(),
            waitsSince: reader.distantMoment(),
            arrival: reader.integer(1...Self.arrivalMax),
            transfers: isSession ? reader.integer(1...Self.arrivalMax) : reader.integer(0...0),
            attempts: reader.integer(attemptsMin...UInt32(Parameters.countMax))
        )
        let flags = TaskFlags(rawValue: reader.integer())
        guard !text.isEmpty, flags.isSubset(of: .known), !isSession || flags.isSubset(of: .wait) else { return nil }
        var details = TaskDetails()
        if flags.contains(.title) { details.title = reader.text() }
        if flags.contains(.subtitle) { details.subtitle = reader.text() }
        if flags.contains(.resources) {
            details.resources = (0..<reader.integer(1...UInt8.max)).map { _ in reader.text() }
        }
        guard !flags.isSuperset(of: [.progress, .noProgress]) else { return nil }
        var resumption: TaskResumption? = flags.contains(.noProgress) ? .noProgress : nil
        if flags.contains(.progress) { resumption = .progress(reader.progress()) }
        let wait = flags.contains(.wait) ? WaitLog(&reader) : nil
        guard (wait != nil) == flags.contains(.wait) else { return nil }
        if flags.contains(.trace) {
            details.trace = reader.view(Int(reader.integer(UInt16.self))).array
            guard details.trace.withByteView({ PushTrace($0) != nil }) else { return nil }
        }
        self.restore(Note(arrival: task.arrival, details: details, resumption: resumption, wait: wait))
        return task
    }

    private func waiting(_ reader: inout RecordReader) -> [BackgroundTask]? {
        var tasks: [BackgroundTask] = []
        for _ in 0..<reader.integer(UInt16.self) {
            guard let task = self.task(&reader, attemptsMin: 0), task.arrival > tasks.last?.arrival ?? 0 else {
                return nil
            }
            let namesake = tasks.first {
                $0.name == task.name && ($0.kind == .urlSession) == (task.kind == .urlSession)
            }
            guard namesake == nil else { return nil }
            tasks.append(task)
        }
        return tasks
    }
}

// MARK: - Wakes

extension TaskRow {
    private struct WakeFlags: OptionSet {
        let rawValue: UInt8

        static let isCancelled = WakeFlags(rawValue: 1 << 0)
        static let isOfRemovedDevice = WakeFlags(rawValue: 1 << 1)
        /// The launch was charged to the short lane. The spacing from before the launch follows.
        static let short = WakeFlags(rawValue: 1 << 2)
        /// The launch was charged as a processing task. The time of the previous launch follows.
        static let processing = WakeFlags(rawValue: 1 << 3)
        static let resumedFrom = WakeFlags(rawValue: 1 << 4)
        static let progress = WakeFlags(rawValue: 1 << 5)
        /// The task has launched before, and no earlier launch reported progress.
        static let resumedFromNothing = WakeFlags(rawValue: 1 << 6)
        static let known = WakeFlags(rawValue: 1 << 7 - 1)
    }

    /// Stores the task, then the wake's id (16 bytes), launchedAt, deadline, progress (8 each), tolerated holds (2),
    /// flags (1), and if flagged: the charge of the launch, and the progress reported before and during the launch.
    private func store(_ wake: TaskWake, to buffer: inout ByteBuffer) {
        guard let flight = self.flight(of: wake.task.arrival) else {
            preconditionFailure("a wake in flight has an id")
        }
        self.store(wake.task, to: &buffer)
        buffer.appendLittleEndian(flight.wake.first)
        buffer.appendLittleEndian(flight.wake.second)
        buffer.appendLittleEndian(wake.launchedAt.milliseconds)
        buffer.appendLittleEndian(wake.deadline.milliseconds)
        buffer.appendLittleEndian(wake.progress)
        buffer.appendLittleEndian(wake.tolerated.rawValue)
        var flags: WakeFlags = []
        if wake.isCancelled { flags.insert(.isCancelled) }
        if wake.isOfRemovedDevice { flags.insert(.isOfRemovedDevice) }
        switch wake.charge {
        case .nothing: break
        case .short: flags.insert(.short)
        case .processing: flags.insert(.processing)
        }
        switch flight.resumedFrom {
        case nil: break
        case .noProgress?: flags.insert(.resumedFromNothing)
        case .progress?: flags.insert(.resumedFrom)
        }
        if flight.progress != nil { flags.insert(.progress) }
        buffer.append(flags.rawValue)
        switch wake.charge {
        case .nothing: break
        case .short(let before): DeviceRecord.store(before, to: &buffer)
        case .processing(let lastBefore): buffer.appendLittleEndian(lastBefore.milliseconds)
        }
        if case .progress(let progress)? = flight.resumedFrom { buffer.append(progress) }
        if let progress = flight.progress { buffer.append(progress) }
    }

    private func wake(_ reader: inout RecordReader) -> TaskWake? {
        guard let task = self.task(&reader, attemptsMin: 1) else { return nil }
        let id = WakeID(random: (reader.integer(), reader.integer()))
        var wake = TaskWake(task: task, launchedAt: reader.moment(), deadline: reader.moment(), charge: .nothing)
        wake.progress = reader.integer()
        wake.tolerated = Holds(rawValue: reader.integer(0...Holds.ofTasks.rawValue))
        let flags = WakeFlags(rawValue: reader.integer())
        guard flags.isSubset(of: .known), !flags.isSuperset(of: [.short, .processing]) else { return nil }
        wake.isCancelled = flags.contains(.isCancelled)
        wake.isOfRemovedDevice = flags.contains(.isOfRemovedDevice)
        if flags.contains(.short) { wake.charge = .short(before: DeviceRecord.spacing(&reader)) }
        if flags.contains(.processing) {
            wake.charge = .processing(lastBefore: Instant(milliseconds: reader.integer()))
        }
        guard !flags.isSuperset(of: [.resumedFrom, .resumedFromNothing]) else { return nil }
        var resumedFrom: TaskResumption? = flags.contains(.resumedFromNothing) ? .noProgress : nil
        if flags.contains(.resumedFrom) { resumedFrom = .progress(reader.progress()) }
        let progress = flags.contains(.progress) ? reader.progress() : nil
        wake.total = progress?.total ?? 0
        self.takeOff(Flight(arrival: task.arrival, wake: id, resumedFrom: resumedFrom, progress: progress))
        return wake
    }

    private func inFlight(_ reader: inout RecordReader) -> [TaskWake]? {
        var wakes: [TaskWake] = []
        for _ in 0..<reader.integer(UInt16.self) {
            guard let wake = self.wake(&reader), wake.task.kind.lane >= wakes.last?.task.kind.lane ?? .short else {
                return nil
            }
            wakes.append(wake)
        }
        // The policy runs at most one wake at a time in each of these lanes.
        let isCrowded = [Lane.short, .processing].contains { lane in wakes.count { $0.task.kind.lane == lane } > 1 }
        return isCrowded ? nil : wakes
    }
}
