package import Engine
import Glibc
import Platform

/// What the engine's thread knows of the world: its clocks, and chance.
package struct EngineWorld: Sendable {
    /// Milliseconds since 1970, as the wall clock has it.
    package let wall: @Sendable () -> Int64
    /// Milliseconds since the machine started, suspended time included.
    package let boot: @Sendable () -> Int64
    /// Milliseconds on a clock that stands still while the machine is suspended.
    package let monotonic: @Sendable () -> Int64
    /// What tells this boot from others; nil where nothing does.
    package let bootID: BootID?
    /// Begins a sequence of 128 unpredictable bits a call; one thread uses it.
    package let makeRandom: @Sendable () -> () -> (UInt64, UInt64)

    package init(
        wall: @escaping @Sendable () -> Int64,
        boot: @escaping @Sendable () -> Int64,
        monotonic: @escaping @Sendable () -> Int64,
        bootID: BootID?,
        makeRandom: @escaping @Sendable () -> () -> (UInt64, UInt64)
    ) {
        self.wall = wall
        self.boot = boot
        self.monotonic = monotonic
        self.bootID = bootID
        self.makeRandom = makeRandom
    }

    /// The machine's own.
    package static let system = EngineWorld(
        wall: { SystemClock.wall },
        boot: { SystemClock.boot },
        monotonic: { SystemClock.monotonic },
        bootID: SystemClock.bootID,
        makeRandom: {
            var random = RandomBits()
            return { random.pair() }
        }
    )
}

extension SystemClock {
    /// What tells this boot from others; nil where the system does not say.
    package static let bootID: BootID? = {
        let file = try? OpenFile("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC)
        guard let bytes = try? file?.contents(bytesMax: 64) else { return nil }
        return BootID(text: String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self))
    }()
}
