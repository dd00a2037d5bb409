/// A push as it was received, nothing of it checked. Its views are the sender's bytes, and valid as long as those.
package struct PushRequest {
    package var method: ByteView
    /// The path with its query.
    package var path: ByteView
    package var headers: PushHeaders
    package var body: ByteView
    /// The body went past `PushHeaders.payloadBytesMax`, and is not all there.
    package var isBodyCutShort: Bool

    package init(method: ByteView, path: ByteView, headers: PushHeaders, body: ByteView, isBodyCutShort: Bool = false) {
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body
        self.isBodyCutShort = isBodyCutShort
    }

    /// Makes every check that needs no knowledge of devices, in the order of the wire contract: method, path,
    /// authentication, fields, the right to the topic, payload, token.
    ///
    /// - `token`: Where the device token is written; without meaning when the push is refused.
    /// - `authenticate`: Called once method and path are right; what it throws is thrown.
    /// - `authorize`: Called with the topic once all fields are right; what it throws is thrown.
    /// - Throws: The reason of the first check that fails.
    package func checked(
        rules: PushRules,
        token: inout DeviceToken,
        authenticate: (PushHeaders) throws(APNSReason) -> Void,
        authorize: (_ topic: ByteView) throws(APNSReason) -> Void
    ) throws(APNSReason) -> CheckedPush {
        let isToken = try PushTarget.readToken(method: self.method, path: self.path, into: &token)
        try authenticate(self.headers)
        let head = try self.headers.validated(rules: rules)
        try authorize(head.topic)
        var warnings: PushWarnings = []
        let wakes = try PushPayload.wakes(
            self.body,
            isCutShort: self.isBodyCutShort,
            type: head.type,
            warnings: &warnings
        )
        guard isToken else { throw .badDeviceToken }
        if rules.isForDevelopment, head.priority == .immediate, head.type == .background {
            warnings.insert(.backgroundPriority)
        }
        return CheckedPush(head: head, wakes: wakes, warnings: warnings)
    }
}

/// A push that passed every check which needs no knowledge of devices.
package struct CheckedPush {
    package let head: PushHead
    /// Whether the payload asks for the device to be woken.
    package let wakes: Bool
    /// The likely mistakes of its provider.
    package let warnings: PushWarnings
}

/// What an operator may choose about the checks of a push.
package struct PushRules: Hashable, Sendable {
    /// Refuse a push of type background whose priority is 10, which is also the priority of one that names none.
    ///
    /// Apple's documentation calls it an error; APNs accepts it.
    package var strictBackgroundPriority: Bool

    /// True in `wakegate dev`, which warns of such a push, and writes every warning to its log.
    package var isForDevelopment: Bool

    package init(strictBackgroundPriority: Bool = false, isForDevelopment: Bool = false) {
        self.strictBackgroundPriority = strictBackgroundPriority
        self.isForDevelopment = isForDevelopment
    }
}
