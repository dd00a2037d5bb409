import LaunchPolicy

/// What a line of a trace says.
enum TraceLine {
    /// There is nothing but white space.
    case blank
    case header(TraceHeader)
    case event(TraceEvent)
}

/// What a header line sets.
struct TraceHeader {
    var parameters: [(name: Parameters.Name, value: Double)] = []
    var worker: WorkerScript?
    var until: Instant?
}

/// Something that reaches a device from outside.
struct TraceEvent {
    enum Kind {
        case push(TracePush)
        case conditions(ConditionsReport)
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
