import Synchronization
import Wire

/// How far a background task is, with what Foundation's `Progress` means by it.
///
/// A handler finds the progress of its task in ``BackgroundTaskContext/progress``. What it sets there is told to the
/// gateway four times a second at most, from any thread, and what it set last is told before the task ends. A part of
/// the work may have a progress of its own, as a child of the whole.
///
/// ```swift
/// task.progress.totalUnitCount = 100
/// task.progress.completedUnitCount += 1
/// ```
public final class BackgroundTaskProgress: Sendable {
    private struct Child {
        let progress: BackgroundTaskProgress
        /// How many units of its parent it stands for.
        let portion: Int64
    }

    private struct State {
        var total: Int64
        var completed: Int64 = 0
        var isCancelled = false
        var cancellationHandler: (@Sendable () -> Void)?
        /// The parts that have not finished.
        var children: [Child] = []
        var hasHadChildren = false
        weak var parent: BackgroundTaskProgress?

        var isIndeterminate: Bool { self.completed < 0 || self.total < 0 || (self.completed == 0 && self.total == 0) }
        var isFinished: Bool { self.completed > 0 && self.total >= 0 && self.completed >= self.total }
    }

    private let state: Mutex<State>
    /// Hears of changes; nil for a progress that nobody is told of but by its parent.
    private let signal: ChangeSignal?

    init(totalUnitCount: Int64, signal: ChangeSignal?) {
        self.state = Mutex(State(total: totalUnitCount))
        self.signal = signal
    }

    /// A progress that nobody is told of, until it is another one's child.
    ///
    /// - Parameter totalUnitCount: how many units there are to be done.
    public convenience init(totalUnitCount: Int64) {
        self.init(totalUnitCount: totalUnitCount, signal: nil)
    }

    /// A progress that stands for a part of another one.
    ///
    /// - Parameters:
    ///   - totalUnitCount: how many units there are to be done.
    ///   - parent: what it is a part of.
    ///   - pendingUnitCount: how many of the parent's units it stands for.
    public convenience init(
        totalUnitCount: Int64,
        parent: BackgroundTaskProgress,
        pendingUnitCount: Int64
    ) {
        self.init(totalUnitCount: totalUnitCount, signal: nil)
        parent.addChild(self, withPendingUnitCount: pendingUnitCount)
    }

    /// How many units there are to be done. Less than 0, and 0 while nothing is completed, stand for a number that is
    /// not known.
    public var totalUnitCount: Int64 {
        get { self.state.withLock { $0.total } }
        set { self.set { $0.total = newValue } }
    }

    /// How many units are done; those that a child stands for count when the child has finished.
    ///
    /// To add to it from several threads at once is safe; of assignments the last one counts.
    public var completedUnitCount: Int64 {
        get { self.state.withLock { $0.completed } }
        set { self.set { $0.completed = newValue } }
        // What others add between the reading and the writing of an addition is not lost.
        _modify {
            var counts = Counts(progress: self)
            defer { counts.end() }
            yield &counts.completed
        }
    }

    /// How much is done, from 0 to 1, with what its children have done; more than 1 when more is done than there is,
    /// 0 while it is indeterminate.
    public var fractionCompleted: Double {
        let (state, children) = self.parts
        guard !state.isIndeterminate else { return 0 }
        guard state.total > 0 else { return 1 }
        return (Double(state.completed) + Self.done(by: children)) / Double(state.total)
    }

    /// Whether nobody knows how much there is to be done.
    public var isIndeterminate: Bool { self.state.withLock { $0.isIndeterminate } }

    /// Whether everything is done.
    public var isFinished: Bool { self.state.withLock { $0.isFinished } }

    /// Whether it was cancelled: by ``cancel()``, with its parent, or because the time of its task is over.
    public var isCancelled: Bool { self.state.withLock { $0.isCancelled } }

    /// Is called when it is cancelled, once; at once when it has been already.
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

    /// Makes another progress a part of this one. When that has finished, the units that it stands for are completed,
    /// and it is a part no more.
    ///
    /// - Parameters:
    ///   - child: a progress that is no part of another one, nor has this one among its own parts; anything else ends
    ///     the program, as it does in Foundation.
    ///   - pendingUnitCount: how many units of this one it stands for.
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

    /// Cancels it and its parts: calls their cancellation handlers. What is being done goes on unless its handler
    /// heeds that; the task that it belongs to is not ended by it.
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
    /// Such as `10 of 100`.
    public var description: String {
        let (completed, total) = self.state.withLock { ($0.completed, $0.total) }
        return "\(completed) of \(total)"
    }
}

// MARK: - Changes

extension BackgroundTaskProgress {
    /// The count while somebody changes it.
    private struct Counts {
        let progress: BackgroundTaskProgress
        let before: Int64
        var completed: Int64

