import Synchronization
import Wire

/// The progress of a background task, with the semantics of Foundation's `Progress`.
///
/// A handler finds the progress of its task in ``BackgroundTaskContext/progress`` and may change it from any thread.
/// The worker reports changes to the gateway at most four times a second, and always reports the last change before the
/// task ends. A part of the work may have its own progress, which becomes a child of the task's progress.
///
/// ```swift
/// task.progress.totalUnitCount = 100
/// task.progress.completedUnitCount += 1
/// ```
public final class BackgroundTaskProgress: Sendable {
    private struct Child {
        let progress: BackgroundTaskProgress
        /// The number of units of the parent that the child represents.
        let portion: Int64
    }

    private struct State {
        var total: Int64
        var completed: Int64 = 0
        var isCancelled = false
        var cancellationHandler: (@Sendable () -> Void)?
        /// The children that have not finished.
        var children: [Child] = []
        var hasHadChildren = false
        weak var parent: BackgroundTaskProgress?

        var isIndeterminate: Bool { self.completed < 0 || self.total < 0 || (self.completed == 0 && self.total == 0) }
        var isFinished: Bool { self.completed > 0 && self.total >= 0 && self.completed >= self.total }
    }

    private let state: Mutex<State>
    /// A signal that notifies the worker of changes; nil for a progress that the worker does not observe directly.
    private let signal: ChangeSignal?

    init(totalUnitCount: Int64, signal: ChangeSignal?) {
        self.state = Mutex(State(total: totalUnitCount))
        self.signal = signal
    }

    /// Creates a progress that is not reported. After it becomes the child of a task's progress, that progress includes
    /// it.
    ///
    /// - Parameter totalUnitCount: the total number of units of work.
    public convenience init(totalUnitCount: Int64) {
        self.init(totalUnitCount: totalUnitCount, signal: nil)
    }

    /// Creates a progress that represents a part of another progress.
    ///
    /// - Parameters:
    ///   - totalUnitCount: the total number of units of work.
    ///   - parent: the progress of the whole work.
    ///   - pendingUnitCount: the number of the parent's units that this progress represents.
    public convenience init(
        totalUnitCount: Int64,
        parent: BackgroundTaskProgress,
        pendingUnitCount: Int64
    ) {
        self.init(totalUnitCount: totalUnitCount, signal: nil)
        parent.addChild(self, withPendingUnitCount: pendingUnitCount)
    }

    /// The total number of units of work. It is unknown if it is negative, or if it is 0 and no unit is completed.
    public var totalUnitCount: Int64 {
        get { self.state.withLock { $0.total } }
        set { self.set { $0.total = newValue } }
    }

    /// The number of completed units. The units that a child represents are added when the child finishes.
    ///
    /// Concurrent additions from several threads are safe. Of concurrent assignments, the last one wins.
    public var completedUnitCount: Int64 {
        get { self.state.withLock { $0.completed } }
        set { self.set { $0.completed = newValue } }
        // Adds the difference to the current value. Concurrent additions between the read and the write are therefore
        // not lost.
        _modify {
            let before = self.completedUnitCount
            var completed = before
            defer {
                let (difference, isTooMuch) = completed.subtractingReportingOverflow(before)
                self.set { state in
                    let (sum, isOver) = state.completed.addingReportingOverflow(difference)
                    state.completed = isTooMuch || isOver ? completed : sum
                }
            }
            yield &completed
        }
    }

    /// The completed fraction, including the completed work of children. The value is 0 while the progress is
    /// indeterminate. It is above 1 if more units are completed than the total.
    public var fractionCompleted: Double {
        let (state, children) = self.parts
        guard !state.isIndeterminate else { return 0 }
        guard state.total > 0 else { return 1 }
        return (Double(state.completed) + Self.done(by: children)) / Double(state.total)
    }

    /// True if the total amount of work is unknown.
    public var isIndeterminate: Bool { self.state.withLock { $0.isIndeterminate } }

    /// True if all units are completed.
    public var isFinished: Bool { self.state.withLock { $0.isFinished } }

    /// True if the progress was cancelled: by ``cancel()``, through its parent, or because its task has expired.
    public var isCancelled: Bool { self.state.withLock { $0.isCancelled } }

