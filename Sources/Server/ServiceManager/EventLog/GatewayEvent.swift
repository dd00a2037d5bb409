/// The kinds of logged events. Their names are stable. The article "Logs" explains each event and its remedy.
package enum GatewayEvent: String, CaseIterable, Sendable {
    case ready, draining, drainTimedOut, stopped
    case reloaded, configurationChanged, configurationNeedsRestart, configurationFault, reloadRefused
    case providerKeys, providerTokenRefused, tokenRefused, tokensUnreadable
    case clientTrust, clientCertificate, handshakeFailed
    case pushWarning, taskNotPermitted, everyTaskPermitted
    case clockJumped, storeFailed, checkpointFailed, journalLossAccepted, history, historyEventsDropped
    case limitMet, routineLimitMet
    case webhookResting, webhookRecovered, webhookRefused
    case storeAttached, storeDetached, databaseSetting, configurationsDiffer, configurationsAgree
    case devicesLocked, devicesUnlocked, deviceUnreadable
    case transferFailed, transferExpired, transferStoreFailed, transferStoreRecovered, transferStoreDamaged
    case callerRefused, wakeDelayed, wakeRefused, appStateUnanswered, appStateAnswered
    case logLinesLost

    /// The severity, the same for every occurrence.
    package var level: LogLevel {
        switch self {
        case .ready, .draining, .stopped, .reloaded, .configurationChanged, .webhookRecovered, .storeAttached,
            .configurationsAgree, .devicesUnlocked, .transferStoreRecovered, .everyTaskPermitted,
            .appStateAnswered:
            .info
        case .configurationFault, .reloadRefused, .tokensUnreadable, .storeFailed, .checkpointFailed, .storeDetached,
            .deviceUnreadable, .transferStoreFailed:
            .error
        case .handshakeFailed, .routineLimitMet: .debug
        default: .warning
        }
    }

    /// True if the number of lines is limited, because unknown peers or a lasting fault can cause any number of events.
    var isThrottled: Bool {
        switch self {
        case .ready, .draining, .drainTimedOut, .stopped, .reloaded, .configurationChanged,
            .configurationNeedsRestart, .configurationFault, .reloadRefused, .clockJumped, .journalLossAccepted,
            .transferStoreDamaged:
            false
        default: true
        }
    }

    /// The field whose values distinguish the causes of the event, each with its own limit of lines; nil for an event
    /// with one cause.
    var throttleField: String? {
        switch self {
        case .limitMet, .routineLimitMet: "limit"
        case .webhookResting, .webhookRecovered, .webhookRefused, .taskNotPermitted: "topic"
        case .clientCertificate, .tokenRefused, .transferFailed: "reason"
        case .transferExpired, .wakeDelayed, .wakeRefused, .devicesLocked: "session"
        case .providerKeys, .providerTokenRefused, .databaseSetting: "cause"
        case .callerRefused: "user"
        case .pushWarning: "warning"
        default: nil
        }
    }
}
