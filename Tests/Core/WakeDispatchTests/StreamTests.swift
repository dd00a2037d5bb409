import Engine
import Policy
import Testing
import WakeGateTestKit
import Wire

@Suite("Streams that end, stall, pause and drain", .timeLimit(.minutes(15)))
struct StreamTests {
    @Test("What frees a slot names the wake that ended, in whatever order they end, and after the word that it expired")
    func released() {
        let rig = DispatchRig()
        rig.subscribe(1, slots: 4)
        for device in 0..<4 { rig.push(device) }
        let wakes = rig.takeDeliveries().map(\.wake)
        let stream = DispatchRig.address(1)
        rig.report(.newData, wakes[2])
        #expect(rig.output.take() == [.released(wakes[2], stream)])
        rig.dispatcher.lose(wakes[0], on: stream, takingBackAttempt: false)
        #expect(rig.output.events.first == .released(wakes[0], stream))
        _ = rig.output.take()
        rig.report(.failed, wakes[3])
        #expect(rig.output.events.first == .released(wakes[3], stream))
        _ = rig.output.take()
        rig.advance(by: 30_000)
        let expected: [RecordingOutput.Event] = [.expired(wakes[1], stream, .deadline), .released(wakes[1], stream)]
        #expect(rig.output.events.filter { expected.contains($0) } == expected)
    }

    @Test("Subscribing again under one address ends the former stream")
    func sameAddress() {
        let rig = DispatchRig()
        rig.subscribe(1)
        rig.push(1)
        _ = rig.takeDeliveries()
        rig.subscribe(1, slots: 2)
        #expect(rig.engine.totals.results[.lost] == 1)
        #expect(rig.takeDeliveries().count == 1)
        #expect(rig.dispatcher.workerCounts(nil) == .init(connected: 1, slots: 2, busy: 1))
    }

    /// A stream on which three wakes have expired; what waits is waiting for it.
    private static func stalled() -> (DispatchRig, [Delivery]) {
        let rig = DispatchRig()
        rig.subscribe(1, slots: 4)
        for device in 0..<3 { rig.push(device) }
        let deliveries = rig.takeDeliveries()
        rig.advance(by: 30_000)
        #expect(Set(rig.output.expirations) == Set(deliveries.map(\.wake)))
        _ = rig.output.take()
        rig.push(10)
        return (rig, deliveries)
    }

    @Test("A stream on which three wakes in a row expired gets none")
    func stalls() {
        let (rig, _) = Self.stalled()
        #expect(rig.takeDeliveries().isEmpty)
        #expect(rig.engine.totals.held[.worker] == 1)
        let counts = rig.dispatcher.workerCounts(nil)
        #expect((counts.connected, counts.slots, counts.busy, counts.stalled) == (1, 4, 0, 1))
        #expect(counts.stallReason?.contains("nothing was ever received from it") == true)
    }

    /// Gives back the last wake that was delivered.
    ///
    /// - Returns: the wake that this brings, and its stream.
    private func giveBack(_ rig: DispatchRig, _ reason: String = "no interpreter") throws -> Delivery? {
        let wake = try #require(rig.takeDeliveries().last?.wake)
        _ = rig.output.take()
        #expect(rig.dispatcher.release(wake, reason: reason) == .released)
        #expect(rig.engine.totals.accepted == rig.engine.totals.accountedFor)
        return rig.output.deliveries.last
    }

