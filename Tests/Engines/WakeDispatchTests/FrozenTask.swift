import DeviceEngine
import LaunchPolicy

/// A request, or the finished transfers of a session, as a restart must bring it back, to be compared.
struct FrozenTask: Hashable {
    private let name: String
    private let task: BackgroundTask
    private let details: TaskDetails
    private let state: TaskSnapshot.State

    init(_ snapshot: TaskSnapshot) {
        self.name = snapshot.name
        // What numbers names differs from process to process.
        var task = snapshot.task
        task.name = TaskName(rawValue: 0)
        self.task = task
        self.details = snapshot.details
        self.state = snapshot.state
    }
}
