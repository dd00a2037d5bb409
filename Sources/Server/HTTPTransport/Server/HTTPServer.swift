internal import Platform
internal import Synchronization

/// One address the server listens on, and its protocol.
package struct Listener: Sendable {
    package let address: ListenAddress
    /// The TLS context, with which the listener speaks only HTTP/2; nil for HTTP/1.1, and HTTP/2 by prior knowledge.
    package let tls: TLSContext?
    /// The maximum number of open streams of an HTTP/2 connection until the handler sets another; nil for
    /// `streamsPerConnectionMax`. A client with a certificate always has `streamsPerConnectionMax`.
    package let streamsAtFirst: Int?
    /// The number of connections that the listener may accept beyond `connectionsMax`. With it, an administrator can
    /// connect while the server is full.
    package let connectionsReserved: Int
    /// A listening socket that is already open; nil to open one. The server owns it and closes it, even if
    /// `HTTPServer.init` fails.
    package let descriptor: Int32?
    /// True if only the owner may use a new socket file (mode 0600); false if the group may, too (0660).
    package let isPrivate: Bool

    package init(
        address: ListenAddress,
        tls: TLSContext?,
        streamsAtFirst: Int? = nil,
        connectionsReserved: Int = 0,
        descriptor: Int32? = nil,
        isPrivate: Bool = false
    ) {
        self.address = address
        self.tls = tls
        self.streamsAtFirst = streamsAtFirst
        self.connectionsReserved = connectionsReserved
        self.descriptor = descriptor
        self.isPrivate = isPrivate
    }
}

/// A server that listens on one or more addresses and serves them with one thread per loop.
package final class HTTPServer: Sendable {
    /// The bound addresses with their actual ports: `127.0.0.1:2197`, `[::]:2197`, `unix:/path`.
    package let boundAddresses: [String]
    package let loops: [EventLoop]

    private let state: ServerState
    private let threads = Mutex<[NamedThread]>([])

    /// The number of descriptors reserved for the rest of the process.
    private static let descriptorsReserved = 128

    /// Binds every address. Connections remain in the sockets' queues until `start`.
    ///
    /// - `makeHandler`: called once for each loop, before `init` returns.
    /// - Throws: `TransportError` that names the failing address.
    package init(
        listeners: [Listener],
        limits: TransportLimits = TransportLimits(),
        loopCount: Int,
        makeHandler: @Sendable (EventLoop) -> any RequestHandler
    ) throws(TransportError) {
        var bound: [ServerState.BoundListener] = []
        var addresses: [String] = []
        for listener in listeners {
            let descriptor: Int32
            var file: System.SocketFile?
            do {
                descriptor = try System.listen(listener.address, on: listener.descriptor, isPrivate: listener.isPrivate)
            } catch {
                for other in bound { other.close() }
                throw error
            }
            switch listener.address.kind {
            case .tcp(let host, _):
                let port = System.boundPort(descriptor)
                addresses.append(ListenAddress(.tcp(host: host, port: port)).description)
            case .unix(let path):
                addresses.append(listener.address.description)
                if listener.descriptor == nil { file = System.SocketFile(path) }
            }
            bound.append(
                .init(
                    descriptor: descriptor,
                    streamsAtFirst: listener.streamsAtFirst,
                    connectionsReserved: listener.connectionsReserved,
                    file: file
                )
            )
        }
        let descriptors = System.raiseDescriptorLimit() - Self.descriptorsReserved
        let state = ServerState(
            limits: limits,
            listeners: bound,
            contexts: listeners.map(\.tls),
            descriptorsMax: descriptors,
            loopCount: max(1, loopCount)
        )
        var loops: [EventLoop] = []
        for index in 0..<max(1, loopCount) {
            let loop = try EventLoop(index: index, server: state)
            loop.handler = makeHandler(loop)
            loops.append(loop)
        }
        self.state = state
        self.boundAddresses = addresses
        self.loops = loops
    }

    /// The number of processors this process may run on; `taskset` and a container's CPU set reduce it.
    package static var processorCount: Int { System.processorCount }

    /// The counters of reached limits, one for each loop.
    package var tallies: [LimitTally<TransportLimit>] { self.loops.map(\.memory.tally) }

    /// The number of open connections of each listener, in the order of the listeners.
    package var connectionCounts: [Int] { self.state.connectionCounts.map(\.value) }

    /// Sets the limits that all loops share, from any thread. Each loop's own limits are set on its thread, by
    /// `EventLoop.setLimits`.
    package func setLimits(_ limits: TransportLimits) {
        self.state.setLimits(limits)
    }

    /// The end of the validity of the certificate shown in handshakes, in seconds since 1970; nil without TLS.
    package var certificateExpiry: Int64? { self.state.context?.certificateExpiry }

    /// Sets the certificate that TLS listeners show in future handshakes, from any thread.
    package func setContext(_ context: TLSContext) {
        self.state.setContext(context)
    }

    /// Starts the loops' threads.
    package func start() throws(TransportError) {
        for loop in self.loops {
            do throws(ThreadFailure) {
                let thread = try NamedThread("loop-\(loop.index)") { loop.run() }
                self.threads.withLock { $0.append(thread) }
            } catch {
                throw TransportError(.system, error.message)
            }
        }
    }

    /// Removes the socket files of the listeners, for a server that never starts.
    package func removeSocketFiles() {
        self.state.removeSocketFiles()
    }

    /// Ends every connection and waits for the threads. Handlers are notified of each ended stream and connection.
    package func stop() {
        self.removeSocketFiles()
        for loop in self.loops { loop.requestStop() }
        let threads = self.threads.withLock { threads in
            defer { threads = [] }
            return threads
        }
        for thread in threads { thread.join() }
    }
}
