import Answers
import Bytes
import Edge
import Settings
import Text
import WakeDispatch

/// Paths and queries of the worker and admin API: `METHOD path?query`.
enum PathTarget {
    static func check(_ input: ByteView) throws(BrokenPromise) {
        var reader = InputReader(input)
        let method = reader.view(until: 0x20)
        let path = reader.view(until: UInt8(ascii: "?"))
        for role in [ListenerRole.edge, .plain, .admin] { try self.checkRoute(method, path, role) }
        let edge = RouteMatch(method: method, path: path, role: .edge)
        try promise(edge == RouteMatch(method: method, path: path, role: .plain), "edge and plain serve the same")
        try self.checkPushQuery(reader.rest)
        try self.checkSubscription(reader.rest)
    }

    private static func checkRoute(_ method: ByteView, _ path: ByteView, _ role: ListenerRole) throws(BrokenPromise) {
        switch RouteMatch(method: method, path: path, role: role) {
        case .notFound: return
        case .found: break
        case .methodNotAllowed(let allow):
            for name in allow.split(separator: ", ") {
                let match = String(name).withByteView { RouteMatch(method: $0, path: path, role: role) }
                guard case .found = match else { throw BrokenPromise("\(name) is named as allowed, and is not") }
            }
        }
        try promise(!path.isEmpty && path[0] == UInt8(ascii: "/"), "a path without its first / was found")
    }

    private static func checkPushQuery(_ query: ByteView) throws(BrokenPromise) {
        let device: DeviceToken?
        do throws(APIError) { device = try PushQuery(query).device } catch { return try self.checkAnswer(error) }
        let spelt = device.map { "device=\($0.hex)" } ?? ""
        try promise(query.string.lowercased() == spelt, "the query of a push was read as \(spelt)")
    }

    private static func checkSubscription(_ query: ByteView) throws(BrokenPromise) {
        let request: SubscriptionRequest
        do throws(APIError) {
            request = try SubscriptionQuery(query).request
        } catch { return try self.checkAnswer(error) }
        try promise((1...SubscriptionRequest.slotsMax).contains(request.slots), "a stream has \(request.slots) slots")
        try promise(request.devices.count <= SubscriptionQuery.devicesMax, "a stream names too many devices")
        let text = "slots=\(request.slots)" + request.devices.map { "&device=\($0.hex)" }.joined()
        let again = text.withByteView { query in try? SubscriptionQuery(query).request }
        try promise(
            again?.slots == request.slots && again?.devices == request.devices,
            "a subscription changed when it was written anew: \(text)"
        )
    }

    /// Whatever the error quotes, its body is JSON that says the same.
    private static func checkAnswer(_ error: APIError) throws(BrokenPromise) {
        var writer = JSONWriter()
        error.write(to: &writer)
        guard let body = try? JSONReader.read(writer.buffer.view.string) else {
            throw BrokenPromise("the body of an error is not JSON")
        }
        try promise(body["reason"] == .string(error.reason), "the reason changed on its way")
        try promise(body["message"] == .string(error.message), "the message changed on its way")
    }
}
