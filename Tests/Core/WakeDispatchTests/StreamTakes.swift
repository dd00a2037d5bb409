import Engine
import Policy

/// What a stream asked for, and what is to be sent to it.
struct StreamTakes {
    static let pushes = StreamTakes()

    var isForPushes = true
    /// Identifiers, or beginnings with `.*`.
    var tasks: [String] = []
    var sessions: [String] = []
    var resources: Set<String> = []
    var hearsConditions = false

    func takes(_ target: LaunchTarget) -> Bool {
        switch target.kind {
        case .push: self.isForPushes
        case .urlSession: Self.matches(self.sessions, target.name)
        case .appRefresh, .processing, .continued:
            Self.matches(self.tasks, target.name) && self.resources.isSuperset(of: target.resources)
        }
    }

    /// Whether one of some patterns stands for a name.
    static func matches(_ patterns: [String], _ name: String) -> Bool {
        patterns.contains { pattern in
            guard pattern.hasSuffix(".*") else { return pattern == name }
            let beginning = pattern.dropLast()
            return name.hasPrefix(beginning) && name.count > beginning.count
        }
    }
}
