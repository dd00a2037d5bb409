package import Policy

/// Why a request, or the transfers of a session, went without a result.
package enum TaskDrop: String, CaseIterable, Sendable {
    /// A later request of the same identifier took its place.
    case replaced
    case cancelled, exhausted, forceQuit, unregistered

    package init(_ reason: TaskDiscardReason) {
        self =
            switch reason {
            case .exhausted: .exhausted
            case .forceQuit: .forceQuit
            case .cancelled: .cancelled
            case .unregistered: .unregistered
            }
    }
}
