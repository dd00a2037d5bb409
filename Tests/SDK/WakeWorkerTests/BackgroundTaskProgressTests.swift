import Synchronization
import Testing
import WakeWorker

@Suite("Progress, as Foundation's means it", .timeLimit(.minutes(15)))
struct BackgroundTaskProgressTests {
    @Test(
        "Counts say what is done, whether that is all, and whether anybody knows",
        arguments: [
            (0, 0, 0, true, false), (0, 5, 1, false, true), (10, 0, 0, false, false), (10, 4, 0.4, false, false),
            (10, 10, 1, false, true), (10, 15, 1.5, false, true), (-1, 3, 0, true, false), (10, -1, 0, true, false),
        ] as [(Int64, Int64, Double, Bool, Bool)]
    )
    func counts(total: Int64, completed: Int64, fraction: Double, isIndeterminate: Bool, isFinished: Bool) {
        let progress = BackgroundTaskProgress(totalUnitCount: total)
        progress.completedUnitCount = completed
        #expect(progress.totalUnitCount == total && progress.completedUnitCount == completed)
        #expect(progress.fractionCompleted == fraction)
        #expect(progress.isIndeterminate == isIndeterminate && progress.isFinished == isFinished)
        #expect("\(progress)" == "\(completed) of \(total)")
    }

    @Test("A child's share grows with it, and its units are completed when it has finished")
    func child() {
        let whole = BackgroundTaskProgress(totalUnitCount: 10)
        let part = BackgroundTaskProgress(totalUnitCount: 4, parent: whole, pendingUnitCount: 6)
        whole.completedUnitCount += 1
        part.completedUnitCount = 2
        #expect(whole.completedUnitCount == 1 && whole.fractionCompleted == 0.4)
        let grandchild = BackgroundTaskProgress(totalUnitCount: 100)
        part.addChild(grandchild, withPendingUnitCount: 2)
        grandchild.completedUnitCount = 50
        #expect(part.fractionCompleted == 0.75 && whole.fractionCompleted == 0.55)
        grandchild.completedUnitCount += 50
        #expect(part.isFinished && part.completedUnitCount == 4)
        #expect(whole.completedUnitCount == 7 && whole.fractionCompleted == 0.7 && !whole.isFinished)
        // It is a part no more.
        part.completedUnitCount = 0
        #expect(whole.fractionCompleted == 0.7)
        let finished = BackgroundTaskProgress(totalUnitCount: 1)
        finished.completedUnitCount = 1
        whole.addChild(finished, withPendingUnitCount: 3)
        #expect(whole.isFinished && whole.completedUnitCount == 10)
    }

    @Test("Who cancels the whole cancels its parts, and each handler is called once")
    func cancelled() {
        let whole = BackgroundTaskProgress(totalUnitCount: 2)
        let part = BackgroundTaskProgress(totalUnitCount: 2, parent: whole, pendingUnitCount: 1)
        let calls = Mutex<[String]>([])
        whole.cancellationHandler = { calls.withLock { $0.append("whole") } }
        part.cancellationHandler = { calls.withLock { $0.append("part") } }
        #expect(!whole.isCancelled && whole.cancellationHandler != nil)
        whole.cancel()
        whole.cancel()
        #expect(whole.isCancelled && part.isCancelled)
        #expect(calls.withLock { $0 } == ["whole", "part"])
        let late = BackgroundTaskProgress(totalUnitCount: 1)
        late.cancellationHandler = { calls.withLock { $0.append("late") } }
        whole.addChild(late, withPendingUnitCount: 1)
        whole.cancellationHandler = { calls.withLock { $0.append("at once") } }
        #expect(late.isCancelled && calls.withLock { $0 } == ["whole", "part", "late", "at once"])
        let other = BackgroundTaskProgress(totalUnitCount: 1)
        let ofOther = BackgroundTaskProgress(totalUnitCount: 1, parent: other, pendingUnitCount: 1)
        ofOther.cancel()
        #expect(ofOther.isCancelled && !other.isCancelled)
    }

    @Test("Of additions by many threads none is lost")
    func threads() async {
        let whole = BackgroundTaskProgress(totalUnitCount: 8)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                let part = BackgroundTaskProgress(totalUnitCount: 4000, parent: whole, pendingUnitCount: 1)
                for _ in 0..<4 {
                    group.addTask { for _ in 0..<1000 { part.completedUnitCount += 1 } }
                }
            }
        }
        #expect(whole.isFinished && whole.completedUnitCount == 8)
    }

    @Test("What is told is whole and never negative, and grows with a child")
    func told() {
        let progress = BackgroundTaskProgress(totalUnitCount: -1)
        progress.completedUnitCount = -7
        #expect(progress.counts == (0, 0))
        progress.completedUnitCount = 12
        #expect(progress.counts == (12, 0))
        progress.totalUnitCount = .max
        #expect(progress.counts == (12, BackgroundTaskProgress.unitsMax))
        let whole = BackgroundTaskProgress(totalUnitCount: 3)
        whole.completedUnitCount = 1
        #expect(whole.counts == (1, 3))
        let part = BackgroundTaskProgress(totalUnitCount: 7, parent: whole, pendingUnitCount: 2)
        var last = whole.counts.completed
        #expect(whole.counts == (1000, 3000))
        for _ in 1...7 {
            part.completedUnitCount += 1
            #expect(whole.counts.completed > last)
            last = whole.counts.completed
        }
        #expect(whole.counts == (3000, 3000), "in the same unit as before, that it is more than ever")
        whole.totalUnitCount = .max
        #expect(whole.counts.total == BackgroundTaskProgress.unitsMax)
    }
}
