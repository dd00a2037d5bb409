package import Bytes
import Dashboard
package import Settings

/// A request of the worker or admin API, its path taken apart; tokens and topics are not checked yet.
package enum Route: Hashable {
    case subscribe(topic: String)
    case report(wake: String)
    case extend(wake: String)
    case drainStream(name: String)
    case register(topic: String)
    case unregister(token: String)
    case conditions(token: String)
    case statistics
    case topicStatistics(topic: String)
    case topics
    case explain(token: String)
    case devicePushes(token: String)
    case push(apnsID: String)
    case simulateLaunch(token: String)
    case simulateExpiration(token: String)
    case whatIf(token: String)
    case live
    case samples
    /// A file of the dashboard.
    case page(String)
    case backup
    case reload
    case faults(FaultRoute)
    case alive
    case ready
    case version
    case openAPI
    case metrics
}

extension Route {
    /// Whether HEAD is taken, which is GET without content. An event stream is nothing but content.
    var takesHead: Bool {
        switch self {
        case .statistics, .topicStatistics, .topics, .explain, .devicePushes, .push, .samples, .page, .faults(.list),
            .alive, .ready, .version, .openAPI, .metrics:
            true
        case .subscribe, .report, .extend, .drainStream, .register, .unregister, .conditions, .simulateLaunch,
            .simulateExpiration, .whatIf, .live, .backup, .reload, .faults:
            false
        }
    }
}

/// What is asked of the fault rules.
package enum FaultRoute: Hashable {
    case list
    case replace
    case add
    case clear
    case remove(id: String)
    case reset
}

/// What a method and a path come to.
package enum RouteMatch: Hashable {
    case found(Route)
    /// The path exists, for this method.
    case methodNotAllowed(allow: String)
    case notFound

    /// What a request comes to on a listener.
    ///
    /// - `path`: without its query.
    /// - `role`: the listener's; each serves its own routes.
    package init(method: ByteView, path: ByteView, role: ListenerRole) {
        let segments = path.string.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        // Before the first slash there is nothing.
        let known = segments[0].isEmpty ? Self.routes(Array(segments.dropFirst())) : []
        let routes = known.filter { Self.serves(role, $0.route) }
        let isHead = method == "HEAD"
        if let match = routes.first(where: { method == ByteView($0.method) || isHead && $0.route.takesHead }) {
            self = .found(match.route)
        } else if routes.isEmpty {
            self = .notFound
        } else {
            let methods = routes.flatMap { $0.route.takesHead ? ["\($0.method)", "HEAD"] : ["\($0.method)"] }
            self = .methodNotAllowed(allow: methods.joined(separator: ", "))
        }
    }

    /// The routes of a path, one a method.
    private static func routes(_ segments: [String]) -> [(method: StaticString, route: Route)] {
        guard segments.first == "v1" else {
            return switch segments {
            case [""]: [("GET", .page(DashboardFile.first))]
            case _ where segments.count == 2 && segments[0] == "dashboard": [("GET", .page(segments[1]))]
            case ["healthz"]: [("GET", .alive)]
            case ["readyz"]: [("GET", .ready)]
            case ["version"]: [("GET", .version)]
            case ["openapi.json"]: [("GET", .openAPI)]
            case ["metrics"]: [("GET", .metrics)]
            default: []
            }
        }
        switch segments.count {
        case 2 where segments[1] == "stats": return [("GET", .statistics)]
        case 2 where segments[1] == "live": return [("GET", .live)]
        case 2 where segments[1] == "samples": return [("GET", .samples)]
        case 2 where segments[1] == "backup": return [("POST", .backup)]
        case 2 where segments[1] == "reload": return [("POST", .reload)]
        case 2 where segments[1] == "faults":
            return [
                ("GET", .faults(.list)), ("PUT", .faults(.replace)), ("POST", .faults(.add)),
                ("DELETE", .faults(.clear)),
            ]
        case 3 where segments[1] == "faults":
            let id = segments[2]
            return id == "reset" ? [("POST", .faults(.reset))] : [("DELETE", .faults(.remove(id: id)))]
        case 2 where segments[1] == "topics": return [("GET", .topics)]
        case 3 where segments[1] == "wakes": return [("POST", .report(wake: segments[2]))]
        case 3 where segments[1] == "pushes": return [("GET", .push(apnsID: segments[2]))]
        case 3 where segments[1] == "devices":
            return [("GET", .explain(token: segments[2])), ("DELETE", .unregister(token: segments[2]))]
        case 4: return self.routes(segments[1], segments[2], segments[3])
        default: return []
        }
    }

    private static func routes(
        _ collection: String,
        _ name: String,
        _ action: String
    ) -> [(method: StaticString, route: Route)] {
        switch (collection, action) {
        case ("topics", "wakes"): [("GET", .subscribe(topic: name))]
        case ("wakes", "extend"): [("POST", .extend(wake: name))]
        case ("streams", "drain"): [("POST", .drainStream(name: name))]
        case ("topics", "devices"): [("POST", .register(topic: name))]
        case ("devices", "conditions"): [("PATCH", .conditions(token: name))]
        case ("devices", "pushes"): [("GET", .devicePushes(token: name))]
        case ("devices", "simulate-launch"): [("POST", .simulateLaunch(token: name))]
        case ("devices", "simulate-expiration"): [("POST", .simulateExpiration(token: name))]
        case ("devices", "what-if"): [("POST", .whatIf(token: name))]
        default: name == "topics" && collection == "stats" ? [("GET", .topicStatistics(topic: action))] : []
        }
    }

    private static func serves(_ role: ListenerRole, _ route: Route) -> Bool {
        switch route {
        case .register, .unregister, .conditions: true
        case .subscribe, .report, .extend, .drainStream: role != .admin
        case .statistics, .topicStatistics, .topics, .explain, .devicePushes, .push, .simulateLaunch,
            .simulateExpiration, .whatIf, .live, .samples, .page, .backup, .reload, .faults, .alive, .ready, .version,
            .openAPI, .metrics:
            role == .admin
        }
    }
}
