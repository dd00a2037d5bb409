import Engine
import Gateway
import Storage
import Wire

/// Paths and queries of the worker and admin API: `METHOD path?query`.
enum PathTarget {
    static func check(_ input: ByteView) throws(BrokenPromise) {
        var reader = InputReader(input)
        let method = reader.view(until: 0x20)
        let path = reader.view(until: UInt8(ascii: "?"))
        for role in [ListenerRole.edge, .plain, .admin] { try self.checkRoute(method, path, role) }
        try promise(
            self.match(method, path, .edge) == self.match(method, path, .plain),
            "edge and plain serve the same"
        )
        try self.checkPushQuery(reader.rest)
        try self.checkEventQuery(reader.rest)
        try self.checkSubscription(reader.rest)
    }

    /// Returns a description of the operation that a request matches.
    private static func match(_ method: ByteView, _ path: ByteView, _ role: ListenerRole) -> String {
        switch OperationTable.gateway.match(method: method, path: path, on: role) {
        case .notFound: "not found"
        case .found(let operation, let parameters):
            "\(operation.name) of \(path[parameters.first].array), \(path[parameters.second].array)"
        case .methodNotAllowed(let allow): "allows \(allow)"
        }
    }

    private static func checkRoute(_ method: ByteView, _ path: ByteView, _ role: ListenerRole) throws(BrokenPromise) {
        switch OperationTable.gateway.match(method: method, path: path, on: role) {
        case .notFound: return
        case .found(let operation, let parameters):
            var values = [path[parameters.first].array, path[parameters.second].array]
            let spelt = operation.path.text.split(separator: "/", omittingEmptySubsequences: false).map { segment in
                segment.hasPrefix("{") ? values.removeFirst() : Array(segment.utf8)
            }
            let slash = [UInt8(ascii: "/")]
            try promise(Array(spelt.joined(separator: slash)) == path.array, "a path is not that of \(operation.name)")
        case .methodNotAllowed(let allow):
            for name in allow.split(separator: ", ") {
                let match = String(name).withByteView {
                    OperationTable.gateway.match(method: $0, path: path, on: role)
                }
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

    private static func checkEventQuery(_ query: ByteView) throws(BrokenPromise) {
        let selection: EventSelection
        do throws(APIError) {
            selection = try EventSelection(query: query)
        } catch { return try self.checkAnswer(error) }
        try promise(1...EventSelection.limitMax ~= selection.limit, "a query asks for \(selection.limit) events")
        guard let place = selection.before else { return }
        try promise(HistoryCursor(place.text) == place, "a place was read as \(place.text)")
    }

    private static func checkSubscription(_ query: ByteView) throws(BrokenPromise) {
        let request: SubscriptionRequest
        do throws(APIError) {
            request = try SubscriptionQuery(query).request
        } catch { return try self.checkAnswer(error) }
        try promise((1...SubscriptionRequest.slotsMax).contains(request.slots), "a stream has \(request.slots) slots")
        try promise(request.devices.count <= SubscriptionQuery.namesMax, "a stream names too many devices")
        let text = "slots=\(request.slots)" + request.devices.map { "&device=\($0.hex)" }.joined()
        let again = text.withByteView { query in try? SubscriptionQuery(query).request }
        try promise(
            again?.slots == request.slots && again?.devices == request.devices,
            "a subscription changed when it was written anew: \(text)"
        )
    }

    /// Checks that the body of an error is JSON with the same content, no matter what the error quotes.
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
