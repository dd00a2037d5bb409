import DeviceEngine
import LaunchPolicy
import WakeDispatch

/// How often the bounds of the engine and of everything around it were met, and who is told of it.
final class LimitCounts {
    /// What was met, less what the dispatcher that is in use counts itself.
    private var counts = PerCase<EngineLimit>()
    private let meter: LimitMeter
    private var watch: LimitWatch

    /// - `meter`: what other parts of the gateway have counted of their bounds.
    /// - `watch`: tells of bounds that were met.
    init(_ meter: LimitMeter, _ watch: LimitWatch) {
        self.meter = meter
        self.watch = watch
    }

    func met(_ limit: EngineLimit) { self.counts[limit] += 1 }

    /// A dispatcher is let go of: what it has counted stays.
    func take(from dispatcher: Dispatcher) {
        self.counts[.wakeBytesPerStreamMax] += dispatcher.timesStreamWasFull
    }

    /// How often each bound was met.
    func all(_ dispatcher: Dispatcher) -> [(name: String, count: Int64)] {
        var counts = self.counts
        counts[.wakeBytesPerStreamMax] += dispatcher.timesStreamWasFull
        return self.meter.times(counts)
    }

    /// The bounds that were met, and how often.
    func met(_ dispatcher: Dispatcher) -> [(name: String, count: Int64)] {
        self.all(dispatcher).filter { $0.count > 0 }
    }

    /// Tells of bounds that were met, if it is time.
    func look(_ now: Instant, _ dispatcher: Dispatcher) {
        self.watch.look(now) { self.met(dispatcher) }
    }
}