    /// The function that is called once when this progress is cancelled. A handler that is set after the cancellation
    /// is called immediately.
    public var cancellationHandler: (@Sendable () -> Void)? {
        get { self.state.withLock { $0.cancellationHandler } }
        set {
            let isLate = self.state.withLock { state in
                state.cancellationHandler = newValue
                return state.isCancelled
            }
            if isLate { newValue?() }
        }
    }

    /// Makes another progress a child of this progress. When the child finishes, it is removed and its units count as
    /// completed.
    ///
    /// - Parameters:
    ///   - child: a progress that has no parent and is not an ancestor of this progress. Any other child is a
    ///     precondition failure, as in Foundation.
    ///   - pendingUnitCount: the number of units of this progress that the child represents.
    ///
    /// ```swift
    /// let upload = BackgroundTaskProgress(totalUnitCount: 2048)
    /// task.progress.addChild(upload, withPendingUnitCount: 60)
    /// ```
    public func addChild(_ child: BackgroundTaskProgress, withPendingUnitCount pendingUnitCount: Int64) {
        var ancestor: BackgroundTaskProgress? = self
        while let found = ancestor {
            precondition(found !== child, "a progress cannot be a part of itself; make another one for the part")
            ancestor = found.state.withLock { $0.parent }
        }
        child.state.withLock { state in
            precondition(state.parent == nil, "a progress is a part of one other at most; make another one")
            state.parent = self
        }
        let isCancelled = self.state.withLock { state in
            state.children.append(Child(progress: child, portion: pendingUnitCount))
            state.hasHadChildren = true
            return state.isCancelled
        }
        if isCancelled { child.cancel() }
        self.partChanged(child)
    }

    /// Cancels this progress and its children by calling their cancellation handlers. The handlers must stop the work
    /// and end the task.
    public func cancel() {
        let (isFirst, handler, children) = self.state.withLock { state in
            defer { state.isCancelled = true }
            return (!state.isCancelled, state.cancellationHandler, state.children)
        }
        if isFirst { handler?() }
        for child in children { child.progress.cancel() }
    }
}

extension BackgroundTaskProgress: CustomStringConvertible {
    /// The completed and total counts, such as `10 of 100`.
    public var description: String {
        let (completed, total) = self.state.withLock { ($0.completed, $0.total) }
        return "\(completed) of \(total)"
    }
}

// MARK: - Changes

extension BackgroundTaskProgress {
    /// Sets both counts at once. The caller raises the signal.
    func set(completed: Int64, total: Int64) {
        self.state.withLock { ($0.completed, $0.total) = (completed, total) }
    }

    private func set(_ change: (inout State) -> Void) {
        let (isChanged, parent) = self.state.withLock { state in
            let before = (state.total, state.completed)
            change(&state)
            return (before != (state.total, state.completed), state.parent)
        }
        if isChanged { self.changed(parent) }
    }

    /// Notifies the worker and the parent.
    private func changed(_ parent: BackgroundTaskProgress?) {
        self.signal?.raise()
        parent?.partChanged(self)
    }

    /// Processes a change of a child, which may have finished.
    private func partChanged(_ child: BackgroundTaskProgress) {
        // The call that finishes the child also gets to this line, so no completion is missed.
        let isFinished = child.isFinished
        let parent = self.state.withLock { state in
            if isFinished, let index = state.children.firstIndex(where: { $0.progress === child }) {
                let portion = state.children.remove(at: index).portion
                let (sum, isOver) = state.completed.addingReportingOverflow(portion)
                state.completed = isOver ? .max : sum
            }
            return state.parent
        }
        self.changed(parent)
    }

    private var parts: (state: State, children: [Child]) { self.state.withLock { ($0, $0.children) } }

    /// Returns the completed work of the children, in units of this progress.
    private static func done(by children: [Child]) -> Double {
        children.reduce(0) { $0 + Double($1.portion) * $1.progress.fractionCompleted }
    }
}

// MARK: - Reporting

