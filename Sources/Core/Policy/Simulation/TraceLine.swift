/// What a line of a trace says.
enum TraceLine {
    /// There is nothing but white space.
    case blank
    case header(TraceHeader)
    case event(TraceEvent)
}

/// What a header line sets.
struct TraceHeader {
    var parameters: [(parameter: PolicyParameter, value: Double)] = []
    var worker: WorkerScript?
    /// How the wakes of some identifiers and sessions end.
    var tasks: [String: TaskScript] = [:]
    var permitted: [IdentifierPattern]?
    var until: Instant?
}

/// Something that reaches a device from outside.
struct TraceEvent {
    enum Kind {
        case push(TracePush)
        case conditions(ConditionsReport)
        case submit(TraceRequest)
        case finished(session: String, count: UInt64)
        case cancel(String)
    }

    var moment: Instant
    var device: String
    var kind: Kind
}

/// A push of a trace.
struct TracePush {
    var apnsID: String
    var priority: Priority
    var expiration: ArrivingPush.Expiration
}

/// A request of a trace.
struct TraceRequest {
    var identifier: String
    var kind: TaskSubmission.Kind
    var earliestBegin: Instant?
}
