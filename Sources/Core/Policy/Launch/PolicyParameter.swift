/// A parameter of the policy, of pushes or of background tasks, by the name that configuration, traces and `--set` use.
package enum PolicyParameter: Hashable, Sendable {
    case launch(Parameters.Name)
    case task(TaskParameters.Name)

    /// Every parameter, those of pushes first.
    package static let all = Parameters.Name.allCases.map(Self.launch) + TaskParameters.Name.allCases.map(Self.task)

    /// The parameter of this name; nil when there is none.
    package init?(_ name: String) {
        if let known = Parameters.Name(rawValue: name) {
            self = .launch(known)
        } else if let known = TaskParameters.Name(rawValue: name) {
            self = .task(known)
        } else {
            return nil
        }
    }

    package var name: String {
        switch self {
        case .launch(let name): name.rawValue
        case .task(let name): name.rawValue
        }
    }

    /// What a value must be, for messages.
    package var requirement: String {
        switch self {
        case .launch(let name): name.requirement
        case .task(let name): name.requirement
        }
    }

    /// What the parameter shapes, in one line.
    package var summary: String {
        switch self {
        case .launch(let name): name.summary
        case .task(let name): name.summary
        }
    }

    /// The value in `parameters`, in the unit in which `set` takes it: durations in seconds.
    package func value(in parameters: Parameters) -> Double {
        switch self {
        case .launch(let name): parameters.value(name)
        case .task(let name): parameters.tasks.value(name)
        }
    }

    /// Sets the parameter in `parameters`, durations in seconds.
    ///
    /// - Returns: whether `value` is one that it can take; if not, nothing is changed.
    package func set(_ value: Double, in parameters: inout Parameters) -> Bool {
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
