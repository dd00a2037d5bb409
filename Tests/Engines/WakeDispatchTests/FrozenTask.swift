import Bytes
import DeviceEngine
import LaunchPolicy

/// A request, or the finished transfers of a session, as a restart must bring it back, to be compared.
struct FrozenTask: Hashable {
    enum State: Hashable {
        case waiting(eligibleAt: Instant?, held: [TaskHoldCode], laneIsFull: Bool)
        case running(wake: WakeID, launchedAt: Instant, deadline: Instant, progress: TaskProgress?)
    }

    private let name: String
    private let task: BackgroundTask
    private let details: TaskDetails
    private let state: State

    init(_ snapshot: TaskSnapshot) {
        self.name = snapshot.name
        // What numbers names differs from process to process.
        var task = snapshot.task
        task.name = TaskName(rawValue: 0)
        self.task = task
        self.details = snapshot.details
        self.state =
            switch snapshot.state {
            case .waiting(let eligibleAt, let held, let laneIsFull):
                .waiting(eligibleAt: eligibleAt, held: held, laneIsFull: laneIsFull)
            case .running(let wake, let launchedAt, let deadline, let progress):
                .running(wake: wake, launchedAt: launchedAt, deadline: deadline, progress: progress)
            }
    }
}
