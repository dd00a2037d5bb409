package import Engine
package import Policy
package import Wire

/// The work of an operation in the engine: a closure that runs on the engine's thread, and the rows that it needs.
///
/// An engine with its own store has all rows in memory and runs the closure immediately. An engine on a shared store
/// loads the rows, runs the closure and commits the changes; after a conflict it starts again. The closure moves from a
/// loop's thread to the engine's, so it captures only values.
///
/// The closure receives only devices and wakes that `AuthorizedScope` found for the caller, so it cannot skip the
/// authorization check.
package struct EngineWork: Sendable {
    private enum Action {
        case plain(@Sendable (AuthorizedScope) throws(APIError) -> EngineReply)
        /// A closure for the device in `rows`.
        case device(@Sendable (AuthorizedScope, ReachedDevice) throws(APIError) -> EngineReply)
        /// A closure for the wake in `rows`.
        case wake(@Sendable (AuthorizedScope, WakeID) throws(APIError) -> EngineReply)
    }

    /// The rows that the closure needs.
    let rows: NeededRows
    /// True if the work concerns a single wake or device and takes the engine at most as long as a push.
    private(set) var isBrief = false
    /// True if the work may free the slot of a wake, even one that had already ended.
    private(set) var freesSlot = false
    /// True if the work removes the device in `rows`.
    private(set) var removesDevice = false
    /// True if the work is refused while the gateway is shutting down.
    private var beginsWork = false
    /// True if the work is refused immediately while a commit takes too long.
    private(set) var isReadiness = false
    /// The topic in which the work may register the device of `rows`; nil if the work registers none.
    private(set) var newTopic: NewTopic?
    private let action: Action
}

extension EngineWork {
    /// Creates work that does not concern a single device.
    ///
    /// - `isReadiness`: true if the work is refused immediately while a commit takes too long.
    package init(
        _ rows: NeededRows = .nothing,
        isReadiness: Bool = false,
        perform: @escaping @Sendable (AuthorizedScope) throws(APIError) -> EngineReply
    ) {
        self.init(rows: rows, isReadiness: isReadiness, action: .plain(perform))
    }

    /// Creates work that changes a device.
    ///
    /// - `removesDevice`: true if the work removes the device, which may then be registered for another topic.
    /// - `beginsWork`: true if the work is refused while the gateway is shutting down.
    package init(
        changing device: Named<DeviceToken>,
        removesDevice: Bool = false,
        beginsWork: Bool = false,
        perform: @escaping @Sendable (AuthorizedScope, ReachedDevice) throws(APIError) -> EngineReply
    ) {
        self.init(
            rows: .row(.device(device.name)),
            removesDevice: removesDevice,
            beginsWork: beginsWork,
            action: .device(perform)
        )
    }

    /// Creates work that only reads a device.
    package init(
        reading device: Named<DeviceToken>,
        perform: @escaping @Sendable (AuthorizedScope, ReachedDevice) throws(APIError) -> EngineReply
    ) {
        self.init(rows: .reading(device.name), action: .device(perform))
    }

    /// Creates work on a wake. The engine may not know the wake.
    ///
    /// - `freesSlot`: true if the work may free the slot of the wake, even if the wake had already ended.
    package init(
        wake: Named<WakeID>,
        freesSlot: Bool = false,
        perform: @escaping @Sendable (AuthorizedScope, WakeID) throws(APIError) -> EngineReply
    ) {
        self.init(rows: .row(.wake(wake.name)), isBrief: true, freesSlot: freesSlot, action: .wake(perform))
    }

    /// Creates work that registers a device, which may be unknown.
    package init(
        registering device: DeviceToken,
        of topic: [UInt8],
        perform: @escaping @Sendable (AuthorizedScope) throws(APIError) -> EngineReply
    ) {
        let newTopic = NewTopic(name: topic, isOfPush: false)
        self.init(rows: .row(.device(device)), isBrief: true, newTopic: newTopic, action: .plain(perform))
    }

    /// Creates work that pushes to a device. The device may be unknown if pushes register devices.
    ///
    /// - `topic`: nil for the topic of the device.
    package init(
        pushingTo device: Named<DeviceToken>,
        of topic: [UInt8]?,
        perform: @escaping @Sendable (AuthorizedScope) throws(APIError) -> EngineReply
    ) {
        let newTopic = topic.map { NewTopic(name: $0, isOfPush: true) }
        self.init(rows: .row(.device(device.name)), newTopic: newTopic, action: .plain(perform))
    }

    /// Runs the closure. Its rows must be in memory.
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
    /// A question that the history answers.
    case history(HistoryQuestion.Subject)
    /// A subscription: the stream begins.
    case stream(topic: [UInt8], SubscriptionRequest)
    /// A long list. The engine writes such lists one at a time.
    case list(LongList)
    /// An operator's push, which is processed like a provider's.
    case push(TestPush, to: DeviceToken, of: [UInt8])

