/// Everything that is logged, by the names that stay as they are; the article "Logs" says of each what to do.
package enum GatewayEvent: String, CaseIterable, Sendable {
    case ready, draining, drainTimedOut, stopped
    case reloaded, configurationChanged, configurationNeedsRestart, configurationFault, reloadRefused
    case providerKeys, providerTokenRefused, tokensUnreadable, clientTrust, clientCertificate, handshakeFailed
    case pushWarning
    case clockJumped, storeFailed, checkpointFailed, journalLossAccepted, history
    case historyEventsDropped
    case limitMet, routineLimitMet
    case webhookResting, webhookRecovered, webhookRefused
    case storeAttached, storeDetached, configurationsDiffer, configurationsAgree
    case transferFailed, transferExpired, transferStoreFailed, transferStoreRecovered, transferStoreDamaged
    case callerRefused, wakeDelayed, wakeRefused
    case logLinesLost

    /// How much it matters, always the same.
    package var level: LogLevel {
        switch self {
        case .ready, .draining, .stopped, .reloaded, .configurationChanged, .webhookRecovered,
            .storeAttached, .configurationsAgree, .transferStoreRecovered:
            .info
        case .drainTimedOut, .configurationNeedsRestart, .providerKeys, .providerTokenRefused, .clientTrust,
            .clientCertificate, .pushWarning, .clockJumped, .journalLossAccepted, .history, .historyEventsDropped,
            .limitMet, .webhookResting, .webhookRefused, .configurationsDiffer, .transferFailed, .transferExpired,
            .transferStoreDamaged, .callerRefused, .wakeDelayed, .wakeRefused, .logLinesLost:
            .warning
        case .configurationFault, .reloadRefused, .tokensUnreadable, .storeFailed, .checkpointFailed, .storeDetached,
            .transferStoreFailed:
            .error
        case .handshakeFailed, .routineLimitMet: .debug
        }
    }

    /// Whether strangers, or a fault that lasts, can bring about as many as they like.
    var isThrottled: Bool {
        switch self {
        case .ready, .draining, .drainTimedOut, .stopped, .reloaded, .configurationChanged,
            .configurationNeedsRestart, .configurationFault, .reloadRefused, .clockJumped, .journalLossAccepted,
            .transferStoreDamaged:
            false
        case .providerKeys, .providerTokenRefused, .tokensUnreadable, .clientTrust, .clientCertificate,
            .handshakeFailed, .pushWarning, .storeFailed, .checkpointFailed, .history, .historyEventsDropped,
            .limitMet, .routineLimitMet, .webhookResting, .webhookRecovered, .webhookRefused, .storeAttached,
            .storeDetached, .configurationsDiffer, .configurationsAgree, .transferFailed, .transferExpired,
            .transferStoreFailed, .transferStoreRecovered, .callerRefused, .wakeDelayed, .wakeRefused, .logLinesLost:
            true
        }
    }

    /// The field that tells causes apart, each of which has its own share of lines; nil where there is one cause.
    var causeField: String? {
        switch self {
        case .limitMet, .routineLimitMet: "limit"
        case .webhookResting, .webhookRecovered, .webhookRefused: "topic"
        case .clientCertificate, .transferFailed: "reason"
        case .transferExpired, .wakeDelayed, .wakeRefused: "session"
        case .callerRefused: "user"
        case .pushWarning: "warning"
        case .providerKeys, .providerTokenRefused: "cause"
        case .ready, .draining, .drainTimedOut, .stopped, .reloaded, .configurationChanged,
            .configurationNeedsRestart, .configurationFault, .reloadRefused, .tokensUnreadable, .clientTrust,
            .handshakeFailed, .clockJumped, .storeFailed, .checkpointFailed, .history, .historyEventsDropped,
            .journalLossAccepted, .storeAttached, .storeDetached, .configurationsDiffer,
            .configurationsAgree, .transferStoreFailed, .transferStoreRecovered, .transferStoreDamaged, .logLinesLost:
            nil
        }
    }
}
