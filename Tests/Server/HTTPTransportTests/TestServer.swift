import HTTPTransport
import Testing

/// A server with one cleartext listener on a free port, stopped at the end of its test.
final class TestServer {
    let server: HTTPServer
    let log: EventLog

    var address: String { self.server.boundAddresses[0] }

    init(
        _ limits: TransportLimits = TransportLimits(),
        addresses: [String] = ["127.0.0.1:0"],
        tls: TLSContext? = nil,
        reserved: Int = 0,
        loopCount: Int = 1
    ) throws {
        let log = EventLog()
        self.log = log
        self.server = try HTTPServer(
            listeners: try addresses.enumerated().map { index, address in
                // The second listener is that of operators.
                Listener(address: try .parse(address), tls: tls, connectionsReserved: index == 1 ? reserved : 0)
            },
            limits: limits,
            loopCount: loopCount
        ) { ScriptedHandler($0, log) }
        try self.server.start()
    }

    deinit { self.server.stop() }

    /// A peer that has begun HTTP/2.
    func peer(settings: [UInt8] = []) throws -> ScriptedPeer {
        let peer = try ScriptedPeer(self.address)
        peer.beginHTTP2(settings: settings)
        return peer
    }

    /// How often a bound was met, on all loops.
    func times(_ limit: TransportLimit) -> Int { self.server.tallies.reduce(0) { $0 + $1.times(limit) } }

    /// Has a peer served again and again until a bound was met this often; false when it is not within a minute.
    func isMet(_ limit: TransportLimit, times: Int = 1, while served: ScriptedPeer) -> Bool {
        let deadline = ContinuousClock.now + .seconds(60)
        var stream = 101
        while self.times(limit) < times {
            guard ContinuousClock.now < deadline else { return false }
            served.send(ScriptedPeer.request("/echo", stream: stream))
            guard served.body(stream: stream) == [] else { return false }
            stream += 2
        }
        return true
    }

    /// Another connection is served as if nothing had happened.
    func expectServed(_ location: SourceLocation = #_sourceLocation) throws {
        Self.expectServed(try self.peer(), location)
    }

    /// A peer that has begun HTTP/2 and sent no request is served.
    static func expectServed(_ peer: ScriptedPeer, _ location: SourceLocation = #_sourceLocation) {
        peer.send(ScriptedPeer.request("/echo", stream: 1, ended: false))
        peer.send(ScriptedPeer.frame(0, flags: 1, stream: 1, [UInt8]("alive".utf8)))
        #expect(peer.body(stream: 1) == [UInt8]("alive".utf8), sourceLocation: location)
    }
}
