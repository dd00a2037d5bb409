import Glibc
import HTTPClient
import HTTPTransport
import Platform
package import ServiceManager
import Storage
import Synchronization

/// Runs an agent in this process.
package enum AgentProcess {
    private typealias Messages = ListBatch<AgentMessage>

    /// The reason why an agent cannot start.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String

        init(_ description: String) {
            self.description = description
        }
    }

    /// Runs until SIGTERM or SIGINT. Unfinished transfers are stored and continue at the next start.
    ///
    /// - Parameters:
    ///   - settings: the settings of the agent. The state folder must exist, and no other process may use it.
    ///   - socket: the listening socket from the service manager; nil to create one.
    ///   - onReady: called once when the agent accepts connections.
    /// - Throws: the error that prevents the start.
    package static func run(
        _ settings: AgentSettings,
        socket: InheritedSocket?,
        onReady: @escaping @Sendable () -> Void
    ) throws {
        ProcessLimits.takeSignalsAsErrors()
        guard let signals = SignalPipe.open([SIGTERM, SIGINT]) else { throw Failure("no pipe can be opened") }
        let log = GatewayLog(level: settings.logLevel, format: settings.logFormat)
        defer { log.close() }
        let files = try self.files(settings)
        let store = try self.store(settings, files)
        let network = try HTTPThread.shared()
        let workers = (syncing: try FileWorker("files"), moving: try FileWorker("moves"))
        let mailbox = Mailbox<Messages>()
        let output = AgentOutputQueue()
        let post: @Sendable ([AgentMessage]) -> Void = { messages in
            var batch = Messages()
            batch.elements = messages
            mailbox.submit(&batch)
        }
        let engine = AgentEngine(
            settings: settings,
            files: files,
            store: store,
            world: MachineWorld(settings: settings, files: files, store: store, network: network, workers: workers),
            log: log,
            post: { post([$0]) },
            emit: { output.leave($0) }
        )
        let found = try self.restore(engine, settings)
        let server = try self.server(settings, socket) { loop in
            AgentHandler(loop: loop, output: output, log: log, limits: settings.limits, post: post)
        }
        let pulse = Pulse()
        let moved = Handover(engine)
        let thread = try NamedThread("agent", signals: .blocked) {
            let engine = moved.take()
            var batch = Messages()
            engine.turn([])
            while mailbox.take(into: &batch, waitingAtMost: engine.wait) {
                pulse.beat()
                engine.turn(batch.elements)
                batch.removeAll()
            }
            engine.stop()
        }
        let machine = MachineWatch(settings) { post([.machine($0)]) }
        network.submit { machine.begin(on: $0) }
        try server.start()
        var fields = ["listen": server.boundAddresses.first ?? "", "transfers": "\(found.transfers)"]
        if found.strayFiles > 0 { fields["filesRemoved"] = "\(found.strayFiles)" }
        if found.unreadable > 0 { fields["unreadable"] = "\(found.unreadable)" }
        log.write(.ready, fields)
        Systemd.notify(.ready("Takes transfers at \(settings.listen)"))
        onReady()
        self.waitForEnd(signals, pulse, mailbox)
        Systemd.notify(.stopping("Keeps what has come of transfers", milliseconds: 5000))
        mailbox.close()
        thread.join()
        files.end()
        server.stop()
        workers.syncing.stop()
        workers.moving.stop()
        log.write(.stopped)
    }

    private static func files(_ settings: AgentSettings) throws -> StateFiles {
        let folder = "\(settings.stateFolder)/files"
        do throws(SystemError) {
            return try StateFiles(
                folder: folder,
                bytesMax: settings.limits.stateBytesMax,
                reserve: settings.spaceReserve
            )
        } catch {
            throw Failure("\(folder) cannot be made: \(error.message); see to the state folder")
        }
    }

    private static func restore(_ engine: AgentEngine, _ settings: AgentSettings) throws -> AgentEngine.RestoreSummary {
        do throws(SQLiteError) {
            return try engine.restore()
        } catch {
            let path = "\(settings.stateFolder)/transfers.sqlite"
            throw Failure("\(path) cannot be read: \(error.message); replace it with a copy, or name another folder")
        }
    }

    private static func store(_ settings: AgentSettings, _ files: StateFiles) throws -> TransferStore {
        let path = "\(settings.stateFolder)/transfers.sqlite"
        do throws(SQLiteError) {
            let reserve = CommitReserve(path: "\(settings.stateFolder)/transfers.reserve")
            return try TransferStore(path: path, hasTransferFiles: !files.isEmpty, reserve: reserve)
        } catch {
            throw Failure("\(path) cannot be used: \(error.message); see to the state folder, or name another")
        }
    }

    private static func server(
        _ settings: AgentSettings,
        _ socket: InheritedSocket?,
        makeHandler: @Sendable (EventLoop) -> AgentHandler
    ) throws -> HTTPServer {
        let address = try ListenAddress.parse(socket?.address ?? settings.listen)
        var limits = TransportLimits()
        limits.handshakesMax = 256
        // The sum of the limits for the agent's user, for root, and for connections without a request. Therefore no
        // group can occupy all connections.
        limits.connectionsMax = 2 * settings.limits.connectionsPerUserMax + limits.handshakesMax
        return try HTTPServer(
            listeners: [Listener(address: address, tls: nil, descriptor: socket?.descriptor, isPrivate: true)],
            limits: limits,
            loopCount: 1,
            makeHandler: makeHandler
        )
    }

    /// Waits for a signal. Notifies the service manager's watchdog as long as the agent's thread responds.
    private static func waitForEnd(_ signals: Int32, _ pulse: Pulse, _ mailbox: Mailbox<Messages>) {
        let interval = Systemd.watchdogMicroseconds.map { Int32(clamping: max(1, $0 / 4000)) } ?? -1
        while true {
            if Descriptor.wait(for: signals, .readable, milliseconds: interval),
                SignalPipe.read(signals).contains(where: { $0 == SIGTERM || $0 == SIGINT })
            {
                return
            }
            guard interval > 0, pulse.isAnswered else { continue }
            Systemd.notify(.alive)
            pulse.ask()
            mailbox.signal()
        }
    }
}
