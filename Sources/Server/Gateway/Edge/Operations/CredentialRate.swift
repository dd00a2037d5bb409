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
