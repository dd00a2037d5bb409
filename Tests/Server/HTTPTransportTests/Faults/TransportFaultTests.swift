import Glibc
import HTTPTransport
import Testing
import WakeGateTestKit

/// Every call that the transport makes of the system and of OpenSSL, failed at every place.
@Suite("The transport, each of whose steps fails", .timeLimit(.minutes(15)))
struct TransportFaultTests {
    private typealias Step = SystemFaults.Step
    private typealias Language = FaultScene.Language

    /// An error that a step may meet, and how often in a row.
    private struct Fault {
        let step: Step
        let error: Int32
        var times = 1
    }

    private static let always = 1_000_000

    private static func faults(_ step: Step, once: [Int32], lasting: [Int32] = [], times: Int = always) -> [Fault] {
        once.map { Fault(step: step, error: $0) } + lasting.map { Fault(step: step, error: $0, times: times) }
    }

    /// What a loop's steps may meet. What is full is no longer so after a while.
    private static let all =
        faults(
            .accept,
            once: [EAGAIN, EINTR, ECONNABORTED, EPROTO],
            lasting: [EMFILE, ENFILE, ENOBUFS, ENOMEM],
            times: 2
        )
        + faults(.receive, once: [EAGAIN, EINTR, SystemFaults.oneByte], lasting: [ECONNRESET, ETIMEDOUT, ENOMEM])
        + faults(.receive, once: [ENOBUFS], lasting: [SystemFaults.oneByte])
        + faults(.send, once: [EAGAIN, EINTR, SystemFaults.oneByte, ENOBUFS], lasting: [EPIPE, ECONNRESET, ENOMEM])
        + faults(.send, once: [], lasting: [EAGAIN, SystemFaults.oneByte], times: 40)
        + faults(.watch, once: [ENOMEM, ENOSPC], lasting: [ENOMEM])
        + faults(.wait, once: [EINTR], lasting: [EINTR], times: 5)
        + faults(.close, once: [EINTR, EIO], lasting: [EIO])
        + faults(.shutdown, once: [ENOTCONN]) + faults(.option, once: [EINVAL])
        + faults(.clear, once: [EAGAIN], lasting: [EAGAIN], times: 3)

    private static let ofTLS: [Fault] = [Step.tlsBegin, .tlsHandshake, .tlsRead, .tlsWrite].flatMap {
        faults($0, once: [ENOMEM])
    }

    @Test(
        "Whatever step fails, once or for good, each request is answered or closed once, and the loop serves on",
        arguments: FaultScene.Language.allCases,
        [0, 700]
    )
    func everyStep(language: FaultScene.Language, bytesAtOnce: Int) throws {
        let tls = try FaultScene.makeContext()
        let faults = Self.all + (language == .http2OverTLS ? Self.ofTLS : [])
        try self.expectEveryStepIsTaken(language, tls, bytesAtOnce, Set(faults.map(\.step)))
        for fault in faults {
            var number = 0
            while try self.run(language, tls, bytesAtOnce, fault, number) { number += 1 }
            #expect(number > 0, "\(fault.step) was never failed")
        }
    }

    /// Without a fault all is said, by way of every step that is failed.
    private func expectEveryStepIsTaken(
        _ language: FaultScene.Language,
        _ tls: TLSContext,
        _ bytesAtOnce: Int,
        _ steps: Set<SystemFaults.Step>
    ) throws {
        let scene = try FaultScene(language, tls: tls)
        scene.faults.slowSockets(bytes: bytesAtOnce)
        scene.faults.failNothing()
        #expect(scene.talk(try scene.peer()))
        #expect(scene.ledger.count == (language == .http1 ? 6 : 7))
        for step in steps where step != .close {
            #expect(scene.faults.calls(step) > 0, "\(step)")
        }
        #expect(try scene.verdict() == [])
    }

    /// One run of which a call fails, and what the run shows.
    ///
    /// - Returns: whether it came to the call.
    private func run(
        _ language: FaultScene.Language,
        _ tls: TLSContext,
        _ bytesAtOnce: Int,
        _ fault: Fault,
        _ number: Int
    ) throws -> Bool {
        let scene = try FaultScene(language, tls: tls)
        scene.faults.slowSockets(bytes: bytesAtOnce)
        scene.faults.fail(fault.step, number: number, error: fault.error, times: fault.times)
        do {
            let peer = try scene.peer()
            _ = scene.talk(peer)
        }
        let violations = try scene.verdict()
        #expect(violations == [], "\(language) \(fault.step) \(number) fails with \(fault.error), \(fault.times) times")
        try #require(number < 2000, "\(fault.step) has no end")
        return scene.faultsMet > 0
    }

    @Test("A listener that cannot be watched again at first is watched again a second later", arguments: [1, 2, 3])
    func listenerIsWatchedAgain(times: Int) throws {
        let scene = try FaultScene(.http2, tls: nil)
        scene.faults.fail(.accept, number: 0, error: EMFILE)
        let peer = try scene.peer()
        let tally = scene.server.tallies[0]
        while tally.times(.openFiles) == 0 { sched_yield() }
        scene.faults.fail(.watch, number: 0, error: ENOMEM, times: times)
        #expect(scene.talk(peer))
        #expect(scene.faults.met == times)
        #expect(try scene.verdict() == [])
    }

    @Test("A server that cannot start says so and leaves nothing open; one that can serves")
    func start() throws {
        for step in [SystemFaults.Step.open, .bind, .listen, .option, .watch, .thread] {
            for error in [EMFILE, ENFILE, ENOMEM, ENOBUFS, EAGAIN] {
                var number = 0
                while try self.startMeets(step, error, number) { number += 1 }
                #expect(number > 1, "\(step)")
            }
        }
    }

    private func startMeets(_ step: SystemFaults.Step, _ error: Int32, _ number: Int) throws -> Bool {
        let faults = SystemFaults()
        faults.fail(step, number: number, error: error)
        do {
            faults.join()
            defer { SystemFaults.leave() }
            let listener = Listener(address: try .parse("127.0.0.1:0"), tls: nil)
            let log = EventLog()
            let server = try HTTPServer(listeners: [listener, listener], loopCount: 2) { ScriptedHandler($0, log) }
            defer { server.stop() }
            try server.start()
            SystemFaults.leave()
            for address in server.boundAddresses {
                let peer = try ScriptedPeer(address)
                peer.beginHTTP2()
                TestServer.expectServed(peer)
            }
            faults.join()
        } catch let error as TransportError {
            #expect(!error.message.isEmpty && faults.met > 0, "\(error)")
        }
        #expect(faults.openDescriptors == 0, "\(step) \(number) fails with \(error)")
        #expect(faults.wrongCloses == 0, "\(step) \(number) fails with \(error)")
        return faults.met > 0
    }
}
