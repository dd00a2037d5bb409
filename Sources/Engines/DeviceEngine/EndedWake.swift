package import Bytes
package import LaunchPolicy

/// A wake that ended, remembered for workers that answer late or twice.
package struct EndedWake: Hashable, Sendable {
    package let id: WakeID
    package let outcome: WakeOutcome
    package let at: Instant
}
