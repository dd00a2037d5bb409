import Foundation
import HTTPTransport
import Testing
import WakeGateTestKit

/// A server whose one loop meets faults, and what a client does with it.
final class FaultScene {
    enum Language: CaseIterable {
        case http2, http2OverTLS, http1
    }

    static let bigBytes = 24_000

    let faults = SystemFaults()
    let ledger = RequestLedger()
    let server: HTTPServer
    private let language: Language
    /// How many calls had failed when the faults ended.
    private(set) var faultsMet = 0

    init(_ language: Language, tls: TLSContext?) throws {
        let (faults, ledger) = (self.faults, self.ledger)
        self.language = language
        self.server = try HTTPServer(
            listeners: [Listener(address: try .parse("127.0.0.1:0"), tls: language == .http2OverTLS ? tls : nil)],
            loopCount: 1
        ) { LedgerHandler($0, ledger, faults) }
        try self.server.start()
        self.server.loops[0].wake()
        self.ledger.waitForJoin()
    }

    deinit { self.server.stop() }

    /// A context that any client of a test believes.
    static func makeContext() throws -> TLSContext {
        let folder = NSTemporaryDirectory() + "wakegate-faults-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try DevelopmentCertificates.make(in: folder)
        return try TLSContext(certificateChainFile: folder + "/server.pem", privateKeyFile: folder + "/server.key")
    }

    /// A second passes on the loop's clock.
    func passTime() {
        self.faults.advance(milliseconds: 1000)
        self.server.loops[0].wake()
    }

    /// A client; when nothing comes for a while it has time pass, as long as that may change anything. The next second
    /// passes once the loop has seen the last, or is not to be woken: on a busy machine a client must not be timed out
    /// by seconds that its server had no turn in.
    func peer() throws -> ScriptedPeer {
        var (seconds, quiet, seen) = (0, 0, -1)
        let tls = self.language == .http2OverTLS ? TLSClient() : nil
        return try ScriptedPeer(self.server.boundAddresses[0], tls: tls) { [unowned self] in
            quiet += 1
            let wakes = self.ledger.wakes
            guard wakes > seen || quiet >= Self.quietMax else { return true }
            (quiet, seen) = (0, wakes)
            seconds += 1
            self.passTime()
            return seconds < 400
        }
    }

    /// So many moments without a turn of the loop are taken for its being unable to be woken.
    private static let quietMax = 40

    // MARK: What the client does

    /// Talks to the server until all is said or the connection has ended.
    ///
    /// - Returns: whether all was said, and answered as it should be.
    func talk(_ peer: ScriptedPeer) -> Bool {
        self.language == .http1 ? self.talkHTTP1(peer) : self.talkHTTP2(peer)
    }

    private func talkHTTP2(_ peer: ScriptedPeer) -> Bool {
        peer.beginHTTP2()
        guard peer.frame(type: 4) != nil, self.echo(peer, stream: 1) else { return false }
        for (stream, path) in [(3, "/stream"), (5, "/wait"), (7, "/hold")] {
            peer.send(ScriptedPeer.request(path, stream: stream))
        }
        let bodies = peer.bodies(streams: [3, 5])
        guard bodies == [3: "first last", 5: "waited"] else { return false }
        peer.send(ScriptedPeer.frame(3, stream: 7, ScriptedPeer.bytes(8)))
        peer.send(ScriptedPeer.request("/big", stream: 9))
        guard peer.body(stream: 9)?.count == Self.bigBytes else { return false }
        for (stream, path) in [(11, "/pause"), (13, "/last")] {
            peer.send(ScriptedPeer.request(path, stream: stream))
            guard peer.body(stream: stream) == [] else { return false }
        }
        return peer.hasEnded()
    }

    private func echo(_ peer: ScriptedPeer, stream: Int) -> Bool {
        peer.send(ScriptedPeer.request("/echo", stream: stream, ended: false))
        peer.send(ScriptedPeer.frame(0, flags: 1, stream: stream, [UInt8]("alive".utf8)))
        return peer.body(stream: stream) == [UInt8]("alive".utf8)
    }

    private func talkHTTP1(_ peer: ScriptedPeer) -> Bool {
        guard self.echoHTTP1(peer) else { return false }
        for (path, end) in [("/stream", "\r\n0\r\n\r\n"), ("/wait", "waited")] {
            peer.send("GET \(path) HTTP/1.1\r\nHost: h\r\n\r\n")
            guard peer.text(through: end)?.hasPrefix("HTTP/1.1 200 ") == true else { return false }
        }
        peer.send("GET /big HTTP/1.1\r\nHost: h\r\n\r\n")
        guard peer.text(through: "\r\n\r\n" + String(repeating: "a", count: Self.bigBytes)) != nil else { return false }
        for path in ["/pause", "/last"] {
            peer.send("GET \(path) HTTP/1.1\r\nHost: h\r\n\r\n")
            guard peer.text(through: "\r\n\r\n")?.hasPrefix("HTTP/1.1 200 ") == true else { return false }
        }
        return peer.hasEnded()
    }

    private func echoHTTP1(_ peer: ScriptedPeer) -> Bool {
        peer.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n")
        peer.send("alive")
        return peer.text(through: "\r\n\r\nalive")?.hasPrefix("HTTP/1.1 200 ") == true
    }

    /// Whether somebody new is served.
    private func serves() throws -> Bool {
        let peer = try self.peer()
        if self.language == .http1 { return self.echoHTTP1(peer) }
        peer.beginHTTP2()
        return self.echo(peer, stream: 1)
    }

    // MARK: What must hold

    /// Ends the faults, and looks whether all is as it should be.
    ///
    /// - Returns: what is not.
    func verdict() throws -> [String] {
        var violations: [String] = []
        func expectNoConnection(_ when: String) {
            if !self.ledger.waitForNoConnection(passTime: self.passTime) { violations.append("a connection \(when)") }
            if self.server.connectionCounts != [0] { violations.append("a counted connection \(when)") }
            if self.faults.openDescriptors != 0 { violations.append("an open descriptor \(when)") }
        }
        // Connections end with the faults that are.
        expectNoConnection("after the client's end")
        self.faultsMet = self.faults.met
        self.faults.failNothing()
        if try !self.serves() { violations.append("nobody new is served") }
        expectNoConnection("after that")
        self.server.stop()
        violations += self.ledger.faults
        if self.faults.wrongCloses != 0 { violations.append("a descriptor of another was closed") }
        return violations
    }
}
