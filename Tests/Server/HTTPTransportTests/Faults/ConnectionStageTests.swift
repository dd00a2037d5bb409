import Glibc
import HTTPTransport
import Testing
import WakeGateTestKit
import Wire

/// Every stage of a connection, and everything that its peer, its handler, the system or time can do to it there.
@Suite("A connection at every stage with every event", .timeLimit(.minutes(15)))
struct ConnectionStageTests {
    private typealias Peer = ScriptedPeer

    enum Event: CaseIterable {
        /// The peer continues correctly.
        case bytes
        /// A part of those bytes arrives.
        case partOfBytes
        /// The peer sends bytes that are invalid at this stage.
        case faultyBytes
        /// The peer ends its sending direction.
        case peerEnded
        case peerReset
        case secondPassed
        /// The maximum time without a request passes.
        case timePassed
        case handlerCloses, handlerGoesAway
        case serverStops
        /// Bytes arrive, and reading them fails.
        case readFails
        /// Bytes arrive, and the answer cannot be written.
        case writeFails
        /// Bytes arrive, and there is not enough memory to watch the connection for other events.
        case watchFails
    }

    enum Outcome: Hashable {
        /// The connection continues, and nothing was sent.
        case open
        /// The connection continues, and something was sent.
        case answered
        /// The server has ended its sending direction, and waits for the peer.
        case lingering
        /// The connection is closed.
        case ended
    }

    /// The outcome of each event at each stage.
    private static let outcomes: [ConnectionStage: [Event: Outcome]] = [
        .sniffing: Self.early.merging([.watchFails: .ended]) { $1 },
        // At this stage the watched events change only if the socket accepts no bytes.
        .handshaking: Self.early,
        .http2: Self.ordinary.merging([.timePassed: .lingering]) { $1 },
        .http1: Self.ordinary,
        // Received bytes are discarded, and nothing is sent.
        .lingering: [
            .bytes: .lingering, .partOfBytes: .lingering, .faultyBytes: .lingering, .peerEnded: .ended,
            .peerReset: .ended, .secondPassed: .lingering, .timePassed: .ended, .handlerCloses: .ended,
            .handlerGoesAway: .lingering, .serverStops: .ended, .readFails: .ended, .writeFails: .lingering,
            .watchFails: .lingering,
        ],
        .closed: Dictionary(uniqueKeysWithValues: Event.allCases.map { ($0, .ended) }),
    ]

    private static let ordinary: [Event: Outcome] = [
        .bytes: .answered, .partOfBytes: .open, .faultyBytes: .lingering, .peerEnded: .ended, .peerReset: .ended,
        .secondPassed: .open, .timePassed: .ended, .handlerCloses: .ended, .handlerGoesAway: .lingering,
        .serverStops: .ended, .readFails: .ended, .writeFails: .ended, .watchFails: .answered,
    ]

    /// The outcomes before HTTP has begun, when the handler does not know the connection.
    private static let early = Self.ordinary.merging([.handlerCloses: .open, .handlerGoesAway: .open]) { $1 }

