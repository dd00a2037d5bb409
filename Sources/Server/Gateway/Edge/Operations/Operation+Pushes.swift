import Engine
import Policy
import Synchronization
package import Wire

extension Operation {
    /// The operations that accept pushes.
    package static let pushes: [Operation] = [
        // The operation of the provider API. It has no action: the loops handle pushes themselves, because the checks
        // have a different order and the answers a different form. Apple's documentation describes this operation;
        // `openapi.json` does not.
        Operation(
            "push",
            .post,
            "/3/device/{token}",
            by: .provider,
            reaching: .topicOfSubject,
            bodyLimit: .payload,
            afterFailedStore: .refused,
            action: nil
        ),
        // The operation with which operators test devices and workers.
        ofEngine("testPush", .post, "/v1/devices/{token}/push", by: .operator, bodyLimit: .testPush) {
            call throws(APIError) in
            guard let rules = call.services.testPushRules.withLock({ $0 }) else { throw .testPushesNotPermitted }
            let body = try RequestBody.object(call.body, reason: "BadPush")
            let (device, apnsID) = (try call.device(), call.services.newAPNsID())
            return .testPush(try TestPushBody(body).push(to: device, call.parameter, apnsID, rules))
        },
    ]

    /// Returns true if a request belongs to the provider API, which is not routed by the operation table. On the
    /// listeners for providers and workers, the provider API answers every path that does not begin with `/v1/`.
    package static func isOfProviders(path: ByteView, on role: ListenerRole) -> Bool {
        role != .admin && !path.starts(with: "/v1/")
    }

}

// MARK: - At the engine

extension EngineWork {
    /// Accepts an operator's push by the same rules as a provider's.
    package static func testPush(_ push: TestPush) -> EngineWork {
        // A refused push creates no topic.
        EngineWork(pushingTo: push.device, of: push.refusal == nil ? push.topic : nil) { scope throws(APIError) in
            let topic: [UInt8]
            if let named = push.topic {
                topic = named
            } else {
                let device = try scope.device(push.device)
                topic = Array(scope.engine.topicName(scope.engine.topic(of: device.index)).utf8)
            }
            guard let token = push.device.pushed(of: topic, by: scope.caller) else { throw .unknownTopic }
            return .push(push, to: token, of: topic)
        }
    }
}

/// The body of a test push. Its members are validated like the header fields and the payload of a provider's push.
struct TestPushBody {
    private static let names = ["topic", "priority", "expiration", "collapseID", "payload"]
    /// A placeholder for the device's own topic, used if the body names none.
    private static let ownTopic = "own"

    private let topic: String?
    /// The equivalent header fields of a provider's push.
    private let fields: [(name: String, value: String)]
    private let payload: [UInt8]

    /// - Throws: `APIError` with reason `BadTopic` for an invalid topic, otherwise with reason `BadPush` and the fault.
    init(_ object: JSONValue) throws(APIError) {
        if let other = object.members.map(\.name).first(where: { !Self.names.contains($0) }) {
            throw Self.bad("\(other) is not a member of a test push; it takes \(Self.names.joined(separator: ", ")).")
        }
        guard case .object? = object["payload"] else { throw Self.bad("payload is missing; send the JSON object.") }
        self.topic = try Self.text(object, "topic")
        if let topic = self.topic, !topic.withByteView({ Push.isTopic($0) }) { throw .badTopic }
        var fields = [("apns-topic", self.topic ?? Self.ownTopic)]
        let priority = try Self.integer(object, "priority", among: 1...10) ?? 5
        guard Priority(rawValue: UInt8(priority)) != nil else { throw Self.bad("priority is 10, 5 or 1.") }
        fields.append(("apns-priority", "\(priority)"))
        if let seconds = try Self.integer(object, "expiration", among: 0...PushExpiration.secondsMax) {
            fields.append(("apns-expiration", "\(seconds)"))
        }
        if let collapseID = try Self.text(object, "collapseID") {
            guard collapseID.unicodeScalars.count <= Push.collapseIDBytesMax else {
                throw Self.bad("collapseID is longer than \(Push.collapseIDBytesMax) characters; send less.")
            }
            fields.append(("apns-collapse-id", collapseID))
        }
        self.fields = fields.map { (name: $0.0, value: $0.1) }
        self.payload = object["payload"]?.written.withByteView { $0.array } ?? []
    }

    /// Returns the push with the result of its validation.
    func push(to device: Named<DeviceToken>, _ digits: ByteView, _ apnsID: APNsID, _ rules: PushRules) -> TestPush {
        var bytes: [UInt8] = []
        var places: [(name: String, value: Range<Int>)] = []
        for field in self.fields {
            let start = bytes.count
            bytes += Array(field.value.utf8)
            places.append((field.name, start..<bytes.count))
        }
        let pathStart = bytes.count
        bytes += Array("/3/device/\(digits.string)".utf8)
        let payloadStart = bytes.count
        bytes += self.payload
        return bytes.withByteView { bytes in
            var request = PushRequest(
                method: ByteView("POST"),
                path: bytes[pathStart..<payloadStart],
                body: bytes.dropFirst(payloadStart)
            )
            for place in places {
                place.name.withByteView { request.field(name: $0, value: bytes[place.value]) }
            }
            var (push, refusal): (Push, APNSReason?) = (Push(), nil)
            do throws(APNSReason) {
                try request.check(into: &push, rules: rules) { _ in
                } authorize: { _ in
                }
            } catch {
                refusal = error
            }
            push.apnsID = apnsID
            return TestPush(device, push, topic: self.topic, refused: refusal)
        }
    }

    // MARK: Members

    private static func text(_ object: JSONValue, _ name: String) throws(APIError) -> String? {
        guard let value = object[name] else { return nil }
        guard let text = value.text else { throw Self.bad("\(name) is not a string; send text, or leave it out.") }
        return text
    }

    private static func integer(
        _ object: JSONValue,
        _ name: String,
        among range: ClosedRange<Int64>
    ) throws(APIError) -> Int64? {
        guard let member = object[name] else { return nil }
        guard case .number(let number) = member, let value = Int64(exactly: number.double), range.contains(value)
        else {
            let bounds = "\(range.lowerBound) to \(range.upperBound)"
            throw Self.bad("\(name) is \(member.described); send a whole number of \(bounds), or leave it out.")
        }
        return value
    }

    private static func bad(_ message: String) -> APIError { APIError(400, "BadPush", message) }
}
