package import Engine
package import Policy
package import Wire

/// The work of an operation on the engine: a closure that runs on the engine's thread, and the rows that it needs.
///
/// An engine with a store of its own has everything in memory, and runs the closure at once. An engine on a shared
/// store loads the rows first, runs the closure on them, and commits the difference; after a conflict it does so again.
/// A closure captures values alone, as it crosses from the thread of a loop to that of the engine.
///
/// The check of the caller cannot be forgotten: the closure gets the device or the wake that `Reach` found for the
/// caller.
package struct EngineWork: Sendable {
    private enum Action {
        case plain(@Sendable (Reach) throws(APIError) -> EngineReply)
        /// For the device of `rows`.
        case device(@Sendable (Reach, ReachedDevice) throws(APIError) -> EngineReply)
        /// For the wake of `rows`.
        case wake(@Sendable (Reach, WakeID) throws(APIError) -> EngineReply)
    }

    /// The rows that the closure needs.
    let rows: NeededRows
    /// True if it is about one wake or one device, and takes the engine no longer than a push.
    let isBrief: Bool
    /// True if the stream of a wake may have room for another one afterwards, though the wake ended before.
    let freesSlot: Bool
    /// Whether the device of `rows` is removed by it.
    let removesDevice: Bool
    /// Whether it is refused while the gateway shuts down, whatever it is about.
    private let beginsWork: Bool
    /// The topic that the device of `rows` gets if it is new.
    let newTopic: NewTopic?
    private let action: Action

    private init(
        _ rows: NeededRows,
        isBrief: Bool = false,
        freesSlot: Bool = false,
        removesDevice: Bool = false,
        beginsWork: Bool = false,
        newTopic: NewTopic? = nil,
        _ action: Action
    ) {
        self.rows = rows
        self.isBrief = isBrief
        self.freesSlot = freesSlot
        self.removesDevice = removesDevice
        self.beginsWork = beginsWork
        self.newTopic = newTopic
        self.action = action
    }

    /// Work that is about no single device.
    package init(
        _ rows: NeededRows = .nothing,
        perform: @escaping @Sendable (Reach) throws(APIError) -> EngineReply
    ) {
        self.init(rows, .plain(perform))
    }

    /// Work that changes a device.
    ///
    /// - Parameters:
    ///   - removesDevice: whether it may be registered anew afterwards, for another topic.
    ///   - beginsWork: whether it is refused while the gateway shuts down.
    package init(
        changing device: Named<DeviceToken>,
        removesDevice: Bool = false,
        beginsWork: Bool = false,
        perform: @escaping @Sendable (Reach, ReachedDevice) throws(APIError) -> EngineReply
    ) {
        self.init(.row(.device(device.name)), removesDevice: removesDevice, beginsWork: beginsWork, .device(perform))
    }

    /// Work that reads a device, and changes nothing.
    package init(
        reading device: Named<DeviceToken>,
        perform: @escaping @Sendable (Reach, ReachedDevice) throws(APIError) -> EngineReply
    ) {
        self.init(.reading(device.name), .device(perform))
    }

    /// Work that is about a wake; the engine may know none of this id.
    ///
    /// - Parameter freesSlot: whether the wake's stream may take another one afterwards, though the wake ended before.
    package init(
        wake: Named<WakeID>,
        freesSlot: Bool = false,
        perform: @escaping @Sendable (Reach, WakeID) throws(APIError) -> EngineReply
    ) {
        self.init(.row(.wake(wake.name)), isBrief: true, freesSlot: freesSlot, .wake(perform))
    }

    /// Work that registers a device, which may be new.
    package init(
        registering device: DeviceToken,
        of topic: [UInt8],
        perform: @escaping @Sendable (Reach) throws(APIError) -> EngineReply
    ) {
        let newTopic = NewTopic(name: topic, isOfPush: false)
        self.init(.row(.device(device)), isBrief: true, newTopic: newTopic, .plain(perform))
    }

    /// Work that pushes to a device, which may be new where pushes register devices.
    ///
    /// - Parameter topic: nil for the topic of the device.
    package init(
        pushingTo device: Named<DeviceToken>,
        of topic: [UInt8]?,
        perform: @escaping @Sendable (Reach) throws(APIError) -> EngineReply
    ) {
        let newTopic = topic.map { NewTopic(name: $0, isOfPush: true) }
        self.init(.row(.device(device.name)), newTopic: newTopic, .plain(perform))
    }

    /// Runs the closure. The rows it needs are in memory.
    func perform(_ reach: Reach) throws(APIError) -> EngineReply {
        guard !self.beginsWork || !reach.room.isDraining else { throw .shutdown }
        switch self.action {
        case .plain(let action): return try action(reach)
        case .device(let action):
            guard let device = self.rows.device else { throw .unknownDevice }
            return try action(reach, try reach.device(Named(device)))
        case .wake(let action):
            guard case .row(.wake(let wake)) = self.rows else { throw .unknownWake }
            return try action(reach, try reach.wake(Named(wake)))
        }
    }
}

