import Foundation
import Testing

@Suite("Prometheus, the real one", .serialized, .timeLimit(.minutes(15)))
struct PrometheusTests {
    private let topic = "com.example.metrics"

    private func token(_ number: Int) -> String { String(repeating: "\(number % 10)a7e", count: 16) }

    private func job(_ gateway: RunningGateway) -> String {
        "  - {job_name: wakegate, static_configs: [{targets: [\"\(gateway.admin)\"]}]}"
    }

    /// Returns all expressions of the dashboard, with its variables filled in.
    private func dashboard() throws -> [String] {
        let file = RunningGateway.root.appendingPathComponent("deploy/grafana/dashboard.json")
        let dashboard = try JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [String: Any]
        let panels = dashboard?["panels"] as? [[String: Any]] ?? []
        let targets = panels.flatMap { $0["targets"] as? [[String: Any]] ?? [] }
        return targets.compactMap { $0["expr"] as? String }.map {
            $0.replacing("$instance", with: ".*").replacing("$__rate_interval", with: "1m")
        }
    }

    /// The wakes that the worker takes in addition to pushes.
    private static let taken = ["--task", "refresh", "--task", "clean", "--task", "export", "--session", "downloads"]
    private static let kinds = ["appRefresh", "processing", "continued", "urlSession"]

    /// Registers a device and submits a task for it.
    private func submit(
        _ gateway: RunningGateway,
        _ device: String,
        _ body: String,
        appState: String = "background"
    ) throws {
        let registered = try gateway.wakegate("device", "register", device, "--topic", self.topic)
        #expect(registered.status == 0, "\(registered.errors)")
        let conditions = #"{"appState":"\#(appState)"}"#
        let reported = try gateway.edge("/v1/devices/\(device)/conditions", "-X", "PATCH", "-d", conditions)
        #expect(reported.status == 200, "\(reported)")
        let submitted = try gateway.edge("/v1/devices/\(device)/tasks", "-d", body)
        #expect(submitted.status == 201, "\(submitted)")
    }

