import LaunchPolicy

/// A parameter of the policy by the name that traces and overrides use.
enum TraceParameter: Hashable, Sendable {
    case launch(Parameters.Name)
    case task(TaskParameters.Name)

    static let all =
        Parameters.Name.allCases.map(TraceParameter.launch) + TaskParameters.Name.allCases.map(TraceParameter.task)

    init?(_ name: String) {
        if let known = Parameters.Name(rawValue: name) {
            self = .launch(known)
        } else if let known = TaskParameters.Name(rawValue: name) {
            self = .task(known)
        } else {
            return nil
        }
    }

    var name: String {
        switch self {
        case .launch(let name): name.rawValue
        case .task(let name): name.rawValue
        }
    }

    /// What a value must be, for messages.
    var requirement: String {
        switch self {
        case .launch(let name): name.requirement
        case .task(let name): name.requirement
        }
    }

    /// Sets the parameter in `parameters`, durations in seconds.
    ///
    /// - Returns: whether `value` is one that it can take; if not, nothing is changed.
    func set(_ value: Double, in parameters: inout Parameters) -> Bool {
        do {
            switch self {
            case .launch(let name): try parameters.set(name, to: value)
            case .task(let name): try parameters.tasks.set(name, to: value)
            }
            return true
        } catch {
            return false
        }
    }
}