/// The result of work.
package enum EngineReply {
    case outcome(Outcome)
    /// The history answers.
    case history(HistoryQuestion.Subject)
    /// The stream begins.
    case stream(topic: [UInt8], SubscriptionRequest)
    /// Long lists are written one by one.
    case list(LongList)
    /// A push of an operator is taken like a push of a provider.
    case push(TestPush, to: DeviceToken, of: [UInt8])
}

/// The rows that work needs from a store that gateways share.
package enum NeededRows: Sendable {
    /// Nothing but what this gateway has in memory.
    case nothing
    /// A topic of this name, to be made where there is none; nothing else.
    case topic([UInt8])
    /// A row that may change.
    case row(RequestedRow)
    /// The last committed version of a device, which is read and not changed.
    case reading(DeviceToken)
    /// The counters of all gateways: of all topics, of one, or the totals alone.
    case counts(CountedTopics)
    /// The rows of many devices.
    case list(ListedRows)
    /// All gateways have to know whether a topic is paused.
    case pause(topic: [UInt8], Bool)

    /// The device whose row it is; nil for anything else.
    var device: DeviceToken? {
        switch self {
        case .row(.device(let token)), .reading(let token): token
        default: nil
        }
    }
}

/// The row of a shared store that work is about.
package enum RequestedRow: Hashable, Sendable {
    case device(DeviceToken)
    /// The device of a wake.
    case wake(WakeID)
}

/// The topics of which counts are needed, besides those of all together.
package enum CountedTopics: Sendable {
    case none, every
    case one([UInt8])
}

/// Whose rows of a shared store a list is made of.
package enum ListedRows: Sendable {
    case tasks(TaskQuestion)
    case devices(DeviceQuestion)

    /// The order of the list; that of tokens for tasks.
    var order: DeviceSearch.Order {
        if case .devices(let question) = self { question.order } else { .token }
    }

    /// The topic that alone is asked about; nil for any.
    var topic: String? {
        switch self {
        case .tasks(let question): question.topic
        case .devices(let question): question.topic
        }
    }
}

/// The topic that a device gets if it is new.
struct NewTopic: Sendable {
    let name: [UInt8]
    /// True if the device comes with a push, which registers it where the configuration says so, and moves none that
    /// was removed.
    let isOfPush: Bool
}

// MARK: - Authorization

/// The name of a device or a wake in a request. It is found for its caller alone: a device of a topic beyond theirs is
/// not there.
///
/// Its value comes out by `find` only, so that nothing is done for a caller who does not reach it.
package struct Named<Name: Sendable>: Sendable {
    fileprivate let name: Name

    package init(_ name: Name) {
        self.name = name
    }
}

/// A device that a caller reaches.
package struct ReachedDevice {
    package let index: DeviceIndex
    package let token: DeviceToken

    fileprivate init(index: DeviceIndex, token: DeviceToken) {
        self.index = index
        self.token = token
    }
}