    /// Returns an answer with the JSON that `write` appends.
    static func json(_ write: (inout JSONWriter) -> Void) -> EngineReply { .outcome(.json(write)) }

    /// Returns an answer with a JSON object, whose members `write` appends.
    static func object(status: Int = 200, _ write: (inout JSONWriter) -> Void) -> EngineReply {
        .outcome(.object(status: status, write))
    }
}

/// The rows that work needs from a shared store.
package enum NeededRows: Sendable {
    /// No rows, because everything needed is in this gateway's memory.
    case nothing
    /// The topic with this name. It is created if it does not exist.
    case topic([UInt8])
    /// A row that the work may change.
    case row(RequestedRow)
    /// The last committed version of a device's row.
    case reading(DeviceToken)
    /// The totals of all gateways, and the counters of these topics.
    case counts(CountedTopics)
    /// The rows of many devices.
    case list(ListedRows)
    /// The pause of a topic, which is sent to all gateways.
    case pause(topic: [UInt8], Bool)

    /// The device, if the work needs the row of a single device.
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

    /// The order of the list. Tasks are in the order of their devices' tokens.
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

/// The topic for a device that the work may register.
struct NewTopic: Sendable {
    let name: [UInt8]
    /// True if a push registers the device. The configuration must permit this. A push never restores a removed device.
    let isOfPush: Bool
}

// MARK: - Authorization

/// The name of a device or a wake in a request.
///
/// The name is readable only in this file. `find` does not find a device or wake whose topic is outside the caller's
/// scope.
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

    /// Returns the token for a push by a provider of `topic`. The engine refuses the push if the device has another
    /// topic.
    ///
    /// - Returns: nil if the topic is outside the caller's scope.
    func pushed(of topic: [UInt8], by caller: Caller) -> DeviceToken? {
        caller.reaches(topic.withByteView { $0.string }) ? self.name : nil
    }
}

extension Named<WakeID> {
    /// Returns the wake's id, even if the engine does not know the wake. Returns nil if its topic is outside the
    /// caller's scope.
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

/// A view of the engine for one caller, without topics outside the caller's scope.
package struct AuthorizedScope {
    package let workspace: Workspace
    package let caller: Caller
    /// The sources of answers other than devices: counters, webhooks and limits.
    package let room: RoomState

    package var engine: DeviceEngine { self.workspace.engine }
    package var dispatcher: Dispatcher { self.workspace.dispatcher }

    /// Returns the wall clock time, in milliseconds since 1970.
    package func wall(_ moment: Instant) -> Int64 { self.workspace.offset.wall(moment) }

    /// Returns the outcome of a request that asked for more time, or reported progress.
    func lasts(_ wake: WakeID, until deadline: Instant) -> Outcome {
        let timeLeft = deadline.milliseconds - self.engine.now.milliseconds
        return .extended(wake, deadline: self.wall(deadline), timeLeft: timeLeft)
    }

    /// Returns the device with this token, which may have been removed.
    func device(_ name: Named<DeviceToken>) throws(APIError) -> ReachedDevice {
        guard let device = name.find(in: self.engine, for: self.caller) else { throw .unknownDevice }
        return device
    }

    /// Returns the index of the device. Throws if the device was removed.
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

    /// Returns the id of the wake, even if the engine does not know the wake. Throws if its topic is outside the
    /// caller's scope.
    func wake(_ name: Named<WakeID>) throws(APIError) -> WakeID {
        guard let wake = name.find(in: self.engine, for: self.caller) else { throw .unknownWake }
        return wake
    }
}

/// A list that examines every topic or every device.
package struct LongList {
    /// The maximum number of devices examined in one step, which takes 0.1 to 0.3 milliseconds. Pushes wait for a step.
    static let placesMax = 4096
    /// The maximum number of devices examined one by one in one step.
    static let filteredPlacesMax = 512

    /// Continues the search for the devices to list. Returns true when the search is complete.
    let search: (Workspace) -> Bool
    /// Returns the answer. Called after the search has ended.
    let finish: (Workspace) -> EngineReply

    /// - `write`: writes the members of the answer.
    init(
        search: @escaping (Workspace) -> Bool = { _ in true },
        write: @escaping (Workspace, inout JSONWriter) -> Void
    ) {
        self.search = search
        self.finish = { workspace in .object { write(workspace, &$0) } }
    }

    /// - `ask`: returns the question to the history about the devices that were found.
    init(search: @escaping (Workspace) -> Bool, ask: @escaping (Workspace) -> HistoryQuestion.Subject) {
        self.search = search
        self.finish = { .history(ask($0)) }
    }
}
