package import Wire

/// One operation of the gateway's interface, declared as a constant. Which requests come to it, who may send them and
/// what is answered after a failure of the store is read from here, and `openapi.json` says the same.
///
/// It has references enough that copies of a structure would be a good part of what a small request costs.
package final class Operation: Sendable {
    /// Which listeners serve it.
    package enum Listeners: Hashable, Sendable {
        /// The listeners of providers and workers, with TLS and without.
        case edge
        /// The listeners of operators.
        case admin
        case all

        package func contains(_ role: ListenerRole) -> Bool {
            switch (self, role) {
            case (.all, _), (.edge, .edge), (.edge, .plain), (.admin, .admin): true
            case (.edge, .admin), (.admin, .edge), (.admin, .plain): false
            }
        }
    }

    /// How many bytes the body of a request may have.
    package enum BodyLimit: Hashable, Sendable {
        /// As many as the small objects of the interface need.
        case small
        /// As many as a file of fault rules, where there are any.
        case faultRules
        /// As many as the payload of its type of push.
        case payload
        /// As many as a push with all that is said of it, however it is written.
        case testPush
    }

    /// The operation's `operationId`.
    package let name: String
    package let method: HTTPMethod
    package let path: PathPattern
    package let listeners: Listeners
    package let access: AccessRule
    package let bodyLimit: BodyLimit
    /// The statuses that are its own; `statuses` has those that every operation may be answered with, too.
    package let answers: Set<Int>
    /// Whether it is answered with events that have no end.
    package let isStream: Bool
    package let afterFailedStore: AfterFailedStore
    /// What a credential may ask for so often a minute and no oftener; nil where that has no bound.
    package let rate: CredentialRate?
    /// What it does with a request that was admitted; nil for a push alone, which the loops take without all this.
    private let action: (@Sendable (OperationCall) throws(APIError) -> OperationOutcome)?

    package init(
        _ name: String,
        _ method: HTTPMethod,
        _ path: PathPattern,
        on listeners: Listeners,
        by role: AccessRule.Role,
        reaching scope: AccessRule.Scope,
        bodyLimit: BodyLimit = .small,
        answers: Set<Int>,
        isStream: Bool = false,
        rate: CredentialRate? = nil,
        afterFailedStore: AfterFailedStore,
        action: (@Sendable (OperationCall) throws(APIError) -> OperationOutcome)?
    ) {
        self.name = name
        self.method = method
        self.path = path
        self.listeners = listeners
        self.access = AccessRule(role, scope)
        self.bodyLimit = bodyLimit
        self.answers = answers
        self.isStream = isStream
        self.rate = rate
        self.afterFailedStore = afterFailedStore
        self.action = action
    }

    /// Does what was asked.
    ///
    /// - Throws: `APIError` when the request is not as it should be.
    package func act(on call: OperationCall) throws(APIError) -> OperationOutcome {
        // Requests of a push do not come this way.
        guard let action = self.action else { throw .badPath }
        return try action(call)
    }

    /// Whether HEAD is taken, which is GET without content. An event stream is nothing but content.
    package var takesHead: Bool { self.method == .get && !self.isStream }

    /// Every status it may be answered with: besides its own those of a caller who is not admitted, of a body that is
    /// too large, and of a gateway that has no room or is about to end.
    package var statuses: Set<Int> {
        self.answers.union(self.access.role == .anybody ? [403, 413, 429, 503] : [401, 403, 413, 429, 503])
    }
}

extension Operation {
    /// Every operation, family by family; each family has a file.
    package static let all =
        Operation.pushes + Operation.workers + Operation.devices + Operation.tasks + Operation.taskSimulations
        + Operation.inspections + Operation.simulations + Operation.waiting + Operation.testPushes
        + Operation.statistics + Operation.watching + Operation.upkeep + Operation.health + Operation.documents
        + Operation.faults
}

/// The methods that operations have, in the order in which answers name those that a path takes.
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

/// What one credential may ask for so often a minute.
package enum CredentialRate: Hashable, Sendable {
    /// Submissions of background tasks, and reports of finished transfers.
    case submissions
    /// Reports of the progress of continued tasks.
    case progress

    /// What is counted when it is refused.
    var limit: GatewayCountedLimit {
        switch self {
        case .submissions: .submissionsPerCredentialMax
        case .progress: .progressPerCredentialMax
        }
    }
}