        init(progress: BackgroundTaskProgress) {
            self.progress = progress
            self.before = progress.state.withLock { $0.completed }
            self.completed = self.before
        }

        func end() {
            // A difference: what others have added meanwhile stays.
            let (difference, isTooMuch) = self.completed.subtractingReportingOverflow(self.before)
            let completed = self.completed
            self.progress.set { state in
                let (sum, isOver) = state.completed.addingReportingOverflow(difference)
                state.completed = isTooMuch || isOver ? completed : sum
            }
        }
    }

    private func set(_ change: (inout State) -> Void) {
        let (isChanged, parent) = self.state.withLock { state in
            let before = (state.total, state.completed)
            change(&state)
            return (before != (state.total, state.completed), state.parent)
        }
        if isChanged { self.changed(parent) }
    }

    /// Tells whoever hears of this one.
    private func changed(_ parent: BackgroundTaskProgress?) {
        self.signal?.raise()
        parent?.partChanged(self)
    }

    /// A part has changed, and may have finished.
    private func partChanged(_ child: BackgroundTaskProgress) {
        // Whoever finishes it comes here as well, so that its end is not missed in between.
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

    /// How many units these have done of those that they stand for.
    private static func done(by children: [Child]) -> Double {
        children.reduce(0) { $0 + Double($1.portion) * $1.progress.fractionCompleted }
    }
}

// MARK: - What is told

extension BackgroundTaskProgress {
    /// The largest count that is told: the last whole number that every JSON reader keeps.
    package static let unitsMax: Int64 = 1 << 53 - 1
    /// How many parts a unit has for one that has or had children, which do parts of it.
    package static let partsOfUnit: Int64 = 1000

    /// The counts as the gateway takes them: whole, not negative, and growing with whatever is done. A total of 0 is
    /// none.
    package var counts: (completed: Int64, total: Int64) {
        let (state, children) = self.parts
        guard state.hasHadChildren else { return (Self.told(state.completed), Self.told(state.total)) }
        let completed = (Double(max(0, state.completed)) + Self.done(by: children)) * Double(Self.partsOfUnit)
        let (total, isTooMuch) = max(0, state.total).multipliedReportingOverflow(by: Self.partsOfUnit)
        // Products of fractions are off by less than a part of a unit, which is not to make whole ones less.
        let parts = min(max(0, completed + 1e-6), Double(Self.unitsMax))
        return (Int64(parts), isTooMuch ? Self.unitsMax : Self.told(total))
    }

    private static func told(_ count: Int64) -> Int64 { min(max(0, count), self.unitsMax) }
}

/// How far a continued task is.
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

    /// The body of a report.
    package var json: [UInt8] {
        var members = ["\"completed\":\(self.completed)", "\"total\":\(self.total)"]
        if let title = self.title { members.append("\"title\":\(JSONText.quoted(title))") }
        if let subtitle = self.subtitle { members.append("\"subtitle\":\(JSONText.quoted(subtitle))") }
        return Array("{\(members.joined(separator: ","))}".utf8)
    }
}

/// What the handler of a continued task says of it: how far it is, and the texts that a person sees.
final class TaskReporting: Sendable {
    private struct Texts {
        var title: String?
        var subtitle: String?
    }

    /// The most bytes of a text that the gateway takes.
    static let textBytesMax = 256

    let progress: BackgroundTaskProgress
    private let texts: Mutex<Texts>
    private let signal: ChangeSignal

    /// - Parameters:
    ///   - title: that of the request.
    ///   - subtitle: that of the request.
    ///   - changed: is called when there is something new to tell, once until `newest` is asked for.
    init(title: String?, subtitle: String?, changed: @escaping @Sendable () -> Void = {}) {
        self.texts = Mutex(Texts(title: title, subtitle: subtitle))
        self.signal = ChangeSignal(changed)
        self.progress = BackgroundTaskProgress(totalUnitCount: 0, signal: self.signal)
    }

    var title: String? { self.texts.withLock { $0.title } }
    var subtitle: String? { self.texts.withLock { $0.subtitle } }

    /// Whether something is new since `newest` was asked for last.
    var isChanged: Bool { self.signal.isRaised }

    /// Shows other texts; nil leaves one as it is.
    func update(title: String?, subtitle: String?) {
        self.texts.withLock { texts in
            if let title { texts.title = Self.shown(title) }
            if let subtitle { texts.subtitle = Self.shown(subtitle) }
        }
        self.signal.raise()
    }

    /// What there is to tell now.
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

    /// The text, cut between two characters where the gateway would not take all of it.
    private static func shown(_ text: String) -> String {
        var left = self.textBytesMax
        return String(
            text.prefix { character in
                left -= character.utf8.count
                return left >= 0
            }
        )
    }
}
