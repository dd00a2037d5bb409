import Engine
import Policy

/// A request, or the finished transfers of a session, as a restart must bring it back, to be compared.
struct FrozenTask: Hashable {
    private let name: String
    private let task: BackgroundTask
    private let details: TaskDetails
    private let state: TaskSnapshot.State

    /// - Parameter hasProgress: how far a continued task has come counts, and until when it lasts by that; a store may
    ///   be a little behind.
    init(_ snapshot: TaskSnapshot, hasProgress: Bool) {
        self.name = snapshot.name
        // What numbers names differs from process to process.
        var task = snapshot.task
        task.name = TaskName(rawValue: 0)
        self.task = task
        self.details = snapshot.details
        if case .running(let wake, let launchedAt, _, _) = snapshot.state, task.kind == .continued, !hasProgress {
            self.state = .running(wake: wake, launchedAt: launchedAt, deadline: launchedAt, progress: nil)
        } else {
            self.state = snapshot.state
        }
    }
}