    @Test(
        "After each event a connection continues, lingers or ends as the table says, and leaks nothing",
        arguments: ConnectionStage.allCases
    )
    func events(stage: ConnectionStage) throws {
        let tls = try FaultScene.makeContext()
        for event in Event.allCases {
            let scene = try FaultScene(stage == .handshaking ? .http2OverTLS : .http2, tls: tls)
            let peer = try Peer(scene.server.boundAddresses[0])
            let handshake = try #require(stage == .handshaking ? TLSClient()?.send([]) : [])
            self.bring(peer, to: stage, scene, handshake)
            self.happen(event, at: stage, to: peer, scene, handshake)
            self.expect(Self.outcomes[stage]?[event], of: peer, scene, "\(event) at \(stage)")
            peer.close()
            #expect(
                try event == .serverStops ? scene.ledger.faults == [] : scene.verdict() == [],
                "\(event) at \(stage)"
            )
            #expect(scene.faults.openDescriptors == 0 && scene.faults.invalidCloseCount == 0, "\(event) at \(stage)")
        }
    }

    /// - Parameter handshake: the first bytes of a TLS client.
    private func bring(_ peer: Peer, to stage: ConnectionStage, _ scene: FaultScene, _ handshake: [UInt8]) {
        let loop = scene.server.loops[0]
        switch stage {
        case .sniffing: ()
        case .handshaking: peer.send(Array(handshake.prefix(3)))
        case .http1: peer.send("GET /echo HTTP/1.1\r\nHost: h\r\n\r\n")
        case .http2, .closed: peer.send(Peer.preface + Peer.frame(.settings) + Peer.request("/echo", stream: 1))
        case .lingering: peer.send(Peer.preface + Peer.frame(.settings) + Peer.request("/last", stream: 1))
        }
        let requests = stage == .sniffing || stage == .handshaking ? 0 : 1
        Self.wait {
            scene.ledger.settle(loop)
        } until: {
            scene.server.connectionCounts == [1] && scene.ledger.count == requests
        }
        if stage == .closed { scene.ledger.settle(loop) { loop in loop.forEachConnection { loop.close($0) } } }
        let isOver = stage == .lingering || stage == .closed
        var hasEnded = false
        Self.wait {
            scene.ledger.settle(loop)
        } until: {
            hasEnded = peer.takeAll().hasEnded
            return hasEnded == isOver
        }
        #expect(hasEnded == isOver, "\(stage)")
        #expect(scene.server.connectionCounts == [stage == .closed ? 0 : 1], "\(stage)")
        #expect(scene.ledger.count == requests, "\(stage)")
    }

    /// Runs turns until `isDone`. Events of the system may be delayed on a busy machine.
    private static func wait(_ turn: () -> Void, until isDone: () -> Bool) {
        for _ in 0..<20_000 {
            turn()
            if isDone() { return }
            sched_yield()
        }
    }

    /// Waits for an outcome, and checks that nothing follows.
    private func expect(_ expected: Outcome?, of peer: Peer, _ scene: FaultScene, _ comment: Comment) {
        var outcome = Outcome.open
        var came = (count: 0, hasEnded: false)
        let loop = scene.server.loops[0]
        func look() {
            let more = peer.takeAll()
            came = (came.count + more.count, more.hasEnded)
            outcome = self.outcome(scene, came)
        }
        let isStopped = scene.server.connectionCounts == [0]
        Self.wait {
            if !isStopped { scene.ledger.settle(loop) }
        } until: {
            look()
            return outcome == expected
        }
        if !isStopped { scene.ledger.settle(loop) }
        look()
        #expect(outcome == expected, comment)
    }

    private func happen(
        _ event: Event,
        at stage: ConnectionStage,
        to peer: Peer,
        _ scene: FaultScene,
        _ handshake: [UInt8]
    ) {
        let loop = scene.server.loops[0]
        let bytes = self.bytes(at: stage, handshake)
        switch event {
        case .bytes: peer.send(bytes)
        case .partOfBytes: peer.send(Array(bytes.prefix(3)))
        case .faultyBytes: peer.send(stage == .http2 ? Peer.frame(.ping, [1]) : [UInt8]("GET\r\n\r\n".utf8))
        case .peerEnded: peer.endWriting()
        case .peerReset: peer.reset()
        case .secondPassed: scene.faults.advance(milliseconds: 1000)
        case .timePassed: scene.faults.advance(milliseconds: 3_601_000)
        case .handlerCloses: scene.ledger.settle(loop) { loop in loop.forEachConnection { loop.close($0) } }
        case .handlerGoesAway:
            scene.ledger.settle(loop) { loop in
                loop.forEachConnection { loop.goAway($0, debugData: ByteView()) }
            }
        case .serverStops: return scene.server.stop()
        case .readFails, .writeFails, .watchFails:
            let step: SystemFaults.Step = event == .readFails ? .receive : event == .writeFails ? .send : .watch
            scene.faults.fail(step, number: 0, error: step == .watch ? ENOMEM : ECONNRESET, times: 1_000_000)
            peer.send(bytes)
        }
    }

    private func outcome(_ scene: FaultScene, _ came: (count: Int, hasEnded: Bool)) -> Outcome {
        if scene.server.connectionCounts == [0] { return .ended }
        if came.hasEnded { return .lingering }
        return came.count > 0 ? .answered : .open
    }

    /// Returns the bytes with which a peer continues.
    private func bytes(at stage: ConnectionStage, _ handshake: [UInt8]) -> [UInt8] {
        switch stage {
        case .sniffing: Peer.preface + Peer.frame(.settings) + Peer.request("/echo", stream: 1)
        case .handshaking: Array(handshake.dropFirst(3))
        case .http1: [UInt8]("GET /echo HTTP/1.1\r\nHost: h\r\n\r\n".utf8)
        case .http2, .lingering, .closed: Peer.request("/echo", stream: 3)
        }
    }
}
