import Foundation
import Testing

@Suite("The OpenAPI document and the server", .serialized, .timeLimit(.minutes(15)))
struct OpenAPITests {
    /// A listener with the documented operations that it serves, and the operations that are not tested.
    enum Listener: String, CaseIterable {
        case admin, plain

        var tags: [String] {
            switch self {
            case .admin: ["operator", "device", "fault"]
            case .plain: ["worker", "device"]
            }
        }

        var options: [String] {
            switch self {
            // Endless answers are covered by other tests.
            case .admin: ["--exclude-operation-id", "live", "--exclude-operation-id", "events"]
            // For a path that both listeners serve, each one allows only its own methods.
            case .plain: ["--exclude-operation-id", "subscribe", "--exclude-checks", "allow_header_conformance"]
            }
        }

        func address(of gateway: RunningGateway) -> String {
            switch self {
            case .admin: gateway.admin
            case .plain: gateway.plain
            }
        }
    }

    @Test("The document is of this version, and is served as JSON")
    func version() throws {
        let gateway = try RunningGateway()
        let document = try gateway.admin("/openapi.json")
        #expect(document.status == 200)
        #expect(document.headers["content-type"] == "application/json")
        #expect(document.value("openapi") as? String == "3.1.0")
        let version = try #require(try gateway.admin("/version").value("version") as? String)
        #expect(document.value("info", "version") as? String == version)
    }

    @Test(
        "Requests that schemathesis generates, valid or not, are answered as the document says",
        arguments: Listener.allCases
    )
    func conformance(listener: Listener) throws {
        let gateway = try RunningGateway()
        let document = RunningGateway.root.appendingPathComponent("Sources/Server/Gateway/Edge/OpenAPI/openapi.json")
            .path
        let settings = RunningGateway.client("schemathesis.toml")
        let tags = listener.tags.flatMap { ["--include-tag", $0] }
        let reached = gateway.folder.appendingPathComponent("reached")
        // The hooks give schemathesis the wakes and the streams of a worker.
        let variables = [
            "PYTHONPATH=\(URL(fileURLWithPath: settings).deletingLastPathComponent().path)",
            "PYTHONDONTWRITEBYTECODE=1", "SCHEMATHESIS_HOOKS=schemathesis_hooks", "WAKEGATE_PLAIN=\(gateway.plain)",
            "WAKEGATE_REACHED=\(reached.path)",
        ]
        let program = URL(fileURLWithPath: RunningGateway.python).deletingLastPathComponent()
            .appendingPathComponent("schemathesis").path
        let ended = try ChildProcess(
            "env",
            variables + [
                program, "--config-file", settings, "run", document, "--url",
                "http://\(listener.address(of: gateway))", "--phases", "coverage,fuzzing,stateful",
                "--seed", "1", "--max-examples", "10", "--request-timeout", "30", "--no-color",
            ] + tags + listener.options,
            folder: gateway.folder
        ).finish(within: 840)
        #expect(ended.status == 0, "\(ended.output)")
        #expect(ended.output.contains("Tested: \(try self.tested(gateway, listener))"), "\(ended.output)")
        for phase in ["Coverage", "Fuzzing", "Stateful"] {
            #expect(ended.output.contains("\u{2705} \(phase)"), "\(phase): \(ended.output)")
        }
        if listener == .plain {
            let names = Set(try String(contentsOf: reached, encoding: .utf8).split(separator: "\n"))
            #expect(names == ["drainStream", "extendWake", "releaseWake", "reportResult"])
            #expect(try #require(try gateway.stats().integer("wakes", "launched")) > 0)
        }
        #expect(try gateway.admin("/readyz").status == 200)
    }

    /// Returns the number of tested operations of a listener.
    private func tested(_ gateway: RunningGateway, _ listener: Listener) throws -> Int {
        let paths = try #require(try gateway.admin("/openapi.json").value("paths") as? [String: [String: Any]])
        let tags = paths.values.flatMap(\.values).compactMap { (($0 as? [String: Any])?["tags"] as? [String])?.first }
        return tags.count { listener.tags.contains($0) } - listener.options.count { $0 == "--exclude-operation-id" }
    }
}
