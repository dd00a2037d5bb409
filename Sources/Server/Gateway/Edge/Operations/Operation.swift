package import Wire

/// An operation of the gateway's HTTP interface, declared in a list of its family. It specifies its requests, their
/// permitted callers and the answer after a failure of the store. `openapi.json` must agree with the declarations, and
/// has the possible statuses.
///
/// A class, because copies of a structure with so many references would noticeably slow down small requests.
package final class Operation: Sendable {
    /// The listeners that serve an operation.
    package enum Listeners: Hashable, Sendable {
        /// The listeners for providers and workers, with and without TLS.
        case edge
        /// The listeners for operators.
        case admin
        case all

        package func contains(_ role: ListenerRole) -> Bool {
            switch (self, role) {
            case (.all, _), (.edge, .edge), (.edge, .plain), (.admin, .admin): true
            case (.edge, .admin), (.admin, .edge), (.admin, .plain): false
            }
        }
    }

    /// The maximum size of a request's body.
    package enum BodyLimit: Hashable, Sendable {
        /// Enough for the small JSON objects of the interface.
        case small
        /// Enough for a file of fault rules, if the gateway accepts them.
        case faultRules
        /// The maximum for the payload of a push.
        case payload
        /// Enough for a push with all its fields, including spaces and escapes.
        case testPush
    }

    /// The `operationId` in `openapi.json`.
    package let name: String
    package let method: HTTPMethod
    package let path: PathPattern
    package let listeners: Listeners
    package let access: AccessRule
    package let bodyLimit: BodyLimit
    /// True if the answer is an endless stream of events.
    package let isStream: Bool
    package let afterFailedStore: AfterFailedStore
    /// The rate limit that applies to the operation for each credential; nil for none.
    package let rate: CredentialRate?
    /// The action for an admitted request; nil only for `push`, which the loops handle themselves.
    private let action: (@Sendable (OperationCall) throws(APIError) -> OperationOutcome)?

    /// - `listeners`: the listeners that serve the operation; nil for those of the callers with `role`.
    package init(
        _ name: String,
        _ method: HTTPMethod,
        _ path: PathPattern,
        on listeners: Listeners? = nil,
        by role: AccessRule.Role,
        reaching scope: AccessRule.Scope,
        bodyLimit: BodyLimit = .small,
        isStream: Bool = false,
        rate: CredentialRate? = nil,
        afterFailedStore: AfterFailedStore,
        action: (@Sendable (OperationCall) throws(APIError) -> OperationOutcome)?
    ) {
        self.name = name
        self.method = method
        self.path = path
        self.listeners = listeners ?? ([.provider, .worker].contains(role) ? .edge : .admin)
        self.access = AccessRule(role, scope)
        self.bodyLimit = bodyLimit
        self.isStream = isStream
        self.rate = rate
        self.afterFailedStore = afterFailedStore
        self.action = action
    }

    /// Creates an operation that the engine performs, in most cases on devices, tasks, wakes or streams of the topics
    /// that the caller may access.
    ///
    /// - `afterFailedStore`: the answer after a failure of the store. If it is nil, a GET request is answered from the
    ///   durable state, and other requests are refused.
    static func ofEngine(
        _ name: String,
        _ method: HTTPMethod,
        _ path: PathPattern,
        on listeners: Listeners? = nil,
        by role: AccessRule.Role,
        reaching scope: AccessRule.Scope = .topicOfSubject,
        bodyLimit: BodyLimit = .small,
        rate: CredentialRate? = nil,
        afterFailedStore: AfterFailedStore? = nil,
        work: @escaping @Sendable (OperationCall) throws(APIError) -> EngineWork
    ) -> Operation {
        Operation(
            name,
            method,
            path,
            on: listeners,
            by: role,
            reaching: scope,
            bodyLimit: bodyLimit,
            rate: rate,
            afterFailedStore: afterFailedStore ?? (method == .get ? .answeredFromDurableState : .refused)
        ) { call throws(APIError) in
            .asked(try work(call))
        }
    }

    /// Creates an operation for operators that is answered even after a failure of the store.
    static func ofOperators(
        _ name: String,
        _ method: HTTPMethod,
        _ path: PathPattern,
        reaching scope: AccessRule.Scope,
        bodyLimit: BodyLimit = .small,
        isStream: Bool = false,
        action: @escaping @Sendable (OperationCall) throws(APIError) -> OperationOutcome
    ) -> Operation {
        Operation(
            name,
            method,
            path,
            by: .operator,
            reaching: scope,
            bodyLimit: bodyLimit,
            isStream: isStream,
            afterFailedStore: .answered,
            action: action
        )
    }

    /// Performs a request.
    ///
    /// - Throws: `APIError` if the request is invalid.
    package func act(on call: OperationCall) throws(APIError) -> OperationOutcome {
        // Pushes do not reach this function.
        guard let action = self.action else { throw .badPath }
        return try action(call)
    }

    /// True if the operation accepts HEAD, which is GET without content. Event streams do not accept HEAD, because they
    /// have no answer other than their content.
    package var takesHead: Bool { self.method == .get && !self.isStream }
}

extension Operation {
    /// Every operation, by family; each family has its own file.
    package static let all =
        Operation.pushes + Operation.workers + Operation.devices + Operation.tasks + Operation.taskSimulations
        + Operation.inspections + Operation.simulations + Operation.waiting + Operation.statistics
        + Operation.watching + Operation.upkeep + Operation.health + Operation.documents + Operation.faults
}

/// The methods of operations, in the order in which answers list a path's methods.
package enum HTTPMethod: CaseIterable, Hashable, Sendable {
    case get, put, post, patch, delete

    package var name: StaticString {
        switch self {
        case .get: "GET"
        case .put: "PUT"
        case .post: "POST"
        case .patch: "PATCH"
        case .delete: "DELETE"
        }
    }

    package static func == (method: HTTPMethod, name: ByteView) -> Bool { name == method.name }
}

/// A kind of request whose number per credential and minute is limited.
package enum CredentialRate: Hashable, Sendable {
    /// Submissions of background tasks, and reports of finished transfers.
    case submissions
    /// Reports of the progress of continued tasks.
    case progress

    /// The limit whose counter grows when a request is refused.
    var limit: GatewayCountedLimit {
        switch self {
        case .submissions: .submissionsPerCredentialMax
        case .progress: .progressPerCredentialMax
        }
    }
}
