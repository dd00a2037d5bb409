package import Engine
import Platform
import Policy
package import ServiceManager

/// What becomes of a wall clock that stands far from where it stood at the last commit.
package struct ClockJumpWatch: Sendable {
    /// The longest time that the wall clock is believed to have passed between two boots, in milliseconds.
    let millisecondsMax: Int64
    /// Hears, before anything is stored, of a clock that went farther, forward or back.
    let onJump: @Sendable (WallClockJump) -> Void

    package init(
        millisecondsMax: Int64 = GatewayConfiguration().clockJumpMaxMilliseconds,
        onJump: @escaping @Sendable (WallClockJump) -> Void = { _ in }
    ) {
        self.millisecondsMax = millisecondsMax
        self.onJump = onJump
    }

    /// Logs both times, what that means for the pushes that wait, and what to do.
    package init(_ configuration: GatewayConfiguration, _ log: GatewayLog) {
        self.init(millisecondsMax: configuration.clockJumpMaxMilliseconds) { jump in
            let seconds = (jump.to - jump.from).magnitude / 1000
            let meaning: String
            let remedy: String
            if jump.isHeldBack {
                meaning = "held back: waiting pushes keep the time they had left at the last commit"
                remedy =
                    "see to the clock; if the machine was off for so long and the pushes are to expire, set "
                    + "clockJumpMax to more than \(seconds) before its start"
            } else if jump.to > jump.from {
                meaning = "what the clock had gone back by before is made up for; the rest counts as passed"
                remedy = "see that the clock stays right"
            } else {
                meaning = "no time counts as passed since the last commit"
                remedy = "see to the clock: expiry times of pushes that come now are reckoned by it"
            }
            log.write(
                .clockJumped,
                [
                    "lastCommit": WallTime.text(jump.from), "now": WallTime.text(jump.to), "seconds": "\(seconds)",
                    "meaning": meaning, "remedy": remedy,
                ]
            )
        }
    }
}
