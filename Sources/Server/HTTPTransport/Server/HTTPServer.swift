internal import Platform
internal import Synchronization

/// One address the server listens on, and how it speaks there.
package struct Listener: Sendable {
    package let address: ListenAddress
    /// With TLS: HTTP/2 alone. Without: HTTP/2 by prior knowledge, and HTTP/1.1.
    package let tls: TLSContext?
    /// How many streams an HTTP/2 connection may have open until the handler sets another number; nil for
    /// `streamsPerConnectionMax`. A client that showed a certificate may always have those.
    package let streamsAtFirst: Int?
    /// How many connections it may take beyond `connectionsMax`: whoever looks after the server gets in when nobody
    /// else does.
    package let connectionsReserved: Int
    /// The listening socket, when somebody else has opened it; it is the server's to close, even when that fails to
    /// start. Nil to open one.
    package let descriptor: Int32?
    /// Whether a socket file that is made is for its owner alone (mode 0600), not for its group as well (0660).
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

/// Listens on some addresses and serves them from one thread a loop.
package final class HTTPServer: Sendable {
    /// The addresses as they were bound, with their real ports: `127.0.0.1:2197`, `[::]:2197`, `unix:/path`.
    package let boundAddresses: [String]
    package let loops: [EventLoop]

    private let state: ServerState
    private let threads = Mutex<[NamedThread]>([])

    /// Descriptors left to the rest of the process.
    private static let descriptorsReserved = 128

    /// Binds every address; connections wait until `start`.
    ///
    /// - `makeHandler`: called once for each loop, before `init` returns.
    /// - Throws: `TransportError`, which names the address in question.
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
            let isTCP: Bool
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
                isTCP = true
            case .unix(let path):
                addresses.append(listener.address.description)
                isTCP = false
                if listener.descriptor == nil { file = System.SocketFile(path) }
            }
            bound.append(
                .init(
                    descriptor: descriptor,
                    isTLS: listener.tls != nil,
                    isTCP: isTCP,
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
            loop.setHandler(makeHandler(loop))
            loops.append(loop)
        }
        self.state = state
        self.boundAddresses = addresses
        self.loops = loops
    }

    /// How many processors this process may run on, which `taskset` and a container's set of CPUs reduce.
    package static var processorCount: Int { System.processorCount }

    /// How often the bounds were met, by loop.
    package var tallies: [LimitTally<TransportLimit>] { self.loops.map(\.memory.tally) }

    /// The open connections by listener, in their order.
    package var connectionCounts: [Int] { self.state.connectionCounts.map(\.value) }

    /// Sets the bounds that all loops share, from any thread; each loop's own are set on its thread, by
    /// `EventLoop.setLimits`.
    package func setLimits(_ limits: TransportLimits) {
        self.state.setLimits(limits)
    }

    /// When the certificate ends that handshakes show, in seconds since 1970; nil in cleartext.
    package var certificateExpiry: Int64? { self.state.context?.certificateExpiry }

    /// Has TLS listeners show another certificate in handshakes to come, from any thread.
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

    /// Takes the socket files away that were made for its listeners: for a server that never starts.
    package func removeSocketFiles() {
        self.state.removeSocketFiles()
    }

    /// Ends every connection and waits for the threads; handlers hear of each stream and connection that ends.
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
