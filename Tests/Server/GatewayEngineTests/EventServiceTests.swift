import Engine
import Gateway
import Platform
import Synchronization
import Testing
import Wire

@Suite("The queue of events for followers", .timeLimit(.minutes(15)))
struct EventServiceTests {
    /// Counts the wakeups of a follower.
    private final class Rings: Sendable {
        private let number = Mutex(0)

        var count: Int { self.number.withLock { $0 } }

        func signal() { self.number.withLock { $0 += 1 } }
    }

    private func event(_ number: Int) -> WatchedEvent { WatchedEvent(at: Int64(number), kind: .paused, topic: "t") }

    private func leave(_ numbers: Range<Int>, at service: EventService) {
        for number in numbers { service.take(self.event(number)) }
    }

    private func taken(_ follower: Int, _ service: EventService) -> (numbers: [Int], missed: Int) {
        var events: [WatchedEvent] = []
        var missed = 0
        while true {
            let taken = service.take(follower, into: &events)
            missed += taken.missed
            if taken.isAll { return (events.map { Int($0.at) }, missed) }
        }
    }

    @Test("Each follower gets all events since it joined, in order")
    func everyone() {
        let service = EventService(heldMax: 1000)
        #expect(!service.isWatched)
        self.leave(0..<3, at: service)
        let first = service.follow {}
        #expect(service.isWatched)
        self.leave(3..<10, at: service)
        let second = service.follow {}
        self.leave(10..<900, at: service)
        #expect(self.taken(first, service).numbers == Array(3..<900))
        #expect(self.taken(second, service).numbers == Array(10..<900))
        self.leave(900..<1900, at: service)
        #expect(self.taken(first, service) == (Array(900..<1900), 0))
        service.leave(first)
        service.leave(second)
        #expect(!service.isWatched && self.taken(first, service).numbers.isEmpty)
    }

    @Test("A slow follower misses the oldest events, learns their number, and continues", arguments: [16, 17, 100])
    func missed(heldMax: Int) {
        let service = EventService(heldMax: heldMax)
        let follower = service.follow {}
        self.leave(0..<1000, at: service)
        #expect(self.taken(follower, service) == (Array(1000 - heldMax..<1000), 1000 - heldMax))
        self.leave(1000..<1003, at: service)
        #expect(self.taken(follower, service) == ([1000, 1001, 1002], 0))
    }

    @Test("Events dropped on their way count as missed by every follower")
    func noRoom() {
        let service = EventService(heldMax: 20_000)
        let follower = service.follow {}
        var events = WatchedEvents()
        for number in 0..<10_000 { events.append(self.event(number)) }
        var others = WatchedEvents()
        others.append(self.event(10_000))
        events.append(&others)
        service.take(&events)
        #expect(events.isEmpty && others.isEmpty)
        let taken = self.taken(follower, service)
        #expect(taken.numbers == Array(0..<8192) && taken.missed == 10_001 - 8192)
    }

    @Test("A follower is woken once until it has taken everything, and then again")
    func signals() {
        let service = EventService(heldMax: 1000)
        let signals = Rings()
        let follower = service.follow { signals.signal() }
        self.leave(0..<600, at: service)
        #expect(signals.count == 1)
        var events: [WatchedEvent] = []
        #expect(!service.take(follower, into: &events).isAll)
        self.leave(600..<601, at: service)
        #expect(signals.count == 1, "there was something all the time")
        _ = self.taken(follower, service)
        self.leave(601..<602, at: service)
        #expect(signals.count == 2)
    }

    @Test("A filter passes only matching events, with every value of their outcome")
    func filter() {
        var event = LiveEvent(at: 1, .result, topic: "a")
        event.device = "00ff"
        event.outcome = "failed"
        #expect(EventFilter().takes(event))
        for outcome in ["result", "failed"] {
            var filter = EventFilter()
            filter.outcomes = [outcome, "lost"]
            #expect(filter.takes(event))
        }
        var filter = EventFilter()
        filter.outcomes = ["lost", "coalesced"]
        #expect(!filter.takes(event))
        filter = EventFilter()
        (filter.topic, filter.device) = ("a", "00ff")
        #expect(filter.takes(event))
        filter.device = "00fe"
        #expect(!filter.takes(event))
        (filter.topic, filter.device) = ("b", nil)
        #expect(!filter.takes(event))
    }
}

@Suite("Event followers within the process", .timeLimit(.minutes(15)))
struct EventFollowerTests {
    /// Accepts reports while it is open.
    private final class Listener: Sendable {
        private let news = Mutex<[LiveNews]>([])
        private let isOpen = Mutex(true)
        private let tried = Mutex<Set<Int64>>([])
        let wasTried = Latch()

        /// The times of the events that were offered to it.
        var triesOfEvents: Set<Int64> { self.tried.withLock { $0 } }

        var heard: [LiveNews] { self.news.withLock { $0 } }

        func close() { self.isOpen.withLock { $0 = false } }

        func open() { self.isOpen.withLock { $0 = true } }

        func tell(_ news: LiveNews) -> Bool {
            if case .event(let event) = news { self.tried.withLock { _ = $0.insert(event.at) } }
            self.wasTried.open()
            guard self.isOpen.withLock({ $0 }) else { return false }
            self.news.withLock { $0.append(news) }
            return true
        }
    }

    private func leave(_ count: Int, at service: EventService) {
        for number in 0..<count { service.take(WatchedEvent(at: Int64(number), kind: .paused, topic: "t")) }
    }

    private func counts(_ news: [LiveNews]) -> (told: Int, missed: Int) {
        news.reduce(into: (0, 0)) { counts, news in
            switch news {
            case .event: counts.told += 1
            case .missed(let count): counts.missed += count
            }
        }
    }

    @Test("All events are delivered in order, and the remaining ones at the end")
    func everything() throws {
        let (service, listener) = (EventService(), Listener())
        let follower = EventFollower(service) { listener.tell($0) }
        #expect(service.isWatched)
        self.leave(100, at: service)
        follower.stop()
        #expect(!service.isWatched)
        let moments = listener.heard.compactMap { if case .event(let event) = $0 { event.at } else { nil } }
        #expect(moments == Array(0..<100))
    }

    @Test("Events over the rate limit are counted, and every event is either delivered or counted")
    func pace() throws {
        let (service, listener) = (EventService(heldMax: 100_000), Listener())
        let follower = EventFollower(service) { listener.tell($0) }
        self.leave(10_000, at: service)
        follower.stop()
        let (told, missed) = self.counts(listener.heard)
        #expect(told + missed == 10_000 && told >= EventFollower.newsPerSecondMax)
    }

    @Test("A listener that refuses events blocks no other work, and learns later how many it missed")
    func stuck() throws {
        let (service, listener) = (EventService(heldMax: 16), Listener())
        listener.close()
        let follower = EventFollower(service) { listener.tell($0) }
        self.leave(1, at: service)
        listener.wasTried.wait()
        self.leave(500, at: service)
        listener.open()
        follower.stop()
        let (told, missed) = self.counts(listener.heard)
        #expect(told + missed == 501 && missed >= 500 - 16)
    }

    @Test("The end does not wait for a listener that accepts nothing")
    func ending() throws {
        let (service, listener) = (EventService(), Listener())
        listener.close()
        let follower = EventFollower(service) { listener.tell($0) }
        self.leave(1, at: service)
        listener.wasTried.wait()
        self.leave(10, at: service)
        let before = listener.triesOfEvents
        follower.stop()
        #expect(listener.heard.isEmpty && before == [0], "it waits for the first to be taken")
        #expect(listener.triesOfEvents == [0], "and tries no other at the end")
    }
}
