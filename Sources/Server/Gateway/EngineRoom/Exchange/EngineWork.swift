package import Engine
package import Policy
package import Wire

/// The work of an operation in the engine: a closure that runs on the engine's thread, and the rows that it needs.
///
/// An engine with its own store has everything in memory and runs the closure immediately. An engine on a shared store
/// loads the rows, runs the closure, and commits the changes; after a conflict it starts again. A closure captures only
/// values, since it moves from a loop's thread to the engine's.
///
/// The authorization check cannot be skipped, because the closure receives only devices and wakes that
/// `AuthorizedScope` found for the caller.
package struct EngineWork: Sendable {
    private enum Action {
        case plain(@Sendable (AuthorizedScope) throws(APIError) -> EngineReply)
        /// For the device in `rows`.
        case device(@Sendable (AuthorizedScope, ReachedDevice) throws(APIError) -> EngineReply)
        /// For the wake in `rows`.
        case wake(@Sendable (AuthorizedScope, WakeID) throws(APIError) -> EngineReply)
    }

    /// The rows that the closure needs.
    let rows: NeededRows
    /// True if the work concerns a single wake or device and takes the engine no longer than a push.
    let isBrief: Bool
    /// True if the work may free the slot of a wake, even if the wake had already ended.
    let freesSlot: Bool
    /// True if the work removes the device in `rows`.
    let removesDevice: Bool
    /// True if the work is refused while the gateway is shutting down.
    private let beginsWork: Bool
    /// The topic for the device in `rows` if the device is new.
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

    /// Creates work that does not concern a single device.
    package init(
        _ rows: NeededRows = .nothing,
        perform: @escaping @Sendable (AuthorizedScope) throws(APIError) -> EngineReply
    ) {
        self.init(rows, .plain(perform))
    }

    /// Creates work that changes a device.
    ///
    /// - Parameters:
    ///   - removesDevice: true if the device may be registered again afterwards, for another topic.
    ///   - beginsWork: true if the work is refused while the gateway is shutting down.
    package init(
        changing device: Named<DeviceToken>,
        removesDevice: Bool = false,
        beginsWork: Bool = false,
        perform: @escaping @Sendable (AuthorizedScope, ReachedDevice) throws(APIError) -> EngineReply
    ) {
        self.init(.row(.device(device.name)), removesDevice: removesDevice, beginsWork: beginsWork, .device(perform))
    }

    /// Creates work that only reads a device.
    package init(
        reading device: Named<DeviceToken>,
        perform: @escaping @Sendable (AuthorizedScope, ReachedDevice) throws(APIError) -> EngineReply
    ) {
        self.init(.reading(device.name), .device(perform))
    }

    /// Creates work on a wake, which the engine may not know.
    ///
    /// - Parameter freesSlot: true if the work may free the slot of the wake, even if the wake had already ended.
    package init(
        wake: Named<WakeID>,
        freesSlot: Bool = false,
        perform: @escaping @Sendable (AuthorizedScope, WakeID) throws(APIError) -> EngineReply
    ) {
        self.init(.row(.wake(wake.name)), isBrief: true, freesSlot: freesSlot, .wake(perform))
    }

    /// Creates work that registers a device, which may be new.
    package init(
        registering device: DeviceToken,
        of topic: [UInt8],
        perform: @escaping @Sendable (AuthorizedScope) throws(APIError) -> EngineReply
    ) {
        let newTopic = NewTopic(name: topic, isOfPush: false)
        self.init(.row(.device(device)), isBrief: true, newTopic: newTopic, .plain(perform))
    }

    /// Creates work that pushes to a device, which may be new if pushes register devices.
    ///
    /// - Parameter topic: nil for the topic of the device.
    package init(
        pushingTo device: Named<DeviceToken>,
        of topic: [UInt8]?,
        perform: @escaping @Sendable (AuthorizedScope) throws(APIError) -> EngineReply
    ) {
        let newTopic = topic.map { NewTopic(name: $0, isOfPush: true) }
        self.init(.row(.device(device.name)), newTopic: newTopic, .plain(perform))
    }

    /// Runs the closure. The rows it needs must be in memory.
    func perform(_ scope: AuthorizedScope) throws(APIError) -> EngineReply {
        guard !self.beginsWork || !scope.room.isDraining else { throw .shutdown }
        switch self.action {
        case .plain(let action): return try action(scope)
        case .device(let action):
            guard let device = self.rows.device else { throw .unknownDevice }
            return try action(scope, try scope.device(Named(device)))
        case .wake(let action):
            guard case .row(.wake(let wake)) = self.rows else { throw .unknownWake }
            return try action(scope, try scope.wake(Named(wake)))
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
    /// An operator's push is processed like a provider's.
    case push(TestPush, to: DeviceToken, of: [UInt8])

    /// The answer that consists of the JSON that `write` appends.
    static func json(_ write: (inout JSONWriter) -> Void) -> EngineReply { .outcome(.json(write)) }
}

/// The rows that work needs from a shared store.
package enum NeededRows: Sendable {
    /// No rows: everything is in this gateway's memory.
    case nothing
    /// A topic of this name, created if it does not exist.
    case topic([UInt8])
    /// A row that may change.
    case row(RequestedRow)
    /// The last committed version of a device, which is only read.
    case reading(DeviceToken)
    /// The counters of all gateways: of all topics, of one topic, or only the totals.
    case counts(CountedTopics)
    /// The rows of many devices.
    case list(ListedRows)
    /// The pause of a topic, which all gateways must know.
    case pause(topic: [UInt8], Bool)

    /// The device of the row, if these are a single device's.
    var device: DeviceToken? {
        switch self {
        case .row(.device(let token)), .reading(let token): token
        default: nil
        }
    }
}

/// The row of a shared store that work concerns.
package enum RequestedRow: Hashable, Sendable {
    case device(DeviceToken)
    /// The device of a wake.
    case wake(WakeID)
}

/// The topics whose counters are needed in addition to the totals.
package enum CountedTopics: Sendable {
    case none, every
    case one([UInt8])
}

/// The rows of a shared store that a list needs.
package enum ListedRows: Sendable {
    case tasks(TaskQuestion)
    case devices(DeviceQuestion)

    /// The order of the list; that of tokens for tasks.
    var order: DeviceSearch.Order {
        if case .devices(let question) = self { question.order } else { .token }
    }

    /// The requested topic; nil for any.
    var topic: String? {
        switch self {
        case .tasks(let question): question.topic
        case .devices(let question): question.topic
        }
    }
}

/// The topic for a device that may be new.
struct NewTopic: Sendable {
    let name: [UInt8]
    /// True if a push registers the device, as the configuration may allow. A push never restores a removed device.
    let isOfPush: Bool
}

// MARK: - Authorization

/// The name of a device or a wake in a request. It can only be looked up for a caller; devices of topics outside the
/// caller's scope are not found.
///
/// Only `find` reads the value, so nothing can be done for a caller without the scope.
package struct Named<Name: Sendable>: Sendable {
    fileprivate let name: Name

    package init(_ name: Name) {
        self.name = name
    }
}

/// A device within the caller's scope.
package struct ReachedDevice {
    package let index: DeviceIndex
    package let token: DeviceToken

    fileprivate init(index: DeviceIndex, token: DeviceToken) {
        self.index = index
        self.token = token
    }
}

extension Named<DeviceToken> {
    func find(in engine: DeviceEngine, for caller: Caller) -> ReachedDevice? {
        guard let device = engine.find(self.name), caller.reaches(engine.identity(device).topic, in: engine) else {
            return nil
        }
        return ReachedDevice(index: device, token: self.name)
    }

    /// Returns the token, for a push by a provider of this topic. The engine refuses a push to a device of another
    /// topic.
    ///
    /// - Returns: nil if the topic is outside the caller's scope.
    func pushed(of topic: [UInt8], by caller: Caller) -> DeviceToken? {
        caller.reaches(topic.withByteView { $0.string }) ? self.name : nil
    }
}

extension Named<WakeID> {
    /// Returns the wake's id, even if the engine does not know the wake; nil if its topic is outside the caller's
    /// scope.
    func find(in engine: DeviceEngine, for caller: Caller) -> WakeID? {
        guard let topic = engine.topic(ofWake: self.name), !caller.reaches(topic, in: engine) else { return self.name }
        return nil
    }
}

extension Caller {
    func reaches(_ topic: TopicIndex, in engine: DeviceEngine) -> Bool {
        self.topics == .all || self.reaches(engine.snapshot(topic).name)
    }
}

/// The engine as one caller may use it: without the topics outside the caller's scope.
package struct AuthorizedScope {
    package let workspace: Workspace
    package let caller: Caller
    /// The sources of answers other than devices.
    package let room: RoomState

    package init(_ workspace: Workspace, _ caller: Caller, _ room: RoomState) {
        self.workspace = workspace
        self.caller = caller
        self.room = room
    }

    package var engine: DeviceEngine { self.workspace.engine }
    package var dispatcher: Dispatcher { self.workspace.dispatcher }

    /// Returns the wall clock time, in milliseconds since 1970.
    package func wall(_ moment: Instant) -> Int64 { self.workspace.offset.wall(moment) }

    /// Returns the device with this token.
    func device(_ name: Named<DeviceToken>) throws(APIError) -> ReachedDevice {
        guard let device = name.find(in: self.engine, for: self.caller) else { throw .unknownDevice }
        return device
    }

    /// Returns the device, unless it was removed.
    package func registered(_ device: ReachedDevice) throws(APIError) -> DeviceIndex {
        guard self.engine.identity(device.index).isRegistered else {
            throw .unregistered(at: self.wall(self.engine.snapshot(device.index).registrationChangedAt))
        }
        return device.index
    }

    /// Returns the topic of this name.
    func topic(_ name: [UInt8]) throws(APIError) -> TopicIndex {
        guard let topic = name.withByteView({ self.engine.findTopic($0) }),
            self.caller.reaches(topic, in: self.engine)
        else { throw .unknownTopic }
        return topic
    }

    /// Returns the id of the wake, unless it belongs to a topic outside the caller's scope. The engine may not know the
    /// wake.
    func wake(_ name: Named<WakeID>) throws(APIError) -> WakeID {
        guard let wake = name.find(in: self.engine, for: self.caller) else { throw .unknownWake }
        return wake
    }
}

/// A list that examines every topic or every device.
package struct LongList {
    /// The maximum number of devices examined in one step.
    static let placesMax = 32_768
    /// The maximum number of devices examined one by one in one step.
    static let filteredPlacesMax = 2048

    /// Continues the search for the listed devices; returns true when it is complete.
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
            .outcome(
                .json { writer in
                    writer.beginObject()
                    write(workspace, &writer)
                    writer.endObject()
                }
            )
        }
    }

    /// - Parameter ask: the question to the history about what was found.
    init(search: @escaping (Workspace) -> Bool, ask: @escaping (Workspace) -> HistoryQuestion.Subject) {
        self.search = search
        self.finish = { .history(ask($0)) }
    }
}
