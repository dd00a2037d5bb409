import Dispatch
package import Engine
package import Platform
import Synchronization

/// A service that collects the figures for `GET /metrics` that take time to read. It uses a separate queue, so that
/// neither the loops nor the engine wait. The engine then answers the request.
package final class MetricsService: Sendable {
    /// A function that reads the figures of a gateway from its parts. The start of the gateway is given in milliseconds
    /// since 1970.
    typealias Sources = @Sendable (_ startedAt: Int64) -> GatewayFigures

    private let engine: Mailbox<CommandBatch>
    private let startedAt = SystemClock.wall
    /// The sources; nil until `attach` is called.
    private let sources = Mutex<Sources?>(nil)
    /// The serial queue on which the figures are collected.
    private let queue = DispatchQueue(label: "metrics")

    package init(engine: Mailbox<CommandBatch>) {
        self.engine = engine
    }

    func attach(_ sources: @escaping Sources) {
        self.sources.withLock { $0 = sources }
    }

    /// Collects the figures, and then asks the engine to answer `reply` with all metrics.
    package func ask(reply: StreamAddress, for caller: Caller, afterFailedStore: AfterFailedStore) {
        self.queue.async {
            let sources = self.sources.withLock { $0 }
            let figures = sources?(self.startedAt) ?? GatewayFigures(startedAt: self.startedAt)
            var batch = CommandBatch()
            batch.append(
                .request(
                    EngineRequest(reply: reply, caller: caller, afterFailedStore: afterFailedStore, .metrics(figures))
                )
            )
            self.engine.submit(&batch)
        }
    }
}
