import Gateway
import Testing
import Wire

@Suite("Which operation a request comes to")
struct OperationTableTests {
    /// The name of what is found and its parameter, the methods that are allowed, or nil.
    private func match(_ method: String, _ path: String, _ role: ListenerRole) -> String? {
        method.withByteView { method in
            path.withByteView { path in
                switch OperationTable.gateway.match(method: method, path: path, on: role) {
                case .found(let operation, let parameters):
                    operation.path.text.count { $0 == "{" } < 2
                        ? "\(operation.name)(\(path[parameters.first].string))"
                        : "\(operation.name)(\(path[parameters.first].string), \(path[parameters.second].string))"
                case .methodNotAllowed(let allow): "allow \(allow)"
                case .notFound: nil
                }
            }
        }
    }

    private func path(of operation: Operation, _ parameter: String) -> String {
        operation.path.text.split(separator: "/", omittingEmptySubsequences: false)
            .map { $0.hasPrefix("{") ? parameter : String($0) }
            .joined(separator: "/")
    }

    @Test("Each is found where it is served, with its parameter, and nowhere else")
    func every() {
        for operation in Operation.all {
            for role in ListenerRole.allCases {
                let found = self.match("\(operation.method.name)", self.path(of: operation, "x"), role)
                let count = operation.path.text.count { $0 == "{" }
                let values = [String](repeating: "x", count: count).joined(separator: ", ")
                let expected = "\(operation.name)(\(values))"
                #expect((found == expected) == operation.listeners.contains(role), "\(operation.name) on \(role)")
                let head = self.match("HEAD", self.path(of: operation, "x"), role)
                if operation.takesHead, operation.listeners.contains(role) { #expect(head == expected) }
            }
        }
    }

    @Test("No two have one name, or one method and one path; and a path is spelt in one way")
    func unique() {
        #expect(Set(Operation.all.map(\.name)).count == Operation.all.count)
        let places = Operation.all.map { "\($0.method.name) \(self.path(of: $0, "{}"))" }
        #expect(Set(places).count == places.count)
        let spellings = Dictionary(grouping: Operation.all) { self.path(of: $0, "{}") }
        for (path, operations) in spellings { #expect(Set(operations.map(\.path)).count == 1, "\(path)") }
    }

    @Test(
        "Paths on the listener of operators",
        arguments: [
            ("GET", "/", "dashboard()"), ("GET", "/dashboard/main.js", "dashboardFile(main.js)"),
            ("GET", "/dashboard/", "dashboardFile()"), ("POST", "/dashboard", nil), ("GET", "", nil), ("GET", "*", nil),
            ("GET", "//", nil), ("GET", "/v1", nil), ("GET", "/v1/", nil), ("GET", "v1/stats", nil),
            ("GET", "/v1/stats", "statistics()"), ("GET", "/v1/stats/", nil), ("get", "/v1/stats", "allow GET, HEAD"),
            ("GET", "/v1/stats/topics/wakes", "topicStatistics(wakes)"), ("GET", "/v1/topics/topics/wakes", nil),
            ("GET", "/v1/devices/", "explainDevice()"), ("GET", "/v1/devices", "listDevices()"),
            ("GET", "/v1/pushes", "listPushes()"), ("POST", "/v1/pushes", "allow GET, HEAD"),
            ("POST", "/v1/devices", "allow GET, HEAD"), ("GET", "/v1/devices/ab", "explainDevice(ab)"),
            ("DELETE", "/v1/devices/ab", "removeDevice(ab)"), ("PUT", "/v1/devices/ab", "allow GET, HEAD, DELETE"),
            ("GET", "/v1/devices/ab/tasks", "listTasks(ab)"), ("GET", "/v1/tasks", "allTasks()"),
            ("PATCH", "/v1/devices/ab/tasks", "allow GET, HEAD, POST, DELETE"),
            ("DELETE", "/v1/devices/ab/tasks/a.b", "cancelTask(ab, a.b)"),
            ("DELETE", "/v1/devices/ab/tasks/", "cancelTask(ab, )"), ("DELETE", "/v1/devices/ab/tasks/a/b", nil),
            ("POST", "/v1/devices/ab/tasks/a.b/simulate-launch", "simulateTaskLaunch(ab, a.b)"),
            ("GET", "/v1/devices/ab/", nil), ("GET", "/v1/devices/ab/pushes/1", nil),
            ("POST", "/v1/devices//simulate-launch", "simulateLaunch()"), ("HEAD", "/v1/live", "allow GET"),
            ("GET", "/v1/faults/reset", "allow POST"), ("DELETE", "/v1/faults/reset", "allow POST"),
            ("DELETE", "/v1/faults/1", "removeFaultRule(1)"),
            ("PATCH", "/v1/faults", "allow GET, HEAD, PUT, POST, DELETE"), ("POST", "/3/device/ab", nil),
        ] as [(String, String, String?)]
    )
    func admin(method: String, path: String, expected: String?) {
        #expect(self.match(method, path, .admin) == expected)
    }

    @Test(
        "Paths on the listeners of workers",
        arguments: [
            ("GET", "/v1/topics/a/wakes", "subscribe(a)"), ("HEAD", "/v1/topics/a/wakes", "allow GET"),
            ("GET", "/v1/topics/topics/wakes", "subscribe(topics)"), ("POST", "/v1/wakes/1", "reportResult(1)"),
            ("POST", "/v1/wakes/1/extend", "extendWake(1)"), ("POST", "/v1/wakes/1/release", "releaseWake(1)"),
            ("GET", "/v1/wakes/1/release", "allow POST"), ("PUT", "/v1/devices/ab", "allow DELETE"),
            ("POST", "/v1/streams/0-1-1-1/drain", "drainStream(0-1-1-1)"), ("GET", "/v1/stats", nil),
            ("POST", "/v1/devices/ab/sessions/s", "transfersFinished(ab, s)"),
            ("GET", "/v1/topics/a/resources", "resources(a)"), ("GET", "/v1/tasks", nil),
            ("POST", "/v1/wakes/1/progress", "reportProgress(1)"),
            ("POST", "/v1/devices/ab/tasks/a.b/simulate-launch", nil),
            ("POST", "/v1/topics/a/devices", "registerDevice(a)"), ("GET", "/", nil), ("GET", "/healthz", nil),
        ] as [(String, String, String?)]
    )
    func edge(method: String, path: String, expected: String?) {
        #expect(self.match(method, path, .edge) == expected)
        #expect(self.match(method, path, .plain) == expected)
    }

    @Test("The way of pushes, which is found without the table, is that of pushes and of nothing else in the table")
    func pushes() {
        for operation in Operation.all {
            for role in ListenerRole.allCases where operation.listeners.contains(role) {
                let isOfProviders = self.path(of: operation, "ab").withByteView {
                    Operation.isOfProviders(path: $0, on: role)
                }
                #expect(isOfProviders == (operation.access.role == .provider), "\(operation.name) on \(role)")
            }
        }
        #expect(!Operation.isOfProviders(path: ByteView("/3/device/ab"), on: .admin))
        // What the provider API's own check says of a request is what the table says.
        for (method, path) in [("POST", "/3/device/ab"), ("GET", "/3/device/ab"), ("POST", "/3/devices/ab")] {
            let found = self.match(method, path, .edge)
            let checked = method.withByteView { method in
                path.withByteView { path in
                    do throws(APNSReason) {
                        var token = DeviceToken()
                        _ = try PushTarget.readToken(method: method, path: path, into: &token)
                        return "push(\(path.dropFirst("/3/device/".utf8.count).string))"
                    } catch {
                        return error == .methodNotAllowed ? "allow POST" : "\(error)"
                    }
                }
            }
            #expect(checked == found ?? "badPath")
        }
    }
}
