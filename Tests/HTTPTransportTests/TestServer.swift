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
        loopCount: Int = 1
    ) throws {
        let log = EventLog()
        self.log = log
        self.server = try HTTPServer(
            listeners: try addresses.map { Listener(address: try .parse($0), tls: tls) },
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
