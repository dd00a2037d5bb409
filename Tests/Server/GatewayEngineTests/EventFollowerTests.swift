import Engine
import Gateway
import Platform
import Synchronization
import Testing
import Wire

@Suite("Who is told in this process what happens", .timeLimit(.minutes(15)))
struct EventFollowerTests {
    /// Takes what is told, once it is open.
    private final class Listener: Sendable {
        private let news = Mutex<[LiveNews]>([])
        private let isOpen = Mutex(true)
        private let tried = Mutex<Set<Int64>>([])
        let wasTried = Latch()

        /// The moments of the events that were to be told.
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

    private func leave(_ count: Int, at desk: EventDesk) {
        for number in 0..<count { desk.take(WatchedEvent(at: Int64(number), kind: .paused, topic: "t")) }
    }

    private func counts(_ news: [LiveNews]) -> (told: Int, missed: Int) {
        news.reduce(into: (0, 0)) { counts, news in
            switch news {
            case .event: counts.told += 1
            case .missed(let count): counts.missed += count
            }
        }
    }

    @Test("Everything is told in its order, and at the end what there still is")
    func everything() throws {
        let (desk, listener) = (EventDesk(), Listener())
        let follower = try EventFollower(desk) { listener.tell($0) }
        #expect(desk.isWatched)
        self.leave(100, at: desk)
        follower.stop()
        #expect(!desk.isWatched)
        let moments = listener.heard.compactMap { if case .event(let event) = $0 { event.at } else { nil } }
        #expect(moments == Array(0..<100))
    }

    @Test("What comes faster than anybody reads is counted, and nothing is lost count of")
    func pace() throws {
        let (desk, listener) = (EventDesk(heldMax: 100_000), Listener())
        let follower = try EventFollower(desk) { listener.tell($0) }
        self.leave(10_000, at: desk)
        follower.stop()
        let (told, missed) = self.counts(listener.heard)
        #expect(told + missed == 10_000 && told >= EventFollower.newsPerSecondMax)
    }

    @Test("Nobody waits for a listener that takes nothing, which hears later how much it has missed")
    func stuck() throws {
        let (desk, listener) = (EventDesk(heldMax: 16), Listener())
        listener.close()
        let follower = try EventFollower(desk) { listener.tell($0) }
        self.leave(1, at: desk)
        listener.wasTried.wait()
        self.leave(500, at: desk)
        listener.open()
        follower.stop()
        let (told, missed) = self.counts(listener.heard)
        #expect(told + missed == 501 && missed >= 500 - 16)
    }

    @Test("The end does not wait for a listener that takes nothing")
    func ending() throws {
        let (desk, listener) = (EventDesk(), Listener())
        listener.close()
        let follower = try EventFollower(desk) { listener.tell($0) }
        self.leave(1, at: desk)
        listener.wasTried.wait()
        self.leave(10, at: desk)
        let before = listener.triesOfEvents
        follower.stop()
        #expect(listener.heard.isEmpty && before == [0], "it waits for the first to be taken")
        #expect(listener.triesOfEvents == [0], "and tries no other at the end")
    }
}
