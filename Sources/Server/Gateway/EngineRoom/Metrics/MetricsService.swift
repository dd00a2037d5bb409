import Dispatch
package import Engine
package import Platform
import Synchronization

/// A service that collects the figures for `GET /metrics` that take time to read. It uses a separate queue, so that
/// neither the loops nor the engine wait. The engine then answers the request.
package final class MetricsService: Sendable {
    /// The sources of figures from other parts of the gateway.
    package struct Sources: Sendable {
        /// The numbers of open connections, by the role of their listener.
        package let connections: @Sendable () -> [(role: ListenerRole, count: Int)]
        /// The expiry of the edge's certificate, in seconds since 1970; nil if it is unknown.
        package let certificateExpiry: @Sendable () -> Int64?
        /// The topics named in the configuration.
        package let topics: @Sendable () -> [String]
    }

    private let engine: Mailbox<CommandBatch>
    private let startedAt = SystemClock.wall
    /// The sources; nil until `attach` is called.
    private let sources = Mutex<Sources?>(nil)
    /// The serial queue on which the figures are collected.
    private let queue = DispatchQueue(label: "metrics")

    package init(engine: Mailbox<CommandBatch>) {
        self.engine = engine
    }

    package func attach(_ sources: Sources) {
        self.sources.withLock { $0 = sources }
    }

    /// Collects the figures, and then asks the engine to answer `reply` with all metrics.
    package func ask(reply: StreamAddress, for caller: Caller, afterFailedStore: AfterFailedStore) {
        self.queue.async {
            let sources = self.sources.withLock { $0 }
            let figures = GatewayFigures(
                process: .read(),
                startedAt: self.startedAt,
                connections: sources?.connections() ?? [],
                certificateExpiry: sources?.certificateExpiry(),
                topics: sources?.topics() ?? []
            )
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
