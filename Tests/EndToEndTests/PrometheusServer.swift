import Foundation
import WakeGateTestKit

/// A Prometheus server on a free port, with the alert rules of this repository; ended with the last reference.
final class PrometheusServer {
    static let rules = RunningGateway.root.appendingPathComponent("deploy/grafana/alerts.yml")

    private let process: ChildProcess
    private let address: String
    // Released last, when the process has ended.
    private let folder: TemporaryFolder

    /// Starts a server that scrapes and evaluates four times a second, so that a minute's scrapes take fifteen seconds.
    /// Alerts wait at most a second.
    ///
    /// - Parameter jobs: the scrape jobs, as the YAML list below `scrape_configs`.
    init(jobs: String) throws {
        self.folder = try TemporaryFolder()
        var rules = String(decoding: try Data(contentsOf: Self.rules), as: UTF8.self)
        rules.replace(/for: [0-9]+[mh]/, with: "for: 1s")
        try Data(rules.utf8).write(to: self.folder.url.appendingPathComponent("alerts.yml"))
        let configuration = """
            global: {scrape_interval: 250ms, scrape_timeout: 250ms, evaluation_interval: 250ms}
            rule_files: [alerts.yml]
            scrape_configs:
            \(jobs)
            """
        let file = self.folder.url.appendingPathComponent("prometheus.yml")
        try Data(configuration.utf8).write(to: file)
        let process = try ChildProcess(
            "prometheus",
            [
                "--config.file=\(file.path)", "--storage.tsdb.path=\(self.folder.path)/data",
                "--web.listen-address=127.0.0.1:0", "--log.format=logfmt",
            ]
        )
        self.process = process
        let pattern = /msg="Listening on" address=(127\.0\.0\.1:[1-9][0-9]*)/
        var address: String?
        try Self.eventually("no address in \(process.errors)") {
            address = process.errors.firstMatch(of: pattern).map { String($0.1) }
            return address != nil
        }
        self.address = address ?? ""
        // The server listens before it has read its files, and answers nothing until then.
        let ready = ["--silent", "--noproxy", "*", "--max-time", "60", "--fail", "http://\(self.address)/-/ready"]
        try Self.eventually("not ready: \(process.errors)") { try ChildProcess.run("curl", ready).status == 0 }
    }

    /// Returns the current values of the series of an expression.
    ///
    /// - Throws: if Prometheus rejects the expression.
    func query(_ expression: String) throws -> [Double] {
        let result = try self.ask("query", "--data-urlencode", "query=\(expression)")["result"] as? [[String: Any]]
        guard let result else { throw ChildProcess.Failure(description: "no series: \(expression)") }
        return result.compactMap { ($0["value"] as? [Any])?.last as? String }.compactMap { Double($0) }
    }

    /// Returns the names of the firing alerts and of the pending ones.
    func alerts() throws -> (firing: Set<String>, pending: Set<String>) {
        let alerts = try self.ask("alerts")["alerts"] as? [[String: Any]] ?? []
        func names(_ state: String) -> Set<String> {
            let found = alerts.filter { $0["state"] as? String == state }
            return Set(found.compactMap { ($0["labels"] as? [String: Any])?["alertname"] as? String })
        }
        return (names("firing"), names("pending"))
    }

    /// Polls until a condition holds, for at most a minute.
    static func eventually(_ what: @autoclosure () -> String, _ ask: () throws -> Bool) throws {
        guard try Polling.isSo(ask) else { throw ChildProcess.Failure(description: what()) }
    }

    private func ask(_ route: String, _ arguments: String...) throws -> [String: Any] {
        let common = ["--silent", "--show-error", "--noproxy", "*", "--max-time", "60", "--get"]
        let ended = try ChildProcess.run("curl", common + arguments + ["http://\(self.address)/api/v1/\(route)"])
        let answer = try JSONSerialization.jsonObject(with: Data(ended.output.utf8)) as? [String: Any]
        guard answer?["status"] as? String == "success", let data = answer?["data"] as? [String: Any] else {
            throw ChildProcess.Failure(description: "\(arguments): \(ended.output) \(ended.errors)")
        }
        return data
    }
}
