package import Engine
import Policy

/// How often the bounds of the engine and of everything around it were met, and who is told of it.
package final class LimitCounts {
    /// What was met, less what the dispatcher that is in use counts itself.
    private var counts = PerCase<EngineLimit>()
    private let meter: LimitMeter
    private var watch: LimitWatch

    /// - `meter`: what other parts of the gateway have counted of their bounds.
    /// - `watch`: tells of bounds that were met.
    package init(_ meter: LimitMeter, _ watch: LimitWatch) {
        self.meter = meter
        self.watch = watch
    }

    package func met(_ limit: EngineLimit) { self.counts[limit] += 1 }

    /// A dispatcher is let go of: what it has counted stays.
    package func take(from dispatcher: Dispatcher) {
        self.counts[.wakeBytesPerStreamMax] += dispatcher.timesStreamWasFull
    }

    /// How often each bound was met.
    package func all(_ dispatcher: Dispatcher) -> [(name: String, count: Int64)] {
        var counts = self.counts
        counts[.wakeBytesPerStreamMax] += dispatcher.timesStreamWasFull
        return self.meter.times(counts)
    }

    /// The bounds that were met, and how often.
    package func met(_ dispatcher: Dispatcher) -> [(name: String, count: Int64)] {
        self.all(dispatcher).filter { $0.count > 0 }
    }

    /// Tells of bounds that were met, if it is time.
    func look(_ now: Instant, _ dispatcher: Dispatcher) {
        self.watch.look(now) { self.met(dispatcher) }
    }
}
