import Glibc
import Platform
import Synchronization
import Testing

/// The collection of batches for a thread, and the lending of the thread's work.
@Suite("Mailboxes", .timeLimit(.minutes(15)))
struct MailboxTests {
    /// Numbers in order; negative ones are urgent.
    ///
    /// The class is `@unchecked Sendable`: a batch has one owner at a time.
    private final class Numbers: MailboxBatch, @unchecked Sendable {
        var values: [Int] = []

        var isEmpty: Bool { self.values.isEmpty }
        var isUrgent: Bool { self.values.contains { $0 < 0 } }

        init() {}

        convenience init(_ values: Int...) {
            self.init()
            self.values = values
        }

        func append(_ other: Numbers) { self.values += other.values }
        func removeAll() { self.values.removeAll() }
    }

    /// A thread that takes batches, and the batches taken by it or by a thread that did its work.
    private final class Worker: Sendable {
        let mailbox = Mailbox<Numbers>()
        let taken = Mutex<[[Int]]>([])
        private let isWorking = Atomic(false)
        let overlaps = Atomic(0)
        private let thread = Mutex<NamedThread?>(nil)

        /// - Parameters:
        ///   - wait: the wait after a batch, in milliseconds.
        ///   - window: the batching window, in milliseconds.
        ///   - lends: true if other threads may do its work.
        func start(waiting wait: Int64 = 600_000, batchWindow window: Int64 = 0, lends: Bool = false) throws {
            let thread = try NamedThread("worker") {
                var batch = Numbers()
                if lends { self.mailbox.lend { self.work($0, wait) } }
                while self.mailbox.take(into: &batch, waitingAtMost: wait, batchWindow: window) {
                    _ = self.work(batch, wait)
                }
                self.mailbox.lend(nil)
            }
            self.thread.withLock { $0 = thread }
        }

        private func work(_ batch: Numbers, _ wait: Int64) -> Int64 {
            if self.isWorking.exchange(true, ordering: .acquiringAndReleasing) {
                self.overlaps.add(1, ordering: .relaxed)
            }
            self.taken.withLock { $0.append(batch.values) }
            let isLast = batch.values.last == 0
            batch.removeAll()
            self.isWorking.store(false, ordering: .releasing)
            return isLast ? 0 : wait
        }

        func submit(_ values: Int...) {
            var batch = Numbers()
            batch.values = values
            self.mailbox.submit(&batch)
        }

        /// Ends the thread and returns everything that was taken.
        func end() -> [[Int]] {
            self.mailbox.close()
            self.thread.withLock { $0 }?.join()
            return self.taken.withLock { $0 }
        }

        func waitUntilTaken(_ count: Int) {
            while self.taken.withLock({ $0.joined().count }) < count { sched_yield() }
        }
    }

    @Test("A caller with little work does it in place of a sleeping thread, or leaves it to the thread")
    func performing() throws {
        let worker = Worker()
        try worker.start(lends: true)
        var batch = Numbers(1)
        var count = 1
        while !worker.mailbox.perform(&batch) {
            #expect(batch.isEmpty)
            count += 1
            batch.values = [count]
        }
        #expect(batch.isEmpty)
        #expect(worker.taken.withLock { $0.last } == [count], "it was done when the call returned")
        #expect(worker.end().joined().elementsEqual(1...count))
    }

    @Test("Callers do not work for a thread that does not lend it, and nothing is done after the mailbox is closed")
    func notLent() throws {
        let worker = Worker()
        try worker.start()
        var batch = Numbers(1)
        #expect(!worker.mailbox.perform(&batch) && batch.isEmpty)
        #expect(worker.end() == [[1]])
        batch.values = [2]
        #expect(!worker.mailbox.perform(&batch) && batch.isEmpty)
        #expect(worker.taken.withLock { $0 } == [[1]])
    }

    @Test("A thread whose work was done by a caller continues when that work asks for it")
    func goingOn() throws {
        let worker = Worker()
        try worker.start(lends: true)
        var batch = Numbers(0)
        while !worker.mailbox.perform(&batch) { batch.values = [0] }
        // A wait of zero causes another turn immediately, which finds nothing.
        while worker.taken.withLock({ $0.last }) != [] { sched_yield() }
        #expect(worker.end().allSatisfy { $0.allSatisfy { $0 == 0 } })
    }

    @Test("Batches of several threads are handled one at a time, in each thread's order, and none is lost")
    func orders() throws {
        let worker = Worker()
        try worker.start(lends: true)
        let (threads, each) = (4, 2000)
        let producers = try (0..<threads).map { number in
            try NamedThread("producer") {
                for value in 0..<each {
                    var batch = Numbers(1 + number + value * threads)
                    if value % 3 == 0 { worker.mailbox.submit(&batch) } else { worker.mailbox.perform(&batch) }
                    if value % 5 == 0 {
                        var nothing = Numbers()
                        worker.mailbox.perform(&nothing)
                    }
                }
            }
        }
        for producer in producers { producer.join() }
        let all = worker.end().joined()
        #expect(worker.overlaps.load(ordering: .relaxed) == 0)
        for number in 0..<threads {
            let own = all.filter { ($0 - 1) % threads == number }
            #expect(own == (0..<each).map { 1 + number + $0 * threads })
        }
    }

    @Test("A delayed thread is woken only by urgent work, and takes the collected work with it")
    func resting() throws {
        let worker = Worker()
        try worker.start(batchWindow: 600_000)
        worker.submit(1)
        worker.submit(2)
        worker.submit(-3)
        worker.waitUntilTaken(3)
        worker.submit(4)
        worker.submit(-5)
        worker.waitUntilTaken(5)
        #expect(worker.taken.withLock { $0 } == [[1, 2, -3], [4, -5]])
        worker.submit(6)
        #expect(worker.end().last == [6], "collected work is taken at the end")
    }

    @Test("A delay ends on its own, and the collected work is taken then")
    func restEnds() throws {
        let worker = Worker()
        try worker.start(batchWindow: 1)
        worker.submit(1)
        worker.waitUntilTaken(1)
        #expect(worker.end().joined().elementsEqual([1]))
    }
}
