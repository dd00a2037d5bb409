package import Bytes
package import LaunchPolicy

/// A wake that ended, remembered for workers that answer late or twice.
package struct EndedWake: Hashable, Sendable {
    package let id: WakeID
    package let outcome: LaunchOutcome
    package let at: Instant
}
