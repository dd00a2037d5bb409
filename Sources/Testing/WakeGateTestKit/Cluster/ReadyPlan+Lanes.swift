import Engine
import Policy

extension ReadyPlan {
    /// Whether a lane that waits for `target` is asked for.
    func takes(_ target: LaunchTarget) -> Bool {
        switch target.kind {
        case .push: return self.takesPushes
        case .urlSession: return Self.any(of: self.sessions, matches: target.name)
        case .appRefresh, .processing, .continued:
            return Self.any(of: self.tasks, matches: target.name)
                && Set(target.resources).isSubset(of: self.resources)
        }
    }

    private static func any(of patterns: [String], matches name: String) -> Bool {
        patterns.contains { pattern in
            guard pattern.hasSuffix(".*") else { return pattern == name }
            return name.hasPrefix(pattern.dropLast()) && name.utf8.count >= pattern.utf8.count
        }
    }
}
