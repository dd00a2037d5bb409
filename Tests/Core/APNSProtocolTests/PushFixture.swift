import Testing
import Wire

/// A push request that is valid until a test changes it.
struct PushFixture {
    var method = "POST"
    var prefix = "/3/device/"
    var token = "00fc13adff785122b4ad28809a3420982341241421348097878e577c991de8f0"
    var fields: [(name: String, value: String)] = [
        ("authorization", "bearer a.b.c"), ("apns-id", "9d3220fe-444b-633e-d1f1-5d0dcb4f537a"),
        ("apns-expiration", "1800000000"), ("apns-priority", "5"), ("apns-push-type", "background"),
        ("apns-collapse-id", "score"), ("apns-topic", "com.example.app"), ("content-type", "application/json"),
    ]
    var body = [UInt8]("{\"aps\":{\"content-available\":1}}".utf8)
    var isBodyCutShort = false
    var rules = PushRules()
    var authentication: APNSReason?
    var authorization: APNSReason?

    /// Sets the value of the first field with this name, or adds the field.
    mutating func set(_ name: String, _ value: String) {
        if let index = self.fields.firstIndex(where: { $0.name == name }) {
            self.fields[index].value = value
        } else {
            self.fields.append((name, value))
        }
    }

    mutating func remove(_ name: String) {
        self.fields.removeAll { $0.name == name }
    }

    /// Passes the request to `body`, from memory that stays in place.
    func withRequest<Result>(_ body: (PushRequest) -> Result) -> Result {
        func feed(_ request: PushRequest, from index: Int) -> Result {
            guard index < self.fields.count else { return body(request) }
            return self.fields[index].name.withByteView { name in
                self.fields[index].value.withByteView { value in
                    var request = request
                    request.field(name: name, value: value)
                    return feed(request, from: index + 1)
                }
            }
        }
        return self.method.withByteView { method in
            (self.prefix + self.token).withByteView { path in
                self.body.withByteView { body in
                    let isCutShort = self.isBodyCutShort
                    return feed(
                        PushRequest(method: method, path: path, body: body, isBodyCutShort: isCutShort),
                        from: 0
                    )
                }
            }
        }
    }

    /// Checks the request.
    ///
    /// - `look`: called with an accepted push while its bytes are valid.
    /// - Returns: the accepted push, whose bytes are freed.
    @discardableResult
    func check(_ look: (Push) -> Void = { _ in }) throws(APNSReason) -> Push {
        let outcome = self.withRequest { request -> Swift.Result<Push, APNSReason> in
            var push = Push()
            do throws(APNSReason) {
                try request.check(into: &push, rules: self.rules) { _ throws(APNSReason) in
                    if let reason = self.authentication { throw reason }
                } authorize: { topic throws(APNSReason) in
                    #expect(topic.string == self.fields.first { $0.name == "apns-topic" }?.value)
                    if let reason = self.authorization { throw reason }
                }
            } catch {
                return .failure(error)
            }
            look(push)
            return .success(push)
        }
        return try outcome.get()
    }

    /// The reason for which the push is refused; nil if it is accepted.
    var reason: APNSReason? {
        do throws(APNSReason) {
            try self.check()
            return nil
        } catch {
            return error
        }
    }

    /// Returns the reason for which a push is refused if its field `name` is `value`, or absent for nil.
    static func reason(_ name: String, _ value: String?) -> APNSReason? {
        var push = PushFixture()
        if let value { push.set(name, value) } else { push.remove(name) }
        return push.reason
    }
}