extension BackgroundTaskProgress {
    /// The maximum count that is reported. Every JSON reader represents integers up to this value exactly.
    package static let unitsMax: Int64 = 1 << 53 - 1
    /// The number of reported parts per unit, if the progress has or had children.
    package static let partsOfUnit: Int64 = 1000

    /// The counts in the form that the gateway accepts, as nonnegative integers. A total of 0 means that the total is
    /// unknown.
    package var counts: (completed: Int64, total: Int64) {
        let (state, children) = self.parts
        guard state.hasHadChildren else { return (Self.clamped(state.completed), Self.clamped(state.total)) }
        let completed = (Double(max(0, state.completed)) + Self.done(by: children)) * Double(Self.partsOfUnit)
        let (total, isTooMuch) = max(0, state.total).multipliedReportingOverflow(by: Self.partsOfUnit)
        // Rounding errors are far below one part. The added 1e-6 prevents them from reducing an integer by one.
        let parts = min(max(0, completed + 1e-6), Double(Self.unitsMax))
        return (Int64(parts), isTooMuch ? Self.unitsMax : Self.clamped(total))
    }

    private static func clamped(_ count: Int64) -> Int64 { min(max(0, count), self.unitsMax) }
}

/// The progress of a continued task.
package struct TaskProgress: Hashable, Sendable {
    package let completed: Int64
    package let total: Int64
    package let title: String?
    package let subtitle: String?

    package init(completed: Int64, total: Int64, title: String? = nil, subtitle: String? = nil) {
        self.completed = completed
        self.total = total
        self.title = title
        self.subtitle = subtitle
    }

    /// The maximum size of a text that the gateway accepts, in bytes.
    package static let textBytesMax = 256

    /// Returns the text, truncated to the maximum size at the end of a character.
    package static func truncated(_ text: String) -> String {
        var left = self.textBytesMax
        return String(
            text.prefix { character in
                left -= character.utf8.count
                return left >= 0
            }
        )
    }

    /// The JSON body of a progress report.
    package var json: [UInt8] {
        JSONWriter.object { json in
            json.member("completed", self.completed)
            json.member("total", self.total)
            json.member("title", ifPresent: self.title)
            json.member("subtitle", ifPresent: self.subtitle)
        }
    }
}

/// The progress and the texts of a continued task. They have the values that its handler last set.
final class TaskReporting: Sendable {
    private struct Texts {
        var title: String?
        var subtitle: String?
    }

    let progress: BackgroundTaskProgress
    private let texts: Mutex<Texts>
    private let signal: ChangeSignal

    /// - Parameters:
    ///   - title: the title in the request.
    ///   - subtitle: the subtitle in the request.
    ///   - changed: called on the first change after each call of `newest`.
    init(title: String?, subtitle: String?, changed: @escaping @Sendable () -> Void = {}) {
        self.texts = Mutex(Texts(title: title, subtitle: subtitle))
        self.signal = ChangeSignal(changed)
        self.progress = BackgroundTaskProgress(totalUnitCount: 0, signal: self.signal)
    }

    var title: String? { self.texts.withLock { $0.title } }
    var subtitle: String? { self.texts.withLock { $0.subtitle } }

    /// True if the progress or a text has changed since the last call of `newest`.
    var isChanged: Bool { self.signal.isRaised }

    /// Replaces the texts; nil leaves a text unchanged.
    func update(title: String?, subtitle: String?) {
        self.texts.withLock { texts in
            if let title { texts.title = TaskProgress.truncated(title) }
            if let subtitle { texts.subtitle = TaskProgress.truncated(subtitle) }
        }
        self.signal.raise()
    }

    /// Replaces the counts and the texts. Texts that are nil are not reported.
    func set(_ progress: TaskProgress) {
        self.texts.withLock { $0 = Texts(title: progress.title, subtitle: progress.subtitle) }
        self.progress.set(completed: progress.completed, total: progress.total)
        self.signal.raise()
    }

    /// Returns the current progress and texts, and rearms the change signal.
    func newest() -> TaskProgress {
        self.signal.lower()
        let (counts, texts) = (self.progress.counts, self.texts.withLock { $0 })
        return TaskProgress(
            completed: counts.completed,
            total: counts.total,
            title: texts.title,
            subtitle: texts.subtitle
        )
    }
}