    /// Runs a task of each kind, and the wake of a session.
    private func runTasks(_ gateway: RunningGateway) throws {
        try self.submit(gateway, self.token(4), #"{"identifier":"refresh","kind":"appRefresh"}"#)
        try self.submit(gateway, self.token(5), #"{"identifier":"clean","kind":"processing"}"#)
        let export = #"{"identifier":"export","kind":"continued","title":"Export","subtitle":"All"}"#
        try self.submit(gateway, self.token(6), export, appState: "active")
        let downloads = "/v1/devices/\(self.token(5))/sessions/downloads"
        let finished = try gateway.edge(downloads, "-d", #"{"finished":2}"#)
        #expect(finished.status == 202, "\(finished)")
    }

    @Test("promtool has nothing to say about the metrics of a gateway that has worked, nor about the alert rules")
    func promtool() throws {
        let gateway = try RunningGateway()
        let worker = try gateway.curlWorker(topic: self.topic)
        for number in 0..<4 { #expect(try gateway.push(self.token(number), topic: self.topic).status == 200) }
        let wake = try #require(try worker.next()?.id)
        #expect(try gateway.edge("/v1/wakes/\(wake)", "-d", #"{"result":"newData"}"#).status == 204)
        #expect(try gateway.push("00", topic: self.topic).status == 400)
        let metrics = try gateway.admin("/metrics")
        #expect(metrics.status == 200)
        #expect(metrics.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8")
        #expect(!metrics.body.contains(self.token(0)))
        let checked = try ChildProcess.run("promtool", ["check", "metrics"], input: metrics.body)
        #expect(checked.status == 0 && checked.output + checked.errors == "", "\(checked)")
        for arguments in [["check", "rules", "alerts.yml"], ["test", "rules", "alerts-test.yml"]] {
            let folder = PrometheusServer.rules.deletingLastPathComponent()
            let ended = try ChildProcess.run("promtool", arguments, folder: folder)
            #expect(ended.status == 0, "\(ended)")
        }
        #expect(try gateway.edge("/metrics").status == 405)
        #expect(try gateway.admin("/metrics", "-X", "POST").status == 405)
    }

    @Test("Prometheus scrapes, each expression of the dashboard has data, and a stopped worker raises an alert")
    func scrapes() throws {
        let gateway = try RunningGateway()
        let prometheus = try PrometheusServer(jobs: self.job(gateway))
        let script = "exit 0"
        var worker: WorkerProcess? = try WorkerProcess(gateway, topic: self.topic, Self.taken, script: script)
        for number in 0..<3 { #expect(try gateway.push(self.token(number), topic: self.topic).status == 200) }
        #expect(try gateway.push("00", topic: self.topic).status == 400)
        try gateway.eventually("three wakes") { try gateway.stats().integer("pushes", "completed") == 3 }
        try PrometheusServer.eventually("three wakes scraped") {
            try prometheus.query("wakegate_pushes_completed_total") == [3]
        }
        try self.runTasks(gateway)
        try PrometheusServer.eventually("tasks of each lane scraped") {
            let ended = #"sum by (kind) (wakegate_task_wakes_ended_total{result="success"}) > 0"#
            return try prometheus.query(ended).count == Self.kinds.count
        }
        // On a busy machine, alerts about lateness may fire for a while.
        try PrometheusServer.eventually("none of \((try? prometheus.alerts().firing) ?? [])") {
            try prometheus.alerts().firing == []
        }

        worker?.process.send(SIGTERM)
        #expect(try worker?.process.finish().status == 0)
        worker = nil
        #expect(try gateway.push(self.token(7), topic: self.topic).status == 200)
        try PrometheusServer.eventually("the alert fires") {
            try prometheus.alerts().firing.contains("WakeGateNoWorker")
        }
        // A device without earlier tasks: the interval of the others has not passed.
        try self.submit(gateway, self.token(8), #"{"identifier":"clean","kind":"processing"}"#)
        try PrometheusServer.eventually("the alert of tasks fires") {
            try prometheus.alerts().firing.contains("WakeGateTasksWaitForWorker")
        }
        worker = try WorkerProcess(gateway, topic: self.topic, Self.taken, script: script)
        // Alerts about lateness may fire as well.
        try PrometheusServer.eventually("the alerts have gone") {
            try prometheus.alerts().firing.isDisjoint(with: ["WakeGateNoWorker", "WakeGateTasksWaitForWorker"])
        }

        // Count successful scrapes only: on a busy machine, one may be late and is repeated.
        try PrometheusServer.eventually("sixty scrapes") {
            try prometheus.query("sum_over_time(up[10m]) >= 60").count == 1
        }
        for what in ["pushes", "tasks", "sessions"] {
            #expect(try prometheus.query("max_over_time(wakegate_\(what)_unaccounted[10m])") == [0])
        }
        // Expressions that only show nonzero series may be empty.
        for expression in try self.dashboard() where !expression.hasSuffix("> 0") {
            try PrometheusServer.eventually("data of \(expression)") { try !prometheus.query(expression).isEmpty }
        }
        withExtendedLifetime(worker) {}
    }

    @Test("With an operator's token Prometheus scrapes a reachable admin listener, and without one it does not")
    func afar() throws {
        let gateway = try ServedGateway()
        let file = gateway.folder.appendingPathComponent("prometheus.token")
        try Data(try gateway.issue("--role", "operator").token.utf8).write(to: file)
        let target = gateway.url(.adminAfar).replacing("http://", with: "")
        let prometheus = try PrometheusServer(
            jobs: """
                  - job_name: wakegate
                    authorization: {credentials_file: "\(file.path)"}
                    static_configs: [{targets: ["\(target)"]}]
                  - job_name: nobody
                    static_configs: [{targets: ["\(target)"]}]
                """
        )
        try PrometheusServer.eventually("ten scrapes of each") {
            try prometheus.query("count_over_time(up[10m]) >= 10").count == 2
                && prometheus.query(#"sum_over_time(up{job="wakegate"}[10m]) >= 10"#).count == 1
        }
        #expect(try prometheus.query(#"max_over_time(up{job="nobody"}[10m])"#) == [0])
        #expect(try prometheus.query("count(wakegate_build_info)") == [1])
    }
}