    @Test("A stream that gave back three wakes in a row is stalled for that reason until it answers one")
    func stallsByReleases() throws {
        let rig = DispatchRig()
        rig.subscribe(1, slots: 2)
        rig.push(1)
        rig.push(2)
        let other = try #require(rig.output.deliveries.first).wake
        for _ in 0..<2 { #expect(try self.giveBack(rig) != nil) }
        #expect(rig.dispatcher.workerCounts(nil).stalled == 0)
        #expect(try self.giveBack(rig, "/bin/x cannot be started") == nil)
        let stream = try #require(rig.dispatcher.streams(countMax: 1).first)
        #expect(stream.state == .stalled)
        #expect(stream.trouble == "it gave back 3 wakes in a row that it could not begin: /bin/x cannot be started")
        let counts = rig.dispatcher.workerCounts(nil)
        #expect(counts.stalled == 1 && counts.stallReason?.hasSuffix("/bin/x cannot be started") == true)
        rig.report(.newData, other)
        #expect(rig.dispatcher.workerCounts(nil).stalled == 0)
        #expect(rig.dispatcher.streams(countMax: 1).first?.trouble == nil)
        #expect(rig.takeDeliveries().map(\.token) == [EngineRig.token(2)], "the push that waited")
    }

    @Test("A stream that ends while it is stalled is counted no more, and the next one begins without a stall")
    func stalledStreamEnds() throws {
        let rig = DispatchRig()
        rig.subscribe(1, slots: 1)
        rig.push(1)
        for _ in 0..<3 { _ = try self.giveBack(rig) }
        #expect(rig.dispatcher.workerCounts(nil).stalled == 1)
        rig.endStream(1)
        #expect(rig.dispatcher.workerCounts(nil) == .init())
        rig.subscribe(1, slots: 1)
        #expect(rig.dispatcher.workerCounts(nil) == .init(connected: 1, slots: 1, busy: 1))
    }

    @Test("A first wake that expires on a stream from which nothing came puts its delivery in doubt")
    func neverHeard() throws {
        let rig = DispatchRig()
        rig.subscribe(1, slots: 2)
        rig.push(1)
        rig.advance(by: 30_000)
        #expect(rig.dispatcher.snapshot(rig.rig.index(1)).silentWorker != nil)
        #expect(rig.dispatcher.streams(countMax: 1).first?.trouble?.hasSuffix("a buffering proxy?") == true)
        _ = rig.takeDeliveries()
        rig.push(2)
        let wake = try #require(rig.takeDeliveries().last).wake
        _ = rig.dispatcher.extend(wake, by: 1000)
        #expect(rig.dispatcher.snapshot(rig.rig.index(1)).silentWorker == nil, "the worker has asked for more time")
        #expect(rig.dispatcher.streams(countMax: 1).first?.trouble == nil)
    }

    @Test("Two in a row stall nothing, and an answer between them starts the count again")
    func twoInARow() {
        let rig = DispatchRig()
        rig.subscribe(1, slots: 1)
        for device in 0..<9 {
            rig.push(device)
            #expect(rig.output.deliveries.count == 1, "device \(device)")
            guard let wake = rig.takeDeliveries().last?.wake else { return }
            if device % 3 == 2 { rig.report(.failed, wake) } else { rig.advance(by: 30_000) }
            _ = rig.output.take()
        }
    }

    @Test("A late answer to any of them ends the stall", arguments: 0..<3)
    func lateAnswer(which: Int) {
        let (rig, deliveries) = Self.stalled()
        #expect(rig.report(.newData, deliveries[which].wake) == .endedOtherwise(.push(.expired)))
        #expect(rig.takeDeliveries().map(\.token) == [EngineRig.token(10)])
    }

    @Test("A late answer to a wake that is forgotten ends the stall as well")
    func forgotten() {
        let (rig, deliveries) = Self.stalled()
        rig.advance(by: 700_000)
        _ = rig.output.take()
        #expect(rig.report(.newData, deliveries[0].wake) == .unknown)
        #expect(rig.takeDeliveries().map(\.token).contains(EngineRig.token(10)))
    }

    @Test("Somebody else's answer does not end the stall")
    func othersAnswer() {
        let (rig, _) = Self.stalled()
        #expect(rig.report(.newData, WakeID(random: (1, 1))) == .unknown)
        #expect(rig.takeDeliveries().isEmpty)
    }

    @Test("Subscribing again ends the stall")
    func subscribesAgain() {
        let (rig, _) = Self.stalled()
        rig.endStream(1)
        rig.subscribe(2)
        #expect(rig.takeDeliveries().map(\.token) == [EngineRig.token(10)])
    }

    @Test("Wakes that expire at one millisecond are told of in the order of their launches")
    func expiryOrder() {
        let rig = DispatchRig()
        rig.subscribe(1, slots: 8)
        for device in 0..<4 {
            rig.push(device)
            rig.advance(by: 1)
        }
        let wakes = rig.takeDeliveries().map(\.wake)
        rig.advance(by: 40_000)
        #expect(rig.output.expirations == wakes)
    }

    @Test("At one millisecond the wake ends, then the pending push expires, then nothing launches")
    func oneMillisecond() {
        let rig = DispatchRig(EngineRig.open([(.maxAttempts, 1)]))
        rig.subscribe(1, slots: 8)
        rig.rig.register(1)
        rig.rig.conditions(1) { $0.appState = .active }
        rig.push(1, .considerate, .at(rig.rig.instant + 30_000))
        rig.push(1, .considerate, .at(rig.rig.instant + 30_000))
        _ = rig.output.take()
        rig.advance(by: 30_000)
        let books = rig.engine.totals
        #expect(books.results[.expired] == 1 && books.coalesced == 1 && books.discarded[.expired] == 1)
        #expect(rig.takeDeliveries().isEmpty)
    }

    @Test("A wake whose deadline passed unseen expired before its answer, and that answer was late")
    func answerAfterDeadline() {
        let rig = DispatchRig()
        rig.subscribe(1, slots: 3)
        for device in 0..<3 { rig.push(device) }
        let wakes = rig.takeDeliveries().map(\.wake)
        rig.rig.pass(30_000)
        #expect(!rig.dispatcher.advance(to: rig.rig.instant, devicesMax: 0))
        for wake in wakes { #expect(rig.report(.newData, wake) == .endedOtherwise(.push(.expired))) }
        rig.push(10)
        #expect(rig.takeDeliveries().map(\.token) == [EngineRig.token(10)])
    }

    @Test("A stream that is given fewer slots keeps its wakes and gets no more until it has a free one again")
    func fewerSlots() {
        let rig = DispatchRig()
        rig.subscribe(1, slots: 3)
        for device in 0..<3 { rig.push(device) }
        let wakes = rig.takeDeliveries().map(\.wake)
        rig.dispatcher.slotsChanged(DispatchRig.address(1), to: 1)
        #expect(rig.dispatcher.workerCounts(nil) == .init(connected: 1, slots: 1, busy: 3))
        for device in 3..<8 { rig.push(device) }
        rig.report(.newData, wakes[0])
        rig.report(.newData, wakes[1])
        #expect(rig.takeDeliveries().isEmpty)
        rig.report(.newData, wakes[2])
        #expect(rig.takeDeliveries().count == 1)
        rig.dispatcher.slotsChanged(DispatchRig.address(1), to: 0)
        rig.dispatcher.slotsChanged(DispatchRig.address(1), to: 4)
        #expect(rig.takeDeliveries().count == 3)
        #expect(rig.dispatcher.workerCounts(nil) == .init(connected: 1, slots: 4, busy: 4))
        rig.endStream(1)
        #expect(rig.dispatcher.workerCounts(nil) == .init())
        // Of a stream that has ended nothing is known.
        rig.dispatcher.slotsChanged(DispatchRig.address(1), to: 9)
        #expect(rig.dispatcher.workerCounts(nil) == .init())
    }

    @Test("A stream without slots leaves its topic's devices to the others")
    func noSlots() {
        let rig = DispatchRig()
        rig.subscribe(1, slots: 2)
        rig.dispatcher.slotsChanged(DispatchRig.address(1), to: 0)
        rig.push(1)
        #expect(rig.takeDeliveries().isEmpty && rig.engine.totals.held[.worker] == 1)
        rig.subscribe(2, slots: 2)
        #expect(rig.takeDeliveries().map(\.stream) == [DispatchRig.address(2)])
    }

    @Test("A wake that is lost while its stream goes on launches again; its attempt counts if it was delivered")
    func lostAlone() throws {
        let rig = DispatchRig()
        rig.subscribe(1, slots: 2)
        rig.push(1)
        for attempt in [1, 1, 2, 2] as [UInt32] {
            let delivery = try #require(rig.takeDeliveries().first)
            #expect(delivery.push?.attempts == attempt)
            rig.dispatcher.lose(
                delivery.wake,
                on: DispatchRig.address(1),
                takingBackAttempt: rig.engine.totals.results[.lost] % 2 == 0
            )
            #expect(rig.dispatcher.workerCounts(nil).busy == 1)
        }
        let last = try #require(rig.takeDeliveries().first)
        #expect(last.push?.attempts == 3)
        #expect(rig.engine.totals.results[.lost] == 4 && rig.engine.totals.inFlight == 1)
        // A wake of another stream, or none at all, is not this one's to lose.
        rig.dispatcher.lose(last.wake, on: DispatchRig.address(2), takingBackAttempt: true)
        #expect(rig.engine.totals.inFlight == 1)
        #expect(rig.report(.newData, last.wake) == .ended)
        rig.dispatcher.lose(last.wake, on: DispatchRig.address(1), takingBackAttempt: true)
        #expect(rig.engine.totals.results[.lost] == 4 && rig.engine.totals.completed == 1)
    }

    @Test("A wake whose deadline has passed unseen expires, and is not lost")
    func expiredBeforeLost() throws {
        let rig = DispatchRig()
        rig.subscribe(1, slots: 1)
        rig.push(1)
        let wake = try #require(rig.takeDeliveries().first?.wake)
        rig.rig.pass(30_000)
        _ = rig.dispatcher.advance(to: rig.rig.instant, devicesMax: 0)
        rig.dispatcher.lose(wake, on: DispatchRig.address(1), takingBackAttempt: true)
        #expect(rig.engine.totals.results[.expired] == 1 && rig.engine.totals.results[.lost] == 0)
        #expect(rig.output.expirations == [wake])
        #expect(rig.dispatcher.workerCounts(nil).busy == 0)
    }

    @Test("A stream that sees to its silence itself does not stall")
    func neverStalls() {
        let rig = DispatchRig()
        let request = SubscriptionRequest(slots: 1, devices: [], stallsWhenSilent: false)
        _ = EngineRig.topicName(0).withByteView {
            rig.dispatcher.subscribed(DispatchRig.address(1), topic: $0, request)
        }
        for device in 0..<8 {
            rig.push(device)
            #expect(rig.output.deliveries.count == 1, "device \(device)")
            rig.advance(by: 30_000)
            _ = rig.output.take()
        }
        #expect(rig.engine.totals.results[.expired] == 8)
    }

    private static func drain(_ rig: DispatchRig, _ stream: Int, isAdmitted: Bool = true) -> Bool {
        rig.dispatcher.streamDraining(DispatchRig.address(stream)) { _ in isAdmitted }
    }

    @Test("A stream whose worker stops gets no new wake, and ends after its last, however that one ends")
    func workerStops() {
        for outcome in [WakeOutcome.newData, .failed, .expired, .lost] {
            let rig = DispatchRig()
            rig.subscribe(1, slots: 3)
            rig.push(1)
            let wake = rig.takeDeliveries().map(\.wake)
            #expect(Self.drain(rig, 1))
            rig.push(2)
            #expect(rig.output.take().isEmpty)
            #expect(rig.engine.totals.held[.worker] == 1)
            switch outcome {
            case .newData: #expect(rig.report(.newData, wake[0]) == .ended)
            case .failed: #expect(rig.report(.failed, wake[0]) == .ended)
            case .lost: #expect(rig.dispatcher.release(wake[0], reason: "") == .released)
            case .expired, .noData: rig.advance(by: 30_000)
            }
            #expect(rig.output.take().last == .drained(DispatchRig.address(1)))
            #expect(rig.engine.totals.results[.lost] == (outcome == .lost ? 1 : 0))
            #expect(rig.dispatcher.workerCounts(nil) == .init())
            #expect(!Self.drain(rig, 1))
            rig.subscribe(2)
            #expect(rig.takeDeliveries().count == 1)
        }
    }

    @Test("An idle stream ends as soon as its worker stops, and only a caller of its topic may say so")
    func idleWorkerStops() {
        let rig = DispatchRig()
        rig.subscribe(1)
        #expect(!Self.drain(rig, 2))
        #expect(!Self.drain(rig, 1, isAdmitted: false))
        #expect(rig.output.take().isEmpty)
        #expect(Self.drain(rig, 1))
        #expect(rig.output.take() == [.drained(DispatchRig.address(1))])
    }
}
