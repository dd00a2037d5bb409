import Foundation
import Glibc
import Testing

@Suite("Workers of a peer that says anything", .serialized, .timeLimit(.minutes(15)))
struct HostilePeerTests {
    private static let numbers = [
        "9223372036854775807", "-9223372036854775808", "9223372036854775808", "1e308", "-0", "1e-400", "0.5", "null",
    ]

    @Test("An SDK worker survives numbers of any size, in events and in answers to extensions")
    func numbers() throws {
        let peer = try ScriptedGateway()
        let worker = try SDKWorker(peer.url, authority: peer.certificateAuthority, ["--slots", "16"])
        try worker.wait(for: "subscribed")
        try peer.request("/wakes")
        for (index, number) in Self.numbers.enumerated() {
            try peer.answer("/extend", #"{"timeLeft":\#(number)}"#)
            let names = ["deadline", "priority", "attempt", "coalesced", "receivedAt", "firstReceivedAt"]
            // The deadline must be a whole number; otherwise the wake cannot be read.
            let whole = Int(number) ?? 1
            let members = names.map { "\"\($0)\":\(whole)" }.joined(separator: ",")
            let hanging = #"{"do":"extend","milliseconds":1000}"#
            try peer.wake("plain\(index)", #""timeLeft":\#(number)"#)
            try peer.wake("whole\(index)", members, deadline: nil)
            try peer.wake("extended\(index)", #""timeLeft":30000"#, payload: hanging)
            try peer.request("/extended\(index)/extend")
            try peer.request("/extended\(index)")
        }
        // The worker handles the next wake normally.
        try peer.wake("last", #""timeLeft":30000"#)
        try peer.request("/v1/wakes/last")
        #expect(worker.process.isRunning)
        worker.process.send(SIGTERM)
        try worker.wait(for: "stopping")
        #expect(try worker.process.end().status == 0)
    }

    /// Starts a `wakegate worker` whose command finds no new data.
    private func worker(_ peer: ScriptedGateway) throws -> ChildProcess {
        let place = ["--gateway", peer.url, "--ca", peer.certificateAuthority, "--topic", "t", "--slots", "16"]
        let command = ["--stop-within", "5", "--", "bash", "-c", "exit 3"]
        return try ChildProcess(wakegate: ["worker"] + place + command)
    }

    @Test("A command of a wake with numbers of any size is run, and its result reported")
    func command() throws {
        let peer = try ScriptedGateway()
        let worker = try self.worker(peer)
        try peer.request("/wakes")
        for (index, number) in ["9223372036854775807", "1e308", "null"].enumerated() {
            let clock = "\"deadline\":9223372036854775807,\"attempt\":9223372036854775807"
            try peer.wake("w\(index)", clock + ",\"timeLeft\":\(number)", deadline: nil)
            #expect(try peer.request("/v1/wakes/w\(index)") == #"{"result":"noData"}"#)
        }
        worker.send(SIGTERM)
        #expect(try worker.end().status == 0)
    }
}
