package import Engine
package import Policy
package import Wire

/// The outcome of a request.
///
/// Frequent and large answers are values, which the output turns into JSON. Pushes have a `PushReply` instead.
package enum Outcome: Sendable {
    /// The request was performed; the answer has no body.
    case done
    /// The deadline of a wake or continued task, in milliseconds since 1970. It is `timeLeft` milliseconds away.
    case extended(WakeID, deadline: Int64, timeLeft: Int64)
    /// The current conditions of the device.
    indirect case conditions(Conditions)
    indirect case statistics(Statistics)
    /// A finished document.
    case document(Document)
    indirect case refused(APIError)

    /// A text, written on the thread that has the data.
    package struct Document: Sendable {
        package enum Kind: Sendable {
            case json
            /// Metrics in the format of Prometheus.
            case metrics
            /// A trace for the simulator.
            case trace

            package var mediaType: StaticString {
                switch self {
                case .json: "application/json"
                case .metrics: "text/plain; version=0.0.4; charset=utf-8"
                case .trace: "application/x-ndjson"
                }
            }
        }

        let kind: Kind
        var status = 200
        let bytes: [UInt8]
    }

    /// The request was accepted, and the caller need not wait for its effect.
    static let accepted = object(status: 202) { $0.member("accepted", true) }

    /// Returns the outcome that consists of the JSON that `write` appends.
    package static func json<Fault>(_ write: (inout JSONWriter) throws(Fault) -> Void) throws(Fault) -> Outcome {
        var writer = JSONWriter()
        try write(&writer)
        return .document(Document(kind: .json, bytes: writer.buffer.view.array))
    }

    /// Returns the outcome that consists of a JSON object. `write` appends its members.
    static func object(status: Int = 200, _ write: (inout JSONWriter) -> Void) -> Outcome {
        .document(Document(kind: .json, status: status, bytes: JSONWriter.object(write)))
    }

    /// The HTTP status.
    package var status: Int {
        switch self {
        case .done: 204
        case .extended, .conditions, .statistics: 200
        case .document(let document): document.status
        case .refused(let error): error.status
        }
    }

    /// The code of a refusal, for programs; nil if the request was not refused.
    package var reason: String? {
        if case .refused(let error) = self { error.reason } else { nil }
    }

    /// The kind of text that `write` writes.
    package var kind: Document.Kind {
        if case .document(let document) = self { document.kind } else { .json }
    }

    /// Appends the body; nothing for an outcome without one.
    package func write(to writer: inout JSONWriter) {
        switch self {
        case .done: break
        case .extended(let wake, let deadline, let timeLeft):
            writer.beginObject()
            writer.hex("wake") { wake.write(to: &$0) }
            writer.member("deadline", deadline)
            writer.member("timeLeft", timeLeft)
            writer.endObject()
        case .conditions(let conditions): conditions.write(to: &writer)
        case .statistics(let statistics): statistics.write(to: &writer)
        case .document(let document): document.bytes.withByteView { writer.raw($0) }
        case .refused(let error): error.write(to: &writer)
        }
    }
}

/// The reply to one push. The type has no references, so copies are cheap.
package struct PushReply: BitwiseCopyable, Sendable {
    package let address: StreamAddress
    package let apnsID: APNsID
    /// The earliest time of the launch, in seconds since 1970.
    package var eligibleAt: Int64?
    /// The reason of a refusal; nil if the push was accepted.
    package let reason: APNSReason?
    package var disposition: Disposition?
    /// The hold that applies.
    package var held: Hold?
    /// The warnings about an accepted push.
    package var warnings = PushWarnings()
    /// The seconds after which a refused push may be sent again; 0 if unknown.
    package var retryAfterSeconds: UInt32 = 0
    /// The time at which the device token was removed, in milliseconds since 1970.
    package var timestamp: Int64?

    /// - `reason`: the reason for a refusal; nil if the push was accepted.
    package init(_ address: StreamAddress, _ apnsID: APNsID, refused reason: APNSReason? = nil) {
        self.address = address
        self.apnsID = apnsID
        self.reason = reason
    }
}

extension PushReply {
    /// Appends the status, the apns-id, the disposition or the reason of a refusal, and any warnings to the open
    /// object.
    func writeMembers(to writer: inout JSONWriter) {
        writer.member("status", self.reason?.status ?? 200)
        writer.hex("apnsID") { self.apnsID.write(to: &$0) }
        writer.member("reason", ifPresent: self.reason?.rawValue)
        writer.member("disposition", ifPresent: self.disposition?.name)
        if let seconds = self.eligibleAt { writer.member("eligibleAt", seconds * 1000) }
        writer.member("held", ifPresent: self.held?.name)
        if !self.warnings.isEmpty { writer.array("warnings", self.warnings.texts) { $0.string($1) } }
    }
}

extension JSONWriter {
    /// Writes a member with the value that `write` appends; null for nil.
    mutating func member<Value>(_ name: StaticString, _ value: Value?, _ write: (inout JSONWriter, Value) -> Void) {
        self.key(name)
        if let value { write(&self, value) } else { self.null() }
    }

    /// Writes a member with the text of an apns-id; null for nil.
    mutating func member(_ name: StaticString, _ apnsID: APNsID?) {
        self.member(name, apnsID) { writer, apnsID in writer.hex { apnsID.write(to: &$0) } }
    }

    /// Writes an array as a member. `write` appends each element.
    mutating func array<Elements: Sequence>(
        _ name: StaticString,
        _ elements: Elements,
        _ write: (inout JSONWriter, Elements.Element) -> Void
    ) {
        self.beginArray(name)
        for element in elements { write(&self, element) }
        self.endArray()
    }

    /// Writes a time in milliseconds since 1970 as a member; null for nil and `distantPast`.
    mutating func member(_ name: StaticString, _ instant: Instant?, _ offset: WallOffset) {
        self.key(name)
        if let instant, instant != .distantPast { self.integer(offset.wall(instant)) } else { self.null() }
    }

    /// Writes an object of counts as a member.
    mutating func member(_ name: StaticString, _ counts: [(name: String, count: Int64)]) {
        self.key(name)
        self.counts(counts)
    }

    /// Writes an object of counts.
    mutating func counts(_ counts: [(name: String, count: Int64)]) {
        self.beginObject()
        for (name, count) in counts {
            self.key(name)
            self.integer(count)
        }
        self.endObject()
    }
}
