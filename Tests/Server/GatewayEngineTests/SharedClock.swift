import Engine
import Gateway
import Synchronization
import WakeGateTestKit

/// Clocks that a test moves, and an engine reads through closures that any thread may call.
final class SharedClock: Sendable {
    private let clock: Mutex<VirtualClock>

    init(boot: Int64, wall: Int64) {
        self.clock = Mutex(VirtualClock(boot: boot, wall: wall))
    }

    var now: VirtualClock { self.clock.withLock { $0 } }

    func change(_ change: (inout VirtualClock) -> Void) { self.clock.withLock { change(&$0) } }
}

extension EngineWorld {
    /// A world with these clocks, in which nothing is left to chance: each sequence goes on from a seed of its own.
    init(_ clock: SharedClock, seed: UInt64, bootID: BootID? = nil) {
        let sequences = Mutex(seed)
        self.init(
            wall: { clock.now.wall },
            boot: { clock.now.boot },
            monotonic: { clock.now.boot },
            bootID: bootID,
            makeRandom: {
                let seed = sequences.withLock { seed in
                    defer { seed &+= 0x9E37_79B9_7F4A_7C15 }
                    return seed
                }
                var generator = SeededGenerator(seed: seed)
                return { (generator.next(), generator.next()) }
            }
        )
    }
}