extension Named<DeviceToken> {
    func find(in engine: EmbeddedEngine, for caller: Caller) -> ReachedDevice? {
        guard let device = engine.find(self.name), caller.reaches(engine.identity(device).topic, in: engine) else {
            return nil
        }
        return ReachedDevice(index: device, token: self.name)
    }

    /// The token, to push to it as a provider that reaches this topic: an engine refuses what is of another topic.
    ///
    /// - Returns: nil when the topic is beyond the caller's.
    func pushed(of topic: [UInt8], by caller: Caller) -> DeviceToken? {
        caller.reaches(topic.withByteView { $0.string }) ? self.name : nil
    }
}

extension Named<WakeID> {
    /// The wake's id, unless the wake is one of a topic beyond the caller's. The engine may know none of this id.
    func find(in engine: EmbeddedEngine, for caller: Caller) -> WakeID? {
        guard let topic = engine.topic(ofWake: self.name), !caller.reaches(topic, in: engine) else { return self.name }
        return nil
    }
}

extension Caller {
    func reaches(_ topic: TopicIndex, in engine: EmbeddedEngine) -> Bool {
        self.topics == .all || self.reaches(engine.snapshot(topic).name)
    }
}

/// An engine as one caller may use it: what is of a topic beyond theirs is not there.
package struct Reach {
    package let workspace: Workspace
    package let caller: Caller
    /// The sources of answers besides devices.
    package let room: RoomState

    package init(_ workspace: Workspace, _ caller: Caller, _ room: RoomState) {
        self.workspace = workspace
        self.caller = caller
        self.room = room
    }

    package var engine: EmbeddedEngine { self.workspace.engine }
    package var dispatcher: Dispatcher { self.workspace.dispatcher }

    /// The moment of the wall clock, in milliseconds since 1970.
    package func wall(_ moment: Instant) -> Int64 { self.workspace.offset.wall(moment) }

    /// The device with this token.
    func device(_ name: Named<DeviceToken>) throws(APIError) -> ReachedDevice {
        guard let device = name.find(in: self.engine, for: self.caller) else { throw .unknownDevice }
        return device
    }

    /// The device, unless it was removed.
    package func registered(_ device: ReachedDevice) throws(APIError) -> DeviceIndex {
        guard self.engine.identity(device.index).isRegistered else {
            throw .unregistered(at: self.wall(self.engine.snapshot(device.index).registrationChangedAt))
        }
        return device.index
    }

    /// The topic of this name.
    func topic(_ name: [UInt8]) throws(APIError) -> TopicIndex {
        guard let topic = name.withByteView({ self.engine.findTopic($0) }),
            self.caller.reaches(topic, in: self.engine)
        else { throw .unknownTopic }
        return topic
    }

    /// The wake of this id, unless it is of a topic beyond the caller's; the engine may know none.
    func wake(_ name: Named<WakeID>) throws(APIError) -> WakeID {
        guard let wake = name.find(in: self.engine, for: self.caller) else { throw .unknownWake }
        return wake
    }
}

/// A list that passes over every topic or every device.
package struct LongList {
    /// The most devices that a step looks at.
    static let placesMax = 32_768
    /// The most devices that a step looks at one by one.
    static let filteredPlacesMax = 2048

    /// Searches on for what is listed; true when the search has ended.
    let search: (Workspace) -> Bool
    /// Answers once the search has ended.
    let finish: (Workspace) -> Answer

    enum Answer {
        case outcome(Outcome)
        /// The history answers.
        case history(HistoryQuestion.Subject)
    }

    /// - Parameter write: writes the members of the answer.
    init(
        search: @escaping (Workspace) -> Bool = { _ in true },
        write: @escaping (Workspace, inout JSONWriter) -> Void
    ) {
        self.search = search
        self.finish = { workspace in
            var writer = JSONWriter()
            writer.beginObject()
            write(workspace, &writer)
            writer.endObject()
            return .outcome(.json(writer))
        }
    }

    /// - Parameter ask: the question to the history about what was found.
    init(search: @escaping (Workspace) -> Bool, ask: @escaping (Workspace) -> HistoryQuestion.Subject) {
        self.search = search
        self.finish = { .history(ask($0)) }
    }
}
