import Glibc
import HTTPTransport
import Testing
import WakeGateTestKit

/// Whoever sends little is read before those who send much, and those are read, too.
@Suite("Whose turn it is", .timeLimit(.minutes(15)))
struct TurnOrderTests {
    @Test("A quiet connection is read before most of the busy ones that came first", arguments: [false, true])
    func quietFirst(isTLS: Bool) throws {
        let scene = try FlowScene(tls: isTLS ? try FaultScene.makeContext() : nil)
        let quiet = try scene.peer(flow: 3)
        quiet.ask("first")
        #expect(quiet.isServed())
        scene.makeNoise()
        #expect(scene.loop.busyConnectionCount == FlowScene.noisyCount)
        scene.hold()
        scene.sendBursts()
        quiet.ask("x")
        #expect(quiet.peer.isDelivered())
        scene.goOn()
        #expect(quiet.isServed())
        for peer in scene.noisy { #expect(peer.isServed()) }
        // Two bursts are more than is read in one turn.
        #expect(scene.heard(before: "/3/x").count <= 3)
        #expect(scene.heard(before: "").count == FlowScene.noisyCount)
    }

    @Test("Who sends little is quiet while others are busy; a busy flow's new connection is not")
    func quietOnes() throws {
        let scene = try FlowScene()
        let quiet = try scene.peer(flow: 3)
        let judge = { (peer: FlowPeer) in
            scene.log.removeAll()
            peer.ask("judge")
            #expect(peer.isServed())
            return scene.log.all.last
        }
        #expect(judge(quiet) == "not quiet")
        scene.makeNoise()
        #expect(judge(quiet) == "quiet")
        #expect(judge(scene.noisy[0]) == "not quiet")
        #expect(judge(try scene.peer(flow: FlowScene.noisyFlow)) == "not quiet")
    }

    @Test("Busy connections go on while others always have something, and wait for sixteen of them at most")
    func busyGoOn() throws {
        let scene = try FlowScene()
        let others = try (0..<60).map { try scene.peer(flow: UInt64(100 + $0)) }
        for other in others { other.ask("first") }
        for other in others { #expect(other.isServed()) }
        scene.makeNoise()
        scene.hold()
        scene.sendBursts()
        for other in others { other.ask("x") }
        for other in others { #expect(other.peer.isDelivered()) }
        scene.goOn()
        for peer in others + scene.noisy { #expect(peer.isServed()) }
        let areOthers = scene.log.all.filter { $0 != "/2/hold" }.map { $0.hasSuffix("/x") }
        let runs = areOthers.split(separator: false)
        #expect(runs.map(\.count).reduce(0, +) == others.count)
        #expect(runs.count >= 4 && runs.allSatisfy { $0.count <= 16 })
        let last = try #require(areOthers.lastIndex(of: true))
        #expect(areOthers[..<last].count { !$0 } < 10 * FlowScene.noisyCount)
    }

    @Test("A pause that busy connections make leaves the others 64 KiB, and them nothing")
    func pause() throws {
        let scene = try FlowScene()
        let others = try (3..<6).map { try scene.peer(flow: $0) }
        for other in others { other.ask("first") }
        for other in others { #expect(other.isServed()) }
        scene.makeNoise()
        scene.order("pause")
        scene.sendBursts()
        others[0].ask("x", times: 10)
        #expect(others[0].isServed())
        for other in others[1...] {
            other.ask("x", times: 10)
            #expect(other.peer.isDelivered())
        }
        scene.loop.wake()
        for peer in others + scene.noisy { #expect(peer.isServed()) }
        #expect(scene.loop.busyConnectionCount == FlowScene.noisyCount)
        // The second one's requests may have been read in part.
        let order = scene.log.all.filter { $0 != "/4/x" }
        let expected = ["/2/pause"] + [String](repeating: "/3/x", count: 10) + ["woken"]
        #expect(Array(order.prefix(12)) == expected)
    }

    @Test("In a pause that nobody's share explains, no socket is read")
    func pauseOfAll() throws {
        let scene = try FlowScene()
        let other = try scene.peer(flow: 3)
        other.ask("first")
        #expect(other.isServed())
        scene.order("pause")
        other.ask("x")
        #expect(other.peer.isDelivered())
        scene.loop.wake()
        #expect(other.isServed())
        let order = scene.log.all
        #expect(try #require(order.firstIndex(of: "woken")) < #require(order.firstIndex(of: "/3/x")))
    }

    @Test("Who has grown quiet is among the others again, though nothing is heard from it")
    func quietAgain() throws {
        let scene = try FlowScene()
        scene.makeNoise()
        #expect(scene.loop.busyConnectionCount == FlowScene.noisyCount)
        for second in 1...5 {
            scene.faults.advance(milliseconds: 1000)
            scene.loop.wake()
            scene.log.wait(for: "second", times: second)
        }
        #expect(scene.loop.busyConnectionCount == 0)
        for peer in scene.noisy { peer.ask("x") }
        for peer in scene.noisy { #expect(peer.isServed()) }
        #expect(scene.loop.busyConnectionCount == 0)
    }

    @Test("Busy connections that end before their turn leave nothing behind")
    func ended() throws {
        let scene = try FlowScene()
        let quiet = try scene.peer(flow: 3)
        quiet.ask("first")
        #expect(quiet.isServed())
        scene.makeNoise()
        scene.hold()
        scene.sendBursts()
        quiet.ask("close")
        #expect(quiet.peer.isDelivered())
        scene.goOn()
        #expect(quiet.isServed())
        for peer in scene.noisy { #expect(peer.peer.hasEnded()) }
        #expect(scene.loop.busyConnectionCount == 0)
        // They have the places of those that are gone.
        for number in 0..<FlowScene.noisyCount {
            let peer = try scene.peer(flow: UInt64(100 + number))
            peer.ask("x")
            #expect(peer.isServed())
        }
        #expect(scene.heard(before: "").count <= 3)
    }

    @Test("A connection that cannot be watched as a busy one stays as it is, and one that would be twice is ended")
    func watchFails() throws {
        let scene = try FlowScene()
        let peer = scene.noisy[0]
        let quiet = try scene.peer(flow: 3)
        for each in [peer, quiet] {
            each.ask("first")
            #expect(each.isServed())
        }
        for other in scene.noisy[1...] { other.ask("noise", times: 25) }
        for other in scene.noisy[1...] { #expect(other.isServed()) }
        let busy = scene.loop.busyConnectionCount
        scene.faults.fail(.watch, number: 0, error: ENOMEM)
        peer.ask("x")
        #expect(peer.isServed())
        #expect(scene.faults.met == 1 && scene.loop.busyConnectionCount == busy)
        scene.faults.fail(.watch, number: 1, error: ENOMEM)
        peer.ask("x")
        #expect(peer.peer.hasEnded())
        #expect(scene.faults.met == 1 && scene.loop.busyConnectionCount == busy)
        scene.faults.failNothing()
        quiet.ask("x")
        #expect(quiet.isServed())
    }
}
