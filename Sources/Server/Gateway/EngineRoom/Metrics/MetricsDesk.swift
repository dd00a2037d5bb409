import Dispatch
package import Engine
package import Platform
import Synchronization

/// Gathers for `GET /metrics` what takes a while, away from every loop and from the engine, which answers.
package final class MetricsDesk: Sendable {
    /// Where the figures come from that other parts of the gateway know.
    package struct Sources: Sendable {
        /// Open connections by listener's role.
        package let connections: @Sendable () -> [(role: ListenerRole, count: Int)]
        /// When the edge's certificate ends, in seconds since 1970.
        package let certificateExpiry: @Sendable () -> Int64?
        /// The topics that the configuration names.
        package let topics: @Sendable () -> [String]

        package init(
            connections: @escaping @Sendable () -> [(role: ListenerRole, count: Int)],
            certificateExpiry: @escaping @Sendable () -> Int64?,
            topics: @escaping @Sendable () -> [String]
        ) {
            self.connections = connections
            self.certificateExpiry = certificateExpiry
            self.topics = topics
        }
    }

    private let engine: Mailbox<CommandBatch>
    private let startedAt = SystemClock.wall
    /// Nil until the gateway is whole.
    private let sources = Mutex<Sources?>(nil)
    /// One question at a time.
    private let queue = DispatchQueue(label: "metrics")

    package init(engine: Mailbox<CommandBatch>) {
        self.engine = engine
    }

    package func attach(_ sources: Sources) {
        self.sources.withLock { $0 = sources }
    }

    /// Has the engine answer `reply` with every metric.
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
